import type { StreamResponse } from '../machines/protocol/objects.ts'
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

/** The events of a tail as a client sees them. */
export async function* toldBy(tail: TaskTail, showsGeneration: boolean): AsyncGenerator<StreamResponse, void, undefined> {
  for await (const event of tail) yield shownEvent(event, showsGeneration)
}
