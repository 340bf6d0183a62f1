import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine, StateValue } from 'xstate'
import { A2AError } from '../../machines/protocol/errors.ts'
import { isInterrupted } from '../../machines/protocol/states.ts'
import type { WorkWord } from '../../machines/task-events.ts'
import { parseType } from '../../machines/xstate-names.ts'
import { defaultLimits } from '../access/limits.ts'
import type { Agent } from '../agent/define-agent.ts'
import { agentOfVersion, type EarlierVersion } from '../agent/earlier-versions.ts'
import { hears } from '../authoring/question-guards.ts'
import { namedArtifacts } from '../authoring/words.ts'
import type { WorkInput } from '../authoring/work-arguments.ts'
import { hasRunningLogic } from '../commits/actor-host.ts'
import { restoredTask } from '../snapshots/restored-task.ts'
import { restoreFault, type RestoredTask } from '../snapshots/snapshot-text.ts'
import { memoryStore } from '../store/memory/memory-store.ts'
import type { WorkStore } from '../store/retrying-reads.ts'
import type { ContextKey, JournalRow, MessageRow, Store, StoredTask, TaskEvent, TaskRow } from '../store/store.ts'
import { hasState } from '../store/task-record.ts'
import { type PromptedQuestion, promptedQuestion } from '../work/chart-question.ts'
import { RedactedValues } from '../work/redacted-values.ts'
import {
  differenceOf,
  type Divergence,
  type Consequence,
  wordKind,
  updateText,
  wordText
} from '../work/replay-findings.ts'
import { NO_LOG, type ReplayPatience, replayRun } from '../work/replay-run.ts'
import { TaskLoads } from '../work/task-loads.ts'
import { detailsFromJournal, loadWorkInput } from '../work/work-input.ts'
import { createActor } from '../xstate/library.ts'
import { activeStates, isChart, type PersistedSnapshot } from '../xstate/persisted-snapshot.ts'
import { writtenChart, type WrittenTransition } from '../xstate/written-chart.ts'
import { NOT_RESTARTED } from './errors.ts'
import { reasonFor } from './restore-dry-run.ts'

/** An open task as a store has it, with everything that a replay of it needs. */
export interface RecordedTask {
  readonly key: ContextKey
  readonly row: TaskRow & { readonly snapshot: string }
  /** Its events and its messages, oldest first each. */
  readonly events: readonly TaskEvent[]
  readonly messages: readonly MessageRow[]
  readonly journal: readonly JournalRow[]
  /** Whether its work can read only what is here: its context has no other task, and no message before its own. */
  readonly isAlone: boolean
  /** Has the other tasks and messages of its context. Without it, nothing is said of work that reads them. */
  readonly store?: WorkStore
  /** JSON pointers to redacted values: of `key`, `snapshot`, `events`, `messages` and `journal`. */
  readonly redacted?: readonly string[]
}

/** The reads of a store that a record needs. */
type RecordReads = Pick<
  Store,
  'loadContext' | 'readSnapshot' | 'readEvents' | 'readTaskMessages' | 'readJournal' | 'readMessages' | 'measureTasks'
>

/** How often a record is read again because its context has changed meanwhile. */
const READS = 20

/**
 * Reads the record of an open task, as it was between two commits, even while a server writes. `undefined` if the task
 * has ended or is not there. Rejects with Overloaded if its context changes all the time.
 */
export async function readRecord(
  store: RecordReads,
  key: ContextKey,
  taskId: string
): Promise<RecordedTask | undefined> {
  for (let reads = 0; reads < READS; reads += 1) {
    const context = await store.loadContext(key, 0)
    const found = context?.tasks.find(row => row.taskId === taskId)
    if (!context || !found) return undefined
    const snapshot = found.snapshot ?? (await store.readSnapshot(key, taskId))
    const events = await store.readEvents(key, taskId, 0, found.generation)
    const messages = await store.readTaskMessages(key, taskId, 0, Infinity)
    const journal = await store.readJournal(key, taskId)
    const isAlone = await readsNothingElse(store, key, taskId, messages[0] as MessageRow)
    const after = await store.loadContext(key, 0)
    if (snapshot === undefined || after?.commit !== context.commit) continue
    const { state, generation, wakeAtMs } = found
    const row = { taskId, state, generation, ...(wakeAtMs !== undefined && { wakeAtMs }), snapshot }
    return { key, row, events, messages, journal, isAlone }
  }
  throw new A2AError('Overloaded', `Task ${taskId} changes all the time, so it cannot be read whole.`)
}

async function readsNothingElse(
  store: RecordReads,
  key: ContextKey,
  taskId: string,
  opening: MessageRow
): Promise<boolean> {
  const { referenceTaskIds = [] } = opening.message
  if (referenceTaskIds.length > 0 || namedArtifacts(opening.message).length > 0) return false
  const tasks = await store.measureTasks({ ...key, newest: 2 })
  return tasks.length === 1 && (await store.readMessages(key, 1, { before: taskId })).length === 0
}

