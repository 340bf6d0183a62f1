import { isDeepStrictEqual } from 'node:util'
import { A2AError } from '../machines/protocol/errors.ts'
import type { Part } from '../machines/protocol/parts.ts'
import type { WorkWord as Word } from '../machines/task.machine.ts'
import type { JournalRow, TaskEvent } from './store.ts'

type Kind = 'progress' | 'artifact' | 'question' | 'authorization' | 'sleep'

/** What a work has left behind when it runs again from its start: the events that its words made, and its journal. */
export interface WorkRecord {
  readonly events: readonly TaskEvent[]
  readonly journal: readonly JournalRow[]
}

const KINDS = {
  'work.progressed': 'progress',
  'work.produced': 'artifact',
  'work.asked': 'question',
  'work.needsAuthorization': 'authorization'
} as const satisfies Record<Word['type'], Kind>

/**
 * What a work that runs again said before: the words of the record are not said twice. An artifact whose content is
 * another one this time is begun again; a word of another kind is an error, for nobody could tell what was meant.
 */
export class Replay {
  readonly #words = new Map<number, TaskEvent>()
  readonly #journal: Map<string, unknown>
  readonly #upTo: number
  /** The parts of each artifact so far, by id: what it is begun again with. */
  readonly #parts = new Map<string, Part[]>()
  readonly #begunAgain = new Set<string>()

  constructor({ events, journal }: WorkRecord) {
    for (const event of events) {
      if (event.ordinal !== undefined) this.#words.set(event.ordinal, event)
    }
    this.#journal = new Map(journal.map(({ key, value }) => [key, value]))
    const waits = journal.map(({ key }) => Number(key)).filter(Number.isInteger)
    this.#upTo = [...this.#words.keys(), ...waits].reduce((most, ordinal) => Math.max(most, ordinal), 0)
  }

  /** What the journal holds under a key; `undefined` if nothing. */
  entry(key: string): unknown {
    return this.#journal.get(key)
  }

  /** The word as it has to be said now; nothing if it was said. Throws InvalidAgentResponse for one of another kind. */
  word(ordinal: number, word: Word): Word | undefined {
    if (ordinal > this.#upTo) return word
    const said = this.#words.get(ordinal)
    this.check(ordinal, KINDS[word.type])
    if (word.type !== 'work.produced' || !said || !('artifactUpdate' in said.update)) return undefined
    return this.#artifact(word, said.update.artifactUpdate)
  }

  /** Throws InvalidAgentResponse if what has this ordinal was of another kind. */
  check(ordinal: number, kind: Kind): void {
    const was = this.#kindOf(ordinal)
    if (was === undefined || was === kind) return
    throw new A2AError('InvalidAgentResponse', `The work did something else when it ran again: word ${ordinal} was ${was} and is ${kind} now. What may differ belongs into a step.`)
  }

  #kindOf(ordinal: number): Kind | undefined {
    if (isSleep(this.#journal.get(String(ordinal)))) return 'sleep'
    const update = this.#words.get(ordinal)?.update
    if (!update) return undefined
    if ('artifactUpdate' in update) return 'artifact'
    const { state } = update.statusUpdate.status
    if (state === 'TASK_STATE_INPUT_REQUIRED') return 'question'
    return state === 'TASK_STATE_AUTH_REQUIRED' ? 'authorization' : 'progress'
  }

  #artifact(word: Extract<Word, { type: 'work.produced' }>, said: Extract<TaskEvent['update'], { artifactUpdate: unknown }>['artifactUpdate']): Word | undefined {
    const { artifactId } = said.artifact
    const artifact = { ...word.artifact, artifactId }
    const before = word.append ? (this.#parts.get(artifactId) ?? []) : []
    this.#parts.set(artifactId, [...before, ...artifact.parts])
    if (this.#begunAgain.has(artifactId)) return { ...word, artifact }
    const whole = { ...artifact, parts: [...before, ...artifact.parts] }
    if (isDeepStrictEqual(said.append ? artifact : whole, said.artifact)) return undefined
    this.#begunAgain.add(artifactId)
    const { append: _, ...others } = word
    return { ...others, artifact: whole }
  }
}

/** A sleep in the journal: when it ends, in milliseconds since 1970. */
export interface Sleep {
  readonly untilMs: number
}

export function isSleep(value: unknown): value is Sleep {
  return typeof value === 'object' && value !== null && 'untilMs' in value
}
