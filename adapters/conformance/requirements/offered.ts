import type { AgentCard, AgentInterface } from '../../../machines/protocol/card.ts'
import { tryDecode } from '../../../machines/protocol/codec/decode.ts'
import { optionalList, optionalMap } from '../../../machines/protocol/codec/fields.ts'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import { message } from '../../../machines/protocol/codec/message.ts'
import { SecurityRequirementSchema, SecuritySchemeSchema } from '../../../machines/protocol/security.ts'
import type { Binding } from '../../client/card/bindings.ts'
import { fieldsOf, itemsOf } from '../fields-of.ts'

/** The content of a card that tests use. Other errors in the card do not stop them. */
export interface Offered {
  readonly name: string
  readonly interfaces: readonly AgentInterface[]
  readonly streaming: boolean
  readonly pushNotifications: boolean
  readonly extendedAgentCard: boolean
  readonly extensions: readonly string[]
  readonly requiredExtensions: readonly string[]
  /** The accepted media types of all skills. */
  readonly inputModes: readonly string[]
  readonly examples: readonly string[]
  readonly wantsCredentials: boolean
  readonly security: Pick<AgentCard, 'securitySchemes' | 'securityRequirements'>
}

/** An interface under test. */
export interface Offer {
  readonly binding: Binding
  readonly url: string
  readonly tenant: string | undefined
  /** Whether the URL serves no other version of A2A. */
  readonly isOnly10: boolean
}

const SecuritySchema = message({
  securitySchemes: optionalMap(SecuritySchemeSchema),
  securityRequirements: optionalList(SecurityRequirementSchema)
})

/** Reads a card leniently. */
export function offeredIn(card: unknown): Offered {
  const { name, supportedInterfaces, capabilities, defaultInputModes, skills, securityRequirements } = fieldsOf(card)
  const { streaming, pushNotifications, extendedAgentCard, extensions } = fieldsOf(capabilities)
  const listed = objects(extensions).filter(({ uri }) => typeof uri === 'string') as {
    uri: string
    required?: unknown
  }[]
  return {
    name: typeof name === 'string' ? name : 'the agent',
    interfaces: objects(supportedInterfaces).filter(isInterface),
    streaming: streaming === true,
    pushNotifications: pushNotifications === true,
    extendedAgentCard: extendedAgentCard === true,
    extensions: listed.map(({ uri }) => uri),
    requiredExtensions: listed.filter(({ required }) => required === true).map(({ uri }) => uri),
    inputModes: [...texts(defaultInputModes), ...objects(skills).flatMap(({ inputModes }) => texts(inputModes))],
    examples: objects(skills).flatMap(({ examples }) => texts(examples)),
    wantsCredentials: itemsOf(securityRequirements).length > 0,
    security: tryDecode(SecuritySchema, card, 'card').value ?? {}
  }
}

function isInterface(value: Record<string, unknown>): value is Record<string, unknown> & AgentInterface {
  return ['url', 'protocolBinding', 'protocolVersion'].every(name => typeof value[name] === 'string')
}

function objects(value: unknown): Record<string, unknown>[] {
  return itemsOf(value).filter(isObject)
}

function texts(value: unknown): string[] {
  return itemsOf(value).filter(text => typeof text === 'string')
}
