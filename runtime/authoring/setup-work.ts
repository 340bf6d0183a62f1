/* oxlint-disable typescript/no-generated-empty-object-type -- as in XState's setup, for no actors, actions or guards */
import type {
  ActionFunction,
  AnyStateMachine,
  DelayConfig,
  EventObject,
  Invert,
  MachineContext,
  MetaObject,
  ParameterizedObject,
  SetupReturn,
  UnknownActorLogic,
  Values
} from 'xstate'
import type { GuardPredicate } from 'xstate/guards'
import type { StandardSchema } from '../ports/standard-schema.ts'
import { checkOptions } from '../primitives/options.ts'
import { setup } from '../xstate/library.ts'
import type { MessageReceived } from './input-schema.ts'
import { withQuestionGuards, type WorkTag } from './question-guards.ts'
import type { Failed, Rejected, Words, WorkResult, WorkWords } from './words.ts'
import type { WorkInput } from './work-arguments.ts'

/** A message in a state's `meta`: its content, or a function of the chart's context that gives it. */
export type WordsOf<Context> = Words | ((args: { context: Context }) => Words)

/**
 * Messages of a state: `prompt` if it is tagged input-required or auth-required, `reason` if it is final and tagged
 * failed or rejected.
 */
export interface WorkMeta<Context = MachineContext> {
  readonly prompt?: WordsOf<Context>
  /**
   * Validates the answer to the prompt: the client's message if the state is tagged input-required, the out-of-band
   * data if it is tagged auth-required. An invalid answer is refused before it reaches the chart. The event of a valid
   * one has the parsed `answer`; `dataOf(event, schema)` reads it with its type.
   */
  readonly schema?: StandardSchema<unknown>
  /** The JSON Schema that the client sees, of at most 16 KiB. Default: the one that the schema's library provides. */
  readonly jsonSchema?: Record<string, unknown>
  readonly reason?: WordsOf<Context>
}

export type Params = Record<string, ParameterizedObject['params'] | undefined>

// Written as XState writes its own: TypeScript resolves another form to `never` before it infers the actors.
export type Parameterized<T extends Params> = Values<{
  [K in keyof T as K & string]: { type: K & string; params: T[K] }
}>
export type Provided<
  T extends Record<string, UnknownActorLogic>,
  Children extends Record<string, string> = Record<never, never>
> = Values<{
  [K in keyof T as K & string]: { src: K & string; logic: T[K]; id: IdOf<K, Children> }
}>

/** The id that an actor of a chart may have, if the chart names its `children`. */
type IdOf<Name, Children extends Record<string, string>> = [Children] extends [never]
  ? string | undefined
  : Name extends keyof Invert<Children>
    ? Invert<Children>[Name] & string
    : string | undefined

/**
 * Supplies a type where XState expects a value: `types: { context: typed<Order>() }`, or `typed(schema)` for a schema's
 * output. The value is `undefined` and never read.
 */
export function typed<T>(_schema?: StandardSchema<T>): T {
  return undefined as T
}

/** The parts of a chart that XState's `setup` knows. */
const OPTIONS = { types: true, schemas: true, actors: true, actions: true, guards: true, delays: true } as const

/** The input of a work chart. `terms` is always set if it has a type. */
export type ChartInput<Input = unknown, Terms = Record<string, unknown> | undefined> = undefined extends Terms
  ? WorkInput<Input, NonNullable<Terms>>
  : Omit<WorkInput<Input>, 'terms'> & { readonly terms: Terms }

/**
 * XState's `setup` for work charts, with types for input, answers, words, tags, `meta` and output. Where two regions of
 * a chart can ask at once, each transition on an answer in them gets the guard that the event's `question` is its own.
 */
export function setupWork<
  Context extends MachineContext = Record<never, never>,
  Actors extends Record<string, UnknownActorLogic> = Record<never, never>,
  Actions extends Params = Record<never, never>,
  Guards extends Params = Record<never, never>,
  Delay extends string = never,
  Event extends EventObject = never,
  Input = unknown,
  Terms = Record<string, unknown> | undefined,
  Children extends Record<string, string> = Record<never, never>,
  Tag extends string = never,
  Meta extends MetaObject = WorkMeta<Context>
>(options: {
  /**
   * Types only: the chart's `context`; `events` of its own actors, and AuthorizationReceived; the `input` that the
   * agent's schema gives, or the `terms` of its negotiation; ids of `children`, and `tags` and `meta` of its own. For
   * example `{ context: typed<Order>(), terms: typed(terms) }`.
   */
  types?: {
    context?: Context
    events?: Event
    children?: Children
    tags?: Tag
    meta?: Meta
    input?: Input
    terms?: Terms
  }
  schemas?: unknown
  actors?: { [K in keyof Actors | Values<Children>]: K extends keyof Actors ? Actors[K] : never }
  actions?: {
    [K in keyof Actions]: ActionFunction<
      Context,
      MessageReceived | Event,
      MessageReceived | Event,
      Actions[K],
      Provided<Actors, Children>,
      Parameterized<Actions>,
      Parameterized<Guards>,
      Delay,
      WorkWords
    >
  }
  guards?: { [K in keyof Guards]: GuardPredicate<Context, MessageReceived | Event, Guards[K], Parameterized<Guards>> }
  delays?: {
    [K in Delay]: DelayConfig<
      Context,
      MessageReceived | Event,
      Parameterized<Actions>['params'],
      MessageReceived | Event
    >
  }
}): SetupReturn<
  Context,
  MessageReceived | Event,
  Actors,
  Children,
  Actions,
  Guards,
  Delay,
  WorkTag | Tag,
  ChartInput<Input, Terms>,
  WorkResult | Rejected | Failed | undefined,
  WorkWords,
  WorkMeta<Context> & Meta
> {
  checkOptions(options, OPTIONS, 'setupWork', 'setupWork({ types: { context } })')
  checkActors(options.actors)
  return guardingQuestions(setup(options as never)) as never
}

/** Throws TypeError for a function in place of the logic that it makes. */
export function checkActors(actors: object = {}): void {
  for (const [name, logic] of Object.entries(actors)) {
    if (typeof logic === 'function')
      throw new TypeError(
        `The actor ${name} is a function, and not the logic of an actor. Call the function that makes it: actors: { ${name}: artifactToRefine() }, or fromPromise(async () => …).`
      )
  }
}

/** A setup whose charts handle an answer only in the state with its question. */
function guardingQuestions({ createMachine, extend, ...others }: Made): Made {
  return {
    ...others,
    createMachine: config => withQuestionGuards(config, createMachine),
    extend: more => guardingQuestions(extend(more))
  }
}

/** The members of the result of XState's `setup` that are wrapped here. */
interface Made {
  readonly createMachine: (config: object) => AnyStateMachine
  readonly extend: (more: object) => Made
}
