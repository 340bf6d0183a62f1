import { isDeepStrictEqual } from 'node:util'
import { isA2AError } from '../../machines/protocol/errors.ts'
import type { SecurityScheme } from '../../machines/protocol/security.ts'
import { DEFAULT_CHALLENGE, type Authenticate } from '../../runtime/access/authentication.ts'

/**
 * Accepts a caller that any of these functions identifies. They are called in order; the first principal wins. If none gives one and
 * one of them threw, its error is thrown, Overloaded before others. The card lists all schemes as alternatives. Principals with the
 * same id are the same principal, whichever function gave them.
 */
export function anyOf(...ways: readonly [Authenticate, ...Authenticate[]]): Authenticate {
  if (ways.length === 0 || ways.some(way => typeof way !== 'function'))
    throw new TypeError('anyOf takes authenticate functions: anyOf(bearerJwt({ … }), apiKey({ … })).')
  const authenticate: Authenticate = async credentials => {
    const failures: unknown[] = []
    for (const way of ways) {
      try {
        const principal = await way(credentials)
        if (principal) return principal
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0)
      throw failures.find(error => isA2AError(error) && error.code === 'Overloaded') ?? failures[0]
    return undefined
  }
  const challenges = new Set(ways.map(({ challenge = DEFAULT_CHALLENGE }) => challenge))
  return Object.assign(authenticate, {
    securitySchemes: united(ways),
    securityRequirements: ways.flatMap(({ securityRequirements = [] }) => securityRequirements),
    challenge: [...challenges].join(', ')
  })
}

/** The schemes of all functions. Throws TypeError if two different schemes have the same name. */
function united(ways: readonly Authenticate[]): Record<string, SecurityScheme> {
  const schemes = new Map<string, SecurityScheme>()
  for (const [name, scheme] of ways.flatMap(({ securitySchemes = {} }) => Object.entries(securitySchemes))) {
    const other = schemes.get(name)
    if (other && !isDeepStrictEqual(other, scheme))
      throw new TypeError(`Two schemes are called ${name}. Give one another name: { scheme: '…' }.`)
    schemes.set(name, scheme)
  }
  return Object.fromEntries(schemes)
}
