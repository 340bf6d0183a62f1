import type { Artifact, StreamResponse, Task } from '../../machines/protocol/objects.ts'
import { checkArgument, listOf } from '../../runtime/primitives/options.ts'
import { appendTo } from '../../runtime/store/task-record.ts'

/** One version of an artifact, as far as it has arrived. */
export interface ArtifactVersion {
  readonly taskId: string
  readonly artifactId: string
  /** The versions of an artifact share this name: the artifact's name, or else its artifactId. */
  readonly name: string
  /** Grows while chunks of it arrive. */
  readonly artifact: Readonly<Artifact>
}

/** How a message refers to a version: `metadata` goes into a part, `referenceTaskIds` into the message. */
export interface VersionReference {
  readonly metadata: { readonly artifactId: string; readonly taskId: string }
  readonly referenceTaskIds: string[]
}

/** A client's history of the artifacts that it has received. */
export interface ArtifactVersions {
  /**
   * Records a task, an answer of SendMessage, or an event of a stream, chunks included. An artifact that arrives again
   * keeps its place. Messages and statuses are ignored.
   */
  add(arrived: Task | StreamResponse): void
  /** The names of all artifacts, in order of arrival. */
  names(): string[]
  /** All versions of a name that are not rejected, in order of arrival. */
  versions(name: string): ArtifactVersion[]
  /** The last version of a name that is not rejected; `undefined` without one. */
  latest(name: string): ArtifactVersion | undefined
  /** Excludes a version for good: the one before it becomes the latest. May be called twice. */
  reject(version: Pick<ArtifactVersion, 'taskId' | 'artifactId'>): void
  /** The reference to put into a message that refines a version. */
  reference(version: Pick<ArtifactVersion, 'taskId' | 'artifactId'>): VersionReference
}

/**
 * Creates a history. An agent gives a refinement the name of its original and a new artifactId. The client decides
 * which version is the result, so it keeps the history (§4.1.7). Every version is in memory as long as the history.
 */
export function artifactVersions(): ArtifactVersions {
  const known = new Map<string, Arrived>()
  const rejected = new Set<string>()

  const arrive = (taskId: string, artifact: Artifact, append = false) => {
    const key = keyOf({ taskId, artifactId: artifact.artifactId })
    const version = known.get(key)
    if (append && version) return appendTo(version.artifact, artifact)
    const copy = { ...artifact, parts: [...artifact.parts] }
    if (version) version.artifact = copy
    else known.set(key, { taskId, artifact: copy })
  }
  const all = () => [...known.values()].map(versionOf)
  const versions = (name: string) => all().filter(version => version.name === name && !rejected.has(keyOf(version)))

  return {
    add: arrived => {
      if ('artifactUpdate' in arrived) {
        const { taskId, artifact, append } = arrived.artifactUpdate
        return arrive(taskId, artifact, append)
      }
      const task = 'task' in arrived ? arrived.task : arrived
      if ('artifacts' in task && task.artifacts) for (const artifact of task.artifacts) arrive(task.id, artifact)
    },
    names: () => [...new Set(all().map(({ name }) => name))],
    versions,
    latest: name => versions(name).at(-1),
    reject: version => void rejected.add(keyOf(version)),
    reference: ({ taskId, artifactId }) => ({ metadata: { artifactId, taskId }, referenceTaskIds: [taskId] })
  }
}

/**
 * All versions of the artifacts of these tasks by name, in order; those of a task that is later in the list are later
 * versions.
 */
export function artifactsByName(tasks: readonly Task[]): ReadonlyMap<string, readonly ArtifactVersion[]> {
  checkArgument(tasks, listOf('tasks'), 'artifactsByName(tasks)')
  const found = new Map<string, ArtifactVersion[]>()
  for (const { id: taskId, artifacts = [] } of tasks) {
    for (const artifact of artifacts) {
      const version = versionOf({ taskId, artifact })
      const versions = found.get(version.name)
      if (versions) versions.push(version)
      else found.set(version.name, [version])
    }
  }
  return found
}

interface Arrived {
  readonly taskId: string
  artifact: Artifact
}

/** An artifactId is unique only within its task. */
function keyOf({ taskId, artifactId }: Pick<ArtifactVersion, 'taskId' | 'artifactId'>): string {
  return JSON.stringify([taskId, artifactId])
}

function versionOf({ taskId, artifact }: Arrived): ArtifactVersion {
  const { artifactId, name } = artifact
  return { taskId, artifactId, name: name || artifactId, artifact }
}
