import { getInitialSnapshot, getNextSnapshot } from 'xstate'
import { TASK_STATES, type TaskState } from '../../machines/protocol/states.ts'
import { protocolMachine, type Moves, type ProtocolEvent } from './protocol.machine.ts'

/** The observed states of one task, checked against the chart. */
export class ObservedTask {
  #snapshot = getInitialSnapshot(protocolMachine)

  /** Records a message in reply, or a task's state. Returns a description of an illegal transition. */
  see(state: TaskState | 'reply'): string | undefined {
    const event: ProtocolEvent = { type: state === 'reply' ? 'reply.seen' : `${TASK_STATES[state].chart}.seen` }
    const before = this.state
    if (`${before}.seen` === event.type) return undefined
    if (!this.#snapshot.can(event)) return `the task went from ${before} to ${event.type.replace('.seen', '')}`
    this.#snapshot = getNextSnapshot(protocolMachine, this.#snapshot, event)
    return undefined
  }

  /** The innermost state of the chart: `unopened`, `working`. */
  get state(): string {
    const { value } = this.#snapshot
    return typeof value === 'string' ? value : String(Object.values(value)[0])
  }

  /** Whether the task has ended. */
  get isOver(): boolean {
    return this.#snapshot.hasTag('over')
  }

  /** The moves in this state. */
  get moves(): Moves {
    return Object.assign({}, ...Object.values(this.#snapshot.getMeta()).map(meta => meta?.moves)) as Moves
  }
}
