import type { AnyStateMachine, AnyActorLogic } from 'xstate'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { StandardSchema, AgentDescription, WorkMeta, WorkTag, Agent, Words } from '../../../runtime/index.ts'
import { isNegotiation } from '../../../runtime/negotiation/negotiation.ts'
import { checkOptions, functionFor, type Kind, type OptionKinds } from '../../../runtime/primitives/options.ts'
import { publishedSchema, validateValue } from '../../../runtime/work-port.ts'
import { isMachine } from '../../../runtime/xstate/persisted-snapshot.ts'
import { writtenChart } from '../../../runtime/xstate/written-chart.ts'
import {
  type ByName,
  type MadeCases,
  type OpeningCase,
  type Cases,
  type AllCases,
  type Border,
  guardBorders
} from './cases.ts'
import type { Model } from './model.ts'
import type * as payloads from './payloads.ts'
import { isCallback } from './unmodelled.ts'

/** Loads what generates values. */
export type LoadPayloads = () => Promise<Payloads>

/** How to have values generated. */
export const INSTALL_GENERATOR = 'npm i -D fast-check'

type Shown = { readonly schema?: StandardSchema<unknown>; readonly jsonSchema?: Record<string, unknown> }
type Payloads = typeof payloads

/** The number of values generated per schema. */
const VALUES = 2

/** Values of various kinds, of which a schema should refuse at least one. */
const STRANGERS: readonly unknown[] = [{}, null, -1, 'something else']

/**
 * Generates cases from the schemas of an agent, with fast-check. The opening message and each question get two valid
 * values and an invalid one, and terms get two valid ones. Where guards compare numbers, there are values on both sides
 * of the border. None for schemas without a JSON Schema, and none without fast-check, an optional peer.
 */
export async function madeCases(
  { input, inputJsonSchema, negotiate }: Agent,
  machine: AnyStateMachine,
  load: LoadPayloads = () => import('./payloads.ts')
): Promise<MadeCases> {
  const opening: readonly Shown[] = input
    ? [{ schema: input, ...(inputJsonSchema && { jsonSchema: inputJsonSchema }) }]
    : []
  const [messages, authorizations] = [questionsIn(machine, 'input-required'), questionsIn(machine, 'auth-required')]
  const terms: readonly Shown[] = isNegotiation(negotiate) ? [{ schema: negotiate.terms }] : []
  if ([...opening, ...terms, ...messages, ...authorizations].length === 0)
    return { opening: {}, terms: {}, messages: {}, authorizations: {} }
  const loaded = await load().catch(() => undefined)
  const borders = guardBorders(machine)
  const made = (all: readonly Shown[], more: readonly unknown[]) =>
    loaded ? named(all.flatMap(one => valuesFor(one, more, borders, loaded))) : {}
  const asWords = (values: ByName<unknown>) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, wordsFor(value)]))
  return {
    opening: asWords(made(opening, [])),
    terms: made(terms, []) as ByName<object>,
    messages: asWords(made(messages, STRANGERS)),
    authorizations: made(authorizations, STRANGERS),
    ...(!loaded && { lacksGenerator: true })
  }
}

/** The schemas of a chart's questions, without duplicates. */
function questionsIn(machine: AnyStateMachine, tag: WorkTag): Shown[] {
  const metas = writtenChart(machine).states.flatMap(({ tags, meta }) =>
    tags.includes(tag) && (meta as WorkMeta | undefined)?.schema ? [meta as Shown] : []
  )
  return [...new Map(metas.map(meta => [meta.schema, meta])).values()]
}

function valuesFor(
  shown: Shown,
  strangers: readonly unknown[],
  borders: readonly Border[],
  { payloadsFor, payloadsAt }: Payloads
): unknown[] {
  const { schema } = shown
  const json = schema && publishedSchema(shown)
  if (!json) return []
  const takes = (value: unknown) => 'value' in validateValue(schema, value, 'value')
  return [
    ...payloadsFor(json, VALUES, takes),
    ...payloadsAt(json, borders, takes),
    ...strangers.filter(value => !takes(value)).slice(0, 1)
  ]
}

/** Values by their JSON text; long texts are cut and numbered. */
function named(values: readonly unknown[]): ByName<unknown> {
  const texts = [...new Map(values.map(value => [JSON.stringify(value), value]))]
  return Object.fromEntries(
    texts.map(([text, value], i) => [
      text.length > LONGEST_NAME ? `${text.slice(0, LONGEST_NAME)}… (${i + 1})` : text,
      value
    ])
  )
}

const LONGEST_NAME = 60

function wordsFor(value: unknown): Words {
  return typeof value === 'string' && value !== '' ? value : { parts: [{ data: value as never }] }
}

/** The error of a test whose chart draws random numbers. */
export class DrawError extends TypeError {
  constructor(cause: unknown) {
    super(
      'its chart draws random numbers, so each walk may go another way, and no test can say what has to happen. Draw them in an actor, such as draw: fromPromise(async () => Math.random()), and take its output: onDone: { actions: assign({ number: ({ event }) => event.output }) }. The cases say what it gives: export const cases = { results: { draw: { low: 0.1, high: 0.9 } } }',
      { cause }
    )
  }
}

/** Sees whether random numbers are drawn, with `Math` or `crypto`. */
export class DrawWatch {
  isDrawn = false

  /** A model of a chart whose steps it watches. */
  over<Move>({ begin, take }: Model<Move>): Model<Move> {
    return {
      begin: input => this.#during(() => begin(input)),
      take: (turn, move) => this.#during(() => take(turn, move))
    }
  }

  #during<T>(run: () => T): T {
    const { random } = Math
    const [randomUUID, getRandomValues] = [crypto.randomUUID.bind(crypto), crypto.getRandomValues.bind(crypto)]
    const noted =
      <Arguments extends unknown[], Result>(draw: (...given: Arguments) => Result) =>
      (...given: Arguments) => {
        this.isDrawn = true
        return draw(...given)
      }
    Object.assign(Math, { random: noted(random) })
    Object.assign(crypto, { randomUUID: noted(randomUUID), getRandomValues: noted(getRandomValues) })
    try {
      return run()
    } finally {
      Object.assign(Math, { random })
      for (const name of ['randomUUID', 'getRandomValues']) Reflect.deleteProperty(crypto, name)
    }
  }
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
