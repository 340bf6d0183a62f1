import type { AnyStateMachine } from 'xstate'
import { type GuardFunction, withQuestionGuards, withReplacedGuards } from '../../../runtime/work-port.ts'
import { readGuard } from '../../../runtime/xstate/written-chart.ts'
import { guardName } from '../../../runtime/xstate/written-chart.ts'

/** The outcome of a guard that unknown data decides. */
export interface Choice {
  readonly guard: string
  readonly isTrue: boolean
  /** Present if it neither holds nor does not, but throws with the data that there is. */
  readonly throws?: true
}

/** Choices as a condition: `isPaid and not isLarge`. */
export function guardsText(choices: readonly Choice[]): string {
  return choices
    .map(({ guard, isTrue, throws }) => (throws ? `${guard} throws` : `${isTrue ? '' : 'not '}${guard}`))
    .join(' and ')
}

/** The result of one combination of outcomes. */
export interface GuardRun<T> {
  readonly choices: readonly Choice[]
  readonly result: T
}

/**
 * The maximum number of guards that one step evaluates. A chart that goes round without an event evaluates them for
 * ever.
 */
const MOST_GUARDS = 200

/** An outcome of a guard. */
type Outcome = 'holds' | 'fails' | 'throws'

/** A guard that was decided, and whether it throws with the data that there is. */
interface Decided extends Choice {
  readonly outcome: Outcome
  readonly call: { readonly isThrown: boolean; readonly error?: unknown }
}

/**
 * A chart whose guards are evaluated, or hold both ways. A guard that throws with the data that there is has that as a
 * third way. Guards that XState combines (`and`, `not`) are made of their parts.
 */
export class OpenGuards {
  readonly machine: AnyStateMachine
  #script: readonly Outcome[] | undefined
  #choices: Decided[] = []
  #known = new Map<string, Decided>()
  #contexts: unknown[] = []
  #evaluated = 0

  constructor(machine: AnyStateMachine) {
    this.machine = withReplacedGuards(
      machine,
      (guard, name) => this.#opened(name ?? guardName(readGuard(guard)), guard),
      withQuestionGuards
    )
  }

  /** Calls a function once for each combination of the outcomes of the guards that it evaluates. */
  bothWays<T>(take: () => T): GuardRun<T>[] {
    const runs: GuardRun<T>[] = []
    let script: Outcome[] | undefined = []
    while (script) {
      this.#begin(script)
      try {
        runs.push({ result: take(), choices: this.#choices.map(choiceOf) })
      } finally {
        this.#script = undefined
      }
      const last = this.#choices.findLastIndex(choice => nextOutcome(choice) !== undefined)
      const next = this.#choices.slice(last).map(nextOutcome)[0]
      script = next && [...this.#choices.slice(0, last).map(({ outcome }) => outcome), next]
    }
    return runs
  }

  /** Calls a function with guards that have these outcomes, in the order in which they are evaluated. */
  decided(choices: readonly Choice[], take: () => void): void {
    this.#begin(choices.map(({ isTrue, throws }) => (throws ? 'throws' : isTrue ? 'holds' : 'fails')))
    take()
    this.#script = undefined
  }

  #begin(script: readonly Outcome[]): void {
    this.#script = script
    this.#choices = []
    this.#known = new Map()
    this.#contexts = []
    this.#evaluated = 0
  }

  #opened(name: string, guard: GuardFunction): GuardFunction {
    return (given, params) => (this.#script ? this.#choose(name, guard, given, params) : guard(given, params))
  }

  /** Chooses an outcome; a guard keeps it until the context changes. */
  #choose(name: string, guard: GuardFunction, given: Parameters<GuardFunction>[0], params: unknown): boolean {
    if ((this.#evaluated += 1) > MOST_GUARDS) throw new RangeError('a step evaluates more than 200 guards')
    if (!this.#contexts.includes(given.context)) this.#contexts.push(given.context)
    const key = JSON.stringify([name, params, this.#contexts.indexOf(given.context)])
    const known = this.#known.get(key)
    const choice =
      known ??
      decidedBy(
        name,
        callOf(() => guard(given, params)),
        this.#script?.[this.#choices.length]
      )
    if (!known) this.#choices.push(choice)
    this.#known.set(key, choice)
    if (choice.outcome === 'throws') throw choice.call.error
    return choice.isTrue
  }
}

function decidedBy(guard: string, call: Decided['call'], outcome: Outcome = 'holds'): Decided {
  return { guard, isTrue: outcome === 'holds', ...(outcome === 'throws' && { throws: true as const }), outcome, call }
}

function choiceOf({ guard, isTrue, throws }: Decided): Choice {
  return { guard, isTrue, ...(throws && { throws }) }
}

/** Every guard may hold and fail; those that throw with the data that there is may also throw. */
function nextOutcome({ outcome, call }: Decided): Outcome | undefined {
  if (outcome === 'holds') return 'fails'
  return outcome === 'fails' && call.isThrown ? 'throws' : undefined
}

function callOf(run: () => unknown): Decided['call'] {
  try {
    run()
    return { isThrown: false }
  } catch (error) {
    return { isThrown: true, error }
  }
}
