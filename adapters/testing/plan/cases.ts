import type { AnyActorLogic, EventObject } from 'xstate'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { Agent } from '../../../runtime/agent/define-agent.ts'
import type { AgentDescription } from '../../../runtime/agent/agent-card.ts'
import type { ArtifactWords, Words } from '../../../runtime/authoring/words.ts'
import { isNegotiation } from '../../../runtime/negotiation/negotiation.ts'
import { checkOptions, functionFor, type Kind, type OptionKinds } from '../../../runtime/primitives/options.ts'
import { isMachine } from '../../../runtime/xstate/persisted-snapshot.ts'
import type { BargainCases } from '../negotiation/model.ts'
import type { MadeCases } from './made-cases.ts'
import { isCallback } from './unmodelled.ts'

/** Inputs by name. The names appear in the names of tests. */
export type ByName<T> = Readonly<Record<string, T>>

/** A message that opens a task, and the artifacts of earlier tasks in its context. */
export interface OpeningCase {
  readonly words: Words
  readonly earlier: readonly ArtifactWords[]
  /** The terms of its deal, for an agent with a `negotiation(…)`. */
  readonly terms?: object
}

/** The inputs of an agent's tests. Give a case for each branch of the chart: a message that a guard accepts, and one that it refuses. */
export interface Cases {
  /**
   * Messages that open a task; paths begin with each. Use `{ words, earlier }` for a context that already has tasks. Default: the examples
   * of the card's skills, or else `start`, whose text is "start", and generated values of the agent's `input`, if they open a task.
   */
  readonly opening?: ByName<Words | OpeningCase>
  /** Terms to agree on, for an agent with a `negotiation(…)`; each opens paths of the work. Default: generated from their schema. */
  readonly terms?: ByName<object>
  /** Free text that a client may send before a task exists, likewise. Default: `words`, whose text is "words". */
  readonly requests?: ByName<Words>
  /** Messages to the task. Default: `an answer`, whose text is "an answer", and values generated from the schemas of questions. */
  readonly messages?: ByName<Words>
  /** The data of out-of-band authorizations. Default: `an authorization` without data, and values generated from schemas. */
  readonly authorizations?: ByName<unknown>
  /**
   * The results of invoked actors, by `src`: an output, or an Error. Default: `done` without an output, and `fails`; a callback only fails. None, `{}`,
   * for an actor that never ends. A chart among the actors is walked as that chart, unless it has results here. `respond` is for a
   * negotiation: `offer(…)` and the like. Default: every kind of answer.
   */
  readonly results?: Readonly<Record<string, ByName<unknown>>>
  /** Events that the chart's own actors send to it, and their snapshots: `{ type: 'xstate.snapshot.ID', snapshot: { context } }`. Default: none. */
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

/** Adds defaults, and values generated from schemas. Throws TypeError for an unknown member. */
export function casesWith(given: Cases, made: MadeCases, { card: { skills }, negotiate, work }: Agent): AllCases {
  const isBargaining = isNegotiation(negotiate)
  checkOptions(given, CASES, 'cases', "cases: { opening: { start: 'start' } }")
  const {
    opening,
    messages = { 'an answer': 'an answer', ...made.messages },
    authorizations = { 'an authorization': undefined, ...made.authorizations }
  } = given
  const { results = {}, events = {}, memory = context => context } = given
  const { terms = made.terms, requests = { words: 'words' } } = given
  const callbacks = callbacksIn(work)
  const bargains = { requests, terms, responses: results['respond'] }
  const opened = opening ?? (isBargaining ? { 'a deal': 'a deal' } : { ...examplesOf(skills), ...made.opening })
  const openings = Object.entries(opened).map(([name, given]): [string, OpeningCase] => [
    name,
    isOpening(given) ? given : { words: given, earlier: [] }
  ])
  const all = isBargaining ? openings.flatMap(one => dealsOf(one, terms)) : openings
  return {
    openings: Object.fromEntries(all),
    bargains,
    isOpeningGiven: opening !== undefined || (isBargaining && given.terms !== undefined),
    messages,
    authorizations,
    events,
    memory,
    resultsOf: src => results[src] ?? (callbacks.has(src) ? { fails: ANY_RESULT.fails } : ANY_RESULT)
  }
}

const GROUP: Kind = [isObject, 'an object that gives each a name']

const CASES: OptionKinds<Cases> = {
  opening: GROUP,
  terms: GROUP,
  requests: GROUP,
  messages: GROUP,
  authorizations: GROUP,
  results: GROUP,
  events: GROUP,
  memory: functionFor('a function of the context')
}

const ANY_RESULT = { done: undefined, fails: new Error('It fails, as its test wants it.') }

/** The actors of a chart that are callbacks, by `src`. They are never done. */
function callbacksIn(work: Agent['work']): ReadonlySet<string> {
  if (typeof work !== 'object') return new Set()
  const actors = Object.entries(work.implementations.actors as Readonly<Record<string, AnyActorLogic>>)
  return new Set(
    actors.flatMap(([src, logic]) => (isMachine(logic) ? [...callbacksIn(logic)] : isCallback(logic) ? [src] : []))
  )
}

function examplesOf(skills: AgentDescription['skills'] = []): ByName<Words> {
  const examples = skills.flatMap(({ examples = [] }) => examples)
  return Object.fromEntries((examples.length === 0 ? ['start'] : examples).map(example => [example, example]))
}

/** An opening message for each of the terms. */
function dealsOf([name, opening]: [string, OpeningCase], terms: ByName<object>): [string, OpeningCase][] {
  return Object.entries(terms).map(([on, terms]) => [`${name} on ${on}`, { ...opening, terms }])
}

function isOpening(given: Words | OpeningCase): given is OpeningCase {
  return typeof given === 'object' && 'words' in given
}
