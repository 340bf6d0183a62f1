import type { ContextRequest } from '../../machines/negotiation-events.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { Message, RequestDetails, Task } from '../../machines/protocol/objects.ts'
import { NEGOTIATION_EXTENSION } from '../../machines/protocol/uris.ts'
import type { Limits } from '../access/limits.ts'
import type { EarlierArtifact } from '../authoring/artifact-choices.ts'
import { parseInput } from '../authoring/input-schema.ts'
import { namedArtifacts, type ArtifactReference } from '../authoring/words.ts'
import {
  NO_DETAILS,
  NO_EXTENSIONS,
  type OpeningDetails,
  type ReadOpeningDetails,
  receivedBytes,
  type WorkInput
} from '../authoring/work-arguments.ts'
import type { Turn } from '../commits/commit-pipeline.ts'
import type { TaskLedger } from '../commits/task-ledger.ts'
import type { StandardSchema } from '../ports/standard-schema.ts'
import type { WorkStore } from '../store/retrying-reads.ts'
import { isOpeningMessage, type ContextKey, type JournalRow, type TaskSize } from '../store/store.ts'
import { tooLarge, type TaskLoads, type WorkLoads } from './task-loads.ts'

/** How many of the context's newest tasks are searched for artifacts if a message refers to none. */
const LOOK_BACK_TASKS = 20

/** Journal keys of the extensions that the client had activated, and of the request's metadata and configuration. */
const ACTIVATION = 'extensions'
const REQUEST = 'request'

/**
 * Work input for the first task of a context whose message refers to nothing, made without a read. `input` is not set.
 */
export function firstWorkInput(
  {
    taskId,
    contextId,
    message,
    extensions,
    request
  }: Pick<WorkInput, 'taskId' | 'contextId' | 'message'> & OpeningDetails,
  terms: Record<string, unknown> | undefined
): WorkInput | undefined {
  if (message.referenceTaskIds?.length || namedArtifacts(message).length > 0) return undefined
  return {
    taskId,
    contextId,
    message,
    request,
    input: undefined,
    terms,
    extensions,
    referenceTasks: [],
    unloadedTasks: [],
    earlierArtifacts: []
  }
}

/** Extensions and request details, from the request that opens the task. */
export function detailsFromRequest({
  extensions = NO_EXTENSIONS,
  details = NO_DETAILS
}: ContextRequest): OpeningDetails {
  return { extensions, request: details }
}

/** Adds extensions and request details, if any, to the journal rows of a turn. */
export function storeOpened(taskId: string, { extensions, request }: OpeningDetails, turn: Turn): void {
  if (extensions.length > 0) turn.addJournal({ taskId, key: ACTIVATION, value: extensions })
  if (request !== NO_DETAILS) turn.addJournal({ taskId, key: REQUEST, value: request })
}

/** Whether a row of a journal has what {@link storeOpened} stores. */
export function isOpening({ key }: JournalRow): boolean {
  return key === ACTIVATION || key === REQUEST
}

/** Extensions and request details, from the journal of the task. */
export function detailsFromJournal(journal: readonly JournalRow[]): OpeningDetails {
  const valueOf = (name: string) => journal.find(({ key }) => key === name)?.value
  const [extensions, request] = [valueOf(ACTIVATION), valueOf(REQUEST)] as [
    OpeningDetails['extensions'] | undefined,
    RequestDetails | undefined
  ]
  return { extensions: extensions ?? NO_EXTENSIONS, request: request ?? NO_DETAILS }
}

/** Services that load the input of a work. */
export interface InputSources {
  readonly store: WorkStore
  readonly agent: { readonly input?: StandardSchema<unknown> | undefined }
  readonly limits: Pick<Limits, 'restoredBytes'>
  /** Loads the other tasks of the input. */
  readonly loads: Pick<WorkLoads, 'load'>
}

/**
 * Loads the input of a task's work from the store. Rejects with InvalidAgentResponse if the agent's schema no longer
 * accepts the message that opened the task, and with RateLimited if the task has more stored bytes than
 * `limits.restoredBytes`. `open` reads extensions and request details, by default from the journal, after its size has
 * been checked.
 */
export async function loadWorkInput(
  key: ContextKey,
  taskId: string,
  { store, agent, limits, loads }: InputSources,
  open: ReadOpeningDetails = async () => detailsFromJournal(await store.readJournal(key, taskId))
): Promise<WorkInput> {
  const [own] = await store.measureTasks({ ...key, taskIds: [taskId] })
  if (own) checkRestoredBytes(own, limits)
  const [stored, [first]] = await Promise.all([
    store.readTask(key, taskId, { historyLength: 0, artifacts: false }),
    store.readTaskMessages(key, taskId, 0, 1)
  ])
  // A later message is not the one that opened the task.
  if (!stored || !first || !isOpeningMessage(first))
    throw new A2AError('InternalError', `The store does not hold the message that opened task ${taskId}.`)
  const { message } = first
  const { contextId } = key
  const input = agent.input && parseInput(agent.input, message)
  const terms = termsOf(stored.task)
  const opened = open()
  const { extensions, request } = opened instanceof Promise ? await opened : opened
  const others = await loadOthers(key, taskId, message, store, loads)
  return { taskId, contextId, message, request, input, ...(terms && { terms }), extensions, ...others }
}

