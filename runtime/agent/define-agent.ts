import type { AnyActorScope, AnyStateMachine } from 'xstate'
import type { Property } from '../../machines/properties/properties.ts'
import type { AgentExtension } from '../../machines/protocol/card.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { RestartPolicy } from '../../machines/supervision.ts'
import { shownInput } from '../authoring/input-schema.ts'
import type { ChartInput } from '../authoring/setup-work.ts'
import { declaredExtensions, type WorkArguments } from '../authoring/work-arguments.ts'
import { isNegotiation, type Negotiation } from '../negotiation/negotiation.ts'
import type { NegotiateFunction } from '../negotiation/per-message.ts'
import type { StandardSchema } from '../ports/standard-schema.ts'
import { checkArgument, rejectUnknown } from '../primitives/options.ts'
import { checkRenamed, type Renamed } from '../snapshots/renames.ts'
import type { AnyMigrate } from '../snapshots/restored-task.ts'
import type { WorkFunction, WorkGenerator } from '../work/function-work.ts'
import { refuseOtherMajor } from '../xstate/other-majors.ts'
import { checkCapabilities, type CapabilityChoices } from './capabilities.ts'
import { checkChart, warnOfChart } from './chart-check.ts'
import { describedCard, type AgentDescription, type DescribedCard, type ExtendedCard } from './described-card.ts'
import {
  checkProperties,
  type EarlierVersions,
  earlierVersions,
  isWork,
  type EarlierVersion
} from './earlier-versions.ts'
import { recoveryPolicy, restartPolicy, type MessagePolicy, type RecoveryType, type RestartOption } from './policies.ts'

/**
 * A statechart as work. If its `input` or its `terms` are typed, the types must be those of the agent's schema and of
 * its negotiation.
 */
export type WorkChart<Input = unknown, Terms = Record<string, unknown> | undefined> = AnyStateMachine & {
  getInitialSnapshot(scope: AnyActorScope, input?: ChartInput<Input, Terms>): unknown
}

/**
 * An agent as its author writes it. With `work` it does tasks, with `negotiate` it answers messages, with both it
 * negotiates first, about `Terms`. `Input` is the output type of its `input` schema.
 */
export interface AgentDefinition<Input = unknown, Terms = Record<string, unknown> | undefined> {
  readonly card: AgentDescription
  /**
   * Members that extend or replace those of the card for authenticated callers, or a function of the caller that gives
   * them.
   */
  readonly extendedCard?: ExtendedCard
  /** Capabilities to turn off, such as `{ streaming: false }`. Default: all that can be served are on. */
  readonly capabilities?: CapabilityChoices
  /**
   * Protocol extensions that the agent supports (§4.6), in addition to taskchart's. Work and negotiation get the URIs
   * that the client has activated. Clients that do not declare a `required` one are refused.
   */
  readonly extensions?: readonly AgentExtension[]
  /**
   * Validates the message that opens a task: its first data part, else its text. An invalid one is refused with
   * InvalidParams that names the field, and opens no task. With `negotiate`, it is validated after that has accepted.
   * The work gets the parsed value as `input`. The card has the JSON Schema, in an extension
   * (`urn:taskchart:extension:input:1`).
   */
  readonly input?: StandardSchema<Input>
  /** The JSON Schema on the card, of at most 16 KiB. Default: the one that the schema's library provides. */
  readonly inputJsonSchema?: Record<string, unknown>
  /**
   * Does the tasks: a function, an async generator, or a statechart made with `setupWork`. A generator in this place has
   * the types of a function's arguments, since TypeScript knows one type here. As a `WorkGenerator` it has its own.
   */
  readonly work?:
    | WorkFunction<NoInfer<Input>, NoInfer<Terms>>
    | ((work: WorkArguments<NoInfer<Input>, NoInfer<Terms>>) => ReturnType<WorkGenerator>)
    | WorkChart<NoInfer<Input>, NoInfer<Terms>>
  /**
   * Answers messages that address no task: a function, called for each message separately, or a `negotiation(…)`, which
   * keeps an offer open between messages. Without it every such message opens a task.
   */
  readonly negotiate?: NegotiateFunction<Terms> | Negotiation<Terms>
  /**
   * Policy for messages to a working task. `reject` (the default) refuses them. `deliver` delivers them if the work is
   * a statechart that handles them in its present state, else refuses them. `queue` stores them as answers to the
   * work's next questions, which the client then does not see.
   */
  readonly messages?: MessagePolicy
  /**
   * Restarts of crashed work: `temporary` (the default) never, `transient` at most `intensity` times within `periodMs`.
   * One more crash fails the task. Default intensity and period are OTP's: once within 5,000 ms.
   */
  readonly restart?: RestartOption
  /**
   * Recovery of work that was running when its process ended: `resume` (the default of statecharts), `rerun` (the
   * default of functions and generators) or `fail`. Work that crashes its process fails after as many
   * recoveries without progress as `limits.advanced.recoveries` allows.
   */
  readonly recovery?: RecoveryType
  /** The version of the work, which is stored with each task. Default: that of the card. */
  readonly version?: string
  /**
   * The names that states and actors of the statechart have now, by those that another version gave them. They are
   * replaced in a stored task of that version, before `migrate`: in its states, its history, its actors, its timers.
   * `{ states: { choosing: 'asking' } }` is for the tasks of every other version; by the version that stored them:
   * `{ '1': { states: { choosing: 'asking' }, actors: { paint: 'draw' } } }`. A nested state is named by its path.
   */
  readonly renamed?: Renamed
  /**
   * Converts a statechart's snapshot from another version into one that this version can restore. It should be pure,
   * since it may be called several times for a task. If it throws, the task fails. Without it, a stored snapshot is
   * restored if it fits the chart.
   */
  readonly migrate?: AnyMigrate
  /**
   * The work of other versions, by version: a task goes on with the work of the version that opened it. An entry is a
   * work, or `{ work, input?, recovery?, properties? }`; what it leaves out is as in the agent. For versions without an
   * entry `migrate` is called, or the stored task goes on with `work`.
   */
  readonly earlier?: EarlierVersions
  /** Grace period for the cleanup of work whose task has ended, in milliseconds. Default 5,000. */
  readonly cancelGraceMs?: number
  /**
   * Time limit of a task's work, in milliseconds, including questions and restarts of the process. A task that exceeds
   * it fails, and its work stops. Default: no limit.
   */
  readonly deadlineMs?: number
  /**
   * Claims about every walk through the statechart of the work, by names, which are sentences. Written with the words
   * of `propertiesOf(chart)`. `taskchart prove` proves them, or shows the shortest counterexample. A runtime observes
   * those over updates, with `createRuntime({ observeProperties: true })`.
   */
  readonly properties?: Readonly<Record<string, Property>>
}

