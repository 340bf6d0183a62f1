import type { AnyStateMachine, EventFromLogic, SnapshotFrom, StateValue } from 'xstate'
import { always, atMostOnce, eventually, leadsTo, never, precedes, type Fairness, type Property } from './properties.ts'
import {
  allTerms,
  anyTerm,
  endTerm,
  eventTerm,
  notTerm,
  sentTerm,
  tagTerm,
  TERMINAL,
  termOf,
  updateTerm,
  type AnyTerm,
  type Term
} from './terms.ts'

type PathsOf<Value> = Value extends string
  ? Value
  : { [Key in keyof Value & string]: Key | `${Key}.${PathsOf<NonNullable<Value[Key]>>}` }[keyof Value & string]
type Matched<Chart extends AnyStateMachine> = SnapshotFrom<Chart> extends { value: infer Value } ? Value : never

/** The states of a chart by their paths: `'asking' | 'order' | 'order.paying'`. */
export type StateOf<Chart extends AnyStateMachine> = [StateValue] extends [Matched<Chart>]
  ? string
  : PathsOf<Matched<Chart>>
type TagOf<Chart extends AnyStateMachine> = SnapshotFrom<Chart> extends { tags: Set<infer Tag> } ? Tag & string : string
type EventOf<Chart extends AnyStateMachine> = EventFromLogic<Chart>
type Named<Event extends { type: string }, Type> = Event extends unknown
  ? Type extends Event['type']
    ? Event
    : never
  : never

/** Updates for a client: a status by the last word of its `TASK_STATE_…`, a group of statuses, or an artifact. */
export type UpdateName =
  | 'SUBMITTED'
  | 'WORKING'
  | 'INPUT_REQUIRED'
  | 'AUTH_REQUIRED'
  | 'COMPLETED'
  | 'FAILED'
  | 'CANCELED'
  | 'REJECTED'
  | 'terminal'
  | 'interrupted'
  | 'status'
  | 'artifact'

/** `after`: the property holds only from then on, and starts again at each. */
interface After<T> {
  readonly after: T
}

/** Which endless walks count. `progress` is the default. */
interface Fairly {
  readonly fairness: Fairness
}

/**
 * The words of properties, typed by a chart. Each term is a state by its path, a function of the chart's snapshot, or
 * one of the terms below.
 */
export interface PropertyWords<
  Chart extends AnyStateMachine,
  T = StateOf<Chart> | Term | ((chart: SnapshotFrom<Chart>) => boolean)
> {
  /** The term holds at no moment; with `{ after }`, at none that follows it. */
  readonly never: (term: T, options?: After<T>) => Property
  /** The term holds whenever the chart rests in a state; with `{ after }`, from then on. */
  readonly always: (term: T, options?: After<T>) => Property
  /** Whenever the first holds, the second holds later, or in the same step, unless the client cancels. */
  readonly leadsTo: (cause: T, effect: T, options?: Fairly) => Property
  /** The first happens before the second; with `{ after }`, between each of those and the next second. */
  readonly precedes: (first: T, then: T, options?: After<T>) => Property
  /**
   * The term happens once or not at all; with `{ after }`, since the last of those. A state happens when it is entered
   * from another.
   */
  readonly atMostOnce: (term: T, options?: After<T>) => Property
  /** The term holds on every walk, sooner or later, unless the client cancels. */
  readonly eventually: (term: T, options?: Fairly) => Property
  /** No walk gets there. */
  readonly unreachable: (term: T) => Property
  /** An event of this type arrives, and the chart accepts it. `isIt` selects some of them. */
  readonly event: <Type extends EventOf<Chart>['type']>(
    type: Type,
    isIt?: (event: Named<EventOf<Chart>, Type>) => boolean
  ) => Term
  /** An actor ends without an error. Give its id, or the name of its logic. */
  readonly done: (actor: string) => Term
  /** An actor ends with an error. */
  readonly fails: (actor: string) => Term
  /**
   * The client gets a status or an artifact; for a chart that is no work, the chart emits an event of this type.
   * Without a name, anything.
   */
  readonly told: (name?: UpdateName | (string & {}), isIt?: (update: never) => boolean) => Term
  /** The chart sends an event of this type to an actor. */
  readonly sent: (type: string, isIt?: (event: never) => boolean) => Term
  /** The chart is in a state with this tag. */
  readonly tag: (tag: TagOf<Chart>) => Term
  /** The task is over: its chart is done, the client cancels, or the deadline passes. */
  readonly terminal: Term
  /** All hold at one moment. The moment of an event has the state before it. */
  readonly all: (...terms: T[]) => Term
  /** At least one holds. */
  readonly any: (...terms: T[]) => Term
  /** It does not hold. */
  readonly not: (term: T) => Term
}

/**
 * The words with which to write properties of a chart, typed by its states, tags and events. Give them to
 * `defineAgent({ properties })`, and `taskchart prove` proves them on every walk or shows the shortest counterexample.
 * A state that the chart lacks throws TypeError.
 */
export function propertiesOf<Chart extends AnyStateMachine>(chart: Chart): PropertyWords<Chart> {
  const term = (given: AnyTerm) => termOf(given, chart)
  const afterIn = (options?: After<AnyTerm>) => options && term(options.after)
  const words: PropertyWords<AnyStateMachine, AnyTerm> = {
    never: (given, options) => never(term(given), afterIn(options)),
    always: (given, options) => always(term(given), afterIn(options)),
    leadsTo: (cause, effect, { fairness } = PROGRESS) => leadsTo(term(cause), term(effect), fairness),
    precedes: (first, then, options) => precedes(term(first), term(then), afterIn(options)),
    atMostOnce: (given, options) => atMostOnce(term(given), afterIn(options)),
    eventually: (given, { fairness } = PROGRESS) => eventually(term(given), fairness),
    unreachable: given => never(term(given)),
    event: (type, isIt) => eventTerm(type, isIt),
    done: actor => endTerm('done', actor),
    fails: actor => endTerm('error', actor),
    told: (name, isIt) => updateTerm(name, isIt),
    sent: (type, isIt) => sentTerm(type, isIt),
    tag: tagTerm,
    terminal: TERMINAL,
    all: (...terms) => allTerms(terms.map(term)),
    any: (...terms) => anyTerm(terms.map(term)),
    not: given => notTerm(term(given))
  }
  return words as unknown as PropertyWords<Chart>
}

const PROGRESS: Fairly = { fairness: 'progress' }
