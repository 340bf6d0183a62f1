import { Monitor, type PropertyState } from '../../machines/properties/monitor.ts'
import { UPDATE_RULES } from '../../machines/properties/properties.ts'
import { isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import {
  contextName,
  type Commit,
  type ContextKey,
  generationOf,
  type MessageRow,
  type TaskEvent,
  type TaskRow
} from '../../runtime/store/store.ts'
import { mayFollow } from './life-cycle.ts'
import type { Violations } from './violations.ts'

/** All that was ever written of one task. */
export interface LedgerTask {
  readonly taskId: string
  readonly key: ContextKey
  readonly events: TaskEvent[]
  /** `met`: how many events it had when the message came. */
  readonly messages: (MessageRow & { readonly generation: number; readonly met: number })[]
  state: TaskState | undefined
  /** The time of its newest status. */
  statusTime: string
  /** Where the rules of A2A stand for it. */
  standing: PropertyState
}

const RULES = new Monitor(UPDATE_RULES)

/** How many entries the log of a task has, events and messages together: the generation of the newest. */
export function entriesOf({ events, messages }: LedgerTask): number {
  return events.length + messages.length
}

/** What became of every commit: the truth that everything else is held against. */
export class Ledger {
  readonly tasks = new Map<string, LedgerTask>()
  /** What became of each message that is not to be taken twice. */
  readonly #sends = new Map<string, string>()
  readonly #violations: Violations
  readonly #latestMs: () => number

  /** `latestMs`: no status may have a later time now, in milliseconds since 1970. */
  constructor(violations: Violations, latestMs: () => number) {
    this.#violations = violations
    this.#latestMs = latestMs
  }

  wrote({ key, tasks, log, sends }: Commit): void {
    const ended = new Set([...this.tasks.values()].filter(({ state }) => state && isTerminal(state)))
    for (const entry of log) {
      if (entry.taskId === undefined) continue
      const task = this.#task(key, entry.taskId)
      if (ended.has(task))
        this.#violations.add(`I2: ${entry.taskId} had ended, and ${JSON.stringify(entry)} was written`)
      const generation = generationOf(entry) ?? NaN
      const before = entriesOf(task)
      if (generation !== before + 1)
        this.#violations.add(`I3: ${entry.taskId} has ${before} entries, and then one of generation ${generation}`)
      if ('message' in entry) task.messages.push({ ...entry, generation, met: task.events.length })
      else this.#happened(task, entry)
    }
    for (const row of tasks) this.#changed(this.#task(key, row.taskId), row, ended)
    for (const send of sends) {
      const name = JSON.stringify([key.tenant, key.principal, send.key])
      const outcome = 'taskId' in send ? send.taskId : send.reply.messageId
      const before = this.#sends.get(name)
      if (before !== undefined && before !== outcome)
        this.#violations.add(`I6: the message ${send.key} became ${before}, and then ${outcome}`)
      this.#sends.set(name, outcome)
    }
  }

  #task(key: ContextKey, taskId: string): LedgerTask {
    const known = this.tasks.get(taskId)
    if (known && contextName(known.key) !== contextName(key))
      this.#violations.add(`I10: ${taskId} is written to by another context`)
    const task = known ?? {
      taskId,
      key,
      events: [],
      messages: [],
      state: undefined,
      statusTime: '',
      standing: RULES.start
    }
    this.tasks.set(taskId, task)
    return task
  }

  #happened(task: LedgerTask, event: TaskEvent): void {
    const { taskId, update } = event
    const next = 'statusUpdate' in update ? update.statusUpdate.status.state : undefined
    if (!mayFollow(task.state, next))
      this.#violations.add(`I5: ${taskId} goes from ${task.state} to ${next ?? 'an artifact'}`)
    if ('statusUpdate' in update) this.#timed(task, update.statusUpdate.status.timestamp ?? '')
    const standing = RULES.after(task.standing, update)
    for (const rule of RULES.violatedBetween(task.standing, standing))
      this.#violations.add(`I5: ${taskId} violates: ${rule}`)
    task.standing = standing
    task.events.push(event)
    task.state = next ?? task.state
  }

  #timed(task: LedgerTask, time: string): void {
    if (time < task.statusTime)
      this.#violations.add(`I20: the status times of ${task.taskId} go back from ${task.statusTime} to ${time}`)
    if (Date.parse(time) > this.#latestMs())
      this.#violations.add(
        `I20: ${task.taskId} has a status of ${time}, and it is ${new Date(this.#latestMs()).toISOString()}`
      )
    task.statusTime = time
  }

  #changed(task: LedgerTask, { taskId, state, generation, snapshot }: TaskRow, ended: ReadonlySet<LedgerTask>): void {
    if (ended.has(task)) this.#violations.add(`I2: ${taskId} had ended, and its row was written`)
    if (generation !== entriesOf(task))
      this.#violations.add(`I3: the row of ${taskId} says generation ${generation} of ${entriesOf(task)}`)
    if (state !== task.state) this.#violations.add(`I17: the row of ${taskId} says ${state}, its events ${task.state}`)
    if ((snapshot === undefined) !== isTerminal(state))
      this.#violations.add(`I17: ${taskId} is ${state} and has ${snapshot === undefined ? 'no' : 'a'} snapshot`)
  }
}
