import { type AgentCard, AgentCardSchema } from '../../../machines/protocol/card.ts'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import { A2AError, violationsText } from '../../../machines/protocol/errors.ts'
import { PROTOCOL_VERSION } from '../../../machines/protocol/versions.ts'
import { type Fill, type Fills, readLeniently } from '../lenient-reading.ts'
import { warnOf } from '../warnings.ts'

const ofCard =
  (fill: () => unknown): Fill =>
  ({ path, value }) =>
    path.length === 1 && (value ?? '') === '' ? fill() : undefined

/** Values for members that A2A requires and a card may lack. */
const CARD_FILLS: Fills = new Map<PropertyKey, Fill>([
  ['name', ofCard(() => 'Unnamed')],
  ['version', ofCard(() => '')],
  ['capabilities', ofCard(() => ({}))],
  ['protocolVersion', ({ value }) => ((value ?? '') === '' ? PROTOCOL_VERSION : undefined)]
])

/**
 * Reads the JSON of a card of any version leniently, with warnings. `place` is where the JSON is. Throws
 * InvalidAgentResponse that names what the client needs and cannot use.
 */
export async function readCard(found: unknown, place: string): Promise<AgentCard> {
  const { value, violations } = readLeniently(AgentCardSchema, structuredClone(await current(found)), warnOf(place), {
    root: 'card',
    fills: CARD_FILLS
  })
  if (violations === undefined) return value
  throw new A2AError(
    'InvalidAgentResponse',
    `The JSON at ${place} is not an agent card: ${violationsText(violations.slice(0, 2))}.`,
    { violations }
  )
}

/** A card in the form of 1.0; only one with members of 0.3 loads what translates it. */
async function current(found: unknown): Promise<unknown> {
  if (!isObject(found) || !hasMembers03(found)) return found
  const { asCurrentCard, isCard03, withCurrentSecurity } = await import('../../v03/card.ts')
  return isCard03(found) ? asCurrentCard(found) : withCurrentSecurity(found)
}

function hasMembers03({ url, security, securitySchemes, securityRequirements }: Record<string, unknown>): boolean {
  return [url, security, securitySchemes, securityRequirements].some(member => member !== undefined)
}
