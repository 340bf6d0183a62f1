import type { Message } from '../../machines/protocol/parts.ts'
import type { Turn } from '../commits/turn.ts'
import type { NewWebhook, DeduplicationKey, SendRow } from '../store/rows.ts'

/** A call that waits for what becomes of its request. Exactly one of these is called, once the outcome is committed. */
export interface Call {
  /** What to remember the request by, if it is not to be taken twice. */
  readonly send?: DeduplicationKey | undefined
  /** The webhook of the task that it opens. */
  readonly webhook?: Omit<NewWebhook, 'taskId'> | undefined
  answered(reply: Message): void
  opened(taskId: string, turn: Turn): void
  failed(error: unknown): void
}

/** The calls of one context that wait, by their ids. */
export class PendingCalls {
  readonly #calls = new Map<string, Call>()

  add(callId: string, call: Call): void {
    this.#calls.set(callId, call)
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
      if ('taskId' in outcome) call.opened(outcome.taskId, turn)
      else if ('reply' in outcome) call.answered(outcome.reply)
      else call.failed(outcome.error)
    }
    turn.waiting.push({ told, failed() {} })
  }

  failAll(error: unknown): void {
    for (const call of this.#calls.values()) call.failed(error)
    this.#calls.clear()
  }
}
