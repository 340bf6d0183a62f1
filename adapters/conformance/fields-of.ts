import { isObject } from '../../machines/protocol/codec/json.ts'

/** The members of an untrusted value; empty unless it is an object. */
export function fieldsOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {}
}

/** The items of an untrusted value; empty unless it is an array. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
