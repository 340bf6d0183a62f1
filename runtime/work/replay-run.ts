import type { ActorRefFrom, AnyActorLogic, AnyActorRef, AnyActorScope } from 'xstate'
import type { Message, Task } from '../../machines/protocol/objects.ts'
import { ANSWER_SCHEMA } from '../../machines/protocol/uris.ts'
import type { ArtifactContent, MessageContent, WorkWord } from '../../machines/task-events.ts'
import type { WorkArguments, WorkInput, WorkStepArguments } from '../authoring/work-arguments.ts'
import { type ActorHost, hostActors } from '../commits/actor-host.ts'
import { systemClock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import { sameJson } from '../primitives/json.ts'
import type { ContextKey, JournalRow, TaskEvent } from '../store/store.ts'
import { createActor, promiseLogic } from '../xstate/library.ts'
import { programOf, type WorkFunction, type WorkGenerator } from './function-work.ts'
import { ENDED_SLEEP, isSleep, Replay } from './journal.ts'
import type { RedactedValues } from './redacted-values.ts'
import { WorkRun } from './work-run.ts'

/** Where a replay differs from the record, and both sides. */
export interface Divergence {
  /** `word 3`, or the step or the wait that the record has next. */
  readonly at: string
  readonly was: string
  readonly is: string
}

/** What the replay of a function or generator has found. */
export interface RunReplay {
  /** The first difference in what the work does. */
  readonly divergence?: Divergence
  /** The first word that was sent before and has another content now, and whether it is a question in another form. */
  readonly otherwise?: Divergence & { readonly isForm: boolean }
  /** What the work has read that the record does not have, before it diverged. */
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
  readonly input: WorkInput
  readonly readTask: () => Promise<Task>
}

/**
 * How long a replay may stand still, in milliseconds: where the record has more, and where it waits for something that
 * taskchart does not see.
 */
export interface ReplayPatience {
  readonly stuckMs: number
  readonly outsideMs: number
}

const PATIENCE: ReplayPatience = { stuckMs: 250, outsideMs: 5000 }

/**
 * Replays a function or generator from its start to where its task stands. It starts no step and no actor, sends
 * nothing, and ends each sleep at once that the record has passed. The code outside steps runs, as it does after a
 * restart.
 */
export async function replayRun(
  work: WorkFunction | WorkGenerator,
  record: RecordedRun,
  patience = PATIENCE
): Promise<RunReplay> {
  const findings = new Findings(record)
  const host = new ReplayHost(record, findings)
  const run = new ReplayRun(work, record, findings, host)
  run.begin(record.input)
  await rest(findings, host, patience)
  host.isLeaving = true
  run.stop()
  return findings.result
}

/** So many rounds of the event loop without a sign are a rest. */
const ROUNDS = 3

const POLL_MS = 5

/** Resolves when the run has ended, has diverged, or stands still. */
async function rest(findings: Findings, host: ReplayHost, { stuckMs, outsideMs }: ReplayPatience): Promise<void> {
  let quietMs = 0
  while (!findings.isOver) {
    const { signs } = findings
    for (let round = 0; round < ROUNDS; round += 1) await new Promise(resolve => setImmediate(resolve))
    const isStill = findings.signs === signs
    if (isStill && findings.isWaiting && !findings.next) return
    if (!isStill || host.ringNext()) {
      quietMs = 0
      continue
    }
    if (quietMs >= (findings.isWaiting || !findings.next ? stuckMs : outsideMs)) return findings.noteStuck()
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
    quietMs += POLL_MS
  }
}

const KINDS = {
  'work.progressed': 'progress',
  'work.produced': 'artifact',
  'work.asked': 'question',
  'work.needsAuthorization': 'request for authorization'
} as const satisfies Record<WorkWord['type'], string>

/** Journal keys of sleeps and answers. */
const ORDINAL = /^\d+$/

/** What a run has done so far, beside its record. */
class Findings {
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
    const [divergence, otherwise] = [this.#divergence, this.#otherwise]
    const differs = divergence !== undefined || this.#isOutside
    return {
      ...(divergence && { divergence }),
      ...(otherwise && { otherwise }),
      unseen: [...this.#read, ...(differs ? this.#unstarted : [])],
      isOutside: this.#isOutside
    }
  }

  get isOver(): boolean {
    return this.#divergence !== undefined || this.#hasEnded
  }

  get isWaiting(): boolean {
    return this.#waits.length > 0
  }

  /** What the record has next and the run has not come to; `undefined` if it stands where the task stands. */
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
    if (other) this.#otherwise = { at: `word ${ordinal}`, was: this.#recorded(ordinal), is: wordText(word), ...other }
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

  /** Notes that the run stands still. */
  noteStuck(): void {
    const { next } = this
    const is = this.#waits.at(-1)
    if (next && is !== undefined) this.#divergence = { ...next, is }
    else this.#isOutside = next !== undefined
  }

  #recorded(ordinal: number): string {
    const update = this.#words.get(ordinal)?.update
    if (update) return updateText(update)
    return isSleep(this.#rows.get(String(ordinal))?.value) ? SLEEP : KINDS['work.asked']
  }
}

const SLEEP = 'sleep'

const ASKS = { 'work.asked': true, 'work.needsAuthorization': true }

const STATE_KINDS: Readonly<Record<string, string>> = {
  TASK_STATE_INPUT_REQUIRED: KINDS['work.asked'],
  TASK_STATE_AUTH_REQUIRED: KINDS['work.needsAuthorization']
}

/** Whether a row says that the work waits for another task. */
function isPending(key: string, value: unknown): boolean {
  return key.startsWith('needs/') && isSleep(value) && value.untilMs > 0
}

/** `step/price/1` as `step price`, `step/price/2` as `step price, the 2nd time`. */
function keyText(key: string): string {
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
export function kindIn(text: string): string {
  return text.split(' "')[0] as string
}

/** The most characters of a word that are shown. */
const SHOWN = 60

function messageText(kind: string, message: Partial<MessageContent> | undefined): string {
  const text = (message?.parts ?? []).flatMap(part => ('text' in part ? [part.text] : [])).join(' ')
  return text === '' ? kind : `${kind} ${JSON.stringify(text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text)}`
}

function artifactText({ name, parts }: ArtifactContent): string {
  return name === undefined ? messageText('artifact', { parts }) : `artifact ${JSON.stringify(name)}`
}

/** Compares a run with the record of its task, word by word. */
class RecordedReplay extends Replay {
  readonly #findings: Findings
  readonly #record: RecordedRun
  #asked = ''

  constructor(record: RecordedRun, findings: Findings) {
    super(record)
    this.#record = record
    this.#findings = findings
  }

  override word(ordinal: number, word: WorkWord): WorkWord | undefined {
    const sent = this.#orDiverge(ordinal, wordText(word), () => super.word(ordinal, word))
    this.#findings.noteWord(ordinal, word)
    if (word.type in ASKS) this.#asked = `${ordinal}`
    return sent
  }

  override check(ordinal: number, kind: Parameters<Replay['check']>[1]): void {
    if (kind !== SLEEP) return super.check(ordinal, kind)
    this.#orDiverge(ordinal, SLEEP, () => super.check(ordinal, kind))
    this.#findings.noteSleep(ordinal)
  }

  override entry(key: string): unknown {
    const findings = this.#findings
    const value = super.entry(key)
    findings.noteKey(key)
    if (key.startsWith('step/') && value === undefined) findings.noteWait(keyText(key))
    if (key !== this.#asked) return value
    if (value === undefined) findings.noteWait(`wait for an answer to word ${key}`)
    else if (this.#record.redacted.isAt(findings.pointerOf(key))) findings.noteRead(`the answer to word ${key}`)
    return value
  }

  override checkEnd(): void {
    this.#findings.noteEnd('end of the work')
  }

  #orDiverge<T>(ordinal: number, is: string, run: () => T): T {
    try {
      return run()
    } catch (error) {
      this.#findings.diverge(ordinal, is)
      throw error
    }
  }
}

/** A promise that never settles. */
const never = new Promise<never>(() => {})

/** The actor of a spawned logic that is not started. */
const idleLogic = promiseLogic(() => never)

/** A run whose steps and actors never start. */
class ReplayRun extends WorkRun {
  readonly #record: RecordedRun
  readonly #findings: Findings

  constructor(work: WorkFunction | WorkGenerator, record: RecordedRun, findings: Findings, host: RunHost) {
    const program = programOf(work)
    super({
      scope: scopeOf(record.taskId, host),
      program: (given, run) => program(watchedArguments(given, record, findings), run),
      isRerun: true,
      replay: () => new RecordedReplay(record, findings),
      ended: () => {}
    })
    this.#record = record
    this.#findings = findings
  }

  override spawn<Logic extends AnyActorLogic>(): ActorRefFrom<Logic> {
    this.#findings.noteUnstarted('the actor that it spawns')
    this.#findings.noteWait('wait for an actor that it spawned')
    return createActor(idleLogic).start() as unknown as ActorRefFrom<Logic>
  }

  override step<T>(name: string, run: (step: WorkStepArguments) => T | Promise<T>): Promise<T> {
    const result = super.step(name, run)
    const findings = this.#findings
    const key = findings.lastKey
    const pointer = `${findings.pointerOf(key)}/result`
    if (!this.#record.redacted.isAt(pointer)) return result
    const onRead = () => findings.noteRead(`the result of ${keyText(key)}`)
    return result.then(value => this.#record.redacted.watched(value, pointer, onRead))
  }
}

/** The actor of the work, as far as a run uses it. */
function scopeOf(taskId: string, host: RunHost): AnyActorScope {
  const task = { id: taskId, _parent: { id: 'context' }, send: () => {} }
  const system = {}
  const self = { id: 'work', _parent: task, system, getSnapshot: () => ({ status: 'active' }) }
  hostActors(system as AnyActorRef['system'], host as ActorHost)
  return { self, system } as unknown as AnyActorScope
}

/** The arguments of the work, which note what is read of them and is not in the record. */
function watchedArguments(given: WorkArguments, record: RecordedRun, findings: Findings): WorkArguments {
  const { redacted, isAlone } = record
  const watch = <Name extends keyof WorkArguments>(name: Name, read: () => void, value = given[name]) =>
    Object.defineProperty(given, name, {
      configurable: true,
      get: () => {
        read()
        return value
      }
    })
  const opening = () => findings.noteRead('the message that opened it')
  const message = redacted.watched(given.message, '/messages/0/message', opening)
  watch('message', () => {}, message)
  if (redacted.isAt()) {
    watch('input', () => redacted.isAt('/messages/0') && opening())
    watch('terms', () => given.terms && findings.noteRead('its terms'))
    watch('request', opening)
    watch('owner', () => findings.noteRead('its owner'))
  }
  if (!isAlone)
    for (const name of ['referenceTasks', 'unloadedTasks', 'earlierArtifacts'] as const)
      watch(name, () => findings.noteRead('other tasks'))
  return given
}

/** What a run and its journal use of a host. */
type RunHost = Pick<
  ActorHost,
  | 'key'
  | 'logger'
  | 'clock'
  | 'isLeaving'
  | 'noteRun'
  | 'isInterrupted'
  | 'bytesOf'
  | 'afterCommit'
  | 'writable'
  | 'readTask'
  | 'completedTask'
  | 'readJournal'
  | 'readEvents'
  | 'readHistory'
  | 'wasRestored'
  | 'keep'
  | 'setAlarm'
  | 'crash'
>

const ignored = () => {}

/** The host of a replay: it answers from the record, and starts nothing. */
class ReplayHost implements RunHost {
  readonly key: ContextKey
  readonly logger: Logger = { warn: ignored, error: ignored }
  readonly clock = systemClock
  readonly noteRun = ignored
  readonly keep = ignored
  isLeaving = false
  readonly #record: RecordedRun
  readonly #findings: Findings
  /** The sleeps that have not ended. */
  readonly #sleeps = new Set<{ readonly dueMs: number; readonly end: () => void }>()

  constructor(record: RecordedRun, findings: Findings) {
    this.key = record.key
    this.#record = record
    this.#findings = findings
  }

  /** Ends the sleep that is due first. Gives whether there is one. */
  ringNext(): boolean {
    const [first] = [...this.#sleeps].toSorted((one, other) => one.dueMs - other.dueMs)
    if (!first) return false
    this.#sleeps.delete(first)
    first.end()
    return true
  }

  setAlarm(_: string, name: string, dueMs: number, ring: () => void): void {
    if (!ORDINAL.test(name)) return
    const woken = this.#findings.noteWait(SLEEP)
    const end = () => {
      woken()
      ring()
    }
    if (dueMs === ENDED_SLEEP.untilMs) setImmediate(end)
    else this.#sleeps.add({ dueMs, end })
  }

  afterCommit({ run }: Parameters<ActorHost['afterCommit']>[0]): void {
    setImmediate(run)
  }

  crash(_: string, error: unknown): void {
    this.#findings.noteEnd(`error ${JSON.stringify(error instanceof Error ? error.message : String(error))}`)
  }

  bytesOf(): number {
    return 0
  }

  isInterrupted(): boolean {
    return this.#record.isInterrupted
  }

  /** A step without a stored result never starts. */
  writable(): Promise<void> {
    return never
  }

  async readJournal(): Promise<JournalRow[]> {
    return [...this.#record.journal]
  }

  async readEvents(): Promise<TaskEvent[]> {
    return [...this.#record.events]
  }

  async readTask(taskId: string): Promise<Task> {
    if (taskId !== this.#record.taskId) return this.#otherTask(taskId)
    if (this.#record.redacted.isAt()) this.#findings.noteRead('its own task')
    return this.#record.readTask()
  }

  async completedTask(taskId: string): Promise<Task> {
    this.#findings.noteKey(`needs/${taskId}`)
    return this.#otherTask(taskId)
  }

  async readHistory(): Promise<Message[]> {
    if (!this.#record.isAlone) this.#findings.noteRead('earlier messages')
    return []
  }

  wasRestored(): boolean {
    return true
  }

  #otherTask(taskId: string): Promise<Task> {
    this.#findings.noteUnstarted(`task ${taskId}`)
    this.#findings.noteWait(`wait for task ${taskId}`)
    return never
  }
}
