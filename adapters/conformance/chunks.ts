import { isDeepStrictEqual } from 'node:util'
import type { StreamResponse, Task } from '../../machines/protocol/objects.ts'
import { fieldsOf, itemsOf } from './fields-of.ts'
import type { BindingTest } from './binding-test.ts'

/** The artifacts in the events of a stream, which begins with a task (§4.2.2): their parts by id. */
export function artifactsTold(events: readonly StreamResponse[]): ReadonlyMap<string, readonly unknown[]> {
  let told = new Map<string, readonly unknown[]>()
  for (const event of events) {
    if ('task' in event) told = contentsOf(event.task)
    if (!('artifactUpdate' in event)) continue
    const { artifact, append } = fieldsOf(event.artifactUpdate)
    const { artifactId, parts } = fieldsOf(artifact)
    told.set(String(artifactId), [...(append === true ? itemsOf(told.get(String(artifactId))) : []), ...itemsOf(parts)])
  }
  return told
}

/** Records whether a stream's artifacts equal those of GetTask: every artifact (§3.1.3), and each chunk once. */
export function noteChunks(
  trial: BindingTest,
  id: number,
  told: ReadonlyMap<string, readonly unknown[]>,
  task: Task,
  source: string
): void {
  const given = contentsOf(task)
  const missing = [...told.keys()].filter(artifactId => !given.has(artifactId))
  trial.check(
    65,
    missing.length === 0,
    `the artifacts that ${source} told: ${[...told.keys()].join(', ')}`,
    task.artifacts ?? []
  )
  trial.check(
    id,
    isDeepStrictEqual(textsOf(told), textsOf(given)),
    `what ${source} told, put together, as GetTask gives it: ${JSON.stringify([...given])}`,
    [...told]
  )
}

function contentsOf(task: unknown): Map<string, readonly unknown[]> {
  return new Map(
    itemsOf(fieldsOf(task).artifacts)
      .map(fieldsOf)
      .map(({ artifactId, parts }) => [String(artifactId), itemsOf(parts)])
  )
}

/** The agent may join consecutive texts. */
function textsOf(contents: ReadonlyMap<string, readonly unknown[]>): ReadonlyMap<string, string> {
  return new Map([...contents].map(([id, parts]) => [id, parts.map(textIn).join('')]))
}

function textIn(part: unknown): string {
  const { text } = fieldsOf(part)
  return typeof text === 'string' ? text : JSON.stringify(part)
}