/**
 * What the present agent does with a stored task. `same`: it comes to where the task stands, by the same words.
 * `otherwise`: by words of other content, which clients have seen before. `other answer`: the question that the task
 * waits for has another schema. `cannot say`: it has read what is redacted, or needs what the record does not have:
 * another task, or the result of a new step while the record has more.
 * `diverges`: it does something else. `not restored`: the task fails when it is restored.
 */
export type ReplayOutcome = 'same' | 'otherwise' | 'other answer' | 'cannot say' | 'diverges' | 'not restored'

/** The outcome of a replay. */
export interface TaskReplay {
  readonly outcome: ReplayOutcome
  /** Why, as a clause; for `cannot say` and `not restored`. */
  readonly reason?: string
  /** The first difference, and both sides. */
  readonly difference?: Divergence
  /** For a function or generator that diverges. */
  readonly consequence?: Consequence
}

/** The work that a task runs: the agent's, or an earlier version's. */
type OwnWork = Pick<EarlierVersion, 'recovery' | 'input'> & Pick<Agent, 'work'>

/**
 * Replays a stored task with an agent, as a restore would: with the work of its version in `earlier`, or converted by
 * `migrate`. A function or generator runs from its start to where the task stands. A chart is restored, and what it
 * asks and waits for is compared. No step and no actor starts. Of the author's code runs what runs after a restart:
 * `migrate`, schemas, prompts, and a function outside its steps.
 */
export async function replayTask(agent: Agent, task: RecordedTask, patience?: ReplayPatience): Promise<TaskReplay> {
  const redacted = new RedactedValues(task.redacted)
  const restored = restoredTask(task.row, agent)
  const { error, earlierVersion, isOther, saved } = restored
  const own: OwnWork = agentOfVersion(agent, earlierVersion)
  const stored = saved.children?.['work']
  const found = error
    ? notRestored(error)
    : stored && typeof own.work === 'object'
      ? replayChart(own.work, stored.snapshot, own, restored, task, redacted)
      : await replayFunction(own, stored !== undefined, task, redacted, patience)
  if (found.outcome === 'same' || found.outcome === 'cannot say') return found
  if (agent.migrate && isOther && redacted.isAt('/snapshot'))
    return cannotSay('migrate reads redacted values', found.difference)
  return found
}

function notRestored(error: unknown): TaskReplay {
  return { outcome: 'not restored', reason: reasonFor(error) }
}

function cannotSay(reason: string, difference?: Divergence): TaskReplay {
  return { outcome: 'cannot say', reason, ...(difference && { difference }) }
}

/** Replays a function or generator. `hasBegun`: whether its work had started. */
async function replayFunction(
  own: OwnWork,
  hasBegun: boolean,
  task: RecordedTask,
  redacted: RedactedValues,
  patience?: ReplayPatience
): Promise<TaskReplay> {
  const {
    key,
    row: { taskId, state, wakeAtMs },
    journal
  } = task
  if (hasBegun && own.recovery === 'fail' && wakeAtMs === 0) return notRestored(NOT_RESUMED)
  const store = task.store ?? (await storeOf(task))
  const loads = task.store
    ? new TaskLoads({ store: task.store, limits: defaultLimits, logger: NO_LOG }).of(key)
    : NO_LOADS
  const sources = { store, agent: own, limits: { restoredBytes: Infinity }, loads }
  let input: WorkInput
  try {
    input = await loadWorkInput(key, taskId, sources, () => detailsFromJournal(journal))
  } catch (error) {
    const fault = notRestored(error)
    return redacted.isAt('/messages/0') ? cannotSay(`its input schema reads redacted values (${fault.reason})`) : fault
  }
  if (!hasBegun || typeof own.work !== 'function') return { outcome: 'same' }
  const readTask = async () => ((await store.readTask(key, taskId)) as StoredTask).task
  const run = { ...task, taskId, isInterrupted: isInterrupted(state), redacted, input, readTask }
  const { divergence, otherwise, unseen, isOutside } = await replayRun(own.work, run, patience)
  const { difference } = divergence ?? otherwise ?? {}
  if (unseen.length > 0)
    return cannotSay(`it needs ${unseen.join(' and ')}, which the record does not have`, difference)
  if (divergence) return { outcome: 'diverges', ...divergence }
  if (isOutside) return cannotSay('its code waits for something that taskchart does not see')
  if (!otherwise) return { outcome: 'same' }
  return { outcome: otherwise.isForm ? 'other answer' : 'otherwise', difference: otherwise.difference }
}

/** No other task is loaded: the record has none. */
const NO_LOADS = { load: async () => ({ tasks: [], unloaded: [] }) }

/** A store that has only this task. */
async function storeOf({ key, row, events, messages }: RecordedTask): Promise<Store> {
  const store = memoryStore()
  const log = [...events, ...messages].toSorted((one, other) => Number(one.generation) - Number(other.generation))
  const none = { journal: [], sends: [], webhooks: [] }
  await store.commit({ key, expected: 0, atMs: 0, snapshot: '{}', tasks: [row], log, ...none })
  return store
}

