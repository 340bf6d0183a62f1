import type * as z from 'zod'
import { tryDecode } from './codec/decode.ts'
import {
  list,
  filledList,
  filledText,
  optionalFlag,
  optionalList,
  optionalMap,
  optionalText,
  present,
  required
} from './codec/fields.ts'
import { message } from './codec/message.ts'
import { flag, nonEmptyText, struct, text } from './codec/values.ts'
import { A2AError, violationsText } from './errors.ts'
import { SecurityRequirementSchema, SecuritySchemeSchema } from './security.ts'

/** Where and how an agent is reached (§4.4.6). */
export const AgentInterfaceSchema = message({
  url: required(nonEmptyText),
  protocolBinding: required(nonEmptyText),
  tenant: optionalText,
  protocolVersion: required(nonEmptyText)
})

/**
 * Where and how an agent is reached (§4.4.6). `protocolBinding` is `JSONRPC`, `GRPC`, `HTTP+JSON` or a URI;
 * `protocolVersion` is Major.Minor; clients send `tenant`, if any, with every request.
 */
export interface AgentInterface extends z.output<typeof AgentInterfaceSchema> {}

/** Provider of an agent (§4.4.2). */
export const AgentProviderSchema = message({ url: required(nonEmptyText), organization: required(nonEmptyText) })

/** Provider of an agent (§4.4.2). */
export interface AgentProvider extends z.output<typeof AgentProviderSchema> {}

/** An extension of the protocol that an agent supports (§4.4.4). */
export const AgentExtensionSchema = message({
  uri: required(nonEmptyText),
  description: optionalText,
  required: optionalFlag,
  params: present(struct)
})

/** An extension of the protocol that an agent supports (§4.4.4); with `required` a client must declare it. */
export interface AgentExtension extends z.output<typeof AgentExtensionSchema> {}

/** Optional capabilities of an agent (§4.4.3). */
export const AgentCapabilitiesSchema = message({
  streaming: present(flag),
  pushNotifications: present(flag),
  extensions: optionalList(AgentExtensionSchema),
  extendedAgentCard: present(flag)
})

/** Optional capabilities of an agent (§4.4.3); a missing one is not supported. */
export interface AgentCapabilities extends z.output<typeof AgentCapabilitiesSchema> {}

/** A skill of an agent (§4.4.5). */
export const AgentSkillSchema = message({
  id: required(nonEmptyText),
  name: required(nonEmptyText),
  description: filledText,
  tags: filledList(text),
  examples: optionalList(text),
  inputModes: optionalList(nonEmptyText),
  outputModes: optionalList(nonEmptyText),
  securityRequirements: optionalList(SecurityRequirementSchema)
})

/** A skill of an agent (§4.4.5). Its modes, if given, replace the agent's. */
export interface AgentSkill extends z.output<typeof AgentSkillSchema> {}

/** A signature of an Agent Card (§4.4.7, RFC 7515). */
export const AgentCardSignatureSchema = message({
  protected: required(nonEmptyText),
  signature: required(nonEmptyText),
  header: present(struct)
})

/** A signature of an Agent Card (§4.4.7, RFC 7515); `protected` and `signature` are base64url. */
export interface AgentCardSignature extends z.output<typeof AgentCardSignatureSchema> {}

/** An agent's description of itself (§4.4.1). */
export const AgentCardSchema = message({
  name: required(nonEmptyText),
  description: filledText,
  supportedInterfaces: required(list(AgentInterfaceSchema, { min: 1 })),
  provider: present(AgentProviderSchema),
  version: required(nonEmptyText),
  documentationUrl: present(text),
  capabilities: required(AgentCapabilitiesSchema),
  securitySchemes: optionalMap(SecuritySchemeSchema),
  securityRequirements: optionalList(SecurityRequirementSchema),
  defaultInputModes: filledList(nonEmptyText),
  defaultOutputModes: filledList(nonEmptyText),
  skills: filledList(AgentSkillSchema),
  signatures: optionalList(AgentCardSignatureSchema),
  iconUrl: present(text)
})

/**
 * An agent's description of itself (§4.4.1). `supportedInterfaces` is in order of preference; `version` is the version of the
 * agent, not of A2A; modes are media types.
 */
export interface AgentCard extends z.output<typeof AgentCardSchema> {}

/** Decodes the JSON of a card. `place` is where the JSON is. Throws InvalidParams that says why it is no card. */
export function decodeCard(found: unknown, place: string): AgentCard {
  const { value, violations } = tryDecode(AgentCardSchema, found, 'card')
  if (violations === undefined) return value
  throw new A2AError('InvalidParams', `The JSON at ${place} is not an agent card: ${violationsText(violations)}.`, {
    violations
  })
}

/** The agent's URL with the tenant as its last path segment. */
export function tenantUrl(url: string, tenant: string): string {
  return tenant === '' ? url : `${url.replace(/\/$/, '')}/${encodeURIComponent(tenant)}`
}
