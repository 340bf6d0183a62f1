import { A2AError } from '../machines/protocol/errors.ts'
import type { Artifact, Task } from '../machines/protocol/objects.ts'
import type { Message } from '../machines/protocol/parts.ts'
import { NEGOTIATION_EXTENSION } from '../machines/protocol/uris.ts'
import { namedArtifacts } from './artifact-references.ts'
import { NO_EXTENSIONS } from './extensions.ts'
import type { ContextKey, JournalRow, Scope, Store } from './store.ts'

/** An artifact of another task of the caller's. */
export interface EarlierArtifact {
  readonly taskId: string
  readonly artifact: Artifact
}

/** What work is given when it starts. `Terms` is what its agent negotiates about. */
export interface WorkInput<Terms = Record<string, unknown>> {
  readonly taskId: string
  readonly contextId: string
  /** The message that opened the task. */
  readonly message: Message
  /** What a negotiation agreed upon, if there was one with terms. */
  readonly terms?: Terms | undefined
  /** The agent's own extensions that the client had activated for that message, by their URIs (§4.6). */
  readonly extensions: readonly string[]
  /** The tasks that the message refers to (`referenceTaskIds`), as far as the caller may see them. */
  readonly referenceTasks: Task[]
  /**
   * The artifacts that the message may mean, newest first: those that its parts name, else those of the tasks that it
   * refers to, else those of the context's newest tasks.
   */
  readonly earlierArtifacts: EarlierArtifact[]
}

/** How many of a context's newest tasks are looked through when a message refers to none. */
const LOOK_BACK_TASKS = 20

/** The key in a task's journal of what its client had activated. */
const ACTIVATION = 'extensions'

/** What the work of a context's first task is given, if its message refers to nothing: there is nothing to look up. */
export function firstWorkInput(
  { taskId, contextId, message, extensions }: Pick<WorkInput, 'taskId' | 'contextId' | 'message' | 'extensions'>,
  terms: Record<string, unknown> | undefined
): WorkInput | undefined {
  if (message.referenceTaskIds?.length || namedArtifacts(message).length > 0) return undefined
  return { taskId, contextId, message, ...(terms && { terms }), extensions, referenceTasks: [], earlierArtifacts: [] }
}

/** What the journal of a task keeps of the extensions that were activated when it was opened. */
export function activation(taskId: string, extensions: readonly string[]): JournalRow {
  return { taskId, key: ACTIVATION, value: extensions }
}

/** Gathers what the work of a task is given, from what is committed. `hasExtensions`: its agent declares some of its own. */
export async function loadWorkInput(store: Store, key: ContextKey, taskId: string, hasExtensions: boolean): Promise<WorkInput> {
  const stored = await store.readTask(key, taskId)
  const message = stored?.task.history?.[0]
  if (!message) throw new A2AError('InternalError', `The store does not hold the message that opened task ${taskId}.`)
  const { contextId } = key
  const terms = termsOf(stored.task)
  const extensions = hasExtensions ? activatedIn(await store.readJournal(key, taskId)) : NO_EXTENSIONS
  const referenceTasks = await readTasks(store, key, message.referenceTaskIds ?? [])
  const earlierArtifacts = await loadArtifacts(store, key, message, referenceTasks)
  return { taskId, contextId, message, ...(terms && { terms }), extensions, referenceTasks, earlierArtifacts }
}

function activatedIn(journal: readonly JournalRow[]): readonly string[] {
  return (journal.find(({ key }) => key === ACTIVATION)?.value as readonly string[] | undefined) ?? NO_EXTENSIONS
}

async function loadArtifacts(store: Store, key: ContextKey, message: Message, referenceTasks: Task[]): Promise<EarlierArtifact[]> {
  const named = namedArtifacts(message)
  if (named.length > 0) {
    const tasks = await readTasks(store, key, [...new Set(named.map(({ taskId }) => taskId))])
    return artifactsOf(tasks).filter(({ taskId, artifact }) =>
      named.some(name => name.taskId === taskId && name.artifactId === artifact.artifactId)
    )
  }
  if (referenceTasks.length > 0) return artifactsOf(referenceTasks)
  const newest = await store.readTasks(key, LOOK_BACK_TASKS)
  return artifactsOf(newest.map(({ task }) => task))
}

/** The tasks of these ids that the scope holds; ids of others are left out without a word (§3.4.3). */
async function readTasks(store: Store, scope: Scope, taskIds: readonly string[]): Promise<Task[]> {
  const stored = await Promise.all(taskIds.map(taskId => store.readTask(scope, taskId)))
  return stored.flatMap(found => (found ? [found.task] : []))
}

function artifactsOf(tasks: Task[]): EarlierArtifact[] {
  return tasks.flatMap(({ id, artifacts = [] }) => artifacts.toReversed().map(artifact => ({ taskId: id, artifact })))
}

function termsOf(task: Task): Record<string, unknown> | undefined {
  const negotiated = task.metadata?.[NEGOTIATION_EXTENSION]
  return negotiated && typeof negotiated === 'object' && 'terms' in negotiated ? (negotiated.terms as Record<string, unknown>) : undefined
}
