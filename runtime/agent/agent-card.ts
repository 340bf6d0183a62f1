import {
  type AgentCard,
  AgentCardSchema,
  type AgentInterface,
  type AgentProvider,
  type AgentSkill
} from '../../machines/protocol/card.ts'
import { tryDecode } from '../../machines/protocol/codec/decode.ts'
import { optionalList, optionalMap } from '../../machines/protocol/codec/fields.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { message } from '../../machines/protocol/codec/message.ts'
import { violationsText } from '../../machines/protocol/errors.ts'
import {
  SecurityRequirementSchema,
  type SecurityScheme,
  SecuritySchemeSchema
} from '../../machines/protocol/security.ts'
import { INPUT_EXTENSION, RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { type Authenticate, type Caller, DEFAULT_CHALLENGE } from '../access/authentication.ts'
import { shownInput } from '../authoring/input-schema.ts'
import { isNegotiation, negotiationExtension } from '../negotiation/negotiation.ts'
import { rejectUnknown } from '../primitives/options.ts'
import type { Capabilities } from './capabilities.ts'
import type { Agent } from './define-agent.ts'

/** Authentication members of a card. */
type CardSecurity = Pick<AgentCard, 'securitySchemes' | 'securityRequirements'>

const CardSecuritySchema = message({
  securitySchemes: optionalMap(SecuritySchemeSchema),
  securityRequirements: optionalList(SecurityRequirementSchema)
})

/** Validated card members of `authenticate`. Throws TypeError if they are invalid, or if its challenge is no valid header value. */
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
 * `WWW-Authenticate` of a refusal: the `challenge` of `authenticate`, else one challenge per scheme in the card, else `Bearer`.
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
function securityOf(described: CardSecurity, said: CardSecurity): CardSecurity {
  const securitySchemes = described.securitySchemes ?? said.securitySchemes
  // Requirements refer to schemes, so those of `authenticate` do not apply to the author's schemes.
  const securityRequirements =
    described.securityRequirements ?? (described.securitySchemes ? undefined : said.securityRequirements)
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
  const wanted = {
    uri: INPUT_EXTENSION,
    description: 'JSON Schema of the message that opens a task.',
    params: { schema }
  }
  const negotiation = isNegotiation(agent.negotiate) ? [negotiationExtension(agent.negotiate)] : []
  const ours =
    agent.capabilities?.extensions === false ? [] : [reliability, ...(schema ? [wanted] : []), ...negotiation]
  const offered = { ...capabilities, extensions: [...ours, ...agent.extensions] }
  return {
    ...described,
    ...securityOf(described, security),
    supportedInterfaces: [...interfaces],
    capabilities: offered
  }
}

/**
 * An author's description of an agent. Interfaces and capabilities are added when it is served. Defaults: no description, version
 * `1.0.0`, `text/plain` as input and output mode, no skills.
 */
export type AgentDescription = Pick<AgentCard, 'name'> & Partial<Omit<AgentCard, 'name' | ServedMember>>

/** The validated description, with its defaults. */
export type DescribedCard = Omit<AgentCard, ServedMember>

type ServedMember = 'supportedInterfaces' | 'capabilities' | 'signatures'

/** Card members that an author may not set, with what to do instead: first those of A2A 1.0, then those of older cards. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  supportedInterfaces: 'follows from where the agent is served. Leave it out, or write createRuntime({ publicUrl }).',
  capabilities:
    'follows from how the agent is served. Leave it out. Turn one off with defineAgent({ capabilities: { streaming: false } }), and declare your own extensions with defineAgent({ extensions }).',
  signatures: 'would not match the served card, which also has interfaces and capabilities. Leave it out.',
  url: 'follows from where the agent is served. Leave it out, or write createRuntime({ publicUrl }).',
  preferredTransport: 'follows from how the agent is served. Leave it out.',
  additionalInterfaces: 'follows from how the agent is served. Leave it out.',
  protocolVersion: 'follows from how the agent is served. Leave it out.',
  security: 'is called securityRequirements.',
  supportsAuthenticatedExtendedCard: 'follows from defineAgent({ extendedCard }). Leave it out.'
}

const MEMBERS = Object.keys({
  name: true,
  description: true,
  version: true,
  skills: true,
  defaultInputModes: true,
  defaultOutputModes: true,
  provider: true,
  documentationUrl: true,
  iconUrl: true,
  securitySchemes: true,
  securityRequirements: true
} satisfies Record<keyof DescribedCard, true>)

const SKILL = Object.keys({
  id: true,
  name: true,
  description: true,
  tags: true,
  examples: true,
  inputModes: true,
  outputModes: true,
  securityRequirements: true
} satisfies Record<keyof AgentSkill, true>)

const PROVIDER = Object.keys({ url: true, organization: true } satisfies Record<keyof AgentProvider, true>)

/** Validates a description and fills in defaults. Throws TypeError that names each invalid member, with `name` as its root. */
export function describedCard(card: AgentDescription, name = 'card'): DescribedCard {
  checkMembers({ ...card }, name)
  const defaults = {
    description: '',
    version: '1.0.0',
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: []
  }
  const served = {
    capabilities: {},
    supportedInterfaces: [{ url: 'ws://localhost', protocolBinding: 'none', protocolVersion: '1.0' }]
  }
  const { value, violations } = tryDecode(AgentCardSchema, { ...defaults, ...card, ...served }, name)
  if (violations) throw new TypeError(violationsText(violations))
  const { supportedInterfaces: _, capabilities: __, signatures: ___, ...described } = value
  return described
}

function checkMembers(card: Readonly<Record<string, unknown>>, name: string): void {
  for (const [member, instead] of Object.entries(ELSEWHERE)) {
    if (card[member] !== undefined) throw new TypeError(`${name}.${member} ${instead}`)
  }
  rejectUnknown(card, MEMBERS, name)
  const { skills, provider } = card
  if (isObject(provider)) rejectUnknown(provider, PROVIDER, `${name}.provider`)
  if (Array.isArray(skills))
    skills.filter(isObject).forEach((skill, i) => rejectUnknown(skill, SKILL, `${name}.skills[${i}]`))
}

/** Members of an extended card. Each replaces the whole member of the public card. */
export type CardChanges = Partial<AgentDescription>

/** The members for all authenticated callers, or a function that gives those for one caller; `undefined` means no extended card for it. */
export type ExtendedCard =
  | CardChanges
  | ((caller: Caller) => CardChanges | undefined | Promise<CardChanges | undefined>)
