import type { Message } from '../../machines/protocol/parts.ts'
import type { Turn } from '../commits/turn.ts'
import type { NewWebhook, DeduplicationKey, SendRow } from '../store/rows.ts'

/** What is stored with the outcome of a request. */
export interface CallTerms {
  /** What to remember the request by, if it is not to be taken twice. */
  readonly send?: DeduplicationKey | undefined
  /** The webhook of the task that it opens. */
  readonly webhook?: Omit<NewWebhook, 'taskId'> | undefined
}

/** What became of a request: the agent's answer, or a task that was opened in this turn. */
export type CallOutcome = { readonly reply: Message } | { readonly opened: Turn }

interface PendingCall extends CallTerms {
  readonly resolve: (outcome: CallOutcome) => void
  readonly reject: (error: unknown) => void
}

/** The calls of one context that wait for what becomes of their requests, by their ids. */
export class PendingCalls {
  readonly #calls = new Map<string, PendingCall>()

  /** Settles once what became of the request is committed. */
  add(callId: string, { send, webhook }: CallTerms): Promise<CallOutcome> {
    return new Promise((resolve, reject) => void this.#calls.set(callId, { send, webhook, resolve, reject }))
  }

  /** Whether a call waits. */
  has(callId: string): boolean {
    return this.#calls.has(callId)
  }

  /** Answers a call when the turn is told, and remembers with the turn what became of it. Calls of before a restart are gone. */
  settle(callId: string, turn: Turn, outcome: { taskId: string } | { reply: Message } | { error: unknown }): void {
    const call = this.#calls.get(callId)
    if (!call) return
    if (call.send && !('error' in outcome)) turn.sends.push({ ...call.send, ...outcome } satisfies SendRow)
    if (call.webhook && 'taskId' in outcome) turn.webhooks.push({ ...call.webhook, taskId: outcome.taskId, told: 0 })
    const told = () => {
      this.#calls.delete(callId)
      if ('error' in outcome) call.reject(outcome.error)
      else call.resolve('taskId' in outcome ? { opened: turn } : outcome)
    }
    turn.waiting.push({ told, failed() {} })
  }

  failAll(error: unknown): void {
    for (const { reject } of this.#calls.values()) reject(error)
    this.#calls.clear()
  }
}
