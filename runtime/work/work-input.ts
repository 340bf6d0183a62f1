import type { ContextRequest } from '../../machines/negotiation-events.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { RequestDetails } from '../../machines/protocol/requests.ts'
import { NEGOTIATION_EXTENSION } from '../../machines/protocol/uris.ts'
import type { Limits } from '../access/limits.ts'
import { namedArtifacts, type ArtifactReference } from '../authoring/artifact-choices.ts'
import { NO_EXTENSIONS } from '../authoring/extensions.ts'
import { parseInput } from '../authoring/input-schema.ts'
import { NO_DETAILS } from '../authoring/request-details.ts'
import type { EarlierArtifact, Opened, ReadOpened, WorkInput } from '../authoring/work-arguments.ts'
import type { StandardSchema } from '../ports/standard-schema.ts'
import type { ContextKey, JournalRow, Store, TaskSize } from '../store/store.ts'
import { tooLarge, type WorkLoads } from './task-loads.ts'

/** How many of a context's newest tasks are looked through when a message refers to none. */
const LOOK_BACK_TASKS = 20

/** The journal keys of the extensions that the client had activated, and of the request's metadata and configuration. */
const ACTIVATION = 'extensions'
const REQUEST = 'request'

/** What the work of a context's first task is given, if its message refers to nothing: there is nothing to look up. It has no `input`. */
export function firstWorkInput(
  { taskId, contextId, message, extensions, request }: Pick<WorkInput, 'taskId' | 'contextId' | 'message'> & Opened,
  terms: Record<string, unknown> | undefined
): WorkInput | undefined {
  if (message.referenceTaskIds?.length || namedArtifacts(message).length > 0) return undefined
  return { taskId, contextId, message, request, input: undefined, ...(terms && { terms }), extensions, referenceTasks: [], unloadedTasks: [], earlierArtifacts: [] }
}

/** Reads the parts for the work from the request that opens its task. */
export function openedBy({ extensions = NO_EXTENSIONS, details = NO_DETAILS }: ContextRequest): Opened {
  return { extensions, request: details }
}

/** Adds the parts that are not empty to the journal rows of a turn. */
export function storeOpened(taskId: string, { extensions, request }: Opened, journal: JournalRow[]): void {
  if (extensions.length > 0) journal.push({ taskId, key: ACTIVATION, value: extensions })
  if (request !== NO_DETAILS) journal.push({ taskId, key: REQUEST, value: request })
}

/** Reads the parts for the work from the journal of its task. */
export function openedIn(journal: readonly JournalRow[]): Opened {
  const valueOf = (name: string) => journal.find(({ key }) => key === name)?.value
  const [extensions, request] = [valueOf(ACTIVATION), valueOf(REQUEST)] as [Opened['extensions'] | undefined, RequestDetails | undefined]
  return { extensions: extensions ?? NO_EXTENSIONS, request: request ?? NO_DETAILS }
}

/** The parts that load the input of a work. */
export interface InputSources {
  readonly store: Store
  readonly agent: { readonly input?: StandardSchema<unknown> | undefined }
  readonly limits: Pick<Limits, 'restoredBytes'>
  /** Loads the other tasks that the work is given. */
  readonly loads: WorkLoads
}

/**
 * Gathers what the work of a task of an agent is given, from what is committed. Rejects with InvalidAgentResponse if the
 * agent's schema does not take any more what it took when the task was opened, and with RateLimited if more is stored of the task
 * than `limits.restoredBytes`. `open` reads the rest of the opening call: by default from
 * the journal, whose size is checked before.
 */
export async function loadWorkInput(key: ContextKey, taskId: string, { store, agent, limits, loads }: InputSources, open: ReadOpened = async () => openedIn(await store.readJournal(key, taskId))): Promise<WorkInput> {
  const [own] = await store.measureTasks({ ...key, taskIds: [taskId] })
  if (own) checkReadable(own, limits)
  const stored = await store.readTask(key, taskId)
  const message = stored?.task.history?.[0]
  if (!message) throw new A2AError('InternalError', `The store does not hold the message that opened task ${taskId}.`)
  const { contextId } = key
  const input = agent.input && parseInput(agent.input, message)
  const terms = termsOf(stored.task)
  const opened = open()
  const { extensions, request } = opened instanceof Promise ? await opened : opened
  const others = await loadOthers(key, taskId, message, store, loads)
  return { taskId, contextId, message, request, input, ...(terms && { terms }), extensions, ...others }
}

/** Throws RateLimited if more is stored of a task than is read of one. */
export function checkReadable({ taskId, bytes, journalBytes }: TaskSize, { restoredBytes }: Pick<Limits, 'restoredBytes'>): void {
  if (bytes + journalBytes > restoredBytes) throw tooLarge(taskId, restoredBytes)
}

/** Loads the tasks that a message refers to, and those whose artifacts it may mean. Ids of other scopes are left out without a word (§3.4.3). */
async function loadOthers(
  key: ContextKey, ownId: string, message: Message, store: Store, loads: WorkLoads
): Promise<Pick<WorkInput, 'referenceTasks' | 'unloadedTasks' | 'earlierArtifacts'>> {
  const references = new Set(message.referenceTaskIds)
  const named = namedArtifacts(message)
  const taskIds = new Set([...references, ...named.map(({ taskId }) => taskId)])
  const { tasks, unloaded } = await loads.load(taskIds.size > 0 ? await store.measureTasks({ ...key, taskIds: [...taskIds] }) : [])
  const byId = new Map(tasks.map(task => [task.id, task]))
  const referenceTasks = [...references].flatMap(id => byId.get(id) ?? [])
  const meant = named.length > 0 ? namedOf(tasks, named) : artifactsOf(referenceTasks)
  if (named.length > 0 || meant.length > 0 || unloaded.length > 0) return { referenceTasks, unloadedTasks: unloaded, earlierArtifacts: meant }
  const newest = await store.measureTasks({ ...key, newest: LOOK_BACK_TASKS + 1 })
  // Work that runs again may have handed over something before.
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
  return tasks.toSorted(latestFirst).flatMap(({ id, artifacts = [] }) => artifacts.toReversed().map(artifact => ({ taskId: id, artifact })))
}

function latestFirst(one: Task, other: Task): number {
  const [first, second] = [completedAt(one), completedAt(other)]
  return first === second ? 0 : first < second ? 1 : -1
}

/** When a task completed, so that text order is time order; nothing if it has not. */
function completedAt({ status: { state, timestamp } }: Task): string {
  return (state === 'TASK_STATE_COMPLETED' && timestamp) || ''
}

function termsOf(task: Task): Record<string, unknown> | undefined {
  const negotiated = task.metadata?.[NEGOTIATION_EXTENSION]
  return negotiated && typeof negotiated === 'object' && 'terms' in negotiated ? (negotiated.terms as Record<string, unknown>) : undefined
}
