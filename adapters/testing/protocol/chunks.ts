import { isDeepStrictEqual } from 'node:util'
import type { StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import { isObject } from '../../../machines/protocol/json.ts'
import type { Trial } from './trial.ts'

/** The contents of artifacts by their ids, as the events of a stream tell them, beginning with a task (§4.2.2). */
export function artifactsTold(events: readonly StreamResponse[]): ReadonlyMap<string, readonly unknown[]> {
  let told = new Map<string, readonly unknown[]>()
  for (const event of events) {
    if ('task' in event && isObject(event.task)) told = contentsOf(event.task)
    if (!('artifactUpdate' in event) || !isObject(event.artifactUpdate?.artifact)) continue
    const { artifact: { artifactId, parts }, append = false } = event.artifactUpdate
    told.set(artifactId, [...(append ? (told.get(artifactId) ?? []) : []), ...(Array.isArray(parts) ? parts : [])])
  }
  return told
}

/** Keeps whether what a stream told is what GetTask gives: every artifact (§3.1.3), and its chunks once each. */
export function noteChunks(trial: Trial, id: number, told: ReadonlyMap<string, readonly unknown[]>, task: Task, source: string): void {
  const given = contentsOf(task)
  const missing = [...told.keys()].filter(artifactId => !given.has(artifactId))
  trial.check(65, missing.length === 0, `the artifacts that ${source} told: ${[...told.keys()].join(', ')}`, task.artifacts ?? [])
  trial.check(id, isDeepStrictEqual(textsOf(told), textsOf(given)), `what ${source} told, put together, as GetTask gives it: ${JSON.stringify([...given])}`, [...told])
}

function contentsOf({ artifacts }: Task): Map<string, readonly unknown[]> {
  return new Map((Array.isArray(artifacts) ? artifacts : []).map(({ artifactId, parts }) => [artifactId, parts]))
}

/** Texts that follow each other may be kept as one. */
function textsOf(contents: ReadonlyMap<string, readonly unknown[]>): ReadonlyMap<string, string> {
  return new Map([...contents].map(([id, parts]) => [id, parts.map(part => (isObject(part) && typeof part.text === 'string' ? part.text : JSON.stringify(part))).join('')]))
}
