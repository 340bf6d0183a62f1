import type { AgentCard, AgentInterface } from '../../machines/protocol/card.ts'
import { message, optionalList, optionalMap, tryDecode } from '../../machines/protocol/codec/decode.ts'
import { violationsText } from '../../machines/protocol/errors.ts'
import {
  SecurityRequirementSchema,
  type SecurityScheme,
  SecuritySchemeSchema
} from '../../machines/protocol/security.ts'
import { INPUT_EXTENSION, RELIABILITY_EXTENSION, NEGOTIATION_EXTENSION } from '../../machines/protocol/uris.ts'
import { type Authenticate, DEFAULT_CHALLENGE } from '../access/authentication.ts'
import { shownInput } from '../authoring/input-schema.ts'
import { extensionsWith, type Extensions } from '../authoring/work-arguments.ts'
import { isNegotiation, negotiationExtension } from '../negotiation/negotiation.ts'
import type { Capabilities } from './capabilities.ts'
import type { Agent } from './define-agent.ts'

/** Authentication members of a card. */
type CardSecurity = Pick<AgentCard, 'securitySchemes' | 'securityRequirements'>

const CardSecuritySchema = message({
  securitySchemes: optionalMap(SecuritySchemeSchema),
  securityRequirements: optionalList(SecurityRequirementSchema)
})

/**
 * Validated card members of `authenticate`. Throws TypeError if they are invalid, or if its challenge is no valid
 * header value.
 */
export function cardSecurityOf(authenticate: Authenticate): CardSecurity {
  const { securitySchemes, securityRequirements, challenge = DEFAULT_CHALLENGE } = authenticate
  if (!isHeaderText(challenge))
    throw new TypeError(`authenticate.challenge has to be the value of a header, not ${JSON.stringify(challenge)}.`)
  const { value, violations } = tryDecode(CardSecuritySchema, { securitySchemes, securityRequirements }, 'authenticate')
  if (violations) throw new TypeError(violationsText(violations))
  for (const { schemes = {} } of value.securityRequirements ?? []) {
    const unknown = Object.keys(schemes).find(name => !Object.hasOwn(value.securitySchemes ?? {}, name))
    if (unknown !== undefined)
      throw new TypeError(`authenticate.securityRequirements names ${unknown}, which is not in its securitySchemes.`)
  }
  return value
}

/**
 * `WWW-Authenticate` of a refusal: the `challenge` of `authenticate`, else one challenge per scheme in the card, else
 * `Bearer`.
 */
export function challengeOf({ challenge, securitySchemes = {} }: Authenticate, described: CardSecurity): string {
  const challenges = new Set(
    Object.values(described.securitySchemes ?? securitySchemes)
      .map(schemeChallenge)
      .filter(isHeaderText)
  )
  return challenge ?? (challenges.size > 0 ? [...challenges].join(', ') : DEFAULT_CHALLENGE)
}

/** Challenge of a scheme; empty for client certificates, which use no header. */
function schemeChallenge(scheme: SecurityScheme): string {
  if ('mtlsSecurityScheme' in scheme) return ''
  if ('apiKeySecurityScheme' in scheme)
    return `ApiKey ${scheme.apiKeySecurityScheme.location}="${scheme.apiKeySecurityScheme.name}"`
  const name = 'httpAuthSecurityScheme' in scheme ? scheme.httpAuthSecurityScheme.scheme : 'Bearer'
  return name.toLowerCase() === 'basic' ? `${name} realm="agent"` : name
}

function isHeaderText(text: string): boolean {
  return /^[\x20-\x7e]+$/.test(text)
}

/** Authentication members of a card: the author's, else those of `authenticate`. */
function securityOf(described: CardSecurity, declared: CardSecurity): CardSecurity {
  const securitySchemes = described.securitySchemes ?? declared.securitySchemes
  // Requirements refer to schemes, so those of `authenticate` do not apply to the author's schemes.
  const securityRequirements =
    described.securityRequirements ?? (described.securitySchemes ? undefined : declared.securityRequirements)
  return { ...(securitySchemes && { securitySchemes }), ...(securityRequirements && { securityRequirements }) }
}

/** Source of a runtime's cards: its agent, the card members of its `authenticate`, and its capabilities. */
export interface CardSource {
  readonly agent: Agent
  readonly security: CardSecurity
  readonly capabilities: Capabilities
}

/** The card (§4.4.1) of a served agent: the author's description with the served interfaces and capabilities. */
export function agentCard(
  { agent, security, capabilities }: CardSource,
  interfaces: readonly AgentInterface[],
  described = agent.card
): AgentCard {
  const reliability = {
    uri: RELIABILITY_EXTENSION,
    description: 'Generations in metadata, exact resume, deduplicated and conditional sends, long poll.'
  }
  const schema = shownInput(agent)
  const inputExtension = {
    uri: INPUT_EXTENSION,
    description: 'JSON Schema of the message that opens a task.',
    params: { schema }
  }
  const negotiation = isNegotiation(agent.negotiate) ? [negotiationExtension(agent.negotiate)] : []
  const ownExtensions =
    agent.capabilities?.extensions === false ? [] : [reliability, ...(schema ? [inputExtension] : []), ...negotiation]
  const offered = { ...capabilities, extensions: [...ownExtensions, ...agent.extensions] }
  return {
    ...described,
    ...securityOf(described, security),
    supportedInterfaces: [...interfaces],
    capabilities: offered
  }
}

/**
 * The extensions that clients of an agent may activate: the author's, and taskchart's unless the author turns them off.
 */
export function extensionsOf({
  extensions,
  capabilities,
  negotiate
}: Pick<Agent, 'extensions' | 'capabilities' | 'negotiate'>): Extensions {
  const ownExtensions = isNegotiation(negotiate)
    ? [RELIABILITY_EXTENSION, NEGOTIATION_EXTENSION]
    : [RELIABILITY_EXTENSION]
  return extensionsWith(extensions, capabilities?.extensions === false ? [] : ownExtensions)
}
