import { readApiKey } from '../api-key.ts'
import { usageError, type Io } from '../command.ts'
import { agentSource } from './agent-source.ts'
import type { Report, TaskSource } from './source.ts'
import { storeSource } from './store-source.ts'

/** The options that name the place of tasks. */
export const SOURCE_OPTIONS = {
  db: { type: 'string' },
  url: { type: 'string' },
  'api-key': { type: 'string' },
  'credential-origin': { type: 'string', multiple: true },
  tenant: { type: 'string' },
  principal: { type: 'string' }
} as const

type SourceValues = { readonly [Name in Exclude<keyof typeof SOURCE_OPTIONS, 'credential-origin'>]?: string | undefined } & { readonly 'credential-origin'?: readonly string[] | undefined }

/** Opens the source that the options name, calls `use`, and always closes it. Throws a usage error unless exactly one is named. */
export async function withSource<T>(values: SourceValues, report: Report, io: Io, use: (source: TaskSource) => Promise<T>): Promise<T> {
  const source = await open(values, report, io)
  try {
    return await use(source)
  } finally {
    await source.close()
  }
}

async function open({ db, url, 'api-key': key, 'credential-origin': credentialOrigins, tenant, principal }: SourceValues, report: Report, io: Io): Promise<TaskSource> {
  if (db !== undefined && url !== undefined) throw usageError('--db FILE and --url URL exclude each other. Give one of them.')
  if (db !== undefined) {
    if (key !== undefined || credentialOrigins) throw usageError(`--${key === undefined ? 'credential-origin' : 'api-key'} is for --url; a file takes none.`)
    return storeSource(db, { tenant, principal }, report, io)
  }
  if (url === undefined) throw usageError('--db FILE or --url URL is missing.')
  if (tenant !== undefined || principal !== undefined) throw usageError('--tenant and --principal are for --db; with --url, the key decides which tasks you see.')
  return agentSource({ url, apiKey: readApiKey(key), credentialOrigins }, io)
}
