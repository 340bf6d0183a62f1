import { isObject } from '../../../machines/protocol/json.ts'

/** The members of what came from outside: none of what is no object. */
export function fieldsOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {}
}
