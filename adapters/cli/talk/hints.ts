import { isInterrupted, isTerminal, type TaskState } from '../../../machines/protocol/states.ts'
import { sendLine, watchLine } from '../text/paste-lines.ts'
import { oneLine } from '../text/terminal-text.ts'
import type { Watched } from './watch-stream.ts'

/** Where hints point to: the agent and its binding, the folder for results, the origins that may have the key. A key itself is never shown. */
export interface HintTarget {
  readonly url: string
  readonly out: string | undefined
  readonly apiKey: string | undefined
  readonly binding?: string | undefined
  readonly credentialOrigins?: readonly string[] | undefined
}

/** How to answer a task that waits for its client, as lines. */
export function answerHint({ contextId, task }: Watched, target: HintTarget): string[] {
  return hint('Answer with', sendLine({ ...placeOf(target), text: '…', context: contextId, task: task?.id }))
}

/** How to continue a conversation: by an answer if its task waits for one, else by a message that refers to it. */
export function continueHint(watched: Watched, target: HintTarget): string[] {
  const { contextId, task } = watched
  if (contextId === undefined) return []
  if (task && isInterrupted(task.state)) return answerHint(watched, target)
  return hint('Go on with', sendLine({ ...placeOf(target), text: '…', context: contextId, reference: task?.id }))
}

/** How to see a task again that is no longer watched; nothing if there is none. */
export function watchHint({ task }: Watched, target: HintTarget): string[] {
  if (!task) return []
  return hint(`Task ${oneLine(task.id)} ${standing(task.state)}. Watch it with`, watchLine({ ...placeOf(target), task: task.id }))
}

function standing(state: TaskState): string {
  if (isTerminal(state)) return 'has ended'
  return isInterrupted(state) ? 'waits for an answer' : 'goes on without you'
}

function placeOf({ url, out, binding, credentialOrigins, apiKey }: HintTarget) {
  return { url, out, binding, credentialOrigins, needsKey: apiKey !== undefined }
}

function hint(what: string, line: string): string[] {
  return ['', `${what}:`, `  ${line}`]
}
