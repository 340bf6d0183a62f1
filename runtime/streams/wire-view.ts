import type { StreamResponse, Task } from '../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { memoizePerTick } from '../primitives/event-loop.ts'
import type { StoredTask, TaskEvent } from '../store/store.ts'

/** A stored task in wire form; with the reliability extension, its metadata has the generation. */
export function toWireTask({ task, generation }: StoredTask, showsGeneration: boolean): Task {
  return showsGeneration ? { ...task, metadata: withGeneration(task.metadata, generation) } : task
}

/** An event in wire form: one shared object for all streams with the extension, and one for all without. */
export function toWireEvent(event: TaskEvent, showsGeneration: boolean): StreamResponse {
  return showsGeneration ? numbered(event) : event.update
}

const numbered = memoizePerTick(({ update, generation }: TaskEvent): StreamResponse => {
  if ('statusUpdate' in update) {
    const { statusUpdate } = update
    return {
      statusUpdate: Object.assign({}, statusUpdate, { metadata: withGeneration(statusUpdate.metadata, generation) })
    }
  }
  const { artifactUpdate } = update
  return {
    artifactUpdate: Object.assign({}, artifactUpdate, { metadata: withGeneration(artifactUpdate.metadata, generation) })
  }
})

function withGeneration(metadata: Record<string, unknown> | undefined, generation: number): Record<string, unknown> {
  return { ...metadata, [RELIABILITY_EXTENSION]: { generation } }
}
