import { type AgentCard, AgentCardSchema, type AgentProvider, type AgentSkill } from '../../machines/protocol/card.ts'
import { tryDecode } from '../../machines/protocol/codec/decode.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { violationsText } from '../../machines/protocol/errors.ts'
import type { Caller } from '../access/authentication.ts'
import { rejectUnknown } from '../primitives/options.ts'

/**
 * An author's description of an agent. Interfaces and capabilities are added when it is served. Defaults: no
 * description, version `1.0.0`, `text/plain` as input and output mode, no skills.
 */
export type AgentDescription = Pick<AgentCard, 'name'> & Partial<Omit<AgentCard, 'name' | ServedMember>>

/** The validated description, with its defaults. */
export type DescribedCard = Omit<AgentCard, ServedMember>

type ServedMember = 'supportedInterfaces' | 'capabilities' | 'signatures'

/**
 * Card members that an author may not set, with what to do instead: first those of A2A 1.0, then those of older cards.
 */
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

/**
 * Validates a description and fills in defaults. Throws TypeError that names each invalid member, with `name` as its
 * root.
 */
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

/**
 * The members for all authenticated callers, or a function that gives those for one caller; `undefined` means no
 * extended card for it.
 */
export type ExtendedCard =
  | CardChanges
  | ((caller: Caller) => CardChanges | undefined | Promise<CardChanges | undefined>)
