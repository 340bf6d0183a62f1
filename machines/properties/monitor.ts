import type { AnyMachineSnapshot } from 'xstate'
import type { StreamResponse } from '../protocol/objects.ts'
import { isTerminal, TASK_STATES, type TaskState } from '../protocol/states.ts'
import type { Claim, Mode, Property } from './properties.ts'
import type { Term } from './terms.ts'

/** An update of a task. */
export type TaskUpdate = Extract<StreamResponse, { statusUpdate: unknown } | { artifactUpdate: unknown }>

/** Where the properties stand for a task. All tasks with the same updates share one. */
export interface PropertyState {
  readonly modes: readonly Mode[]
  /** The number of violated properties. */
  readonly violated: number
  /** Where they stand after an update of this name, as far as that was ever needed. */
  readonly next: Map<string, PropertyState>
}

/** How many standings are kept. Others are computed again each time. */
const KEPT_STANDINGS = 1000

const NAMES = Object.fromEntries(
  (Object.keys(TASK_STATES) as TaskState[]).map(state => [state, state.replace('TASK_STATE_', '')])
) as Readonly<Record<TaskState, string>>

/** The name of an update in properties: its status by the last word of `TASK_STATE_…`, or `artifact`. */
export function updateNameOf(update: TaskUpdate): string {
  return 'statusUpdate' in update ? NAMES[update.statusUpdate.status.state] : 'artifact'
}

/** Whether nothing may follow an update. */
export function isEnd(update: TaskUpdate): boolean {
  return 'statusUpdate' in update && isTerminal(update.statusUpdate.status.state)
}

/**
 * Evaluates properties on the updates of tasks, those that are decided by updates. It is one automaton for all of them,
 * made as it is needed: a step of a task is a look into a table, unless a property reads data. What has to happen in
 * the end is violated by a task that ends without it, but not by a canceled one.
 */
export class Monitor {
  /** The names of the properties. */
  readonly names: readonly string[]
  /** Where they stand before the first update of a task. */
  readonly start: PropertyState
  readonly #properties: readonly Property[]
  readonly #readsData: boolean
  readonly #standings = new Map<string, PropertyState>()

  constructor(properties: Readonly<Record<string, Property>>) {
    const observed = Object.entries(properties).filter(([, { claim }]) => isDecidedByUpdates(claim))
    this.names = observed.map(([name]) => name)
    this.#properties = observed.map(([, property]) => property)
    this.#readsData = this.#properties.some(({ claim }) => termsOf(claim).some(term => term.readsTold))
    this.start = this.#standing(this.#properties.map(({ start }) => start))
  }

  /** Where the properties stand after the next update. Throws what the author's function throws that reads its data. */
  after(standing: PropertyState, update: TaskUpdate): PropertyState {
    const name = updateNameOf(update)
    if (this.#readsData) return this.#step(standing, name, update)
    const known = standing.next.get(name)
    if (known) return known
    const next = this.#step(standing, name, update)
    standing.next.set(name, next)
    return next
  }

  /** The properties that are violated in one standing and not in an earlier one. */
  violatedBetween(earlier: PropertyState, later: PropertyState): string[] {
    if (earlier.violated === later.violated) return []
    return this.names.filter((_, index) => later.modes[index] === 'violated' && earlier.modes[index] !== 'violated')
  }

  #step({ modes }: PropertyState, name: string, update: TaskUpdate): PropertyState {
    const moment = {
      kind: 'told' as const,
      chart: NO_CHART,
      name,
      value: this.#readsData ? valueOf(update) : undefined
    }
    const isOver = isEnd(update) && name !== 'CANCELED'
    return this.#standing(
      this.#properties.map(({ next }, index) => {
        const mode = modes[index] as Mode
        const after = mode === 'violated' ? mode : next(mode, moment)
        return isOver && after === 'owes' ? 'violated' : after
      })
    )
  }

  #standing(modes: readonly Mode[]): PropertyState {
    const key = modes.join()
    const standing = this.#standings.get(key) ?? {
      modes,
      violated: modes.filter(mode => mode === 'violated').length,
      next: new Map()
    }
    if (this.#standings.size < KEPT_STANDINGS) this.#standings.set(key, standing)
    return standing
  }
}

/** Updates decide a property if none of its terms holds without an update. `always` is about states. */
function isDecidedByUpdates(claim: Claim): boolean {
  return claim.word !== 'always' && termsOf(claim).every(({ elsewhere }) => elsewhere === false)
}

function termsOf({ terms, after }: Claim): readonly Term[] {
  return after ? [...terms, after] : terms
}

/** Stands for the chart, which no observed property reads. */
const NO_CHART = {} as AnyMachineSnapshot

/** An update as the functions in terms get it, here and in a proof. */
function valueOf(update: TaskUpdate): object {
  if ('statusUpdate' in update) {
    const { state, message } = update.statusUpdate.status
    return { state, ...(message && { message }) }
  }
  const { artifact, append = false } = update.artifactUpdate
  return { artifact, append }
}