/** An agent that a runtime can serve: checked, with its defaults filled in. */
export interface Agent extends AgentDefinition {
  readonly earlier?: Readonly<Record<string, EarlierVersion>>
  readonly card: DescribedCard
  readonly work?: WorkFunction | WorkGenerator | AnyStateMachine
  readonly extensions: readonly AgentExtension[]
  readonly messages: MessagePolicy
  readonly restart: RestartPolicy
  readonly recovery: RecoveryType
  readonly version: string
  readonly cancelGraceMs: number
}

const MEMBERS = Object.keys({
  card: true,
  extendedCard: true,
  capabilities: true,
  extensions: true,
  input: true,
  inputJsonSchema: true,
  work: true,
  negotiate: true,
  messages: true,
  restart: true,
  recovery: true,
  version: true,
  renamed: true,
  migrate: true,
  earlier: true,
  cancelGraceMs: true,
  deadlineMs: true,
  properties: true
} satisfies Record<keyof AgentDefinition, true>)

/** Validates an agent's definition. Throws TypeError or RangeError that says what to write instead. */
export function defineAgent<Input = undefined, Terms = Record<string, unknown> | undefined>(
  given: AgentDefinition<Input, Terms>
): Agent {
  // Types of input and terms exist only for the author.
  const definition = given as AgentDefinition
  checkArgument(
    definition,
    [isObject, 'an object'],
    "defineAgent({ card: { name: 'Barista' }, work: async ({ message }) => … })"
  )
  rejectUnknown(definition, MEMBERS, 'defineAgent')
  const { input, inputJsonSchema } = definition
  const {
    card,
    extendedCard,
    capabilities,
    extensions = [],
    work,
    negotiate,
    messages = 'reject',
    restart,
    recovery,
    renamed,
    migrate,
    earlier,
    cancelGraceMs = 5000,
    deadlineMs,
    properties
  } = definition
  if (!work && !negotiate)
    throw new TypeError(
      'An agent needs work, negotiate or both: defineAgent({ card, work: async ({ message }) => … }).'
    )
  refuseOtherMajor(work, 'work')
  refuseOtherMajor(negotiate, 'negotiate')
  if (work && !isWork(work))
    throw new TypeError(
      'work has to be an async function, an async generator, or a statechart made with setupWork(…).createMachine(…).'
    )
  if (work && typeof work !== 'function') checkChart(work)
  if (negotiate) checkNegotiate(negotiate, work)
  checkMessages(messages, work)
  if (typeof cancelGraceMs !== 'number' || !(cancelGraceMs >= 0))
    throw new RangeError(`cancelGraceMs has to be milliseconds from 0, not ${String(cancelGraceMs)}.`)
  if (deadlineMs !== undefined && !(Number.isFinite(deadlineMs) && deadlineMs > 0))
    throw new RangeError(`deadlineMs has to be milliseconds above 0, not ${String(deadlineMs)}.`)
  const isChart = work !== undefined && typeof work !== 'function'
  const policies = {
    messages,
    restart: restartPolicy(restart),
    recovery: recoveryPolicy(recovery, isChart),
    cancelGraceMs,
    ...(deadlineMs !== undefined && { deadlineMs })
  }
  const described = describedCard(card)
  checkExtendedCard(extendedCard, described)
  if (capabilities !== undefined)
    checkCapabilities(capabilities, { extendedCard, negotiates: isNegotiation(negotiate) })
  const cardOptions = {
    card: described,
    extensions: declaredExtensions(extensions),
    ...(extendedCard && { extendedCard }),
    ...(capabilities && { capabilities })
  }
  const { version = described.version } = definition
  if (input && isNegotiation(negotiate))
    throw new TypeError(
      'A deal opens the task of a negotiation, so input would validate nothing. Put what the work needs into the terms, and leave input out.'
    )
  if (input && !work)
    throw new TypeError(
      'input validates the message that opens a task, but an agent without work opens none. Add work, or leave input out.'
    )
  shownInput({ input, inputJsonSchema })
  if (work && typeof work !== 'function') warnOfChart(work)
  checkVersions({ version, migrate }, isChart)
  if (properties) checkProperties(properties, isChart)
  const agent = {
    ...cardOptions,
    ...(work && { work: work as Exclude<Agent['work'], undefined> }),
    ...(negotiate && { negotiate }),
    ...policies,
    version,
    ...(renamed !== undefined && { renamed }),
    ...(migrate && { migrate }),
    ...(input && { input }),
    ...(inputJsonSchema && { inputJsonSchema }),
    ...(properties && { properties })
  }
  const complete = earlier === undefined ? agent : { ...agent, earlier: earlierVersions(earlier, agent) }
  if (renamed !== undefined) checkRenamed(renamed, complete)
  return complete
}

