import { types } from 'node:util'

/** Wraps a logger: redacts secrets, and ignores the logger's own errors. */
export function guardedLogger(logger: Logger): Logger {
  return {
    warn: guarded((message, details) => logger.warn(message, details)),
    error: guarded((message, details) => logger.error(message, details)),
    info: guarded((message, details) => logger.info?.(message, details))
  }
}

function guarded(log: (...line: Parameters<Log>) => unknown): Log {
  return (message, details) => {
    try {
      const logged = log(redactedText(message), redactValue(details) as Record<string, unknown>)
      // A logger may be async, despite its type.
      if (logged instanceof Promise) logged.catch(() => {})
    } catch {
      // An error of the logger cannot be logged.
    }
  }
}

/** Writes one line: a constant message per kind of event, and its details. */
export type Log = (message: string, details: Record<string, unknown>) => void

/**
 * Receives reports that no caller gets: errors in the author's code, dropped words, failed commits. `details` may have
 * an `error`, but never messages, artifacts or credentials. Anything that looks like a secret, even within error texts,
 * is replaced by `[redacted]`. Errors of the logger are ignored.
 */
export interface Logger {
  warn(message: string, details: Record<string, unknown>): void
  error(message: string, details: Record<string, unknown>): void
  /** Optional. Receives normal events, such as the deletion of old tasks. */
  info?(message: string, details: Record<string, unknown>): void
}

/** Writes to the console: the default. */
export const consoleLogger: Logger = {
  warn: (message, details) => console.warn(`taskchart: ${message}`, details),
  error: (message, details) => console.error(`taskchart: ${message}`, details)
}

/** Replacement of a secret. */
const REDACTED = '[redacted]'

/** Maximum characters of one text. */
const LONGEST_TEXT = 8 * 1024

/** Names of secrets, with any prefix, as in `x-api-key` and `refresh_token`. */
const SECRET_NAME =
  /(?:authorization|cookie|password|passwd|passphrase|secret|credentials?|apikey|accesskey|privatekey|token|jwt)$|^(?:auth|pwd|tokens)$/
const IN_TEXT = 'password|passwd|passphrase|secret|credentials?|api[-_]?key|access[-_]?key|private[-_]?key|token|jwt'

/** Separator of a name and its value: `token=`, `"token": `, and the same within JSON text. */
const IS = String.raw`\\*["']?\s{0,8}[=:]\s{0,8}`
const QUOTED = String.raw`\\*"[^"]*"?|'[^']*'?`

/**
 * Patterns of secrets within text, and their replacements. Each runs in linear time. Authentication schemes come first,
 * so that of `token: Bearer …` the credentials are redacted, and not only the word `Bearer`.
 */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer\s{1,8})[^\s"',;)\]}]+/gi, `$1${REDACTED}`],
  [/\b(basic\s{1,8})[a-z0-9+/]{4,512}={1,2}/gi, `$1${REDACTED}`],
  [new RegExp(String.raw`((?:authorization|cookie)${IS})(?:${QUOTED}|[^\r\n]+)`, 'gi'), `$1${REDACTED}`],
  [new RegExp(String.raw`((?:${IN_TEXT})${IS})(?:${QUOTED}|[^\s&,;"'})\]]+)`, 'gi'), `$1${REDACTED}`],
  [/:\/\/[^\s/?#]*@/g, `://${REDACTED}@`],
  [/\beyJ(?:(?!-eyJ)[\w-])+\.[\w-]+\.[\w-]*/g, REDACTED],
  [/\b(?:sk|pk|rk|ghp|gho|ghs|xoxb|xoxp|glpat)[-_][\w-]{16,}/g, REDACTED]
]

/** Whether the value of a name is a secret: `authorization`, `Set-Cookie`, `x-api-key`, `clientSecret`, … */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name.toLowerCase().replace(/[^a-z0-9]/g, ''))
}

/**
 * Redacts a text: credentials of headers, users and passwords in URLs, values of parameters and members with secret
 * names, and tokens of a known form. Truncated to 8,192 characters.
 */