/** Throws RateLimited if a task has more stored bytes than `limits.restoredBytes`. */
export function checkRestoredBytes(
  { taskId, bytes, journalBytes }: TaskSize,
  { restoredBytes }: Pick<Limits, 'restoredBytes'>
): void {
  if (bytes + journalBytes > restoredBytes) throw tooLarge(taskId, restoredBytes)
}

/**
 * Loads the tasks that a message refers to, and those with artifacts that it may mean. Ids of other scopes are ignored
 * (§3.4.3).
 */
async function loadOthers(
  key: ContextKey,
  ownId: string,
  message: Message,
  store: WorkStore,
  loads: Pick<WorkLoads, 'load'>
): Promise<Pick<WorkInput, 'referenceTasks' | 'unloadedTasks' | 'earlierArtifacts'>> {
  const references = new Set(message.referenceTaskIds)
  const named = namedArtifacts(message)
  const taskIds = new Set([...references, ...named.map(({ taskId }) => taskId)])
  const { tasks, unloaded } = await loads.load(
    taskIds.size > 0 ? await store.measureTasks({ ...key, taskIds: [...taskIds] }) : []
  )
  const byId = new Map(tasks.map(task => [task.id, task]))
  const referenceTasks = [...references].flatMap(id => byId.get(id) ?? [])
  const meant = named.length > 0 ? namedOf(tasks, named) : artifactsOf(referenceTasks)
  if (named.length > 0 || meant.length > 0 || unloaded.length > 0)
    return { referenceTasks, unloadedTasks: unloaded, earlierArtifacts: meant }
  const newest = await store.measureTasks({ ...key, newest: LOOK_BACK_TASKS + 1 })
  // Without the task itself, whose earlier run may have produced artifacts.
  const earlier = await loads.load(newest.filter(({ taskId }) => taskId !== ownId))
  return { referenceTasks, unloadedTasks: earlier.unloaded, earlierArtifacts: artifactsOf(earlier.tasks) }
}

function namedOf(tasks: Task[], named: readonly ArtifactReference[]): EarlierArtifact[] {
  const names = new Set(named.map(nameOf))
  return artifactsOf(tasks).filter(({ taskId, artifact: { artifactId } }) => names.has(nameOf({ taskId, artifactId })))
}

function nameOf({ taskId, artifactId }: ArtifactReference): string {
  return JSON.stringify([taskId, artifactId])
}

function artifactsOf(tasks: Task[]): EarlierArtifact[] {
  return tasks
    .toSorted(latestFirst)
    .flatMap(({ id, artifacts = [] }) => artifacts.toReversed().map(artifact => ({ taskId: id, artifact })))
}

function latestFirst(one: Task, other: Task): number {
  const [first, second] = [completedAt(one), completedAt(other)]
  return first === second ? 0 : first < second ? 1 : -1
}

/** The time at which a task completed, as sortable text; empty if it has not. */
function completedAt({ status: { state, timestamp } }: Task): string {
  return (state === 'TASK_STATE_COMPLETED' && timestamp) || ''
}

function termsOf(task: Task): Record<string, unknown> | undefined {
  const negotiated = task.metadata?.[NEGOTIATION_EXTENSION]
  return negotiated && typeof negotiated === 'object' && 'terms' in negotiated
    ? (negotiated.terms as Record<string, unknown>)
    : undefined
}

type InputServices = Pick<InputSources, 'limits'> & { readonly reads: WorkStore; readonly loads: TaskLoads }

/** Loads the inputs of work in one live context, and counts the tasks that are loaded for it. */
export class WorkInputs {
  readonly #key: ContextKey
  readonly #services: InputServices
  readonly #workOf: (taskId: string) => InputSources['agent']
  readonly #tasks: Pick<TaskLedger, 'has' | 'countMessageAtLeast'>
  /** By task; created for the first. */
  #byTask: Map<string, WorkLoads> | undefined
  #hasLeft = false

  /** `workOf` gives what a task runs, with the schema of its input. */
  constructor(
    key: ContextKey,
    services: InputServices,
    tasks: Pick<TaskLedger, 'has' | 'countMessageAtLeast'>,
    workOf: (taskId: string) => InputSources['agent']
  ) {
    this.#workOf = workOf
    this.#key = key
    this.#services = services
    this.#tasks = tasks
  }

  /** Loads the input of a task's work. Releases the input that an earlier run has loaded. */
  async load(taskId: string, open?: ReadOpeningDetails): Promise<WorkInput> {
    const { reads: store, limits } = this.#services
    const agent = this.#workOf(taskId)
    this.ended(taskId)
    const input = await loadWorkInput(this.#key, taskId, { store, agent, limits, loads: this.loadsOf(taskId) }, open)
    this.#tasks.countMessageAtLeast(taskId, receivedBytes(input))
    return input
  }

  /** The loads of a task's work; released already if the task has ended, or the context has left memory. */
  loadsOf(taskId: string): WorkLoads {
    const loads = this.#byTask?.get(taskId) ?? this.#services.loads.of(this.#key)
    if (this.#hasLeft || !this.#tasks.has(taskId)) loads.release()
    else (this.#byTask ??= new Map()).set(taskId, loads)
    return loads
  }

  /** Releases the tasks that were loaded for a work that has ended. */
  ended(taskId: string): void {
    this.#byTask?.get(taskId)?.release()
    this.#byTask?.delete(taskId)
  }

  /** Releases everything, because the context leaves memory. */
  leave(): void {
    this.#hasLeft = true
    for (const loads of this.#byTask?.values() ?? []) loads.release()
  }
}
