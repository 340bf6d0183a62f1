import { types } from 'node:util'
import { isSecretName, REDACTED, redactedText } from './redacted-text.ts'

const DEEPEST = 6
const MOST_MEMBERS = 64
const MOST_VALUES = 1000
const UNREADABLE = '[unreadable]'

/** What is copied by hand of an error. */
const OF_ERRORS = ['name', 'message', 'stack', 'cause', 'errors']

/**
 * A copy of a value for a log: without secrets, plain but for errors, which stay errors, and bounded in depth (6), in members
 * of each object (64) and in all (1,000). It takes whatever there is: cycles, getters that throw, proxies.
 */
export function redacted(value: unknown): unknown {
  return new Redaction().copy(value, 0)
}

class Redaction {
  #left = MOST_VALUES
  /** The objects that lead to the one that is copied. */
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
    if (value instanceof Map) return this.#copyMembers([...value].map(([key, member]) => [String(key), () => member]), depth)
    if (value instanceof Date) return String(value.getTime() >= -8.64e15 ? value.toISOString() : value)
    if (value instanceof URL) return redactedText(value.href)
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`
    return this.#copyMembers(membersOf(value), depth)
  }

  /** A new error, so that nothing of the old one's code runs in a logger. */
  #copyError(error: Error & { readonly errors?: unknown }, depth: number): Error {
    const read = (name: string) => this.copy(attempt(() => Reflect.get(error, name)), depth)
    const shown = new Error(String(read('message')))
    const define = (name: string, value: unknown, enumerable: boolean) => Object.defineProperty(shown, name, { value, enumerable, configurable: true, writable: true })
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
    const copies = members.slice(0, MOST_MEMBERS).map(([name, read]) => [redactedText(name), this.#copyMember(name, read, depth)])
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

/** What something gives, or that it cannot be read. */
function attempt(read: () => unknown): unknown {
  try {
    return read()
  } catch {
    return UNREADABLE
  }
}
