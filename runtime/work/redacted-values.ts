import { isObject } from '../../machines/protocol/codec/json.ts'

/**
 * Which values of a recorded task are redacted. A value is named by its JSON pointer (RFC 6901) in the record, as
 * `/journal/0/value/result/price`. What was redacted is not known, so code that reads it may do anything.
 */
export class RedactedValues {
  readonly #pointers: readonly string[]

  constructor(pointers: readonly string[] = []) {
    this.#pointers = pointers
  }

  /** Whether a value, or one in it, is redacted. Without a pointer: whether any is. */
  isAt(pointer = ''): boolean {
    return this.#pointers.some(one => one === pointer || one.startsWith(`${pointer}/`))
  }

  /**
   * A copy of a JSON value of the record that calls `onRead` when a redacted value in it is read. If the value itself is
   * redacted, that is at once.
   */
  watched<T>(value: T, pointer: string, onRead: () => void): T {
    return this.#watch(value, pointer, onRead) as T
  }

  #watch(value: unknown, pointer: string, onRead: () => void): unknown {
    if (!this.isAt(pointer)) return value
    if (Array.isArray(value)) return this.#watchMembers(value, [], pointer, onRead)
    if (isObject(value)) return this.#watchMembers(value, {}, pointer, onRead)
    onRead()
    return value
  }

  #watchMembers(from: object, to: object, pointer: string, onRead: () => void): object {
    for (const [name, value] of Object.entries(from)) {
      const below = `${pointer}/${pointerPart(name)}`
      const isOwn = this.#pointers.includes(below)
      Object.defineProperty(to, name, {
        enumerable: true,
        configurable: true,
        ...(isOwn
          ? {
              get: () => {
                onRead()
                return value as unknown
              }
            }
          : { value: this.#watch(value, below, onRead), writable: true })
      })
    }
    return to
  }
}

/** A member's name in a JSON pointer (RFC 6901 §3). */
export function pointerPart(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}
