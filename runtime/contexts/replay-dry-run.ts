import { setImmediate, setTimeout } from 'node:timers/promises'
import type { AnyActorScope } from 'xstate'
import type { Artifact, Message, Part } from '../../machines/protocol/objects.ts'
import { ANSWER_SCHEMA } from '../../machines/protocol/uris.ts'
import type { WorkWord } from '../../machines/task-events.ts'
import { failureReasonOf } from '../../machines/task.machine.ts'
import { defaultLimits } from '../access/limits.ts'
import type { Agent } from '../agent/define-agent.ts'
import type { WorkArguments } from '../authoring/work-arguments.ts'
import { type ActorHost, hostActors } from '../commits/actor-host.ts'
import type { Clock } from '../ports/clock.ts'
import { sameJson } from '../primitives/json.ts'
import type { WorkStore } from '../store/retrying-reads.ts'
import type { ContextKey, JournalRow, TaskEvent } from '../store/store.ts'
import { driveGenerator, isAsyncGenerator, type WorkFunction } from '../work/function-work.ts'
import { isSleep } from '../work/journal.ts'
import { TaskLoads } from '../work/task-loads.ts'
import { loadWorkInput } from '../work/work-input.ts'
import { WorkRun } from '../work/work-run.ts'

/**
 * Outcome of a dry run of a stored function or generator. `replays`: it comes to where the task is, with the words
 * that are stored. `otherwise`: it goes on, and differs. `diverges`: its task would fail. `unknown`: it cannot be
 * tried, or comes to a new step before where the task is, so that it depends on what follows.
 */
export interface ReplayVerdict {
  readonly outcome: 'replays' | 'otherwise' | 'diverges' | 'unknown'
  /** A clause. */
  readonly reason: string
  /** The number of the word at which both differ, from 1; what the store has there, and what the code does. */
  readonly word?: number
  readonly before?: string
  readonly after?: string
}

/** A stored task whose work is replayed. */
export interface ReplayedTask {
  readonly key: ContextKey
  readonly taskId: string
  /** Whether it waits for its client. */
  readonly isInterrupted: boolean
}

/** All events of a task: as many as stores count. */
const MOST_EVENTS = 2 ** 31 - 1

/** A dry run ends after so many rounds of the event loop in which nothing happens. */
const QUIET_ROUNDS = 5
/** So many rounds are real pauses, of this length in milliseconds. Then it cannot be said what the code waits for. */
const PAUSES = 200
const PAUSE_MS = 5

/** What the code of a dry run did, or what the store has: a word, a sleep, or a step. */
interface Deed {
  readonly kind: 'progress' | 'artifact' | 'question' | 'authorization' | 'sleep'
  readonly parts: readonly Part[]
  readonly name?: string | undefined
  readonly schema?: unknown
}

/**
 * Dry run of a stored function or generator with present code: it runs with its journal up to where the task is.
 * Nothing is written, and no step and no actor is started. What the author's code does outside of steps happens.
 */
