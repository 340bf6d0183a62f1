import type { ActorRefFrom, AnyActorLogic, AnyActorRef, AnyActorScope } from 'xstate'
import type { Message, Task } from '../../machines/protocol/objects.ts'
import type { WorkWord } from '../../machines/task-events.ts'
import type { WorkArguments, WorkStepArguments } from '../authoring/work-arguments.ts'
import { type ActorHost, hostActors } from '../commits/actor-host.ts'
import { systemClock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import type { ContextKey, JournalRow, TaskEvent } from '../store/store.ts'
import { createActor, promiseLogic } from '../xstate/library.ts'
import { programOf, type WorkFunction, type WorkGenerator } from './function-work.ts'
import {
  ASKS,
  Findings,
  keyText,
  ORDINAL,
  type RecordedRun,
  type RunReplay,
  SLEEP,
  wordText
} from './replay-findings.ts'
import { ENDED_SLEEP, Replay } from './replay.ts'
import { WorkRun } from './work-run.ts'

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
 * nothing, and ends a sleep that is due while the record has more. The code outside steps runs, as it does after a
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
  const { result } = findings
  host.isLeaving = true
  run.stop()
  return result
}

/** So many rounds of the event loop without a sign are a rest. */
const ROUNDS = 3

const POLL_MS = 5

/** Resolves when the run has ended, or stands still. */
async function rest(findings: Findings, host: ReplayHost, { stuckMs, outsideMs }: ReplayPatience): Promise<void> {
  let quietMs = 0
  while (!findings.hasEnded) {
    const { signs } = findings
    for (let round = 0; round < ROUNDS; round += 1) await new Promise(resolve => setImmediate(resolve))
    const isStill = findings.signs === signs
    if (isStill && (findings.isOver || (findings.isWaiting && !findings.next))) return
    if (!isStill || host.ringNext()) {
      quietMs = 0
      continue
    }
    if (quietMs >= (findings.isWaiting || !findings.next ? stuckMs : outsideMs)) return findings.noteStuck()
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
    quietMs += POLL_MS
  }
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
    if (key.startsWith('step/') && value === undefined) findings.noteStep(key)
    if (key !== this.#asked) return value
    if (value === undefined) findings.noteWait(`wait for an answer to word ${key}`)
    else if (this.#record.redacted.isAt(findings.pointerOf(key))) findings.noteRead(`the answer to word ${key}`)
    return value
  }

  override checkEnd(ordinal: number): void {
    this.#findings.noteEnd('end of the work')
    super.checkEnd(ordinal)
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
  const { redacted, isAlone, store } = record
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
  if (redacted.isAt())
    for (const name of ['input', 'terms', 'request', 'owner'] as const)
      watch(name, () => findings.noteRead(`its ${name}`))
  if (!isAlone && !store)
    for (const name of ['referenceTasks', 'unloadedTasks', 'earlierArtifacts'] as const)
      watch(name, () => findings.noteRead('other tasks'))
  return given
}

/** The members of a host that a run and its journal use. */
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

/** A replay logs nothing: what it finds is its outcome. */
export const NO_LOG: Logger = { warn: ignored, error: ignored }

const isCompleted = ({ status }: Task) => status.state === 'TASK_STATE_COMPLETED'

/** The host of a replay: it answers from the record, and starts nothing. */
class ReplayHost implements RunHost {
  readonly key: ContextKey
  readonly logger = NO_LOG
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

  /** Ends the sleep that was due first. Gives whether there is one. */
  ringNext(): boolean {
    const [first] = [...this.#sleeps].toSorted((one, other) => one.dueMs - other.dueMs)
    if (!first || first.dueMs > this.clock.now()) return false
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

  afterCommit(effect: Parameters<ActorHost['afterCommit']>[0]): void {
    setImmediate(() => effect.run())
  }

  crash(_: string, error: unknown): void {
    this.#findings.noteError(error)
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
    return this.#otherTask(taskId, isCompleted)
  }

  async readHistory(before: string, limit = 50): Promise<Message[]> {
    const { key, store, isAlone } = this.#record
    if (store) return (await store.readMessages(key, limit, { before })).map(({ message }) => message)
    if (!isAlone) this.#findings.noteRead('earlier messages')
    return []
  }

  wasRestored(): boolean {
    return true
  }

  async #otherTask(taskId: string, isRead: (task: Task) => boolean = () => true): Promise<Task> {
    const { key, store } = this.#record
    const stored = await store?.readTask(key, taskId)
    if (stored && isRead(stored.task)) return stored.task
    this.#findings.noteUnstarted(`task ${taskId}`)
    this.#findings.noteWait(`wait for task ${taskId}`)
    return never
  }
}