export function redactedText(text: string): string {
  let shown = text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text
  for (const [secret, stand] of SECRETS) shown = shown.replace(secret, stand)
  return shown
}

const DEEPEST = 6
const MOST_MEMBERS = 64
const MOST_VALUES = 1000
const UNREADABLE = '[unreadable]'

/** Members of errors that are copied separately. */
const OF_ERRORS = ['name', 'message', 'stack', 'cause', 'errors']

/**
 * A redacted copy of a value for a log. It is plain data, except for errors, and limited to depth 6, 64 members per
 * object and 1,000 values. Any value is accepted: cycles, getters that throw, proxies.
 */
export function redactValue(value: unknown): unknown {
  return new Redaction().copy(value, 0)
}

class Redaction {
  #left = MOST_VALUES
  /** The path of objects to the current one. */
  readonly #path = new Set<object>()

  copy(value: unknown, depth: number): unknown {
    if (typeof value === 'string') return redactedText(value)
    if (typeof value === 'function') return '[function]'
    if (typeof value === 'bigint' || typeof value === 'symbol') return String(value)
    if (typeof value !== 'object' || value === null) return value
    this.#left -= 1
    if (this.#path.has(value)) return '[circular]'
    if (depth >= DEEPEST || this.#left < 0) return '[more]'
    this.#path.add(value)
    const copy = attempt(() => this.#copyObject(value, depth + 1))
    this.#path.delete(value)
    return copy
  }

  #copyObject(value: object, depth: number): unknown {
    if (types.isNativeError(value) || value instanceof Error) return this.#copyError(value, depth)
    if (Array.isArray(value) || value instanceof Set) return this.#copyAll(value, depth)
    if (value instanceof Map)
      return this.#copyMembers(
        [...value].map(([key, member]) => [String(key), () => member]),
        depth
      )
    if (value instanceof Date) return String(value.getTime() >= -8.64e15 ? value.toISOString() : value)
    if (value instanceof URL) return redactedText(value.href)
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`
    return this.#copyMembers(membersOf(value), depth)
  }

  /** A new error, so that no code of the original runs in a logger. */
  #copyError(error: Error & { readonly errors?: unknown }, depth: number): Error {
    const read = (name: string) =>
      this.copy(
        attempt(() => Reflect.get(error, name)),
        depth
      )
    const shown = new Error(String(read('message')))
    const define = (name: string, value: unknown, enumerable: boolean) =>
      Object.defineProperty(shown, name, { value, enumerable, configurable: true, writable: true })
    define('name', read('name'), false)
    define('stack', read('stack'), false)
    for (const name of ['cause', 'errors']) if (name in error) define(name, read(name), false)
    const own = membersOf(error).filter(([name]) => !OF_ERRORS.includes(name))
    for (const [name, value] of Object.entries(this.#copyMembers(own, depth))) define(name, value, true)
    return shown
  }

  #copyAll(values: Iterable<unknown>, depth: number): unknown[] {
    const copies: unknown[] = []
    for (const value of values) {
      if (copies.length >= MOST_MEMBERS) return [...copies, '[more]']
      copies.push(this.copy(value, depth))
    }
    return copies
  }

  #copyMembers(members: readonly (readonly [string, () => unknown])[], depth: number): Record<string, unknown> {
    const copies = members
      .slice(0, MOST_MEMBERS)
      .map(([name, read]) => [redactedText(name), this.#copyMember(name, read, depth)])
    return { ...Object.fromEntries(copies), ...(members.length > MOST_MEMBERS && { '…': '[more]' }) }
  }

  #copyMember(name: string, read: () => unknown, depth: number): unknown {
    const value = attempt(read)
    return isSecretName(name) && value !== undefined && value !== null ? REDACTED : this.copy(value, depth)
  }
}

function membersOf(value: object): (readonly [string, () => unknown])[] {
  return Object.keys(value).map(name => [name, () => Reflect.get(value, name)])
}

/** The result of `read`, or a placeholder if it throws. */
function attempt(read: () => unknown): unknown {
  try {
    return read()
  } catch {
    return UNREADABLE
  }
}

/** The line of the log about an error of the author's code. */
export const WORK_FAILED = 'the work of a task failed'
