import type { Task } from '../../machines/protocol/objects.ts'
import { ANSWER_SCHEMA } from '../../machines/protocol/uris.ts'
import type { ArtifactContent, MessageContent, WorkWord } from '../../machines/task-events.ts'
import type { WorkInput } from '../authoring/work-arguments.ts'
import { sameJson } from '../primitives/json.ts'
import type { WorkStore } from '../store/retrying-reads.ts'
import type { ContextKey, JournalRow, TaskEvent } from '../store/store.ts'
import type { RedactedValues } from './redacted-values.ts'
import { isSleep } from './replay.ts'

/** Where a replay differs from the record, and both sides. */
export interface Divergence {
  /** `word 3`, or the step or the wait that the record has next. */
  readonly at: string
  readonly was: string
  readonly is: string
}

/** The consequence of a divergence: the task fails, ends without an error, or waits for something else. */
export type Consequence = 'fails' | 'ends' | 'waits'

/** The result of the replay of a function or generator. */
export interface RunReplay {
  /** The first difference in what the work does, and what its task does there. */
  readonly divergence?: { readonly difference: Divergence; readonly consequence: Consequence }
  /** The first word that was sent before and has another content now, and whether it is a question in another form. */
  readonly otherwise?: { readonly difference: Divergence; readonly isForm: boolean }
  /** Values that the work needs and the record lacks, before it diverged. */
  readonly unseen: readonly string[]
  /** Whether the work waits for something that taskchart does not see, and the record has more. */
  readonly isOutside: boolean
}

/** A task of a function or generator, as it is replayed. */
export interface RecordedRun {
  readonly key: ContextKey
  readonly taskId: string
  readonly isInterrupted: boolean
  readonly events: readonly TaskEvent[]
  readonly journal: readonly JournalRow[]
  readonly redacted: RedactedValues
  /** Whether the work can read only what is here: it has no other task, and no message before its own. */
  readonly isAlone: boolean
  /** Has the other tasks and messages. */
  readonly store?: WorkStore
  readonly input: WorkInput
  readonly readTask: () => Promise<Task>
}

const KINDS = {
  'work.progressed': 'progress',
  'work.produced': 'artifact',
  'work.asked': 'question',
  'work.needsAuthorization': 'request for authorization'
} as const satisfies Record<WorkWord['type'], string>

/** Journal keys of sleeps and answers. */
export const ORDINAL = /^\d+$/

/** The words and calls of a run so far, compared with its record. */
export class Findings {
  readonly #redacted: RedactedValues
  /** Each word with its place among the events, by ordinal. */
  readonly #words = new Map<number, { readonly update: TaskEvent['update']; readonly index: number }>()
  readonly #rows: ReadonlyMap<string, { readonly value: unknown; readonly index: number }>
  /** The ordinals that the run has not come to, in order. */
  readonly #ordinals: Set<number>
  /** The results of steps that it has not asked for, and the tasks that it does not wait for. */
  readonly #keys: Set<string>
  readonly #read = new Set<string>()
  readonly #unstarted = new Set<string>()
  readonly #waits: string[] = []
  #divergence: Divergence | undefined
  #otherwise: RunReplay['otherwise']
  #isOutside = false
  #hasEnded = false
  #hasFailed = false
  /** The first step that has no result in the record. */
  #newStep: string | undefined
  /** Grows with everything that the run does. */
  signs = 0
  /** The key that the run has asked for last. */
  lastKey = ''

