import { isObject } from '../../machines/protocol/codec/json.ts'
import { invalidParams } from '../../machines/protocol/errors.ts'
import type { Part } from '../../machines/protocol/parts.ts'
import { isStandardSchema, validated, type StandardSchema } from '../ports/standard-schema.ts'
import { checkArgument, kindOf, type Kind } from '../primitives/options.ts'
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
  checkArgument(event, AN_ANSWER, 'answerOf(event, schema)')
  return event.type === 'message.received' ? dataOf(event.message, schema) : given(schema, event.data, 'data')
}

const AN_ANSWER: Kind = [
  event => isObject(event) && (event['type'] === 'message.received' || event['type'] === 'authorization.received'),
  "the event 'message.received' or 'authorization.received'"
]

function given<T>(schema: StandardSchema<T>, value: unknown, field: string): T {
  if (!isStandardSchema(schema))
    throw new TypeError(
      `A schema of zod, valibot, arktype or the like (Standard Schema) is missing: dataOf(message, z.object({ … })), not ${kindOf(schema)}.`
    )
  const checked = validated(schema, value, field)
  if ('value' in checked) return checked.value
  throw invalidParams(...checked.violations)
}
