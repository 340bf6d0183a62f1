import type * as z from 'zod'
import {
  anyString,
  defaultList,
  defaultText,
  flag,
  list,
  message,
  nonEmptyText,
  optionalFlag,
  optionalList,
  optionalMap,
  optionalText,
  presenceField,
  requiredField,
  struct,
  tryDecode
} from './codec/decode.ts'
import { A2AError, violationsText } from './errors.ts'
import { SecurityRequirementSchema, SecuritySchemeSchema } from './security.ts'

/** Where and how an agent is reached (§4.4.6). */
export const AgentInterfaceSchema = message({
  url: requiredField(nonEmptyText),
  protocolBinding: requiredField(nonEmptyText),
  tenant: optionalText,
  protocolVersion: requiredField(nonEmptyText)
})

/**
 * Where and how an agent is reached (§4.4.6). `protocolBinding` is `JSONRPC`, `GRPC`, `HTTP+JSON` or a URI;
 * `protocolVersion` is Major.Minor; clients send `tenant`, if any, with every request.
 */
export interface AgentInterface extends z.output<typeof AgentInterfaceSchema> {}

/** Provider of an agent (§4.4.2). */
export const AgentProviderSchema = message({
  url: requiredField(nonEmptyText),
  organization: requiredField(nonEmptyText)
})

/** Provider of an agent (§4.4.2). */
export interface AgentProvider extends z.output<typeof AgentProviderSchema> {}

/** An extension of the protocol that an agent supports (§4.4.4). */
export const AgentExtensionSchema = message({
  uri: requiredField(nonEmptyText),
  description: optionalText,
  required: optionalFlag,
  params: presenceField(struct)
})

/** An extension of the protocol that an agent supports (§4.4.4); with `required` a client must declare it. */
export interface AgentExtension extends z.output<typeof AgentExtensionSchema> {}

/** Optional capabilities of an agent (§4.4.3). */
export const AgentCapabilitiesSchema = message({
  streaming: presenceField(flag),
  pushNotifications: presenceField(flag),
  extensions: optionalList(AgentExtensionSchema),
  extendedAgentCard: presenceField(flag)
})

/** Optional capabilities of an agent (§4.4.3); a missing one is not supported. */
export interface AgentCapabilities extends z.output<typeof AgentCapabilitiesSchema> {}

/** A skill of an agent (§4.4.5). */
export const AgentSkillSchema = message({
  id: requiredField(nonEmptyText),
  name: requiredField(nonEmptyText),
  description: defaultText,
  tags: defaultList(anyString),
  examples: optionalList(anyString),
  inputModes: optionalList(nonEmptyText),
  outputModes: optionalList(nonEmptyText),
  securityRequirements: optionalList(SecurityRequirementSchema)
})

/** A skill of an agent (§4.4.5). Its modes, if given, replace the agent's. */
export interface AgentSkill extends z.output<typeof AgentSkillSchema> {}

/** A signature of an Agent Card (§4.4.7, RFC 7515). */
export const AgentCardSignatureSchema = message({
  protected: requiredField(nonEmptyText),
  signature: requiredField(nonEmptyText),
  header: presenceField(struct)
})

/** A signature of an Agent Card (§4.4.7, RFC 7515); `protected` and `signature` are base64url. */
export interface AgentCardSignature extends z.output<typeof AgentCardSignatureSchema> {}

/** An agent's description of itself (§4.4.1). */
export const AgentCardSchema = message({
  name: requiredField(nonEmptyText),
  description: defaultText,
  supportedInterfaces: requiredField(list(AgentInterfaceSchema, { min: 1 })),
  provider: presenceField(AgentProviderSchema),
  version: requiredField(nonEmptyText),
  documentationUrl: presenceField(anyString),
  capabilities: requiredField(AgentCapabilitiesSchema),
  securitySchemes: optionalMap(SecuritySchemeSchema),
  securityRequirements: optionalList(SecurityRequirementSchema),
  defaultInputModes: defaultList(nonEmptyText),
  defaultOutputModes: defaultList(nonEmptyText),
  skills: defaultList(AgentSkillSchema),
  signatures: optionalList(AgentCardSignatureSchema),
  iconUrl: presenceField(anyString)
})

/**
 * An agent's description of itself (§4.4.1). `supportedInterfaces` is in order of preference; `version` is the version
 * of the agent, not of A2A; modes are media types.
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