  constructor({ events, journal, redacted }: RecordedRun) {
    this.#redacted = redacted
    for (const [index, { ordinal, update }] of events.entries())
      if (ordinal !== undefined) this.#words.set(ordinal, { update, index })
    this.#rows = new Map(journal.map(({ key, value }, index) => [key, { value, index }]))
    const kept = journal.flatMap(({ key }) => (ORDINAL.test(key) ? [Number(key)] : []))
    this.#ordinals = new Set([...this.#words.keys(), ...kept].toSorted((one, other) => one - other))
    this.#keys = new Set(
      journal.flatMap(({ key, value }) => (key.startsWith('step/') || isPending(key, value) ? [key] : []))
    )
  }

  get result(): RunReplay {
    const [difference, otherwise] = [this.#divergence, this.#otherwise]
    const differs = difference !== undefined || this.#isOutside
    const consequence = this.#hasFailed ? 'fails' : this.#hasEnded ? 'ends' : 'waits'
    return {
      ...(difference && { divergence: { difference, consequence } }),
      ...(otherwise && { otherwise }),
      unseen: [...this.#read, ...(differs ? this.#unstarted : [])],
      isOutside: this.#isOutside
    }
  }

  /** Whether nothing that the run does after this counts. */
  get isOver(): boolean {
    return this.#divergence !== undefined || this.#hasEnded
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  get isWaiting(): boolean {
    return this.#waits.length > 0
  }

  /** The next entry of the record that the run has not reached; `undefined` if it has reached all. */
  get next(): Pick<Divergence, 'at' | 'was'> | undefined {
    const [ordinal] = this.#ordinals
    if (ordinal !== undefined) return { at: `word ${ordinal}`, was: this.#recorded(ordinal) }
    const [key] = this.#keys
    return key === undefined ? undefined : { at: keyText(key), was: keyText(key) }
  }

  /** Notes that the work has read what the record does not have. */
  noteRead(what: string): void {
    if (!this.isOver) this.#read.add(what)
  }

  /** Notes that the work may go on by something that a replay does not start or read. */
  noteUnstarted(what: string): void {
    if (!this.isOver) this.#unstarted.add(what)
  }

  /** Notes that the work waits. Gives the end of the wait. */
  noteWait(what: string): () => void {
    this.signs += 1
    this.#waits.push(what)
    return () => {
      this.signs += 1
      this.#waits.splice(this.#waits.indexOf(what), 1)
    }
  }

  /** Notes that the run comes to a step whose result the record does not have. */
  noteStep(key: string): void {
    this.noteWait(keyText(key))
    this.#newStep ??= keyText(key)
  }

  /** Notes that the run asks the journal for a key. */
  noteKey(key: string): void {
    this.signs += 1
    this.lastKey = key
    this.#keys.delete(key)
  }

  /** Where the value of a key stands in the record. */
  pointerOf(key: string): string {
    return `/journal/${this.#rows.get(key)?.index}/value`
  }

  /** Notes a sleep that the record has at this ordinal, or not yet. */
  noteSleep(ordinal: number): void {
    this.signs += 1
    this.#ordinals.delete(ordinal)
  }

  /** Notes a word that fits the record, and compares its content. */
  noteWord(ordinal: number, word: WorkWord): void {
    this.noteSleep(ordinal)
    const recorded = this.#words.get(ordinal)
    if (!recorded || this.#otherwise) return
    const other = differenceOf(recorded.update, word, this.#redacted.isAt(`/events/${recorded.index}`))
    const difference = { at: `word ${ordinal}`, was: this.#recorded(ordinal), is: wordText(word) }
    if (other) this.#otherwise = { difference, ...other }
  }

  /** Notes what the run does where the record has something else. */
  diverge(ordinal: number, is: string): void {
    this.#divergence ??= { at: `word ${ordinal}`, was: this.#recorded(ordinal), is }
  }

  /** Notes the end of the run. */
  noteEnd(is: string): void {
    const { next } = this
    if (next) this.#divergence ??= { ...next, is }
    this.#hasEnded = true
  }

  /** Notes an error, by which the task fails, even where it stands. */
  noteError(error: unknown): void {
    const is = `error ${JSON.stringify(String(Object(error).message ?? error))}`
    this.#divergence ??= { ...(this.next ?? { at: 'where it stands', was: 'work' }), is }
    this.#hasEnded = true
    this.#hasFailed = true
  }

  /** Notes that the run stands still. After a new step, which really runs, its words may fit the record. */
  noteStuck(): void {
    const { next } = this
    const is = this.#newStep ?? this.#waits.at(-1)
    if (next && this.#newStep !== undefined) this.noteRead(this.#newStep)
    if (next && is !== undefined) this.#divergence = { ...next, is }
    else this.#isOutside = next !== undefined
  }

  #recorded(ordinal: number): string {
    const update = this.#words.get(ordinal)?.update
    if (update) return updateText(update)
    return isSleep(this.#rows.get(String(ordinal))?.value) ? SLEEP : KINDS['work.asked']
  }
}

export const SLEEP = 'sleep'

export const ASKS = { 'work.asked': true, 'work.needsAuthorization': true }

const STATE_KINDS: Readonly<Record<string, string>> = {
  TASK_STATE_INPUT_REQUIRED: KINDS['work.asked'],
  TASK_STATE_AUTH_REQUIRED: KINDS['work.needsAuthorization']
}

/** Whether a row says that the work waits for another task. */
function isPending(key: string, value: unknown): boolean {
  return key.startsWith('needs/') && isSleep(value) && value.untilMs > 0
}

/** `step/price/1` as `step price`, `step/price/2` as `step price, the 2nd time`. */
export function keyText(key: string): string {
  const [, name, count] = /^step\/(.*)\/(\d+)$/s.exec(key) ?? []
  if (name === undefined) return `wait for task ${key.slice('needs/'.length)}`
  return count === '1' ? `step ${name}` : `step ${name}, call ${count}`
}

/**
 * Whether a word has another content than its event: `isForm` if it is a question whose answer has another schema. Of a
 * redacted event only the schema is compared.
 */
export function differenceOf(
  update: TaskEvent['update'],
  word: WorkWord,
  isRedacted: boolean
): { readonly isForm: boolean } | undefined {
  const was = contentOf(
    'artifactUpdate' in update ? update.artifactUpdate.artifact : update.statusUpdate.status.message
  )
  const is = contentOf('artifact' in word ? word.artifact : word.message)
  const [before, now] = [was.metadata[ANSWER_SCHEMA] ?? null, is.metadata[ANSWER_SCHEMA] ?? null]
  if (word.type in ASKS && !sameJson(before, now)) return { isForm: true }
  return isRedacted || sameJson(was, is) ? undefined : { isForm: false }
}

/** The compared content of a message or an artifact: without ids. */
function contentOf(content: Partial<ArtifactContent> | undefined) {
  const { name = '', description = '', parts = [], metadata = {} } = content ?? {}
  return { name, description, parts, metadata }
}

/** A word of a run in words: `question "Which size?"`. */
export function wordText(word: WorkWord): string {
  return 'artifact' in word ? artifactText(word.artifact) : messageText(KINDS[word.type], word.message)
}

/** The word of an event in the same way. */
export function updateText(update: TaskEvent['update']): string {
  if ('artifactUpdate' in update) return artifactText(update.artifactUpdate.artifact)
  const { state, message } = update.statusUpdate.status
  return messageText(STATE_KINDS[state] ?? KINDS['work.progressed'], message)
}

/** The kind of a word in words. */
export function wordKind(text: string): string {
  return text.split(' "')[0] as string
}

/** The most characters of a word that are shown. */
const SHOWN = 60

function messageText(kind: string, message: Partial<MessageContent> | undefined): string {
  const text = (message?.parts ?? []).flatMap(part => ('text' in part ? [part.text] : [])).join(' ')
  return text === '' ? kind : `${kind} ${JSON.stringify(text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text)}`
}

function artifactText({ name, parts }: ArtifactContent): string {
  return messageText(name === undefined ? 'artifact' : `artifact ${JSON.stringify(name)}`, { parts })
}
