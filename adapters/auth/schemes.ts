import { createHash, timingSafeEqual } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { isA2AError } from '../../machines/protocol/errors.ts'
import type { SecurityScheme } from '../../machines/protocol/security.ts'
import {
  type Authenticate,
  type Credentials,
  DEFAULT_CHALLENGE,
  type Principal
} from '../../runtime/access/authentication.ts'
import { checkOptions, kindOf, type OptionKinds, textSuchAs } from '../../runtime/primitives/options.ts'

/** The options of `apiKey`. */
export interface ApiKeyOptions {
  /**
   * The key or keys of each principal, by its id, each of at least 16 characters, or a function that looks up the
   * principal of a key. Such a function has to compare in constant time itself. Two keys for one principal allow a
   * change of keys.
   */
  readonly keys:
    | Readonly<Record<string, string | readonly string[]>>
    | ((key: string) => Principal | undefined | Promise<Principal | undefined>)
  /**
   * The header with the key. Default `x-api-key`. With `authorization`, the key is expected as `Authorization: Bearer
   * KEY`.
   */
  readonly header?: string
  /** The name of the scheme in the card. Default `apiKey`. */
  readonly scheme?: string
}

/**
 * The minimum length of a key in characters: 64 bits if they are hexadecimal digits, since wrong keys are not counted
 * (docs/security.md).
 */
export const SHORTEST_KEY = 16

/** The advice for a key that is too short. */
export const LONG_KEY = `It needs at least ${SHORTEST_KEY} characters, or it can be guessed. Make one with: openssl rand -base64 24`

const OPTIONS: OptionKinds<ApiKeyOptions> = { keys: true, header: true, scheme: textSuchAs("'apiKey'") }

/** Authenticates callers by an API key, compared in constant time. Throws TypeError for an invalid key or header. */
export function apiKey(options: ApiKeyOptions): Authenticate {
  checkOptions(options, OPTIONS, 'apiKey', "apiKey({ keys: { anna: '…' } })")
  const { keys, header = 'x-api-key', scheme: name = 'apiKey' } = options
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(header))
    throw new TypeError(`header has to be a header name, not ${JSON.stringify(header)}.`)
  const principalOf = typeof keys === 'function' ? keys : lookUp(keys)
  if (header.toLowerCase() === 'authorization') {
    const scheme = { httpAuthSecurityScheme: { scheme: 'Bearer' } }
    return withSecurityScheme(credentials => given(bearerToken(credentials), principalOf), {
      name,
      scheme,
      challenge: 'Bearer'
    })
  }
  const scheme = { apiKeySecurityScheme: { location: 'header', name: header } }
  return withSecurityScheme(({ headers }) => given(headers[header.toLowerCase()], principalOf), {
    name,
    scheme,
    challenge: `ApiKey header="${header}"`
  })
}

function given<T>(key: string | undefined, principalOf: (key: string) => T): T | undefined {
  return key === undefined || key === '' ? undefined : principalOf(key)
}

/** Finds the principal of a key. Compares all keys every time, so that the duration reveals nothing. */
function lookUp(keys: Readonly<Record<string, string | readonly string[]>>): (key: string) => Principal | undefined {
  if (!isObject(keys))
    throw new TypeError(
      `keys has to be the key of each caller, or a function that looks one up, not ${kindOf(keys)}: apiKey({ keys: { anna: '…' } }).`
    )
  const known = Object.entries(keys).flatMap(([id, own]) =>
    [own].flat().map(key => ({ id, digest: digestOf(checkedKey(id, key)) }))
  )
  if (known.length === 0) throw new TypeError("keys holds no key. Give each caller one: { keys: { anna: '…' } }.")
  const shared = known.find(({ digest }, i) => known.findIndex(other => other.digest.equals(digest)) < i)
  if (shared) throw new TypeError(`A key of ${shared.id} is given twice. Each key stands for one principal.`)
  return key => {
    const digest = digestOf(key)
    const [found] = known.filter(other => timingSafeEqual(other.digest, digest))
    return found && { id: found.id }
  }
}

function checkedKey(id: string, key: unknown): string {
  if (id === '') throw new TypeError('keys has a principal with an empty id.')
  if (typeof key !== 'string' || !/^[\x21-\x7e]+$/.test(key))
    throw new TypeError(`The key of ${id} has to be printable ASCII characters without spaces.`)
  if (key.length < SHORTEST_KEY) throw new TypeError(`The key of ${id} is too short. ${LONG_KEY}`)
  return key
}

/** Keys of any length become digests of equal length, which `timingSafeEqual` requires. */
function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

/**
 * Accepts a caller that any of these functions identifies. They are called in order; the first principal wins. If none
 * gives one and one of them threw, its error is thrown, Overloaded before others. The card lists all schemes as
 * alternatives. Principals with the same id are the same principal, whichever function gave them.
 */
export function anyOf(...methods: readonly [Authenticate, ...Authenticate[]]): Authenticate {
  if (methods.length === 0 || methods.some(authenticateBy => typeof authenticateBy !== 'function'))
    throw new TypeError('anyOf takes authenticate functions: anyOf(bearerJwt({ … }), apiKey({ … })).')
  const authenticate: Authenticate = async credentials => {
    const failures: unknown[] = []
    for (const authenticateBy of methods) {
      try {
        const principal = await authenticateBy(credentials)
        if (principal) return principal
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0)
      throw failures.find(error => isA2AError(error) && error.code === 'Overloaded') ?? failures[0]
    return undefined
  }
  const challenges = new Set(methods.map(({ challenge = DEFAULT_CHALLENGE }) => challenge))
  return Object.assign(authenticate, {
    securitySchemes: united(methods),
    securityRequirements: methods.flatMap(({ securityRequirements = [] }) => securityRequirements),
    challenge: [...challenges].join(', ')
  })
}

/** The schemes of all functions. Throws TypeError if two different schemes have the same name. */
function united(methods: readonly Authenticate[]): Record<string, SecurityScheme> {
  const schemes = new Map<string, SecurityScheme>()
  for (const [name, scheme] of methods.flatMap(({ securitySchemes = {} }) => Object.entries(securitySchemes))) {
    const other = schemes.get(name)
    if (other && !isDeepStrictEqual(other, scheme))
      throw new TypeError(`Two schemes are called ${name}. Give one another name: { scheme: '…' }.`)
    schemes.set(name, scheme)
  }
  return Object.fromEntries(schemes)
}

/**
 * The security scheme of an `authenticate` function: its name in the card, its definition, its scopes, and its
 * challenge.
 */
interface Description {
  readonly name: string
  readonly scheme: SecurityScheme
  readonly scopes?: readonly string[]
  readonly challenge: string
}

/** Adds the security scheme to an `authenticate` function, for the card. Throws TypeError for an invalid scope. */
export function withSecurityScheme(
  authenticate: Authenticate,
  { name, scheme, scopes = [], challenge }: Description
): Authenticate {
  // RFC 6749 §3.3.
  const wrong = scopes.find(scope => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
  if (wrong !== undefined)
    throw new TypeError(
      `scopes holds ${JSON.stringify(wrong)}, which is not a scope: a scope has no spaces, quotes or backslashes.`
    )
  const list = scopes.length > 0 ? { list: [...scopes] } : {}
  return Object.assign(authenticate, {
    securitySchemes: { [name]: scheme },
    securityRequirements: [{ schemes: { [name]: list } }],
    challenge
  })
}

/** The token in `Authorization: Bearer`; `undefined` without that header or with another scheme. */
export function bearerToken({ headers }: Credentials): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headers['authorization'] ?? '')?.[1]
}
