import type { AnyActorRef } from 'xstate'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, type A2AErrorOptions, type ErrorCode, isA2AError } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/objects.ts'
import {
  type StandardSchema,
  authRequired,
  inputRequired,
  type Question,
  type GeneratorArguments,
  artifact,
  progress,
  type Words
} from '../../runtime/index.ts'
import { ignoreRejection } from '../../runtime/primitives/event-loop.ts'
import {
  checkArgument,
  checkOptions,
  type OptionKinds,
  textsSuchAs,
  textSuchAs,
  TRUE_OR_FALSE
} from '../../runtime/primitives/options.ts'
import { runOf } from '../../runtime/work-port.ts'
import type { RemoteOutcome } from './delegation.ts'
import { agentBehind, type RemoteAgent, remoteLogic } from './remote-agent.ts'
import { digestOf, type RemoteAsking } from './remote-record.ts'
import type { RemoteTaskListener, RemoteInput, RemoteResult } from './remote-task.ts'

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
 * Delegates a task to another agent, for work that is a function or generator. The agent's progress and artifacts are
 * forwarded to the calling task. Its questions become questions of that task, and the answers are sent to the agent. If
 * the task is canceled or ends, the agent's task is canceled. Resolves with the agent's result. Rejects with an
 * A2AError that names the agent and the reason, or with DeadlineExceeded after `deadlineMs`.
 *
 * It is a step: when the work runs again, a completed delegation returns its stored result, and a pending one is
 * resumed.
 */
export function delegate(
  work: Pick<GeneratorArguments, 'step' | 'spawn'>,
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
  work: Pick<GeneratorArguments, 'step' | 'spawn'>,
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

/** Which events of the other agent's task are forwarded. */
interface ForwardOptions {
  /** Forwards status messages as progress. Default true. */
  readonly progress?: boolean
  /** Forwards artifacts, chunk by chunk, with new ids. Default true. */
  readonly artifacts?: boolean
}

/**
 * Forwards events and questions of another agent to the work of a function or generator. `key` identifies the
 * delegation in its task.
 */
function forwardEvents(self: AnyActorRef, key: string, title: string, options: ForwardOptions): RemoteTaskListener {
  const { progress: forwardsProgress = true, artifacts: forwardsArtifacts = true } = options
  const work = self._parent
  const run = work && runOf(work)
  let openQuestion = new AbortController()
  const ask = (event: RemoteAsking, number: number) => {
    openQuestion = new AbortController()
    run?.relay(questionOf(event, title), { key: `${key}/question/${number}`, signal: openQuestion.signal }).then(
      answer =>
        answer !== undefined &&
        self.send({ type: 'answer', message: messageIn(answer as Message | { message: Message }) }),
      // The work has ended.
      () => {}
    )
  }
  return {
    handleEvent: (event, question) => {
      if (event.type === 'remote.artifact') {
        const {
          artifact: { artifactId, ...content },
          append,
          lastChunk
        } = event
        if (forwardsArtifacts)
          run?.pass(artifact({ ...content, artifactId: digestOf('artifact', key, artifactId) }, { append, lastChunk }))
        return
      }
      // The agent continues without an answer, or has a new question.
      openQuestion.abort()
      if (event.type !== 'remote.status') return ask(event, question)
      if (forwardsProgress && event.message) run?.pass(progress(event.message))
    },
    repeatQuestion: ask,
    over: () => openQuestion.abort(),
    // Work that restarts after a crash resumes its delegations.
    goesOn: () => work?._parent?.getSnapshot().status === 'active'
  }
}

function questionOf({ type, message, refusal }: RemoteAsking, title: string): Question {
  const request = message ?? { parts: [{ text: `${title} needs an answer to go on.` }] }
  const words = refusal === undefined ? request : { ...request, parts: [{ text: refusal }, ...request.parts] }
  return type === 'remote.input-required' ? inputRequired(words) : authRequired(words, { schema: notHere(title) })
}

/** A schema that refuses authorizations: no message can pass one on to the agent that waits for it. */
function notHere(title: string): StandardSchema<never> {
  const message = `cannot be passed on: authorize it with ${title} itself`
  return { '~standard': { version: 1, vendor: 'taskchart', validate: () => ({ issues: [{ message }] }) } }
}

/** The client's message: the answer to a question, or in an answer to a request for authorization. */
function messageIn(answer: Message | { readonly message: Message }): Message {
  return 'message' in answer ? answer.message : answer
}
