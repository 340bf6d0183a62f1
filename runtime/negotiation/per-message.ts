import type { AnyActorLogic } from 'xstate'
import type { ContextRequest, NegotiationOutcome } from '../../machines/negotiation-events.ts'
import type { Message, RequestDetails } from '../../machines/protocol/objects.ts'
import { decisionOf } from '../authoring/checked-words.ts'
import { inputViolations } from '../authoring/input-schema.ts'
import type { Accepted, Rejected, Reply } from '../authoring/words.ts'
import { NO_DETAILS, NO_EXTENSIONS } from '../authoring/work-arguments.ts'
import { type ActorHost, deferEffects, hostOf } from '../commits/actor-host.ts'
import type { StandardSchema } from '../ports/standard-schema.ts'
import { onAbort } from '../primitives/event-loop.ts'
import { promiseLogic } from '../xstate/library.ts'

/** Arguments of a negotiation. */
export interface NegotiationArguments {
  readonly contextId: string
  /** The message to answer. It addresses no task. */
  readonly message: Message
  /** Metadata and configuration of the message's request (§3.2.1). */
  readonly request: RequestDetails
  /** The agent's own extensions that the client has activated for the message, by URI (§4.6). */
  readonly extensions: readonly string[]
  /** Reads the context's newest messages before this one, of client and agent, oldest first; by default 50. */
  readonly history: (limit?: number) => Promise<Message[]>
  /** Aborts when the context leaves memory before there is an answer, or after `limits.negotiationMs`. */
  readonly signal: AbortSignal
}

/** Answers a message that addresses no task: with a message, a task, or a rejected task. Calls may run concurrently. */
export type NegotiateFunction<Terms = Record<string, unknown> | undefined> = (
  negotiation: NegotiationArguments
) => Reply | Accepted<Terms> | Rejected | Promise<Reply | Accepted<Terms> | Rejected>

/** The members of an agent for its negotiation. An accepted message opens a task only if `input` accepts it. */
interface NegotiatingAgent {
  readonly work: unknown
  readonly input: StandardSchema<unknown> | undefined
  readonly negotiate: NegotiateFunction
}

/** A negotiation function as the actor `negotiation` of a context: one for each message. */
export function negotiationFunction({ negotiate, work, input }: NegotiatingAgent): AnyActorLogic {
  const opensTasks = work !== undefined
  return deferEffects(
    promiseLogic<NegotiationOutcome, ContextRequest>(async ({ input: request, signal, system }) => {
      return answering(
        hostOf(system),
        request,
        signal,
        async given => {
          const decision = decisionOf(await negotiate(given), request, opensTasks)
          const violations = input && decision.decision === 'accepted' ? inputViolations(input, request.message) : []
          return violations.length > 0 ? { request, decision: 'failed' as const, violations } : decision
        },
        failure => ({ request, ...failure })
      )
    })
  )
}

/** Outcome of a request that the author's code did not answer. */
interface Failure {
  readonly decision: 'failed'
  /** Whether the time limit has passed. */
  readonly isLate?: boolean
}

/**
 * Calls the author's code for a request. The outcome is a failure if that throws, takes too long, or if the call of a
 * request with `isOnce` is gone.
 */
export async function answering<Answer>(
  host: ActorHost,
  { callId, message, extensions = NO_EXTENSIONS, details = NO_DETAILS, trace, isOnce }: ContextRequest,
  stopped: AbortSignal,
  answer: (given: NegotiationArguments) => Promise<Answer>,
  failing: (failure: Failure) => Answer
): Promise<Answer> {
  const {
    key: { contextId },
    clock,
    limits: { negotiationMs }
  } = host
  // The client got no outcome and will resend the request, so an outcome now would be processed twice.
  if (isOnce && !host.isAwaited(callId)) return failing({ decision: 'failed' })
  const late = new AbortController()
  const timer = clock.setTimeout(
    () => late.abort(new DOMException(`There was no answer within ${negotiationMs} ms.`, 'TimeoutError')),
    negotiationMs
  )
  const stopListening = onAbort(stopped, () => clock.clearTimeout(timer))
  const tooLate = new Promise<never>((_, reject) => void onAbort(late.signal, () => reject(late.signal.reason)))
  const signal = AbortSignal.any([stopped, late.signal])
  const given: NegotiationArguments = {
    contextId,
    message,
    request: details,
    extensions,
    history: limit => host.readMessages(limit),
    signal
  }
  const inTime = () => Promise.race([answer(given), tooLate])
  const answered = async () => (host.traces ? host.traces.negotiated(trace, inTime) : inTime())
  const failed = (error: unknown) => {
    host.logger.error('the negotiation of a message failed', { contextId, error })
    return failing({ decision: 'failed', ...(late.signal.aborted && { isLate: true }) })
  }
  return answered()
    .catch(failed)
    .finally(() => {
      clock.clearTimeout(timer)
      stopListening()
    })
}
