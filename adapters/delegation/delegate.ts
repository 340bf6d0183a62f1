import { A2AError, isA2AError, type A2AErrorOptions, type ErrorCode } from '../../machines/protocol/errors.ts'
import type { Words } from '../../runtime/authoring/words.ts'
import type { WorkArguments } from '../../runtime/authoring/work-arguments.ts'
import { checkOptions, textSuchAs, textsSuchAs, TRUE_OR_FALSE, type OptionKinds } from '../../runtime/primitives/options.ts'
import { ignoreRejection } from '../../runtime/primitives/promises.ts'
import type { RemoteOutcome } from './delegation.ts'
import { forwardEvents, type ForwardOptions } from './forward-events.ts'
import { agentBehind, type RemoteAgent } from './remote-agent.ts'
import { remoteLogic } from './remote-logic.ts'
import type { RemoteInput, RemoteResult } from './remote/remote-events.ts'

/** How a task is delegated. */
export interface DelegateOptions extends ForwardOptions, Omit<RemoteInput, 'message'> {}

const OPTIONS: OptionKinds<DelegateOptions> = {
  progress: TRUE_OR_FALSE, artifacts: TRUE_OR_FALSE, deadlineMs: true,
  contextId: textSuchAs("the contextId of an earlier result"), referenceTaskIds: textsSuchAs('[taskId]')
}

/** What a journal keeps of a delegation that has ended. */
type Ended = { readonly result: RemoteResult } | { readonly error: Pick<A2AErrorOptions, 'metadata'> & { readonly code: ErrorCode; readonly message: string } }

/**
 * Has another agent do a task for work as a function or generator, from its first word to its end: what it says becomes
 * progress and artifacts of our task, what it asks becomes our question and the answer goes down; if our task is canceled
 * or ends, so is its. Resolves with what it has made. Rejects with an A2AError that says which agent did not do it and why;
 * with DeadlineExceeded after `deadlineMs`.
 *
 * It is a step: when the work runs again, one that has ended has the same end, and one under way goes on.
 */
export function delegate(work: Pick<WorkArguments, 'step' | 'spawn'>, agent: RemoteAgent, message: Words, options: DelegateOptions = {}): Promise<RemoteResult> {
  checkOptions(options, OPTIONS, 'delegate', 'delegate(work, agent, message, { deadlineMs: 60_000 })')
  return ignoreRejection(delegated(work, agent, message, options))
}

async function delegated(work: Pick<WorkArguments, 'step' | 'spawn'>, agent: RemoteAgent, message: Words, options: DelegateOptions): Promise<RemoteResult> {
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
        else if (isA2AError(outcome.error)) resolve({ error: { code: outcome.error.code, message: outcome.error.message, metadata: outcome.error.metadata } })
        else reject(outcome.error)
      }
    })
  })
  if ('result' in ended) return ended.result
  const { code, message: words, metadata = {} } = ended.error
  throw new A2AError(code, words, { metadata })
}
