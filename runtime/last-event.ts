import { isTerminal } from '../machines/protocol/states.ts'
import type { TaskEvent } from './store.ts'

/** Whether an event is the last of its task: no other comes after a terminal status (§4.1.3). */
export function isLast({ update }: TaskEvent): boolean {
  return 'statusUpdate' in update && isTerminal(update.statusUpdate.status.state)
}
