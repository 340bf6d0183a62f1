import { invalidParams } from '../../machines/protocol/errors.ts'
import type { Part } from '../../machines/protocol/parts.ts'
import { validated, type StandardSchema } from '../ports/standard-schema.ts'
import type { MessageReceived, AuthorizationReceived } from './setup-work.ts'
import { partsOf, textOf } from './words.ts'

/** What a message or an artifact holds for a schema: the value of its first data part, or else its text. */
export function contentValue(content: { readonly parts: readonly Part[] }): unknown {
  const part = partsOf(content, 'dataOf').find(part => 'data' in part)
  return part && 'data' in part ? part.data : textOf(content)
}

/**
 * The value of a message's or an artifact's first data part, or else its text, as a schema gives it. Throws InvalidParams
 * that names what is wrong by its path, as in `message.parts.day`; TypeError for a schema that waits for a promise.
 */
export function dataOf<T>(content: { readonly parts: readonly Part[] }, schema: StandardSchema<T>): T {
  return given(schema, contentValue(content), 'artifactId' in content ? 'artifact.parts' : 'message.parts')
}

/**
 * What a statechart was answered, as a schema gives it: of `message.received` the message's value as `dataOf` reads it, of
 * `authorization.received` what came out of band. With the schema of the question's `meta` it never throws; with another
 * one it throws as `dataOf` does. It reads nothing but the event, so that guards may call it.
 */
export function answerOf<T>(event: MessageReceived | AuthorizationReceived, schema: StandardSchema<T>): T {
  return event.type === 'message.received' ? dataOf(event.message, schema) : given(schema, event.data, 'data')
}

function given<T>(schema: StandardSchema<T>, value: unknown, field: string): T {
  const checked = validated(schema, value, field)
  if ('value' in checked) return checked.value
  throw invalidParams(...checked.violations)
}
