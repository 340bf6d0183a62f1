import type { EventObject } from 'xstate'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { Agent } from '../../../runtime/agent/define-agent.ts'
import type { AgentDescription } from '../../../runtime/agent/described-card.ts'
import type { ArtifactWords, Words } from '../../../runtime/authoring/words.ts'
import { isNegotiation } from '../../../runtime/negotiation/negotiation.ts'
import { checkOptions, functionFor, type Kind, type OptionKinds } from '../../../runtime/primitives/options.ts'
import type { BargainCases } from '../negotiation/cases.ts'
import type { MadeCases } from './made-cases.ts'

/** Things that may come, each under a name that stands in the names of the tests. */
export type ByName<T> = Readonly<Record<string, T>>

/** A message that opens a task, and what there is before it in its context: the artifact of an earlier task each. */
export interface OpeningCase {
  readonly words: Words
  readonly earlier: readonly ArtifactWords[]
  /** The terms of the deal that it makes, for an agent with a `negotiation(…)`. */
  readonly terms?: object
}

/**
 * What may happen to an agent in its tests. Give a case for each way in which the agent's chart may take it: a message that a
 * guard lets through, and one that it does not.
 */
export interface Cases {
  /** Messages that open a task; each begins paths of its own; `{ words, earlier }` where the context has tasks already. Default:
   * the examples of the card's skills, or else `start`, whose text is "start", and what is made of the agent's `input`, as far
   * as they open one. */
  readonly opening?: ByName<Words | OpeningCase>
  /** What both sides may agree upon, for an agent with a `negotiation(…)`; each opens paths of the work. Default: made from their schema. */
  readonly terms?: ByName<object>
  /** What a client may say in free words before there is a task, likewise. Default: `words`, whose text is "words". */
  readonly requests?: ByName<Words>
  /** Messages to the task. Default: `an answer`, whose text is "an answer", and what is made of the schemas of questions. */
  readonly messages?: ByName<Words>
  /** What an authorization brings that arrives out of band. Default: `an authorization`, which brings nothing, and what is made of schemas. */
  readonly authorizations?: ByName<unknown>
  /**
   * How the actors end that the chart invokes, by their `src`: an output, or an Error. Default: `done` without an output, and
   * `fails`. `respond` is that of a negotiation: `offer(…)` and the like. Default: everything that it may answer.
   */
  readonly results?: Readonly<Record<string, ByName<unknown>>>
  /** Events that its own actors send to the chart. Default: none. */
  readonly events?: ByName<EventObject>
  /** The part of the chart's context that decides where a path may lead. Default: all of it. */
  readonly memory?: (context: unknown) => unknown
}

/** Cases with their defaults. */
export interface AllCases {
  readonly openings: ByName<OpeningCase>
  readonly bargains: BargainCases
  /** Whether each of them has to open a task: they were given, not guessed. */
  readonly isOpeningGiven: boolean
  readonly messages: ByName<Words>
  readonly authorizations: ByName<unknown>
  readonly resultsOf: (src: string) => ByName<unknown>
  readonly events: ByName<EventObject>
  readonly memory: (context: unknown) => unknown
}

/** Fills in the defaults, and what was made of schemas. Throws TypeError for a member that is none, naming it. */
export function casesWith(given: Cases, made: MadeCases, { card: { skills }, negotiate }: Agent): AllCases {
  const isBargaining = isNegotiation(negotiate)
  checkOptions(given, CASES, 'cases', "cases: { opening: { start: 'start' } }")
  const { opening, messages = { 'an answer': 'an answer', ...made.messages }, authorizations = { 'an authorization': undefined, ...made.authorizations } } = given
  const { results = {}, events = {}, memory = context => context } = given
  const { terms = made.terms, requests = { words: 'words' } } = given
  const bargains = { requests, terms, responses: results['respond'] }
  const opened = opening ?? (isBargaining ? { 'a deal': 'a deal' } : { ...examplesOf(skills), ...made.opening })
  const openings = Object.entries(opened).map(([name, given]): [string, OpeningCase] => [name, isOpening(given) ? given : { words: given, earlier: [] }])
  const all = isBargaining ? openings.flatMap(one => dealsOf(one, terms)) : openings
  return { openings: Object.fromEntries(all), bargains, isOpeningGiven: opening !== undefined || (isBargaining && given.terms !== undefined), messages, authorizations, events, memory, resultsOf: src => results[src] ?? ANY_RESULT }
}

const GROUP: Kind = [isObject, 'an object that gives each a name']

const CASES: OptionKinds<Cases> = {
  opening: GROUP, terms: GROUP, requests: GROUP, messages: GROUP, authorizations: GROUP, results: GROUP, events: GROUP,
  memory: functionFor('a function of the context')
}

const ANY_RESULT = { done: undefined, fails: new Error('It fails, as its test wants it.') }

function examplesOf(skills: AgentDescription['skills'] = []): ByName<Words> {
  const examples = skills.flatMap(({ examples = [] }) => examples)
  return Object.fromEntries((examples.length === 0 ? ['start'] : examples).map(example => [example, example]))
}

/** An opening message on each of the terms. */
function dealsOf([name, opening]: [string, OpeningCase], terms: ByName<object>): [string, OpeningCase][] {
  return Object.entries(terms).map(([on, terms]) => [`${name} on ${on}`, { ...opening, terms }])
}

function isOpening(given: Words | OpeningCase): given is OpeningCase {
  return typeof given === 'object' && 'words' in given
}
