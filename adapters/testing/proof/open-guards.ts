import { isObject } from '../../../machines/protocol/codec/json.ts'
import { StateMachine, type AnyStateMachine } from 'xstate'
import { guardName } from '../../drawing/chart-parts.ts'

/** The outcome of a guard that unknown data decides. */
export interface Choice {
  readonly guard: string
  readonly isTrue: boolean
}

/** The result of one combination of outcomes. */
export interface Run<T> {
  readonly choices: readonly Choice[]
  readonly result: T
}

type Guard = (given: { readonly context: unknown; readonly event: unknown }, params: unknown) => boolean

/** The maximum number of guards that one step evaluates. A chart that goes round without an event evaluates them for ever. */
const MOST_GUARDS = 200

/** A chart whose guards are evaluated, or taken both ways. Guards that XState combines (`and`, `not`) are made of their parts. */
export class OpenGuards {
  readonly machine: AnyStateMachine
  #script: readonly boolean[] | undefined
  #choices: Choice[] = []
  #known = new Map<string, boolean>()
  #contexts: unknown[] = []
  #evaluated = 0

  constructor({ config, implementations }: AnyStateMachine) {
    const open = (name: string, guard: unknown) => this.#opened(name, guard as Guard)
    const guards = Object.fromEntries(Object.entries(implementations.guards as object).map(([name, guard]) => [name, isCombined(guard) ? guard : open(name, guard)]))
    this.machine = new StateMachine(withGuards(config, open), { ...implementations, guards })
  }

  /** Calls a function once for each combination of the outcomes of the guards that it evaluates. */
  bothWays<T>(take: () => T): Run<T>[] {
    const runs: Run<T>[] = []
    let script: boolean[] | undefined = []
    while (script) {
      this.#begin(script)
      try {
        runs.push({ result: take(), choices: this.#choices })
      } finally {
        this.#script = undefined
      }
      const last = this.#choices.findLastIndex(({ isTrue }) => isTrue)
      script = last < 0 ? undefined : [...this.#choices.slice(0, last).map(({ isTrue }) => isTrue), false]
    }
    return runs
  }

  /** Calls a function with guards that have these outcomes, in the order in which they are evaluated. */
  decided(choices: readonly Choice[], take: () => void): void {
    this.#begin(choices.map(({ isTrue }) => isTrue))
    take()
    this.#script = undefined
  }

  #begin(script: readonly boolean[]): void {
    this.#script = script
    this.#choices = []
    this.#known = new Map()
    this.#contexts = []
    this.#evaluated = 0
  }

  #opened(name: string, guard: Guard): Guard {
    return (given, params) => (this.#script ? this.#choose(name, given.context, params) : guard(given, params))
  }

  /** The same guard has the same outcome until the context changes. */
  #choose(guard: string, context: unknown, params: unknown): boolean {
    if ((this.#evaluated += 1) > MOST_GUARDS) throw new RangeError('a step evaluates more than 200 guards')
    if (!this.#contexts.includes(context)) this.#contexts.push(context)
    const key = JSON.stringify([guard, params, this.#contexts.indexOf(context)])
    const isTrue = this.#known.get(key) ?? this.#script?.[this.#choices.length] ?? true
    if (!this.#known.has(key)) this.#choices.push({ guard, isTrue })
    this.#known.set(key, isTrue)
    return isTrue
  }
}

function isCombined(guard: unknown): boolean {
  return typeof guard === 'function' && 'check' in guard
}

/** Members of a chart's configuration that map names to states and transitions. */
const NAMED = new Set(['states', 'on', 'after'])

/** Members that hold no transitions. */
const WITHOUT_GUARDS = new Set(['context', 'meta', 'types', 'schemas', 'input', 'output', 'actions', 'entry', 'exit', 'src', 'params'])

/** A chart's configuration, with each guard that is written inline replaced. */
function withGuards<Config>(config: Config, open: (name: string, guard: unknown) => unknown, areNames = false): Config {
  if (Array.isArray(config)) return config.map((each: unknown) => withGuards(each, open)) as Config
  if (!isObject(config)) return config
  return Object.fromEntries(Object.entries(config).map(([key, value]) => {
    if (areNames) return [key, withGuards(value, open)]
    if (key === 'guard' && typeof value === 'function' && !isCombined(value)) return [key, open(guardName(value), value)]
    return [key, WITHOUT_GUARDS.has(key) ? value : withGuards(value, open, NAMED.has(key))]
  })) as Config
}
