import { AgentCardSchema, type AgentCard, type AgentProvider, type AgentSkill } from '../../machines/protocol/card.ts'
import { tryDecode } from '../../machines/protocol/codec/decode.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { violationsText } from '../../machines/protocol/errors.ts'
import type { Caller } from '../access/authentication.ts'
import { rejectUnknown } from '../primitives/options.ts'

/**
 * What an author says of an agent; interfaces and capabilities follow from how it is served. Defaults: no description,
 * version `1.0.0`, text in and out (`text/plain`), no skills.
 */
export type AgentDescription = Pick<AgentCard, 'name'> & Partial<Omit<AgentCard, 'name' | ServedMember>>

/** What of a card an author has described: checked, with its defaults filled in. */
export type DescribedCard = Omit<AgentCard, ServedMember>

type ServedMember = 'supportedInterfaces' | 'capabilities' | 'signatures'

/** What is not the author's to say on a card, and where it is said instead. Of A2A 1.0, then of older cards. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  supportedInterfaces: 'follows from where the agent is served. Leave it out, or say createRuntime({ publicUrl }).',
  capabilities: 'follows from how the agent is served. Leave it out, and turn one off with defineAgent({ capabilities: { streaming: false } }); extensions of your own are said by defineAgent({ extensions }).',
  signatures: 'would be of a card that is not served: interfaces and capabilities are still to come. Leave it out.',
  url: 'follows from where the agent is served. Leave it out, or say createRuntime({ publicUrl }).',
  preferredTransport: 'follows from how the agent is served. Leave it out.',
  additionalInterfaces: 'follows from how the agent is served. Leave it out.',
  protocolVersion: 'follows from how the agent is served. Leave it out.',
  security: 'is called securityRequirements.',
  supportsAuthenticatedExtendedCard: 'follows from defineAgent({ extendedCard }). Leave it out.'
}

const MEMBERS: readonly (keyof DescribedCard)[] = [
  'name', 'description', 'version', 'skills', 'defaultInputModes', 'defaultOutputModes', 'provider', 'documentationUrl', 'iconUrl',
  'securitySchemes', 'securityRequirements'
]

const SKILL = Object.keys({ id: true, name: true, description: true, tags: true, examples: true, inputModes: true, outputModes: true, securityRequirements: true } satisfies Record<keyof AgentSkill, true>)

const PROVIDER = Object.keys({ url: true, organization: true } satisfies Record<keyof AgentProvider, true>)

/** Checks a description and fills in its defaults. Throws TypeError that names each wrong member, as one of `name`. */
export function describedCard(card: AgentDescription, name = 'card'): DescribedCard {
  checkMembers({ ...card }, name)
  const defaults = { description: '', version: '1.0.0', defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'], skills: [] }
  const served = { capabilities: {}, supportedInterfaces: [{ url: 'ws://localhost', protocolBinding: 'none', protocolVersion: '1.0' }] }
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
  if (Array.isArray(skills)) skills.filter(isObject).forEach((skill, i) => rejectUnknown(skill, SKILL, `${name}.skills[${i}]`))
}

/** What an extended card says beside the public one or in place of it; a member that is there replaces the whole of the public one. */
export type CardChanges = Partial<AgentDescription>

/** The changes for everybody who has shown who it is, or a function that tells them for one caller: nothing if there is no card for it. */
export type ExtendedCard = CardChanges | ((caller: Caller) => CardChanges | undefined | Promise<CardChanges | undefined>)
