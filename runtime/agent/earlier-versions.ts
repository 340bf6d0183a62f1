import type { AnyActorLogic, AnyStateMachine } from 'xstate'
import type { Property } from '../../machines/properties/properties.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { WorkArguments } from '../authoring/work-arguments.ts'
import { isStandardSchema, type StandardSchema } from '../ports/standard-schema.ts'
import { rejectUnknown } from '../primitives/options.ts'
import type { WorkFunction, WorkGenerator } from '../work/function-work.ts'
import { refuseOtherMajor } from '../xstate/other-majors.ts'
import { isMachine } from '../xstate/persisted-snapshot.ts'
import { checkChart } from './chart-check.ts'
import { recoveryPolicy, type RecoveryType } from './policies.ts'

/** Work in any of its forms, also with the types of its own input and terms: as a method, its argument may be any. */
type AnyWork =
  | { work(given: WorkArguments): ReturnType<WorkFunction> | ReturnType<WorkGenerator> }['work']
  | AnyStateMachine

/** The work of another version of the agent, with what belongs to it. A member that is left out is the agent's own. */
interface EarlierDefinition {
  readonly work: AnyWork
  /** Parses the stored message that opened a task; `undefined` if the version had no `input`. */
  readonly input?: StandardSchema<unknown> | undefined
  readonly recovery?: RecoveryType
  readonly properties?: Readonly<Record<string, Property>>
}

/** The work of other versions, by version, for the tasks that these have opened. */
export type EarlierVersions = Readonly<Record<string, AnyWork | EarlierDefinition>>

/** The work of another version, checked, with the members of the agent where it has none of its own. */
export interface EarlierVersion {
  readonly work: WorkFunction | WorkGenerator | AnyStateMachine
  readonly input?: StandardSchema<unknown> | undefined
  readonly recovery: RecoveryType
  readonly properties?: Readonly<Record<string, Property>>
}

/** The version of an agent that has the work of a task: an earlier one, if the agent still has it; else the agent. */
export function agentOfVersion<Present extends { readonly earlier?: Readonly<Record<string, EarlierVersion>> }>(
  agent: Present,
  version: string | undefined
): Present | EarlierVersion {
  return (version !== undefined && agent.earlier?.[version]) || agent
}

/** The agent whose other versions these are. */
type PresentVersion = Partial<Pick<EarlierVersion, 'work' | 'input' | 'properties'>> &
  Pick<EarlierVersion, 'recovery'> & { readonly version: string }

const MEMBERS = Object.keys({ work: true, input: true, recovery: true, properties: true } satisfies Record<
  keyof EarlierDefinition,
  true
>)

/** Validates the work of other versions. Throws TypeError that names the entry and says what to write instead. */
export function earlierVersions(
  given: EarlierVersions,
  agent: PresentVersion
): Readonly<Record<string, EarlierVersion>> {
  if (!isObject(given) || Array.isArray(given))
    throw new TypeError("earlier has to be an object of works by version: earlier: { '1': workOfVersion1 }.")
  if (!agent.work)
    throw new TypeError(
      'earlier has the work of other versions, but the agent has none now. Add work, or leave it out.'
    )
  // Without a prototype, so that no version is found that is not there.
  const earlier = Object.create(null) as Record<string, EarlierVersion>
  for (const [version, entry] of Object.entries(given)) earlier[version] = earlierVersion(version, entry, agent)
  return earlier
}

function earlierVersion(version: string, given: unknown, agent: PresentVersion): EarlierVersion {
  const name = `earlier[${JSON.stringify(version)}]`
  if (version === '') throw new TypeError("earlier has an empty version. Name the version that opened the tasks: '1'.")
  if (version === agent.version)
    throw new TypeError(
      `${name} is the version of the agent now, whose work is \`work\`. Raise version, or leave the entry out.`
    )
  refuseOtherMajor(given, name)
  const entry = isWork(given) ? { work: given } : given
  if (isObject(entry)) refuseOtherMajor(entry['work'], `${name}.work`)
  if (!isObject(entry) || !isWork(entry['work']))
    throw new TypeError(
      `${name} has to be the work of that version, or { work, input?, recovery?, properties? }. The work is an async function, an async generator or a statechart.`
    )
  rejectUnknown(entry, MEMBERS, name)
  const { work, input, recovery, properties } = entry as unknown as EarlierDefinition
  const isChart = typeof work !== 'function'
  if (isChart) checkChart(work)
  if (input !== undefined && !isStandardSchema(input))
    throw new TypeError(`${name}.input has to be a schema, such as z.object({ … }), or undefined if it had none.`)
  if (properties) checkProperties(properties, isChart, `${name}.properties`)
  const isAlike = isChart === (typeof agent.work !== 'function')
  const observed = properties ?? (isAlike ? agent.properties : undefined)
  return {
    work: work as EarlierVersion['work'],
    recovery: recoveryPolicy(recovery ?? (isAlike ? agent.recovery : undefined), isChart),
    // Also if it had none, which is not the same as to leave it out.
    input: Object.hasOwn(entry, 'input') ? input : agent.input,
    ...(observed && { properties: observed })
  }
}

/** Throws TypeError for properties of work that is no chart, and for values that are no properties. */
export function checkProperties(properties: object, isChart: boolean, name = 'properties'): void {
  if (!isChart)
    throw new TypeError(
      `${name} are proved on a statechart, and the work has none. Leave them out, or write the work with setupWork.`
    )
  for (const [claim, property] of Object.entries(properties)) {
    if (!isObject(property) || typeof property['next'] !== 'function')
      throw new TypeError(
        `The property ${JSON.stringify(claim)} has to be made with a word of propertiesOf(chart), such as never(…) or leadsTo(…).`
      )
  }
}

/** Whether a value can be work. A generator that is not async cannot. */
export function isWork(value: unknown): value is EarlierVersion['work'] {
  if (typeof value === 'function') return Object.prototype.toString.call(value) !== '[object GeneratorFunction]'
  return typeof value === 'object' && value !== null && isMachine(value as AnyActorLogic)
}
