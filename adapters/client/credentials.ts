import type { AgentCard } from '../../machines/protocol/card.ts'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { SecurityScheme } from '../../machines/protocol/security.ts'
import { rejectUnknown } from '../../runtime/primitives/options.ts'
import { checkOrigins } from './hosts.ts'
import {
  hasHeaders,
  type ConnectOptions,
  type PlacedOptions,
  type ClientCredentials,
  type SecretPlace
} from './options.ts'

interface Secrets {
  readonly apiKey?: string | undefined
  readonly bearer?: string | undefined
}

/**
 * Throws TypeError for credentials that cannot be sent, and for an entry of `credentialOrigins` that is not an origin.
 */
export function checkAccess({ credentials, credentialOrigins }: ConnectOptions): void {
  checkOrigins(credentialOrigins)
  if (!credentials) return
  rejectUnknown(credentials, ['apiKey', 'bearer', 'onlyIfAsked'], 'credentials')
  const { apiKey, bearer } = credentials
  if (apiKey === undefined && bearer === undefined)
    throw new TypeError("credentials has no secret. Give { apiKey: '…' } or { bearer: '…' }, or leave credentials out.")
  for (const [name, secret] of Object.entries({ apiKey, bearer })) {
    if (secret === undefined || (typeof secret === 'string' && /^[\x21-\x7e]+$/.test(secret))) continue
    throw new TypeError(`credentials.${name} has to be a text of printable ASCII characters without spaces.`)
  }
}

/**
 * Where the credentials go, by the security schemes of a card (§4.5): those of its first requirement that the
 * credentials can meet, or without requirements its first scheme that they can meet. An API key is a bearer token only
 * if no scheme is for API keys.
 */
export function placesIn(
  { securitySchemes = {}, securityRequirements = [] }: Pick<AgentCard, 'securitySchemes' | 'securityRequirements'>,
  credentials: ClientCredentials | undefined
): readonly SecretPlace[] {
  if (!credentials) return []
  const { apiKey, bearer = apiKey, onlyIfAsked } = credentials
  const schemes = new Map(Object.entries(securitySchemes))
  const required = securityRequirements
    .map(({ schemes = {} }) => Object.keys(schemes))
    .filter(names => names.length > 0)
  const alternatives = required.length > 0 ? required : [...schemes.keys()].map(name => [name])
  for (const secrets of [credentials, { apiKey, bearer }]) {
    for (const names of alternatives) {
      const places = names.flatMap(name => placeFor(schemes.get(name), secrets) ?? [])
      if (places.length === names.length) return places
    }
  }
  return onlyIfAsked || bearer === undefined ? [] : [bearerPlace(bearer)]
}

function placeFor(scheme: SecurityScheme | undefined, { apiKey, bearer }: Secrets): SecretPlace | undefined {
  if (!scheme) return undefined
  if ('apiKeySecurityScheme' in scheme)
    return apiKey === undefined ? undefined : keyPlace(scheme.apiKeySecurityScheme, apiKey)
  const isBearer =
    'httpAuthSecurityScheme' in scheme
      ? /^bearer$/i.test(scheme.httpAuthSecurityScheme.scheme)
      : !('mtlsSecurityScheme' in scheme)
  return isBearer && bearer !== undefined ? bearerPlace(bearer) : undefined
}

/** The place of an API key. `undefined` if the card names none that HTTP has. */
function keyPlace(
  { location, name }: { readonly location: string; readonly name: string },
  value: string
): SecretPlace | undefined {
  const carrier = (['header', 'query', 'cookie'] as const).find(known => known === location.toLowerCase())
  if (!carrier || (carrier !== 'query' && !/^[\w!#$%&'*+.^`|~-]+$/.test(name))) return undefined
  return { carrier, name, value }
}

function bearerPlace(secret: string): SecretPlace {
  return { carrier: 'header', name: 'authorization', value: `Bearer ${secret}` }
}

/**
 * The options of a second request for a card that was refused without credentials: with the given headers, and the key
 * as the challenge requires. `undefined` if it was not refused, or if there is nothing to send.
 */
export function afterRefusal({ status, headers }: Response, options: ConnectOptions): PlacedOptions | undefined {
  if (status !== 401 && status !== 403) return undefined
  const { apiKey, bearer } = options.credentials ?? {}
  const wantsBearer = /(?:^|,)\s*Bearer(?:[\s,]|$)/i.test(headers.get('www-authenticate') ?? '')
  const secret = wantsBearer ? (bearer ?? apiKey) : bearer
  const places: SecretPlace[] = [
    ...(secret === undefined ? [] : [bearerPlace(secret)]),
    ...(apiKey === undefined || wantsBearer ? [] : [{ carrier: 'header' as const, name: 'x-api-key', value: apiKey }])
  ]
  return places.length > 0 || hasHeaders(options) ? { ...options, places } : undefined
}

/**
 * Adds to Unauthenticated where credentials were sent, without showing them; if none were, how to send some. Other
 * errors are unchanged.
 */
export function explainRefusal<T>(error: T, options: PlacedOptions): T | A2AError {
  if (!isA2AError(error) || error.code !== 'Unauthenticated') return error
  const { code, message, metadata, violations } = error
  const { places = [], headers = {} } = options
  const sent =
    places.length > 0
      ? places.map(placeText)
      : typeof headers === 'function'
        ? ['the given headers']
        : Object.keys(headers)
  const more =
    sent.length > 0
      ? `It refused those that were sent in ${sent.join(' and ')}.`
      : "Connect with { credentials: { apiKey: '…' } } or { headers: { … } }."
  return new A2AError(code, `${message} ${more}`, { metadata, violations, cause: error })
}

function placeText({ carrier, name }: SecretPlace): string {
  if (carrier === 'header') return name
  return carrier === 'query' ? `the parameter ${name}` : `the cookie ${name}`
}
