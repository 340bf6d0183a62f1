import type { StreamResponse } from '../machines/protocol/objects.ts'
import type { Admitted } from './call.ts'
import type { OperationServices } from './operation-services.ts'
import { shownEvent } from './shown.ts'
import type { Scope, TaskEvent } from './store.ts'
import { TaskTail } from './task-tail.ts'

/** A tail of one of the scope's tasks, listening from now on. */
export function tailOf(
  { feeds, store, limits }: OperationServices,
  scope: Scope,
  taskId: string,
  endsAfter: (event: TaskEvent) => boolean,
  signal: AbortSignal | undefined
): TaskTail {
  return new TaskTail({ feeds, store, scope, taskId, limit: limits.bufferedEvents, endsAfter, signal })
}

/** What a call says of how its events are told. */
type Telling = Pick<Admitted<unknown>, 'reliable' | 'numbered'>

/** The events of a tail as a client sees them. */
export async function* toldBy(tail: TaskTail, { reliable, numbered }: Telling): AsyncGenerator<StreamResponse, void, undefined> {
  for await (const event of tail) {
    numbered?.(event.generation)
    yield shownEvent(event, reliable)
  }
}