function checkVersions(
  { version, migrate }: { readonly version: unknown; readonly migrate: unknown },
  isChart: boolean
): void {
  if (typeof version !== 'string' || version === '')
    throw new TypeError(`version has to be a text such as '2.1.0', not ${JSON.stringify(version)}.`)
  if (migrate === undefined) return
  if (typeof migrate !== 'function')
    throw new TypeError(
      'migrate has to be a function: ({ version, snapshot }) => a snapshot that the present chart can restore.'
    )
  if (!isChart)
    throw new TypeError(
      'migrate is for work as a statechart. A function runs again with its journal: leave migrate out, and put new code behind work.patch.'
    )
}

function checkExtendedCard(extendedCard: ExtendedCard | undefined, card: DescribedCard): void {
  if (extendedCard === undefined || typeof extendedCard === 'function') return
  if (!isObject(extendedCard))
    throw new TypeError(
      'extendedCard has to be an object with the members for authenticated callers, such as { skills: […] }, or a function of the caller that returns one.'
    )
  describedCard({ ...card, ...extendedCard }, 'extendedCard')
}

function checkNegotiate(negotiate: unknown, work: AgentDefinition['work']): void {
  if (typeof negotiate === 'function') return
  if (!isNegotiation(negotiate)) {
    throw new TypeError(
      'negotiate has to be a function that answers reply(…), accepted(…) or rejected(…), or a negotiation: negotiation({ terms: z.object({ … }), respond: … }).'
    )
  }
  if (!work)
    throw new TypeError(
      'A negotiation agrees on terms for work. Add work, or use a function as negotiate that answers reply(…).'
    )
}

function checkMessages(messages: MessagePolicy, work: AgentDefinition['work']): void {
  if (!['reject', 'deliver', 'queue'].includes(messages))
    throw new TypeError(`messages has to be 'reject', 'deliver' or 'queue', not ${messages}.`)
  if (messages === 'deliver' && typeof work === 'function')
    throw new TypeError(
      "messages: 'deliver' needs work as a statechart. For a function write 'queue', which stores messages for its next question."
    )
}
