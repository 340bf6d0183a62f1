import { createHash } from 'node:crypto'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { isOwnName } from '../../machines/xstate-names.ts'
import { writtenConfig, writtenLogic } from '../xstate/state-nodes.ts'
import { plainSource } from './source-text.ts'

/** The maximum number of values in one text. A library's object may lead everywhere. */
const MOST_VALUES = 20_000

/** The text of code: a function, an object with functions, a chart. */
export interface CodeText {
  /** Equal for code whose text is equal, apart from types, comments and layout. */
  readonly text: string
  /** The sources of its functions, without layout. */
  readonly sources: readonly string[]
  /** Whether some of it cannot be read: a bound function, or one of the engine's, or it is too large. */
  readonly isHidden: boolean
}

/** The text of a value of an author: of its functions and members, and of what taskchart's functions were given. */
export function codeText(value: unknown): CodeText {
  const reader = new Reader()
  const text = reader.textOf(value)
  return { text, sources: reader.sources, isHidden: reader.isHidden }
}

/** A digest of a text: equal for equal texts. */
export function textDigest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, DIGEST_CHARACTERS)
}

/** 132 bits. */
const DIGEST_CHARACTERS = 22

class Reader {
  readonly sources: string[] = []
  isHidden = false
  readonly #known = new Map<object, number>()

  textOf(value: unknown): string {
    if (typeof value === 'string') return JSON.stringify(value)
    if (typeof value === 'bigint') return `${value}n`
    if (typeof value === 'symbol') return String(value)
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return `${value as null}`
    const known = this.#known.get(value)
    if (known !== undefined) return `&${known}`
    this.#known.set(value, this.#known.size)
    if (this.#known.size > MOST_VALUES) {
      this.isHidden = true
      return '…'
    }
    const given = writtenLogic(value)
    if (given) return `made of ${this.textOf(given)}`
    if (isChartObject(value)) return `chart ${this.textOf([writtenConfig(value.config), value.implementations])}`
    if (typeof value === 'function') {
      const { type } = value as { readonly type?: unknown }
      // The actions of XState are functions of its own, whose members have what the author gave.
      if (typeof type === 'string' && isOwnName(type)) return `${type}${this.#membersOf(value, ['resolve'])}`
      return `${this.#sourceOf(value)}${this.#membersOf(value)}`
    }
    if (Array.isArray(value)) return `[${value.map(one => this.textOf(one)).join(', ')}]`
    if (value instanceof Date || value instanceof RegExp || value instanceof URL)
      return `${nameOf(value)} ${String(value)}`
    if (value instanceof Map || value instanceof Set) return `${nameOf(value)} ${this.textOf([...value])}`
    return `${this.#classOf(value)}${this.#membersOf(value)}`
  }

  #sourceOf(given: object): string {
    const source = plainSource(Function.prototype.toString.call(given))
    this.sources.push(source)
    if (source.endsWith('{ [ native code ] }')) this.isHidden = true
    return source
  }

  /** The source of an object's class, if it has one. */
  #classOf(value: object): string {
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === null || prototype === Object.prototype || !isObject(prototype)) return ''
    const { constructor } = prototype as { readonly constructor?: unknown }
    return typeof constructor === 'function' && constructor !== Object ? `new ${this.textOf(constructor)} ` : ''
  }

  /** The members of an object, sorted. Getters are read as functions. */
  #membersOf(value: object, without: readonly string[] = []): string {
    const members = Object.entries(Object.getOwnPropertyDescriptors(value))
      .filter(([name, { enumerable }]) => enumerable && !without.includes(name))
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
    if (typeof value === 'function' && members.length === 0) return ''
    const textOf = (member: PropertyDescriptor) => this.textOf('get' in member ? member['get'] : member.value)
    return ` {${members.map(([name, member]) => `${name}: ${textOf(member)}`).join(', ')}}`
  }
}

function nameOf(value: object): string {
  return value.constructor.name
}

function isChartObject(value: object): value is { readonly config: object; readonly implementations: unknown } {
  return 'root' in value && 'config' in value && 'implementations' in value && isObject(value.config)
}
