import { isInterrupted, isTerminal, type TaskState } from '../../../machines/protocol/states.ts'
import { sendLine, watchLine, type PasteLine } from '../text/paste-lines.ts'
import { oneLine } from '../text/terminal-text.ts'
import type { Access } from './agent-connection.ts'
import type { Watched } from './watch-stream.ts'

/** The target of the commands in hints: agent, binding, output folder, and what identifies the caller. Keys and values of headers are never printed. */
export interface HintTarget {
  readonly url: string
  readonly out: string | undefined
  readonly access: Access
  readonly binding?: string | undefined
}

/** Lines that show how to answer a task that waits for its client. */
export function answerHint({ contextId, task }: Watched, target: HintTarget): string[] {
  return hint('Answer with', sendLine({ ...placeOf(target), text: '…', context: contextId, task: task?.id }))
}

/** Lines that show how to continue a context: an answer if its task waits for one, else a message that refers to the task. */
export function continueHint(watched: Watched, target: HintTarget): string[] {
  const { contextId, task } = watched
  if (contextId === undefined) return []
  if (task && isInterrupted(task.state)) return answerHint(watched, target)
  return hint('Continue with', sendLine({ ...placeOf(target), text: '…', context: contextId, reference: task?.id }))
}

/** Lines that show how to watch the task again. Empty without a task. */
export function watchHint({ task }: Watched, target: HintTarget): string[] {
  if (!task) return []
  return hint(
    `Task ${oneLine(task.id)} ${standing(task.state)}. Watch it with`,
    watchLine({ ...placeOf(target), task: task.id })
  )
}

function standing(state: TaskState): string {
  if (isTerminal(state)) return 'has ended'
  return isInterrupted(state) ? 'waits for an answer' : 'goes on without you'
}

/** The parts of a command that calls the same agent. Credentials of the environment are there again. */
export function placeOf({
  url,
  out,
  binding,
  access: { headers = {}, credentials, credentialOrigins }
}: HintTarget): PasteLine {
  return {
    url,
    out,
    binding,
    credentialOrigins,
    headers: Object.keys(headers),
    needsKey: credentials !== undefined && !credentials.onlyIfAsked
  }
}

function hint(what: string, line: string): string[] {
  return ['', `${what}:`, `  ${line}`]
}
