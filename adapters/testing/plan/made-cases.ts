import type { AnyStateMachine } from 'xstate'
import type { Agent } from '../../../runtime/agent/define-agent.ts'
import { publishedSchema } from '../../../runtime/authoring/input-schema.ts'
import type { WorkMeta, WorkTag } from '../../../runtime/authoring/setup-work.ts'
import type { Words } from '../../../runtime/authoring/words.ts'
import { isNegotiation } from '../../../runtime/negotiation/negotiation.ts'
import { type StandardSchema, validated } from '../../../runtime/ports/standard-schema.ts'
import { statesOf } from '../../../runtime/xstate/transition-counter.ts'
import type { ByName } from './cases.ts'
import type { Model } from './model.ts'
import type * as payloads from './payloads.ts'
import { type Border, guardBorders } from './payloads.ts'

/** Cases generated from schemas, as defaults. */
export interface MadeCases {
  readonly opening: ByName<Words>
  readonly terms: ByName<object>
  readonly messages: ByName<Words>
  readonly authorizations: ByName<unknown>
  /** Whether there are schemas, and fast-check is not installed. */
  readonly lacksGenerator?: true
}

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
 * Generates cases from the schemas of an agent, with fast-check. The opening message and each question get two valid values and an invalid
 * one, and terms get two valid ones. Where guards compare numbers, there are values on both sides of the border. None for schemas without a JSON Schema, and none without fast-check, an optional peer.
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
  const said = (values: ByName<unknown>) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, wordsFor(value)]))
  return {
    opening: said(made(opening, [])),
    terms: made(terms, []) as ByName<object>,
    messages: said(made(messages, STRANGERS)),
    authorizations: made(authorizations, STRANGERS),
    ...(!loaded && { lacksGenerator: true })
  }
}

/** The schemas of a chart's questions, without duplicates. */
function questionsIn({ root }: AnyStateMachine, tag: WorkTag): Shown[] {
  const metas = statesOf(root).flatMap(({ tags, meta }) =>
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
  const takes = (value: unknown) => 'value' in validated(schema, value, 'value')
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