export async function replayWork(
  agent: Pick<Agent, 'input'> & { readonly work: WorkFunction },
  store: WorkStore,
  { key, taskId, isInterrupted }: ReplayedTask,
  clock: Pick<Clock, 'now'>
): Promise<ReplayVerdict> {
  const events = await store.readEvents(key, taskId, 0, MOST_EVENTS)
  const journal = await store.readJournal(key, taskId)
  const record = new WorkRecord(events, journal)
  const trial = new Trial(record)
  const host: ActorHost = {
    key,
    logger: { warn() {}, error() {} },
    clock: { now: () => clock.now(), setTimeout: () => undefined, clearTimeout() {} },
    limits: defaultLimits,
    turnNumber: 0,
    noteRun() {},
    send() {},
    isInterrupted: () => isInterrupted,
    isAwaited: () => false,
    noteContextFact() {},
    noteTaskFact() {},
    bytesOf: () => 0,
    markChanged() {},
    noteHaste() {},
    // The start of an actor does not come here, since none is spawned.
    afterCommit: effect => void setImmediate().then(() => effect.run()),
    writable: () => trial.wait('a step'),
    workInput: (_, open) =>
      loadWorkInput(
        key,
        taskId,
        {
          store,
          agent,
          limits: defaultLimits,
          loads: new TaskLoads({ store, limits: defaultLimits, logger: host.logger }).of(key)
        },
        open
      ),
    readTask: async id => {
      const stored = await store.readTask(key, id)
      if (stored) return stored.task
      return trial.wait('a task that is gone')
    },
    completedTask: async id => {
      const stored = await store.readTask(key, id)
      return stored?.task.status.state === 'TASK_STATE_COMPLETED' ? stored.task : trial.wait('another task')
    },
    readJournal: async () => journal,
    readEvents: async () => [...events],
    wasRestored: () => true,
    keep() {},
    readMessages: async (limit = 50) => (await store.readMessages(key, limit)).map(({ message }) => message),
    readHistory: async (before, limit = 50) =>
      (await store.readMessages(key, limit, { before })).map(({ message }) => message),
    setAlarm: (_, name, dueMs, ring) => {
      if (record.hasPassed(name) || (dueMs <= clock.now() && record.hasMoreThan(trial.ordinal, trial.steps)))
        void setImmediate().then(ring)
      else void trial.wait('the end of a sleep')
    },
    clearAlarm() {},
    isLeaving: true,
    crash: (_, error) => trial.fail(error),
    failTask: (_, error) => trial.fail(error),
    awaitCleanup() {},
    trial
  }
  const parent = { id: taskId, _parent: { id: '' }, send: () => trial.note() }
  const self = { id: 'work', _parent: parent, getSnapshot: () => ({ status: 'active' }) }
  const system = {}
  hostActors(system as never, host)
  const run = new WorkRun({
    scope: { self, system } as unknown as AnyActorScope,
    program: (given, run) => {
      const returned = agent.work(withoutActors(given, trial))
      return isAsyncGenerator(returned) ? driveGenerator(returned, run) : returned
    },
    isRerun: true,
    ended: () => trial.end()
  })
  run.begin(undefined)
  await trial.settled(run)
  const verdict = trial.verdict(run)
  run.stop()
  return verdict
}

/** The arguments of work, of which `spawn` starts nothing. */
function withoutActors(given: WorkArguments, trial: Trial): WorkArguments {
  return new Proxy(given, {
    get: (target, name) => {
      if (name !== 'spawn') return Reflect.get(target, name, target) as unknown
      return () => {
        trial.refuse('it spawns an actor, which a dry run does not start')
        throw new Error('A dry run starts no actor.')
      }
    }
  })
}

/** What a dry run notes of the code. */
class Trial {
  readonly steps = new Set<string>()
  readonly #record: WorkRecord
  /** By ordinal. */
  readonly #deeds = new Map<number, Deed>()
  readonly #waits: string[] = []
  #activity = 0
  #hasEnded = false
  #refusal: string | undefined
  #failure: { readonly error: unknown } | undefined
  /** The newest step that was asked for. */
  #step = ''
  ordinal = 0

  constructor(record: WorkRecord) {
    this.#record = record
  }

  note(): void {
    this.#activity += 1
  }

  /** Notes a word, or a sleep. */
  did(ordinal: number, word: WorkWord | undefined): void {
    this.note()
    this.ordinal = ordinal
    this.#deeds.set(ordinal, deedOf(word))
  }

  /** Notes that a step is asked for. Other values of the journal belong to words. */
  asked(key: string): void {
    if (!key.startsWith('step/')) return
    this.note()
    this.#step = key
    this.steps.add(key)
  }

  /** Waits for what does not come in a dry run. */
  wait(what: string): Promise<never> {
    this.note()
    this.#waits.push(what === 'a step' ? `step ${stepName(this.#step)}` : what)
    return new Promise(() => {})
  }

