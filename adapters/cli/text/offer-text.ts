import type { Offer } from '../../../machines/protocol/negotiation.ts'
import { oneLine } from './terminal-text.ts'
import { lengthText } from './time-text.ts'

/** An offer in one line, with its terms and how long it stands, in full seconds: `Offer: euros 40, day friday (stands for 10m)`. */
export function offerText({ terms, expiresAt }: Offer, nowMs: number): string {
  const named = Object.entries(terms).map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const leftMs = Date.parse(expiresAt) - nowMs
  return oneLine(`Offer: ${named.join(', ')} (${leftMs > 0 ? `stands for ${lengthText(Math.ceil(leftMs / 1000) * 1000)}` : 'has expired'})`)
}
