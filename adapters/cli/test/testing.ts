import type { Agent } from '../../../runtime/index.ts'
import { INSTALL_TOOLS } from '../../drawing/layout.ts'
import { BoundError, type BoundOptions } from '../../testing/bounds.ts'
import { PATH_KINDS, type PathKind } from '../../testing/plan/cases.ts'
import { CommandError, EXIT, usageError } from '../command.ts'
import { didYouMean } from '../text/format.ts'

/** Loads what finds the paths of a chart. Throws CommandError without @xstate/graph, an optional peer. */
export async function loadPlanning(
  load = () => import('../../testing/plan/plan.ts')
): Promise<Awaited<ReturnType<typeof load>>> {
  try {
    return await load()
  } catch (cause) {
    throw new CommandError(`Finding the paths of a chart needs @xstate/graph. ${INSTALL_TOOLS}`, { cause })
  }
}

/** The path kind that `--paths` names. Throws CommandError for an unknown one. */
export function readKind(text: string): PathKind {
  const kind = PATH_KINDS.find(kind => kind === text)
  if (!kind) throw usageError(`There is no --paths ${text}. ${didYouMean(text, PATH_KINDS)}`)
  return kind
}

/** The options that bound an exploration. */
export const BOUND_FLAGS = { limit: { type: 'string' }, time: { type: 'string' }, memory: { type: 'string' } } as const

/** Their help, with the default number of configurations. */
export function boundsHelp(configurations: number, width: number): string {
  const lines = [
    ['--limit NUMBER', `the maximum number of configurations per opening message; default ${configurations}`],
    ['--time SECONDS', 'the longest time of the search for them; default 120'],
    ['--memory MB', 'the most memory for them; default 1024']
  ] as const
  return lines.map(([option, meaning]) => `  ${option.padEnd(width)} ${meaning}\n`).join('')
}

/** The bounds that these options set. Throws CommandError for one that is no number above 0. */
export function readBounds(given: { readonly [Name in keyof typeof BOUND_FLAGS]?: string | undefined }): BoundOptions {
  const { limit, time, memory } = given
  return {
    ...(limit !== undefined && { limit: positive('--limit', limit, Number.isInteger) }),
    ...(time !== undefined && { timeLimitMs: positive('--time', time) * 1000 }),
    ...(memory !== undefined && { memoryLimitBytes: positive('--memory', memory) * 2 ** 20 })
  }
}

function positive(option: string, text: string, isRight = Number.isFinite): number {
  const number = Number(text)
  if (!(number > 0 && isRight(number))) throw usageError(`${option} has to be a number above 0, not ${text}.`)
  return number
}

/** Turns an error of `planFor`, or of `proveAgent`, into a CommandError. */
export function planError(file: string, { name }: Agent['card'], done = 'tested'): (cause: unknown) => never {
  return cause => {
    const [what = '', ...lines] = (cause as Error).message.split('\n')
    // What met a bound is not refuted, and not proved.
    const exitCode = cause instanceof BoundError ? EXIT.waiting : EXIT.error
    throw new CommandError(`${name}, of ${file}, cannot be ${done}: ${what}`, {
      cause,
      exitCode,
      details: lines.join('\n')
    })
  }
}
