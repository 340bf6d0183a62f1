import { fromPromise, type AnyActorLogic } from 'xstate'
import type { ContextRequest, NegotiationOutcome } from '../machines/context.machine.ts'
import type { Message } from '../machines/protocol/parts.ts'
import { hostOf } from './actor-host.ts'
import { NO_EXTENSIONS } from './extensions.ts'
import { gated } from './gated-logic.ts'
import { decisionOf } from './outcomes.ts'
import type { Accepted, Rejected, Reply } from './words.ts'

/** What a negotiation is called with. */
export interface NegotiationArguments {
  readonly contextId: string
  /** The message to answer. It addresses no task. */
  readonly message: Message
  /** The agent's own extensions that the client has activated for the message, by their URIs (§4.6). */
  readonly extensions: readonly string[]
  /** Reads the context's newest messages before this one, of the client and of the agent, oldest first; 50 unless told. */
  readonly history: (limit?: number) => Promise<Message[]>
  /** Aborts when the conversation leaves memory before there is an answer. */
  readonly signal: AbortSignal
}

/** Answers a message that addresses no task: with a message, with a task, or with a task that is rejected. Calls may run side by side. */
export type NegotiateFunction = (negotiation: NegotiationArguments) => Reply | Accepted | Rejected | Promise<Reply | Accepted | Rejected>

/** A negotiation function as the actor `negotiation` of a context: one for each message. */
export function negotiationFunction(negotiate: NegotiateFunction, opensTasks: boolean): AnyActorLogic {
  return gated(
    fromPromise<NegotiationOutcome, ContextRequest>(async ({ input: request, signal, system }) => {
      const host = hostOf(system)
      const { callId, message, extensions = NO_EXTENSIONS, isOnce } = request
      // Its client heard of no outcome, and sends it again: what came of it now would be there twice.
      if (isOnce && !host.isAwaited(callId)) return { request, decision: 'failed' }
      try {
        const answer = await negotiate({ contextId: host.key.contextId, message, extensions, history: limit => host.readMessages(limit), signal })
        return decisionOf(answer, request, opensTasks)
      } catch (error) {
        host.logger.error('the negotiation of a message failed', { contextId: host.key.contextId, error })
        return { request, decision: 'failed' }
      }
    })
  )
}
