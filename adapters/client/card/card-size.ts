import { checkJson, isObject } from '../../../machines/protocol/codec/json.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import type { CardLimits } from './card-limits.ts'

/** Checks unvalidated JSON against the limits. Throws InvalidAgentResponse for too much of it, and for too deep nesting. */
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
