import { A2AError } from '../machines/protocol/errors.ts'
import type { Artifact, Task } from '../machines/protocol/objects.ts'
import type { Message } from '../machines/protocol/parts.ts'
import { NEGOTIATION_EXTENSION } from '../machines/protocol/uris.ts'
import type { Agent } from './agent.ts'
import { namedArtifacts } from './artifact-references.ts'
import { NO_EXTENSIONS } from './extensions.ts'
import { openedWith } from './opening.ts'
import type { ContextKey, JournalRow, Scope, Store } from './store.ts'

/** An artifact of another task of the caller's. */
export interface EarlierArtifact {
  readonly taskId: string
  readonly artifact: Artifact
}

/** What work is given when it starts. `Input` is what its agent's `input` schema gives, `Terms` what it negotiates about. */
export interface WorkInput<Input = unknown, Terms = Record<string, unknown>> {
  readonly taskId: string
  readonly contextId: string
  /** The message that opened the task. */
  readonly message: Message
  /** That message as the agent's `input` schema gives it; `undefined` if the agent has none. */
  readonly input: Input
  /** What a negotiation agreed upon, if there was one with terms. */
  readonly terms?: Terms | undefined
  /** The agent's own extensions that the client had activated for that message, by their URIs (§4.6). */
  readonly extensions: readonly string[]
  /** The tasks that the message refers to (`referenceTaskIds`), as far as the caller may see them. */
  readonly referenceTasks: Task[]
  /**
   * The artifacts that the message may mean: those that its parts name; else those of the tasks that it refers to; else, or
   * if these have none, those of the context's newest tasks. Newest first: those of the task that completed last stand in
   * front, whichever began first; at the end those of tasks that have not completed, whose artifacts may not be whole.
   */
  readonly earlierArtifacts: EarlierArtifact[]
}

/** How many of a context's newest tasks are looked through when a message refers to none. */
const LOOK_BACK_TASKS = 20

/** The key in a task's journal of what its client had activated. */
const ACTIVATION = 'extensions'

/** What the work of a context's first task is given, if its message refers to nothing: there is nothing to look up. It has no `input`. */
export function firstWorkInput(
  { taskId, contextId, message, extensions }: Pick<WorkInput, 'taskId' | 'contextId' | 'message' | 'extensions'>,
  terms: Record<string, unknown> | undefined
): WorkInput | undefined {
  if (message.referenceTaskIds?.length || namedArtifacts(message).length > 0) return undefined
  return { taskId, contextId, message, input: undefined, ...(terms && { terms }), extensions, referenceTasks: [], earlierArtifacts: [] }
}

/** What the journal of a task keeps of the extensions that were activated when it was opened. */
export function activation(taskId: string, extensions: readonly string[]): JournalRow {
  return { taskId, key: ACTIVATION, value: extensions }
}

/**
 * Gathers what the work of a task of an agent is given, from what is committed. Rejects with InvalidAgentResponse if the
 * agent's schema does not take any more what it took when the task was opened.
 */
export async function loadWorkInput(store: Store, key: ContextKey, taskId: string, agent: Pick<Agent, 'input' | 'extensions'>): Promise<WorkInput> {
  const stored = await store.readTask(key, taskId)
  const message = stored?.task.history?.[0]
  if (!message) throw new A2AError('InternalError', `The store does not hold the message that opened task ${taskId}.`)
  const { contextId } = key
  const input = agent.input && openedWith(agent.input, message)
  const terms = termsOf(stored.task)
  const extensions = agent.extensions.length > 0 ? activatedIn(await store.readJournal(key, taskId)) : NO_EXTENSIONS
  const referenceTasks = await readTasks(store, key, message.referenceTaskIds ?? [])
  const earlierArtifacts = await loadArtifacts(store, key, taskId, message, referenceTasks)
  return { taskId, contextId, message, input, ...(terms && { terms }), extensions, referenceTasks, earlierArtifacts }
}

function activatedIn(journal: readonly JournalRow[]): readonly string[] {
  return (journal.find(({ key }) => key === ACTIVATION)?.value as readonly string[] | undefined) ?? NO_EXTENSIONS
}

async function loadArtifacts(store: Store, key: ContextKey, ownId: string, message: Message, referenceTasks: Task[]): Promise<EarlierArtifact[]> {
  const named = namedArtifacts(message)
  if (named.length > 0) {
    const tasks = await readTasks(store, key, [...new Set(named.map(({ taskId }) => taskId))])
    return artifactsOf(tasks).filter(({ taskId, artifact }) =>
      named.some(name => name.taskId === taskId && name.artifactId === artifact.artifactId)
    )
  }
  const referenced = artifactsOf(referenceTasks)
  if (referenced.length > 0) return referenced
  const newest = await store.readTasks(key, LOOK_BACK_TASKS + 1)
  // Work that runs again may have handed over something before.
  return artifactsOf(newest.flatMap(({ task }) => (task.id === ownId ? [] : [task])))
}

/** The tasks of these ids that the scope holds; ids of others are left out without a word (§3.4.3). */
async function readTasks(store: Store, scope: Scope, taskIds: readonly string[]): Promise<Task[]> {
  const stored = await Promise.all(taskIds.map(taskId => store.readTask(scope, taskId)))
  return stored.flatMap(found => (found ? [found.task] : []))
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
