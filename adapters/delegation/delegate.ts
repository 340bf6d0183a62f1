import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError, type A2AErrorOptions, type ErrorCode } from '../../machines/protocol/errors.ts'
import type { Words } from '../../runtime/authoring/words.ts'
import type { WorkArguments } from '../../runtime/authoring/work-arguments.ts'
import {
  checkArgument,
  checkOptions,
  textSuchAs,
  textsSuchAs,
  TRUE_OR_FALSE,
  type OptionKinds
} from '../../runtime/primitives/options.ts'
import { ignoreRejection } from '../../runtime/primitives/promises.ts'
import type { RemoteOutcome } from './delegation.ts'
import { forwardEvents, type ForwardOptions } from './forward-events.ts'
import { agentBehind, type RemoteAgent } from './remote-agent.ts'
import { remoteLogic } from './remote-logic.ts'
import type { RemoteInput, RemoteResult } from './remote/remote-events.ts'

/** The options of `delegate`. */
export interface DelegateOptions extends ForwardOptions, Omit<RemoteInput, 'message'> {}

const OPTIONS: OptionKinds<DelegateOptions> = {
  progress: TRUE_OR_FALSE,
  artifacts: TRUE_OR_FALSE,
  deadlineMs: true,
  contextId: textSuchAs('the contextId of an earlier result'),
  referenceTaskIds: textsSuchAs('[taskId]')
}

/** The journal entry of a completed delegation. */
type Ended =
  | { readonly result: RemoteResult }
  | { readonly error: Pick<A2AErrorOptions, 'metadata'> & { readonly code: ErrorCode; readonly message: string } }

/**
 * Delegates a task to another agent, for work that is a function or generator. The agent's progress and artifacts are forwarded to the
 * calling task. Its questions become questions of that task, and the answers are sent to the agent. If the task is canceled or ends,
 * the agent's task is canceled. Resolves with the agent's result. Rejects with an A2AError that names the agent and the reason, or
 * with DeadlineExceeded after `deadlineMs`.
 *
 * It is a step: when the work runs again, a completed delegation returns its stored result, and a pending one is resumed.
 */
export function delegate(
  work: Pick<WorkArguments, 'step' | 'spawn'>,
  agent: RemoteAgent,
  message: Words,
  options: DelegateOptions = {}
): Promise<RemoteResult> {
  checkOptions(options, OPTIONS, 'delegate', 'delegate(work, agent, message, { deadlineMs: 60_000 })')
  checkArgument(
    agent,
    [isObject, 'an agent that remoteAgent made as its second argument'],
    'delegate(work, agent, message)'
  )
  return ignoreRejection(delegated(work, agent, message, options))
}

async function delegated(
  work: Pick<WorkArguments, 'step' | 'spawn'>,
  agent: RemoteAgent,
  message: Words,
  options: DelegateOptions
): Promise<RemoteResult> {
  const shared = agentBehind(agent)
  const { progress: _, artifacts: __, ...input } = options
  const ended = await work.step(`delegate to ${shared.name}`, ({ idempotencyKey, signal }) => {
    const logic = remoteLogic<RemoteOutcome>(shared, {
      runOf: () => idempotencyKey,
      listenerOf: self => forwardEvents(self, idempotencyKey, shared.title, options),
      endOf: outcome => ({ status: 'done', output: outcome, error: undefined })
    })
    return new Promise<Ended>((resolve, reject) => {
      const child = work.spawn(logic, { input: { message, ...input } })
      child.subscribe({
        complete: () => {
          const { status, output } = child.getSnapshot()
          if (status === 'done') settle(output)
          else reject(signal.reason)
        },
        error: reject
      })
      function settle(outcome: RemoteOutcome): void {
        if ('result' in outcome) resolve(outcome)
        else if (isA2AError(outcome.error))
          resolve({
            error: { code: outcome.error.code, message: outcome.error.message, metadata: outcome.error.metadata }
          })
        else reject(outcome.error)
      }
    })
  })
  if ('result' in ended) return ended.result
  const { code, message: words, metadata = {} } = ended.error
  throw new A2AError(code, words, { metadata })
}
