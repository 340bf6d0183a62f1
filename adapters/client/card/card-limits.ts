import { rejectUnknown } from '../../../runtime/primitives/options.ts'

/** Limits for reading an agent's card. All are on by default. */
export interface CardLimits {
  /** Time to read a card, redirects included. Default 10 seconds. */
  readonly waitMs: number
  /** Size of a card, in bytes. Default 1 MiB. */
  readonly bytes: number
  /** Skills of one card. Default 500. */
  readonly skills: number
  /** Size of one skill as JSON, in bytes. Default 64 KiB. */
  readonly skillBytes: number
  /** Interfaces of one card. Default 64. */
  readonly interfaces: number
  /** Size of one interface as JSON, in bytes. Default 8 KiB. */
  readonly interfaceBytes: number
}

/** The defaults of {@link CardLimits}. */
export const defaultCardLimits: CardLimits = {
  waitMs: 10_000,
  bytes: 2 ** 20,
  skills: 500,
  skillBytes: 64 * 2 ** 10,
  interfaces: 64,
  interfaceBytes: 8 * 2 ** 10
}

/**
 * The defaults with these changes. Throws TypeError for an unknown limit, RangeError for one that is not a number above
 * 0.
 */
export function cardLimitsWith(changes: Partial<CardLimits> = {}): CardLimits {
  rejectUnknown(changes, Object.keys(defaultCardLimits), 'cardLimits')
  for (const [name, limit] of Object.entries(changes)) {
    if (!(limit > 0))
      throw new RangeError(`cardLimits.${name} has to be a number above 0, not ${limit}. Leave it out for the default.`)
  }
  return { ...defaultCardLimits, ...changes }
}
