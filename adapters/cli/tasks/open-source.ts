import { isUrl } from '../arguments.ts'
import { usageError, type Io } from '../command.ts'
import { ACCESS_OPTIONS, accessOption, readAccess, type AccessValues } from '../talk/agent-connection.ts'
import { agentSource } from './agent-source.ts'
import type { Report, TaskSource } from './source.ts'
import { storeSource } from './store-source.ts'

/** The options that say where tasks are. Without `--db`, the first argument is the URL of an agent. */
export const SOURCE_OPTIONS = {
  db: { type: 'string' },
  ...ACCESS_OPTIONS,
  tenant: { type: 'string' },
  principal: { type: 'string' }
} as const

type SourceValues = { readonly [Name in 'db' | 'tenant' | 'principal']?: string | undefined } & AccessValues

/** Where tasks are: exactly one of `db` and `url`. */
export type Place = SourceValues & ({ readonly url: string } | { readonly url: undefined; readonly db: string })

/** The place that arguments name, and the others. Throws a usage error for none, or for two. */
export function readPlace(
  values: SourceValues,
  positionals: readonly string[]
): { place: Place; rest: readonly string[] } {
  const [first, ...others] = positionals
  const isGiven = first !== undefined && isUrl(first)
  if (values.db !== undefined && isGiven) throw usageError('URL and --db FILE exclude each other. Give one of them.')
  if (values.db !== undefined) return { place: { ...values, url: undefined, db: values.db }, rest: positionals }
  if (isGiven) return { place: { ...values, url: first }, rest: others }
  throw usageError(
    first === undefined
      ? 'URL or --db FILE is missing.'
      : `${JSON.stringify(first)} is not a URL. Give the agent's URL first, or --db FILE.`
  )
}

/** Opens a source, calls `use`, and always closes it. */
export async function withSource<T>(
  place: Place,
  report: Report,
  io: Io,
  use: (source: TaskSource) => Promise<T>
): Promise<T> {
  const source = await open(place, report, io)
  try {
    return await use(source)
  } finally {
    await source.close()
  }
}

async function open(place: Place, report: Report, io: Io): Promise<TaskSource> {
  const { tenant, principal } = place
  if (place.url === undefined) {
    const option = accessOption(place)
    if (option !== undefined) throw usageError(`${option} is for a URL; a file takes none.`)
    return storeSource(place.db, { tenant, principal }, report, io)
  }
  if (tenant !== undefined || principal !== undefined)
    throw usageError('--tenant and --principal are for --db; with a URL, the key decides which tasks you see.')
  return agentSource({ url: place.url, access: readAccess(place, io.env) }, io)
}
