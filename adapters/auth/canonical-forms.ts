import type * as sdk from '@a2a-js/sdk'
import type { AgentCard as SdkCard } from '@a2a-js/sdk'
import type * as jose from 'jose'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { checkPackages } from '../peers/installed-packages.ts'
import { isCard03 } from '../v03/card.ts'

/**
 * Marks, in the protected header, a signature over a part of the document. It is for verifiers of other implementations
 * that read only that part. `cardVerifier` does not accept it, since the document also has a signature over all of it.
 */
export const PARTIAL_MARK = 'urn:taskchart:signature:partial'

/**
 * The canonical forms of a card that are signed (§8.4.1), as JSON text without `signatures`, the most complete first:
 * 1. the whole document (RFC 8785), if it has members that A2A 1.0 does not define, such as those of 0.3;
 * 2. the 1.0 card, as the official SDK canonicalizes the card's JSON;
 * 3. the 1.0 card, as the SDK canonicalizes what its clients parse, if that differs: their parser loses the contents of
 * `securitySchemes`.
 *
 * A card of 0.3 alone has only the first form, since the others lack its URL.
 */
export function canonicalForms(document: object, { sdk }: CardPeers): readonly [string, ...string[]] {
  const { signatures: _, ...content } = document as Record<string, unknown>
  if (isCard03(content)) return [canonicalJson(content)]
  const read = sdk.AgentCard.fromJSON(content)
  const whole = sdk.canonicalizeAgentCard(content as unknown as SdkCard)
  const partial = sdk.canonicalizeAgentCard(read)
  const forms = partial === whole ? ([whole] as const) : ([whole, partial] as const)
  return Object.keys(content).every(name => Object.hasOwn(read, name)) ? forms : [canonicalJson(content), ...forms]
}

/** JSON text with sorted members (RFC 8785). */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value)
  const names = Object.keys(value)
    .filter(name => value[name] !== undefined)
    .toSorted()
  return `{${names.map(name => `${JSON.stringify(name)}:${canonicalJson(value[name])}`).join(',')}}`
}

/** The packages that sign and verify cards: the official SDK and jose, both optional peers. */
export interface CardPeers {
  readonly sdk: typeof sdk
  readonly jose: typeof jose
}

/** Throws TypeError with the install command if one of them is not installed. */
export function checkCardPeers(resolve: (name: string) => unknown = name => import.meta.resolve(name)): void {
  try {
    resolve('@a2a-js/sdk')
    resolve('jose')
  } catch (cause) {
    throw new TypeError(
      'Cards are signed and verified by the official SDK and jose. Install them: npm install @a2a-js/sdk jose',
      { cause }
    )
  }
}

/** Loads both. Later calls get the same modules. */
export async function loadCardPeers(): Promise<CardPeers> {
  checkPackages(['@a2a-js/sdk', 'jose'])
  const [sdk, jose] = await Promise.all([import('@a2a-js/sdk'), import('jose')])
  return { sdk, jose }
}