  fail(error: unknown): void {
    this.note()
    this.#failure ??= { error }
  }

  refuse(reason: string): void {
    this.#refusal ??= reason
  }

  end(): void {
    this.#hasEnded = true
  }

  /** Resolves when the code has come as far as it does, or when that cannot be said. */
  async settled(run: WorkRun): Promise<void> {
    let quiet = 0
    for (let pauses = 0; pauses < PAUSES && quiet < QUIET_ROUNDS;) {
      const before = this.#activity
      await setImmediate()
      quiet = this.#activity === before ? quiet + 1 : 0
      const isThere = this.#waits.length > 0 || this.#hasEnded || this.#failure || this.#refusal || run.isWaiting
      if (quiet < QUIET_ROUNDS || isThere) continue
      quiet = 0
      pauses += 1
      await setTimeout(PAUSE_MS)
    }
    if (this.#waits.length === 0 && !this.#hasEnded && !run.isWaiting && !this.#failure)
      this.refuse('it waits for something outside of steps, sleeps and questions')
  }

  verdict(run: WorkRun): ReplayVerdict {
    if (this.#refusal !== undefined) return { outcome: 'unknown', reason: this.#refusal }
    if (this.#failure) return this.#diverged(this.#failure.error)
    const now = this.#hasEnded ? 'it ends' : run.isWaiting ? 'it asks' : `it waits for ${this.#waits.join(' and ')}`
    const [step] = this.#record.unusedSteps(this.steps)
    const missing = this.#record.firstAfter(this.ordinal)
    // If it has not come to where it was, it goes on with the record after that, and may differ there.
    const outcome = this.#hasEnded ? 'otherwise' : 'unknown'
    if (step !== undefined) {
      const name = `step ${stepName(step)}`
      return {
        outcome,
        reason: `it does not ask for ${name}, whose result is stored: ${now}`,
        before: name,
        after: now
      }
    }
    if (missing !== undefined) {
      const before = deedText(this.#record.deeds.get(missing) as Deed)
      return { outcome, reason: `it does not come to word ${missing} yet: ${now}`, word: missing, before, after: now }
    }
    const differs = this.#difference()
    if (differs) return differs
    return { outcome: 'replays', reason: `it comes to where it is, after word ${this.ordinal}: ${now}` }
  }

  /** The first word whose content differs. Progress that was said is not said again. */
  #difference(): ReplayVerdict | undefined {
    for (const [word, now] of [...this.#deeds].toSorted(([one], [other]) => one - other)) {
      const was = this.#record.deeds.get(word)
      if (!was || isAlike(was, now)) continue
      const [before, after] = [deedText(was), deedText(now)]
      return { outcome: 'otherwise', reason: `word ${word} was ${before} and is now ${after}`, word, before, after }
    }
    return undefined
  }

  #diverged(error: unknown): ReplayVerdict {
    const missing = this.#record.firstAfter(this.ordinal)
    const now = this.#deeds.get(this.ordinal)
    const was = this.#record.deeds.get(this.ordinal)
    const reason = failureReasonOf(error)
    const own = error instanceof Error && !reason.includes(error.message) ? `${reason} (${error.message})` : reason
    if (was && now && was.kind !== now.kind)
      return { outcome: 'diverges', reason: own, word: this.ordinal, before: deedText(was), after: deedText(now) }
    if (missing === undefined) return { outcome: 'diverges', reason: own }
    const before = deedText(this.#record.deeds.get(missing) as Deed)
    return { outcome: 'diverges', reason: own, word: missing, before, after: 'an error, or the end' }
  }
}

/** What the store has of a work: its words, its sleeps and its steps. */
class WorkRecord {
  readonly deeds = new Map<number, Deed>()
  readonly #journal: ReadonlyMap<string, unknown>

  constructor(events: readonly TaskEvent[], journal: readonly JournalRow[]) {
    this.#journal = new Map(journal.map(({ key, value }) => [key, value]))
    for (const { ordinal, update } of events) if (ordinal !== undefined) this.deeds.set(ordinal, storedDeed(update))
    for (const [key, value] of this.#journal) {
      const ordinal = /^\d+$/.test(key) ? Number(key) : undefined
      if (ordinal === undefined) continue
      if (isSleep(value)) this.deeds.set(ordinal, { kind: 'sleep', parts: [] })
      // A queued message answered the question, so it made no event.
      else if (!this.deeds.has(ordinal)) this.deeds.set(ordinal, { kind: 'question', parts: [] })
    }
  }

  /** Whether a sleep has ended, by its key. */
  hasPassed(key: string): boolean {
    const value = this.#journal.get(key)
    return isSleep(value) && value.untilMs === 0
  }

  hasMoreThan(ordinal: number, steps: ReadonlySet<string>): boolean {
    return this.firstAfter(ordinal) !== undefined || this.unusedSteps(steps).length > 0
  }

  /** The first word or sleep after an ordinal. */
  firstAfter(ordinal: number): number | undefined {
    return [...this.deeds.keys()].filter(each => each > ordinal).toSorted((one, other) => one - other)[0]
  }

  unusedSteps(asked: ReadonlySet<string>): string[] {
    return [...this.#journal.keys()].filter(key => key.startsWith('step/') && !asked.has(key))
  }
}

const WORDS = {
  'work.progressed': 'progress',
  'work.produced': 'artifact',
  'work.asked': 'question',
  'work.needsAuthorization': 'authorization'
} as const satisfies Record<WorkWord['type'], Deed['kind']>

function deedOf(word: WorkWord | undefined): Deed {
  if (!word) return { kind: 'sleep', parts: [] }
  const kind = WORDS[word.type]
  if (word.type === 'work.produced') return artifactDeed(word.artifact)
  return messageDeed(kind, word.message)
}

function storedDeed(update: TaskEvent['update']): Deed {
  if ('artifactUpdate' in update) return artifactDeed(update.artifactUpdate.artifact)
  const { state, message } = update.statusUpdate.status
  const kind =
    state === 'TASK_STATE_INPUT_REQUIRED'
      ? 'question'
      : state === 'TASK_STATE_AUTH_REQUIRED'
        ? 'authorization'
        : 'progress'
  return messageDeed(kind, message)
}

function artifactDeed({ name, parts }: Pick<Artifact, 'name' | 'parts'>): Deed {
  return { kind: 'artifact', parts, name }
}

function messageDeed(kind: Deed['kind'], message: Pick<Message, 'parts' | 'metadata'> | undefined): Deed {
  return { kind, parts: message?.parts ?? [], schema: message?.metadata?.[ANSWER_SCHEMA] }
}

/** Whether two words have the same content. A stored question that a queued message answered has none. */
function isAlike(was: Deed, now: Deed): boolean {
  if (was.kind === 'progress' || was.kind === 'sleep') return true
  if (was.kind === 'question' && was.parts.length === 0) return true
  return sameJson([was.parts, was.name ?? '', was.schema ?? null], [now.parts, now.name ?? '', now.schema ?? null])
}

/** A word for a reader: `question "How many?"`, `artifact bill`, `sleep`. */
function deedText({ kind, parts, name }: Deed): string {
  const text = parts.flatMap(part => ('text' in part ? [part.text] : [])).join(' ')
  const shown = text.length > 60 ? `${text.slice(0, 60)}…` : text
  return [kind, ...(name === undefined ? [] : [name]), ...(shown === '' ? [] : [JSON.stringify(shown)])].join(' ')
}

/** The name of a step, from its key in the journal: `step/price/1`. */
function stepName(key: string): string {
  return key.replace(/^.*?step\//, '').replace(/\/1$/, '')
}