/** Restores a chart, and compares what it asks and waits for with the record. */
function replayChart(
  machine: AnyStateMachine,
  snapshot: PersistedSnapshot,
  { recovery }: OwnWork,
  restored: RestoredTask,
  task: RecordedTask,
  redacted: RedactedValues
): TaskReplay {
  const unlessRedacted = (found: TaskReplay) =>
    redacted.isAt('/snapshot') ? cannotSay('its chart reads redacted values', found.difference) : found
  // An actor that is never started restores its children, but has no effects.
  const actor = createActor(machine, { snapshot: structuredClone(snapshot) as never, input: undefined })
  const fault = restoreFault(actor, snapshot)
  if (fault !== undefined) return unlessRedacted(notRestored(fault))
  if (recovery === 'fail' && task.row.wakeAtMs === 0 && hasRunningLogic(actor)) return notRestored(NOT_RESUMED)
  const chart: AnyMachineSnapshot = actor.getSnapshot()
  const at = stateText(chart.value)
  const asked = isInterrupted(task.row.state)
    ? task.events.findLast(event => hasState(event, isInterrupted))
    : undefined
  const was = asked ? updateText(asked.update) : 'work'
  let question: PromptedQuestion | undefined
  try {
    question = promptedQuestion(chart, restored.saved.context.asks)
  } catch (error) {
    return unlessRedacted({
      outcome: 'diverges',
      difference: { at, was, is: `question that throws: ${reasonFor(error)}` }
    })
  }
  const word = question?.event as WorkWord | undefined
  const is = word ? wordText(word) : 'work'
  if (wordKind(was) !== wordKind(is)) return { outcome: 'diverges', difference: { at, was, is } }
  if (question && !takesAny(question.chart, ANSWERS[question.type]))
    return { outcome: 'diverges', difference: { at, was, is: 'question that takes no answer' } }
  const isHidden = redacted.isAt(`/events/${task.events.indexOf(asked as TaskEvent)}`)
  const other = asked && word && differenceOf(asked.update, word, isHidden)
  return (
    timerChange(actor, restored, at) ??
    (other
      ? { outcome: other.isForm ? 'other answer' : 'otherwise', difference: { at, was, is } }
      : { outcome: 'same' })
  )
}

const NOT_RESUMED = new A2AError('InternalError', NOT_RESTARTED)

/** The events that answer a question. */
const ANSWERS = {
  'input-required': ['message.received'],
  'auth-required': ['authorization.received', 'message.received']
} as const

/** The first stored timer whose event has no transition. A chart of another version has new timers instead. */
function timerChange(work: AnyActorRef, { saved, isOther }: RestoredTask, at: string): TaskReplay | undefined {
  for (const { source, target, event } of saved.delayed ?? []) {
    const chart = chartAt(work, target?.slice(1) ?? source)
    if (!chart || takesAny(chart, [event.type])) continue
    const renewed = isOther ? timersOf(chart) : []
    const is = renewed.length > 0 ? renewed.map(timerText).join(' and ') : 'no transition for it'
    return {
      outcome: renewed.length > 0 ? 'otherwise' : 'diverges',
      difference: { at, was: timerText(event.type), is }
    }
  }
  return undefined
}

/** The chart at a path of ids from the task, whose first is the work; `undefined` for another actor. */
function chartAt(work: AnyActorRef, [, ...path]: readonly string[]): AnyMachineSnapshot | undefined {
  let actor: AnyActorRef | undefined = work
  for (const id of path) actor = (actor?.getSnapshot() as Partial<AnyMachineSnapshot> | undefined)?.children?.[id]
  const snapshot = actor?.getSnapshot() as object | undefined
  return isChart(snapshot) ? snapshot : undefined
}

/** The transitions of a chart's active states. */
function transitionsIn(chart: AnyMachineSnapshot): readonly WrittenTransition[] {
  const active = new Set(activeStates(chart).map(({ id }) => id))
  return writtenChart(chart.machine as AnyStateMachine).transitions.filter(({ source }) => active.has(source.id))
}

function takesAny(chart: AnyMachineSnapshot, types: readonly string[]): boolean {
  return transitionsIn(chart).some(({ event }) => types.some(type => hears(event, type)))
}

/** The events of the timers of a chart's active states. */
function timersOf(chart: AnyMachineSnapshot): string[] {
  return transitionsIn(chart).flatMap(({ event, member }) => (member === 'after' ? [event] : []))
}

/** `timer after 3000 ms`. */
function timerText(type: string): string {
  const made = parseType(type)
  return `timer ${made?.kind === 'after' ? `after ${made.id}`.replace(/\d$/, '$& ms') : type}`
}

function stateText(value: StateValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value).replaceAll('"', '')
}
