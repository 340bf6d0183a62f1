import type { Agent } from '../../../runtime/agent/define-agent.ts'
import { INSTALL_TOOLS } from '../../drawing/layout/layout.ts'
import type * as testing from '../../testing/index.ts'
import type { PathKind } from '../../testing/plan/path-kinds.ts'
import { CommandError, usageError } from '../command.ts'
import { didYouMean } from '../text/did-you-mean.ts'

/** The module that makes tests of an agent's chart. */
export type Testing = typeof testing

/** Loads it. Throws CommandError without @xstate/graph, an optional peer. */
export async function loadTesting(load: () => Promise<Testing> = () => import('../../testing/index.ts')): Promise<Testing> {
  try {
    return await load()
  } catch (cause) {
    throw new CommandError(`Finding the paths of a chart needs @xstate/graph. ${INSTALL_TOOLS}`, { cause })
  }
}

/** The path kind that `--paths` names. Throws CommandError for an unknown one. */
export function readKind(text: string, kinds: Testing['PATH_KINDS']): PathKind {
  const kind = kinds.find(kind => kind === text)
  if (!kind) throw usageError(`There is no --paths ${text}. ${didYouMean(text, kinds)}`)
  return kind
}

/** Turns an error of `planFor`, or of `proveAgent`, into a CommandError. */
export function planError(file: string, { name }: Agent['card'], done = 'tested'): (cause: unknown) => never {
  return cause => {
    const [what = '', ...lines] = (cause as Error).message.split('\n')
    throw new CommandError(`${name}, of ${file}, cannot be ${done}: ${what}`, { cause, details: lines.join('\n') })
  }
}
