import { createHash, timingSafeEqual } from 'node:crypto'
import type { Authenticate, Principal } from '../../runtime/access/authentication.ts'
import { checkOptions, textSuchAs, type OptionKinds } from '../../runtime/primitives/options.ts'
import { bearerToken } from './bearer-token.ts'
import { described } from './described.ts'

/** Which keys there are, and where they are looked for. */
export interface ApiKeyOptions {
  /**
   * The key, or the keys, of each principal by its id; or a function that looks one up, whose comparing is its own. Two keys
   * of one principal let it change from one to the other.
   */
  readonly keys: Readonly<Record<string, string | readonly string[]>> | ((key: string) => Principal | undefined | Promise<Principal | undefined>)
  /** The header that has the key. Default `x-api-key`; `authorization` wants `Authorization: Bearer KEY`. */
  readonly header?: string
  /** The name of the scheme in the card. Default `apiKey`. */
  readonly scheme?: string
}

const OPTIONS: OptionKinds<ApiKeyOptions> = { keys: true, header: true, scheme: textSuchAs("'apiKey'") }

/** Lets in who knows a key. Keys are compared in constant time. Throws TypeError for keys or a header that cannot be. */
export function apiKey(options: ApiKeyOptions): Authenticate {
  checkOptions(options, OPTIONS, 'apiKey', "apiKey({ keys: { anna: '…' } })")
  const { keys, header = 'x-api-key', scheme: name = 'apiKey' } = options
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(header)) throw new TypeError(`header has to be the name of a header, not ${JSON.stringify(header)}.`)
  const principalOf = typeof keys === 'function' ? keys : lookUp(keys)
  if (header.toLowerCase() === 'authorization') {
    const scheme = { httpAuthSecurityScheme: { scheme: 'Bearer' } }
    return described(credentials => given(bearerToken(credentials), principalOf), { name, scheme, challenge: 'Bearer' })
  }
  const scheme = { apiKeySecurityScheme: { location: 'header', name: header } }
  return described(({ headers }) => given(headers[header.toLowerCase()], principalOf), { name, scheme, challenge: `ApiKey header="${header}"` })
}

function given<T>(key: string | undefined, principalOf: (key: string) => T): T | undefined {
  return key === undefined || key === '' ? undefined : principalOf(key)
}

/** Finds the principal of a key. All keys are looked at, whichever it is: how long that takes tells nothing. */
function lookUp(keys: Readonly<Record<string, string | readonly string[]>>): (key: string) => Principal | undefined {
  const known = Object.entries(keys).flatMap(([id, own]) => [own].flat().map(key => ({ id, digest: digestOf(checkedKey(id, key)) })))
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
  if (id === '') throw new TypeError('keys has a principal without a name.')
  if (typeof key === 'string' && /^[\x21-\x7e]+$/.test(key)) return key
  throw new TypeError(`The key of ${id} has to be letters, digits and signs of ASCII, without spaces.`)
}

/** Keys of all lengths are compared by digests of one length. */
function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}
