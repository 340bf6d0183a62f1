import { isObject } from '../../machines/protocol/codec/json.ts'

/** The members of what came from outside: none of what is no object. */
export function fieldsOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {}
}

/** The items of what came from outside: none of what is no list. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
