import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import type { Journal } from './journal.ts'
import { entriesOf, type Ledger } from './ledger.ts'
import type { Violations } from './violations.ts'

interface Frame {
  readonly id?: number
  readonly method?: string
  readonly result?: { readonly task?: Told; readonly statusUpdate?: Told; readonly artifactUpdate?: Told }
  readonly error?: unknown
  readonly streamEnd?: boolean
}

/** A task or an event, as far as it says what it tells of. */
interface Told {
  readonly id?: string
  readonly taskId?: string
  readonly metadata?: Readonly<Record<string, { readonly generation?: number } | undefined>>
}

const STREAMING: readonly (string | undefined)[] = ['SendStreamingMessage', 'SubscribeToTask']

/**
 * Listens to the frames of one connection: no request has two answers, no answer is without a request, and none tells
 * what is not written yet.
 */
export class FrameTap {
  readonly #name: string
  readonly #journal: Journal
  readonly #violations: Violations
  readonly #ledger: Ledger
  /** The methods of the requests that wait for their answer, or for the end of their stream. */
  readonly #open = new Map<number, string>()

  constructor(
    name: string,
    {
      journal,
      violations,
      ledger
    }: { readonly journal: Journal; readonly violations: Violations; readonly ledger: Ledger }
  ) {
    this.#name = name
    this.#journal = journal
    this.#violations = violations
    this.#ledger = ledger
  }

  heard(to: 'server' | 'client', text: string): void {
    this.#journal.note(`${this.#name} ${to === 'server' ? '>' : '<'} ${text}`)
    const { id, method, ...frame } = JSON.parse(text) as Frame
    if (id === undefined) return
    if (to === 'server') return void (method && this.#open.set(id, method))
    this.#checkIsWritten(text, frame.result)
    const asked = this.#open.get(id)
    if (asked === undefined) this.#violations.add(`I11: on ${this.#name} there is an answer too many: ${text}`)
    if (!STREAMING.includes(asked) || 'error' in frame || frame.streamEnd) this.#open.delete(id)
  }
  #checkIsWritten(text: string, result: Frame['result'] = {}): void {
    const { id, taskId = id, metadata } = result.task ?? result.statusUpdate ?? result.artifactUpdate ?? {}
    const generation = metadata?.[RELIABILITY_EXTENSION]?.generation
    if (taskId === undefined || generation === undefined) return
    const task = this.#ledger.tasks.get(taskId)
    const written = task ? entriesOf(task) : 0
    if (generation > written)
      this.#violations.add(
        `I4: on ${this.#name} generation ${generation} of ${taskId} is told, and ${written} are written: ${text}`
      )
  }
}
