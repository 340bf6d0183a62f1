import { isDeepStrictEqual } from 'node:util'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { Artifact } from '../../machines/protocol/objects.ts'
import type { WorkWord as Word } from '../../machines/task-events.ts'
import type { JournalRow, TaskEvent } from '../store/store.ts'
import { appendTo } from '../store/task-record.ts'

type Produced = Extract<Word, { type: 'work.produced' }>
type ArtifactUpdate = Extract<TaskEvent['update'], { artifactUpdate: unknown }>['artifactUpdate']
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

/** The keys under which a journal keeps ends of sleeps and answers; those of deadlines and steps are longer. */
const ORDINAL = /^\d+$/

/**
 * What a work that runs again said before: the words of the record are not said twice. An artifact whose content is
 * another one this time is begun again; a word of another kind, or an artifact of another id, is an error, for nobody
 * could tell what was meant.
 */
export class Replay {
  readonly #words = new Map<number, TaskEvent>()
  readonly #journal: Map<string, unknown>
  readonly #upTo: number
  /** Each artifact so far, by id: what it is begun again with. */
  readonly #artifacts = new Map<string, Artifact>()
  readonly #begunAgain = new Set<string>()
  /** Whether the work has been told that it does something else: it may have caught that on purpose. */
  #hasThrown = false

  constructor({ events, journal }: WorkRecord) {
    for (const event of events) {
      if (event.ordinal !== undefined) this.#words.set(event.ordinal, event)
    }
    this.#journal = new Map(journal.map(({ key, value }) => [key, value]))
    const kept = journal.flatMap(({ key }) => (ORDINAL.test(key) ? [Number(key)] : []))
    this.#upTo = [...this.#words.keys(), ...kept].reduce((one, other) => Math.max(one, other), 0)
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
    return this.#artifact(ordinal, word, said.update.artifactUpdate)
  }

  /** Throws InvalidAgentResponse if what has this ordinal was of another kind. */
  check(ordinal: number, kind: Kind): void {
    const was = this.#kindOf(ordinal)
    if (was === undefined || was === kind) return
    this.#hasThrown = true
    throw another(ordinal, was, kind)
  }

  /** Throws InvalidAgentResponse if a question, or a wish for an authorization, of the run before came after this ordinal: the work has ended without it. */
  checkEnd(ordinal: number): void {
    if (this.#hasThrown) return
    for (let missing = ordinal + 1; missing <= this.#upTo; missing += 1) {
      const was = this.#kindOf(missing)
      if (was === 'question' || was === 'authorization') throw another(missing, was, 'missing')
    }
  }

  #kindOf(ordinal: number): Kind | undefined {
    const kept = this.#journal.get(String(ordinal))
    if (isSleep(kept)) return 'sleep'
    const update = this.#words.get(ordinal)?.update
    // A queued message answered it, so that nobody was told of the question.
    if (!update) return kept === undefined ? undefined : 'question'
    if ('artifactUpdate' in update) return 'artifact'
    const { state } = update.statusUpdate.status
    if (state === 'TASK_STATE_INPUT_REQUIRED') return 'question'
    return state === 'TASK_STATE_AUTH_REQUIRED' ? 'authorization' : 'progress'
  }

  #artifact(ordinal: number, word: Produced, said: ArtifactUpdate): Word | undefined {
    const { artifactId } = said.artifact
    const named = word.artifact.artifactId
    if (named !== undefined && named !== artifactId) throw another(ordinal, `artifact ${artifactId}`, `artifact ${named}`)
    const artifact = { ...word.artifact, artifactId }
    const known = word.append ? this.#artifacts.get(artifactId) : undefined
    const whole = known ?? { ...artifact, parts: [...artifact.parts] }
    if (known) appendTo(known, artifact)
    else this.#artifacts.set(artifactId, whole)
    if (this.#begunAgain.has(artifactId)) return { ...word, artifact }
    if (isDeepStrictEqual(said.append ? artifact : whole, said.artifact)) return undefined
    this.#begunAgain.add(artifactId)
    const { append: _, ...others } = word
    return { ...others, artifact: { ...whole, parts: [...whole.parts] } }
  }
}

function another(ordinal: number, was: string, is: string): A2AError {
  return new A2AError('InvalidAgentResponse', `The work did something else when it ran again: word ${ordinal} was ${was} and is ${is} now. What may differ belongs into a step.`)
}

/** A sleep in the journal: when it ends, in milliseconds since 1970. */
export interface Sleep {
  readonly untilMs: number
}

/** What the journal has for a wait whose end nobody knows, while it lasts and afterwards: of recovery it asks as little as sleep does. */
export const ENDLESS_SLEEP: Sleep = { untilMs: Number.MAX_SAFE_INTEGER }
export const ENDED_SLEEP: Sleep = { untilMs: 0 }

export function isSleep(value: unknown): value is Sleep {
  return typeof value === 'object' && value !== null && 'untilMs' in value
}
