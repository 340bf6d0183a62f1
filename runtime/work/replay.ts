import { A2AError } from '../../machines/protocol/errors.ts'
import type { Artifact } from '../../machines/protocol/objects.ts'
import type { WorkWord } from '../../machines/task-events.ts'
import { sameJson } from '../primitives/json.ts'
import type { JournalRow, TaskEvent } from '../store/store.ts'
import { appendTo } from '../store/task-record.ts'

type Produced = Extract<WorkWord, { type: 'work.produced' }>
type ArtifactUpdate = Extract<TaskEvent['update'], { artifactUpdate: unknown }>['artifactUpdate']
type Kind = 'progress' | 'artifact' | 'question' | 'authorization' | 'sleep'

/** The record of earlier runs of a work: the events of its words, and its journal. */
interface WorkRecord {
  readonly events: readonly TaskEvent[]
  readonly journal: readonly JournalRow[]
}

const KINDS = {
  'work.progressed': 'progress',
  'work.produced': 'artifact',
  'work.asked': 'question',
  'work.needsAuthorization': 'authorization'
} as const satisfies Record<WorkWord['type'], Kind>

/** Journal keys of sleeps and answers; keys of deadlines and steps are longer. */
const ORDINAL = /^\d+$/

/**
 * Compares the words of a rerun with the record of earlier runs. A recorded word is not sent twice. An artifact whose
 * content differs is sent again from its start. A word of another kind, or an artifact with another id, is an error:
 * the code is not deterministic.
 */
export class Replay {
  readonly #words = new Map<number, TaskEvent>()
  readonly #journal: Map<string, unknown>
  readonly #upTo: number
  /** Artifacts as this run has made them so far, by id. */
  readonly #artifacts = new Map<string, Artifact>()
  readonly #begunAgain = new Set<string>()
  /** Keys of steps whose stored results this run has not asked for. */
  readonly #steps: Set<string>
  /** Whether a mismatch was thrown already, which the work may have caught on purpose. */
  #hasThrown = false

  constructor({ events, journal }: WorkRecord) {
    for (const event of events) {
      if (event.ordinal !== undefined) this.#words.set(event.ordinal, event)
    }
    this.#journal = new Map(journal.map(({ key, value }) => [key, value]))
    const kept = journal.flatMap(({ key }) => (ORDINAL.test(key) ? [Number(key)] : []))
    this.#upTo = [...this.#words.keys(), ...kept].reduce((one, other) => Math.max(one, other), 0)
    this.#steps = new Set(journal.flatMap(({ key }) => (key.startsWith('step/') ? [key] : [])))
  }

  /** Whether the record has a word after this ordinal, or the result of a step that this run has not come to. */
  hasMoreThan(ordinal: number): boolean {
    return ordinal < this.#upTo || this.#steps.size > 0
  }

  /** The journal's value for a key; `undefined` if there is none. */
  entry(key: string): unknown {
    this.#steps.delete(key)
    return this.#journal.get(key)
  }

  /** The word to send; `undefined` if it was sent before. Throws InvalidAgentResponse for a word of another kind. */
  word(ordinal: number, word: WorkWord): WorkWord | undefined {
    if (ordinal > this.#upTo) return word
    const recorded = this.#words.get(ordinal)
    const kind = KINDS[word.type]
    this.check(ordinal, kind)
    // It waited for the answer to another question.
    if (!recorded && kind !== 'progress' && kind !== 'artifact') return word
    if (word.type !== 'work.produced' || !recorded || !('artifactUpdate' in recorded.update)) return undefined
    return this.#artifact(ordinal, word, recorded.update.artifactUpdate)
  }

  /** Throws InvalidAgentResponse if the record has another kind at this ordinal. */
  check(ordinal: number, kind: Kind): void {
    const was = this.#kindOf(ordinal)
    if (was === undefined || was === kind) return
    this.#hasThrown = true
    throw another(ordinal, was, kind)
  }

  /**
   * Throws InvalidAgentResponse if the record has a question or an authorization request after this ordinal, at which
   * the work ended.
   */
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
    // An answer without a word: a queued message answered the question, so it made no event.
    if (!update) return kept === undefined ? undefined : 'question'
    if ('artifactUpdate' in update) return 'artifact'
    const { state } = update.statusUpdate.status
    if (state === 'TASK_STATE_INPUT_REQUIRED') return 'question'
    return state === 'TASK_STATE_AUTH_REQUIRED' ? 'authorization' : 'progress'
  }

  #artifact(ordinal: number, word: Produced, recorded: ArtifactUpdate): WorkWord | undefined {
    const { artifactId } = recorded.artifact
    const named = word.artifact.artifactId
    if (named !== undefined && named !== artifactId)
      throw another(ordinal, `artifact ${artifactId}`, `artifact ${named}`)
    const artifact = { ...word.artifact, artifactId }
    const known = word.append ? this.#artifacts.get(artifactId) : undefined
    const whole = known ?? { ...artifact, parts: [...artifact.parts] }
    if (known) appendTo(known, artifact)
    else this.#artifacts.set(artifactId, whole)
    if (this.#begunAgain.has(artifactId)) return { ...word, artifact }
    if (sameJson(recorded.append ? artifact : whole, recorded.artifact)) return undefined
    this.#begunAgain.add(artifactId)
    const { append: _, ...others } = word
    return { ...others, artifact: { ...whole, parts: [...whole.parts] } }
  }
}

function another(ordinal: number, was: string, is: string): A2AError {
  return new A2AError(
    'InvalidAgentResponse',
    `The work did not replay as before: word ${ordinal} was ${was} and is now ${is}. Put anything non-deterministic in a step, and new code behind work.patch.`
  )
}

/** A sleep in the journal: when it ends, in milliseconds since 1970. */
interface Sleep {
  readonly untilMs: number
}

/** Journal values of a wait without a known end, during and after it. Recovery treats it as a sleep. */
export const ENDLESS_SLEEP: Sleep = { untilMs: Number.MAX_SAFE_INTEGER }
export const ENDED_SLEEP: Sleep = { untilMs: 0 }

export function hasEnded(value: unknown): boolean {
  return isSleep(value) && value.untilMs === ENDED_SLEEP.untilMs
}

export function isSleep(value: unknown): value is Sleep {
  return typeof value === 'object' && value !== null && 'untilMs' in value
}
