import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { OPERATIONS, type Capability, type Operation, type OperationName } from '../../machines/protocol/operations.ts'
import { rejectUnknown } from '../primitives/options.ts'

/**
 * Capabilities of the card (§4.4.3) that an author turns off. By default each is on if it can be offered.
 */
export interface CapabilityChoices {
  /** SendStreamingMessage and SubscribeToTask. `false`: both are refused with UnsupportedOperation. */
  readonly streaming?: boolean
  /**
   * Webhooks, which `createRuntime({ push })` sends. `false`: requests for a webhook are refused with
   * PushNotificationNotSupported. `true`: `createRuntime` throws TypeError without `push`.
   */
  readonly pushNotifications?: boolean
  /** GetExtendedAgentCard, which needs `extendedCard`. `false`: it is refused with UnsupportedOperation. */
  readonly extendedAgentCard?: boolean
  /**
   * The extensions that taskchart adds to the card. `false`: the card has none of them, and clients cannot activate
   * them.
   */
  readonly extensions?: boolean
}

/** Whether a runtime offers each capability. */
export type Capabilities = Readonly<Record<Capability, boolean>>

const MEMBERS = Object.keys({
  streaming: true,
  pushNotifications: true,
  extendedAgentCard: true,
  extensions: true
} satisfies Record<keyof CapabilityChoices, true>)

/** Validates an author's capabilities. Throws TypeError that says what to write instead. */
export function checkCapabilities(
  given: unknown,
  { extendedCard, negotiates }: { readonly extendedCard: unknown; readonly negotiates: boolean }
): void {
  if (!isObject(given)) throw new TypeError('capabilities has to be an object such as { streaming: false }.')
  rejectUnknown(given, MEMBERS, 'capabilities')
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined && typeof value !== 'boolean')
      throw new TypeError(`capabilities.${name} has to be true or false, not ${JSON.stringify(value)}.`)
  }
  const { extendedAgentCard, extensions } = given as CapabilityChoices
  if (extendedAgentCard && extendedCard === undefined)
    throw new TypeError(
      'capabilities.extendedAgentCard is true, but there is no extended card. Add extendedCard, or leave the capability out.'
    )
  if (extensions === false && negotiates)
    throw new TypeError(
      'capabilities.extensions cannot be false with a negotiation(…), whose offers travel in an extension. Leave it out, or use a function as negotiate.'
    )
}

/**
 * The capabilities of a runtime with this agent. `pushes`: whether it has `push`. Throws TypeError if the agent
 * requires `push` and it is missing.
 */
export function capabilitiesOf(
  { capabilities = {}, extendedCard }: { readonly capabilities?: CapabilityChoices; readonly extendedCard?: unknown },
  pushes: boolean
): Capabilities {
  const { streaming = true, pushNotifications = pushes, extendedAgentCard = extendedCard !== undefined } = capabilities
  if (pushNotifications && !pushes)
    throw new TypeError(
      'capabilities.pushNotifications is true, but nothing sends webhooks. Add createRuntime({ push: webhooks() }), or leave the capability out.'
    )
  return { streaming, pushNotifications, extendedAgentCard }
}

const REFUSALS: Readonly<Record<Capability, (capabilities: Capabilities) => A2AError>> = {
  streaming: () =>
    new A2AError(
      'UnsupportedOperation',
      'This agent does not stream. Send the message with SendMessage, and read the task with GetTask.'
    ),
  pushNotifications: ({ streaming }) =>
    new A2AError(
      'PushNotificationNotSupported',
      `This agent sends no push notifications. ${streaming ? 'Subscribe to the task, or poll it' : 'Poll the task'} with GetTask.`
    ),
  extendedAgentCard: () =>
    new A2AError('UnsupportedOperation', 'This agent has no extended card. Its public card is complete.')
}

/** Operations that are refused because their capability is off (§3.3.4), each with a factory of its error. */
export function refusedOperations(capabilities: Capabilities): ReadonlyMap<OperationName, () => A2AError> {
  const operations: readonly Operation[] = Object.values(OPERATIONS)
  return new Map(
    operations.flatMap(({ name, capability }) =>
      capability && !capabilities[capability] ? [[name, () => REFUSALS[capability](capabilities)] as const] : []
    )
  )
}
