import { checkJson, isObject } from '../../../machines/protocol/codec/json.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
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

/**
 * Checks unvalidated JSON against the limits. Throws InvalidAgentResponse for too much of it, and for too deep nesting.
 */
export function checkCardSize(card: unknown, url: string, limits: CardLimits): void {
  const {
    skills = [],
    additionalInterfaces = [],
    supportedInterfaces = additionalInterfaces
  } = isObject(card) ? card : {}
  checkCount(skills, 'skills', url, limits.skills)
  checkCount(supportedInterfaces, 'interfaces', url, limits.interfaces)
  const violation = checkJson(card, { root: 'card' })
  if (violation)
    throw new A2AError(
      'InvalidAgentResponse',
      `The card at ${url} cannot be read: ${violation.field} ${violation.description}.`,
      { violations: [violation] }
    )
  checkEach(skills, 'skill', url, limits.skillBytes)
  checkEach(supportedInterfaces, 'interface', url, limits.interfaceBytes)
}

function checkCount(list: unknown, what: 'skills' | 'interfaces', url: string, most: number): void {
  if (!Array.isArray(list) || list.length <= most) return
  throw new A2AError(
    'InvalidAgentResponse',
    `The card at ${url} has ${list.length} ${what}. At most ${most} are read: cardLimits.${what}.`
  )
}

function checkEach(list: unknown, what: 'skill' | 'interface', url: string, most: number): void {
  if (!Array.isArray(list)) return
  const encoder = new TextEncoder()
  for (const [index, one] of list.entries()) {
    const { length } = encoder.encode(JSON.stringify(one))
    if (length > most)
      throw new A2AError(
        'InvalidAgentResponse',
        `The card at ${url} is too long: ${what} number ${index + 1} has ${length} bytes. At most ${most} are read: cardLimits.${what}Bytes.`
      )
  }
}
