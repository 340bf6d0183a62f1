import { invalidParams } from '../../machines/protocol/errors.ts'
import type { Part } from '../../machines/protocol/parts.ts'
import { validated, type StandardSchema } from '../ports/standard-schema.ts'
import type { MessageReceived, AuthorizationReceived } from './setup-work.ts'
import { partsOf, textOf } from './words.ts'

/** The value of a message or an artifact that a schema validates: its first data part, else its text. */
export function contentValue(content: { readonly parts: readonly Part[] }): unknown {
  const part = partsOf(content, 'dataOf').find(part => 'data' in part)
  return part && 'data' in part ? part.data : textOf(content)
}

/**
 * Parses the first data part of a message or an artifact, else its text, with a schema. Throws InvalidParams with the path of
 * each violation, as in `message.parts.day`, and TypeError for an asynchronous schema.
 */
export function dataOf<T>(content: { readonly parts: readonly Part[] }, schema: StandardSchema<T>): T {
  return given(schema, contentValue(content), 'artifactId' in content ? 'artifact.parts' : 'message.parts')
}

/**
 * Parses a statechart's answer with a schema: the message of `message.received` as `dataOf` reads it, or the data of
 * `authorization.received`. With the schema of the question's `meta` it never throws; with another schema it throws as `dataOf`
 * does. It is pure, so guards may call it.
 */
export function answerOf<T>(event: MessageReceived | AuthorizationReceived, schema: StandardSchema<T>): T {
  return event.type === 'message.received' ? dataOf(event.message, schema) : given(schema, event.data, 'data')
}

function given<T>(schema: StandardSchema<T>, value: unknown, field: string): T {
  const checked = validated(schema, value, field)
  if ('value' in checked) return checked.value
  throw invalidParams(...checked.violations)
}
