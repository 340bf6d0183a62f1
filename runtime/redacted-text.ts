/** What stands in place of a secret. */
export const REDACTED = '[redacted]'

/** Characters of one text that are kept. */
const LONGEST_TEXT = 8 * 1024

/** Names under which secrets stand; before them anything may stand, as in `x-api-key` and `refresh_token`. */
const SECRET_NAME = /(?:authorization|cookie|password|passwd|passphrase|secret|credentials?|apikey|accesskey|privatekey|token|jwt)$|^(?:auth|pwd|tokens)$/
const IN_TEXT = 'password|passwd|passphrase|secret|credentials?|api[-_]?key|access[-_]?key|private[-_]?key|token|jwt'

/** Between a name and its value: `token=`, `"token": `, and the same within a JSON text. */
const IS = String.raw`\\*["']?\s{0,8}[=:]\s{0,8}`
const QUOTED = String.raw`\\*"[^"]*"?|'[^']*'?`

/**
 * What secrets look like within a text, and what takes their place. Each takes time in proportion to the text. Schemes come
 * first: in `token: Bearer …` it is not the word `Bearer` that is secret.
 */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer\s{1,8})[^\s"',;)\]}]+/gi, `$1${REDACTED}`],
  [/\b(basic\s{1,8})[a-z0-9+/]{4,512}={1,2}/gi, `$1${REDACTED}`],
  [new RegExp(String.raw`((?:authorization|cookie)${IS})(?:${QUOTED}|[^\r\n]+)`, 'gi'), `$1${REDACTED}`],
  [new RegExp(String.raw`((?:${IN_TEXT})${IS})(?:${QUOTED}|[^\s&,;"'})\]]+)`, 'gi'), `$1${REDACTED}`],
  [/:\/\/[^\s/?#]*@/g, `://${REDACTED}@`],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, REDACTED],
  [/\b(?:sk|pk|rk|ghp|gho|ghs|xoxb|xoxp|glpat)[-_][\w-]{16,}/g, REDACTED]
]

/** Whether what stands under a name is a secret: `authorization`, `Set-Cookie`, `x-api-key`, `clientSecret`, … */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name.toLowerCase().replace(/[^a-z0-9]/g, ''))
}

/**
 * A text without its secrets: credentials of headers, users and passwords in addresses, values of parameters and members
 * with such names, tokens that show by their form. Cut off at 8,192 characters.
 */
export function redactedText(text: string): string {
  let shown = text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text
  for (const [secret, stand] of SECRETS) shown = shown.replace(secret, stand)
  return shown
}
