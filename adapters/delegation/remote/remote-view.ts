import type { Artifact, StreamResponse, Task, TaskStatus } from '../../../machines/protocol/objects.ts'
import type { Part } from '../../../machines/protocol/parts.ts'
import { placeOf } from '../../client/requests.ts'
import { digestOf, type RecordKeeper } from './remote-record.ts'

/** The forwarded parts of an artifact. */
export interface ToldParts {
  readonly count: number
  /** The digest of all of them, in order. */
  readonly digest: string
}

/** News to forward: a status, or an artifact or a chunk of one. */
export type News =
  | { readonly status: TaskStatus }
  | { readonly artifact: Artifact; readonly append: boolean; readonly lastChunk: boolean }

/** An event of a task. */
export type TaskResponse = Exclude<StreamResponse, { message: unknown }>

const NOTHING: ToldParts = { count: 0, digest: '' }

/**
 * The news in an event of the agent's task, which are recorded as forwarded. An event is news unless its generation is known. In a
 * snapshot of the task, a different status is news, and so are the parts after those that were forwarded.
 */
export function newsIn(event: TaskResponse, record: RecordKeeper): News[] {
  const { generation } = placeOf(event)
  const { generation: known = 0 } = record.now
  if (generation !== undefined && generation <= known) return []
  const news = 'task' in event ? newsOfTask(event.task, record) : [newsOf(event)]
  for (const one of news) {
    if ('status' in one) record.change({ status: digestOf(one.status) })
    else noteParts(one.artifact, one.append, record)
  }
  if (generation !== undefined) record.change({ generation })
  return news
}

function newsOf(event: Exclude<TaskResponse, { task: unknown }>): News {
  if ('statusUpdate' in event) return { status: event.statusUpdate.status }
  const { artifact, append = false, lastChunk = false } = event.artifactUpdate
  return { artifact, append, lastChunk }
}

function newsOfTask({ artifacts = [], status }: Task, record: RecordKeeper): News[] {
  const news: News[] = artifacts.flatMap(artifact => newsOfArtifact(artifact, record))
  return digestOf(status) === record.now.status ? news : [...news, { status }]
}

function newsOfArtifact(artifact: Artifact, { parts: told }: RecordKeeper): News[] {
  const { parts } = artifact
  const { count, digest } = told.get(artifact.artifactId) ?? NOTHING
  if (count === 0 || following('', parts.slice(0, count)) !== digest)
    return [{ artifact, append: false, lastChunk: false }]
  return parts.length === count
    ? []
    : [{ artifact: { ...artifact, parts: parts.slice(count) }, append: true, lastChunk: false }]
}

function noteParts({ artifactId, parts }: Artifact, append: boolean, record: RecordKeeper): void {
  const { count, digest } = append ? (record.parts.get(artifactId) ?? NOTHING) : NOTHING
  record.changeParts(artifactId, { count: count + parts.length, digest: following(digest, parts) })
}

/** Extends a digest by more parts. */
function following(digest: string, parts: readonly Part[]): string {
  return parts.reduce((before, part) => digestOf(before, part), digest)
}
