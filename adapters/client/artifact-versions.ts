import type { Artifact, StreamResponse, Task } from '../../machines/protocol/objects.ts'
import { appendTo } from '../../runtime/store/task-record.ts'

/** One version of an artifact, as far as it has arrived. */
export interface ArtifactVersion {
  readonly taskId: string
  readonly artifactId: string
  /** What the versions have in common: the artifact's name, or its artifactId if it has none. */
  readonly name: string
  /** Grows while chunks of it arrive. */
  readonly artifact: Readonly<Artifact>
}

/** What a message has to say to be about one version: `metadata` belongs into a part, `referenceTaskIds` into the message. */
export interface VersionReference {
  readonly metadata: { readonly artifactId: string; readonly taskId: string }
  readonly referenceTaskIds: string[]
}

/** A client's history of the artifacts that it was given: what is a version of what, and which of them it takes. */
export interface ArtifactVersions {
  /**
   * Notes what has arrived: a task, an answer of SendMessage, or an event of a stream, chunks too. An artifact that is known
   * already keeps its place. A message, or a status, is passed over.
   */
  add(arrived: Task | StreamResponse): void
  /** The names of all artifacts, in the order in which they first arrived. */
  names(): string[]
  /** All versions of a name that are not rejected, in the order in which they arrived. */
  versions(name: string): ArtifactVersion[]
  /** The version of a name that arrived last and is not rejected; `undefined` if there is none. */
  latest(name: string): ArtifactVersion | undefined
  /** Says that a version does not count: the one before it is the latest again. For good; may be called twice. */
  reject(version: Pick<ArtifactVersion, 'taskId' | 'artifactId'>): void
  /** What to say in a message that is to refine a version. */
  reference(version: Pick<ArtifactVersion, 'taskId' | 'artifactId'>): VersionReference
}

/**
 * A new history. An agent gives a refinement the name of its original and an id of its own; which of them is the result is
 * for the client to say, so it keeps the history (§4.1.7). It holds every version until it is let go of itself.
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

interface Arrived {
  readonly taskId: string
  artifact: Artifact
}

/** An artifact's id is unique within its task only. */
function keyOf({ taskId, artifactId }: Pick<ArtifactVersion, 'taskId' | 'artifactId'>): string {
  return JSON.stringify([taskId, artifactId])
}

function versionOf({ taskId, artifact }: Arrived): ArtifactVersion {
  const { artifactId, name } = artifact
  return { taskId, artifactId, name: name || artifactId, artifact }
}
