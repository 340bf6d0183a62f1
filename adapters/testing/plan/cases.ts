import type { EventObject, AnyStateMachine } from 'xstate'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { NegotiationAnswer, ArtifactWords, Words } from '../../../runtime/index.ts'
import { objectSuchAs, type OptionKinds } from '../../../runtime/primitives/options.ts'
import { readGuard, writtenChart, type WrittenGuard } from '../../../runtime/xstate/written-chart.ts'
import { BOUND_OPTIONS, type BoundOptions } from '../bounds.ts'

/** Inputs by name. The names appear in the names of tests. */
export type ByName<T> = Readonly<Record<string, T>>

/** A message that opens a task, and the artifacts of earlier tasks in its context. */
export interface OpeningCase {
  readonly words: Words
  readonly earlier: readonly ArtifactWords[]
  /** The terms of its deal, for an agent with a `negotiation(…)`. */
  readonly terms?: object
}

/**
 * The inputs of an agent's tests. Give a case for each branch of the chart: a message that a guard accepts, and one
 * that it refuses.
 */
export interface Cases {
  /**
   * Messages that open a task; paths begin with each. Use `{ words, earlier }` for a context that already has tasks.
   * Default: the examples of the card's skills, or else `start`, whose text is "start", and generated values of the
   * agent's `input`, if they open a task.
   */
  readonly opening?: ByName<Words | OpeningCase>
  /**
   * Terms to agree on, for an agent with a `negotiation(…)`; each opens paths of the work. Default: generated from
   * their schema.
   */
  readonly terms?: ByName<object>
  /** Free text that a client may send before a task exists, likewise. Default: `words`, whose text is "words". */
  readonly requests?: ByName<Words>
  /**
   * Messages to the task. Default: `an answer`, whose text is "an answer", and values generated from the schemas of
   * questions.
   */
  readonly messages?: ByName<Words>
  /**
   * The data of out-of-band authorizations. Default: `an authorization` without data, and values generated from
   * schemas.
   */
  readonly authorizations?: ByName<unknown>
  /**
   * The results of invoked actors, by `src`: an output, or an Error. Default: `done` without an output, and `fails`; a
   * callback only fails. None, `{}`, for an actor that never ends. A chart among the actors is walked as that chart,
   * unless it has results here. `respond` is for a negotiation: `offer(…)` and the like. Default: every kind of answer.
   */
  readonly results?: Readonly<Record<string, ByName<unknown>>>
  /**
   * Events that the chart's own actors send to it, and their snapshots: `{ type: 'xstate.snapshot.ID', snapshot: {
   * context } }`. Default: none.
   */
  readonly events?: ByName<EventObject & { readonly [member: string]: unknown }>
  /** The part of the chart's context that decides which paths are possible. Default: all of it. */
  readonly memory?: (context: unknown) => unknown
}

/** Cases with their defaults. */
export interface AllCases {
  readonly openings: ByName<OpeningCase>
  readonly bargains: BargainCases
  /** Whether the opening messages were given, so that each has to open a task. */
  readonly isOpeningGiven: boolean
  readonly messages: ByName<Words>
  readonly authorizations: ByName<unknown>
  readonly resultsOf: (src: string) => ByName<unknown>
  readonly events: ByName<EventObject>
  readonly memory: (context: unknown) => unknown
}

/** Cases generated from schemas, as defaults. */
export interface MadeCases {
  readonly opening: ByName<Words>
  readonly terms: ByName<object>
  readonly messages: ByName<Words>
  readonly authorizations: ByName<unknown>
  /** Whether there are schemas, and fast-check is not installed. */
  readonly lacksGenerator?: true
}

/** A result of the author's `respond`: an answer, or an Error that it throws. */
export type Response = NegotiationAnswer<object> | Error

/** The inputs of a negotiation. */
export interface BargainCases {
  /** Free text that the client may send. */
  readonly requests: ByName<Words>
  /** Terms that both sides may propose. */
  readonly terms: ByName<object>
  /** The results of `respond`. Default: every kind of answer, with these terms, and an error. */
  readonly responses?: ByName<unknown> | undefined
}

/**
 * The paths to walk. `cover`: every move in every configuration, a cancel there, and every refusal there. `shortest`:
 * the shortest path to each configuration. `simple`: every path without a repeated configuration.
 */
export const PATH_KINDS = ['cover', 'shortest', 'simple'] as const

/** One of `PATH_KINDS`. */
export type PathKind = (typeof PATH_KINDS)[number]

/** The options of a plan. */
export interface PlanOptions extends BoundOptions {
  readonly cases?: Cases
  /** The kind of paths. Default `cover`. */
  readonly kind?: PathKind
}

export const PLAN_OPTIONS: OptionKinds<PlanOptions> = {
  cases: objectSuchAs("{ opening: { start: 'start' } }"),
  kind: [value => PATH_KINDS.some(kind => kind === value), PATH_KINDS.map(kind => `'${kind}'`).join(' or ')],
  ...BOUND_OPTIONS
}

/** Numbers on both sides of a border: 17 and 18 for `age >= 18`. */
export interface Border {
  /** The name that is compared; none if that is not known. */
  readonly name?: string
  readonly sides: readonly number[]
}

/** The borders of numbers that a chart's guards have, read from their text and from their parameters. */
export function guardBorders(machine: AnyStateMachine): Border[] {
  const inline = writtenChart(machine).transitions.flatMap(({ guard }) => guard ?? [])
  const named = Object.values(machine.implementations.guards as object).map(readGuard)
  return [...inline, ...named].flatMap(bordersOf)
}

const NUMBER = String.raw`-?\d[\d_]*(?:\.\d+)?\b`
// The end of an arrow is no comparison.
const COMPARES = String.raw`(?<!=)(?:[<>]=?|[=!]==?)`
const AFTER = new RegExp(
  String.raw`(?<name>[\p{L}_$][\p{L}\d_$]*)?[\s)\]]*(?<sign>${COMPARES})\s*(?<number>${NUMBER})`,
  'gu'
)
const BEFORE = new RegExp(
  String.raw`(?<number>${NUMBER})\s*(?<sign>${COMPARES})\s*(?:[\p{L}\d_$]+\??\.)*(?<name>[\p{L}_$][\p{L}\d_$]*)?`,
  'gu'
)

function bordersOf(guard: WrittenGuard): Border[] {
  switch (guard.kind) {
    case 'inline': {
      const text = String(guard.run)
      return [...bordersBy(text, AFTER, ['>=', '<']), ...bordersBy(text, BEFORE, ['<=', '>'])]
    }
    case 'named': {
      const { params } = guard
      const numbers = (isObject(params) ? Object.values(params) : [params]).filter(value => typeof value === 'number')
      return numbers.map(number => ({ sides: [number - 1, number, number + 1] }))
    }
    case 'and':
    case 'or':
    case 'not':
    default:
      return guard.guards.flatMap(bordersOf)
  }
}

/** The borders that a pattern finds. `first`: the signs for which the number is the first of the upper side. */
function bordersBy(text: string, pattern: RegExp, first: readonly string[]): Border[] {
  return Array.from(text.matchAll(pattern), ({ groups = {} }) => {
    const { name, sign = '', number = '' } = groups
    const at = Number(number.replaceAll('_', ''))
    return { ...(name !== undefined && { name }), sides: first.includes(sign) ? [at - 1, at] : [at, at + 1] }
  })
}
