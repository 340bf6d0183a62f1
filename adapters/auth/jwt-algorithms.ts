/** Signatures that a public key verifies. */
const PUBLIC = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'Ed25519', 'EdDSA']

/** Signatures that are made and verified with one secret. */
const SECRET = ['HS256', 'HS384', 'HS512']

/**
 * The algorithms that tokens may be signed with: those that are wanted, else all that fit the kind of key. A public key never
 * counts as a secret, and `none` is no algorithm: what a token's own header says is not trusted. Throws TypeError for one
 * that does not fit.
 */
export function allowedAlgorithms(kind: 'public' | 'secret', wanted?: readonly string[]): string[] {
  const fitting = kind === 'public' ? PUBLIC : SECRET
  const algorithms = [...(wanted ?? fitting)]
  const wrong = algorithms.find(algorithm => !fitting.includes(algorithm))
  if (algorithms.length > 0 && wrong === undefined) return algorithms
  throw new TypeError(`algorithms has to name some of ${fitting.join(', ')}, which are those for a ${kind} key${wrong === undefined ? '' : `, not ${JSON.stringify(wrong)}`}.`)
}
