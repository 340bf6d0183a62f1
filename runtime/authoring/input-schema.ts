import type { EventObject } from 'xstate'
import { isObject, toJson } from '../../machines/protocol/codec/json.ts'
import { A2AError, type FieldViolation, invalidParams, violationsText } from '../../machines/protocol/errors.ts'
import type { Message, Part, RequestDetails } from '../../machines/protocol/objects.ts'
import { isStandardSchema, type StandardSchema, validateValue } from '../ports/standard-schema.ts'
import { kindOf } from '../primitives/options.ts'
import { requireParts, textOf } from './words.ts'

/** JSON Schema of an agent's `input`, as its card shows it, if there is one. Throws as {@link publishedSchema} does. */
export function shownInput({
  input,
  inputJsonSchema
}: {
  readonly input?: StandardSchema<unknown> | undefined
  readonly inputJsonSchema?: Record<string, unknown> | undefined
}): Record<string, unknown> | undefined {
  return publishedSchema(
    { schema: input, jsonSchema: inputJsonSchema },
    { schema: 'input', jsonSchema: 'inputJsonSchema' }
  )
}

/** Violations of an `input` schema by a message that is to open a task; empty if it is valid. */
export function inputViolations(schema: StandardSchema<unknown>, message: Message): readonly FieldViolation[] {
  const checked = validateValue(schema, contentValue(message), 'message.parts')
  return 'violations' in checked ? checked.violations : []
}

/** The error for a message that opens no task, because it violates the agent's `input` schema. */
export function notThisMessage(violations: readonly FieldViolation[]): A2AError {
  return new A2AError(
    'InvalidParams',
    `The message does not open a task: ${violationsText(violations)}. The agent's card has the JSON Schema.`,
    { violations }
  )
}

/**
 * Parses the message that opened a task. Throws InvalidAgentResponse if the agent's present schema does not accept it.
 */
export function parseInput(schema: StandardSchema<unknown>, message: Message): unknown {
  const checked = validateValue(schema, contentValue(message), 'message.parts')
  if ('value' in checked) return checked.value
  throw new A2AError(
    'InvalidAgentResponse',
    "The message that opened this task does not match the agent's present input schema."
  )
}

/**
 * JSON Schema (draft 2020-12) of a schema's input, if its library provides it (Standard JSON Schema: zod 4.2, arktype
 * 2.1.28). `undefined` if it does not, or if JSON Schema cannot express the schema.
 */
export function jsonSchemaOf(schema: StandardSchema<unknown>): Record<string, unknown> | undefined {
  try {
    const made = toJson(schema['~standard'].jsonSchema?.input({ target: 'draft-2020-12' }) ?? null)
    return isObject(made) ? made : undefined
  } catch {
    return undefined
  }
}

/** Maximum size of a JSON Schema for clients, in bytes of its JSON text. */
const MOST_BYTES = 16 * 1024

const RULE = 'has to implement Standard Schema (standardschema.dev), as schemas of zod, valibot and arktype do'

/** Cache of the JSON Schemas that libraries made. */
const made = new WeakMap<object, Record<string, unknown> | undefined>()

/**
 * The JSON Schema that clients see: the author's, else the library's, if there is one. `names` has the names for
 * errors. Throws TypeError for an invalid schema, RangeError for a JSON Schema of more than 16 KiB.
 */
export function publishedSchema(
  given: {
    readonly schema?: StandardSchema<unknown> | undefined
    readonly jsonSchema?: Record<string, unknown> | undefined
  },
  names = { schema: 'schema', jsonSchema: 'jsonSchema' }
): Record<string, unknown> | undefined {
  const { schema, jsonSchema } = given
  if (schema === undefined) {
    if (jsonSchema !== undefined)
      throw new TypeError(`${names.jsonSchema} is only shown to clients. Add ${names.schema}, which validates.`)
    return undefined
  }
  if (!isStandardSchema(schema)) throw new TypeError(`${names.schema} ${RULE}.`)
  if (jsonSchema !== undefined) return bounded(plain(jsonSchema, names.jsonSchema), names)
  if (!made.has(schema)) made.set(schema, bounded(jsonSchemaOf(schema), names))
  return made.get(schema)
}

function bounded<T>(shown: T, names: { readonly schema: string; readonly jsonSchema: string }): T {
  const bytes = Buffer.byteLength(JSON.stringify(shown) ?? '')
  if (bytes <= MOST_BYTES) return shown
  throw new RangeError(
    `The JSON Schema of ${names.schema} has ${bytes} bytes, more than ${MOST_BYTES}. Give a shorter one, such as ${names.jsonSchema}: { type: 'object' }. The schema itself still validates everything.`
  )
}

function plain(jsonSchema: unknown, name: string): Record<string, unknown> {
  const wrong = new TypeError(`${name} has to be a JSON Schema, such as { type: 'string' }.`)
  if (!isObject(jsonSchema)) throw wrong
  try {
    return toJson(jsonSchema) as Record<string, unknown>
  } catch {
    throw wrong
  }
}

/** The value of a message or an artifact that a schema validates: its first data part, else its text. */
export function contentValue(content: { readonly parts: readonly Part[] }): unknown {
  const part = requireParts(content, 'dataOf').find(part => 'data' in part)
  return part && 'data' in part ? part.data : textOf(content)
}

/** The answer as the schema of the question parsed it, by the event with which the chart receives it. */
const parsedAnswers = new WeakMap<object, { readonly schema: StandardSchema<unknown>; readonly answer: unknown }>()

/** An answer as a chart receives it. `dataOf` with the schema of the question gives the parsed answer. */
export function answerEvent(
  { answer, ...event }: EventObject & { readonly answer?: unknown },
  schema: StandardSchema<unknown>
): EventObject {
  parsedAnswers.set(event, { schema, answer })
  return event
}

/**
 * Parses data with a schema: the first data part of a message or an artifact, else its text. In a statechart it takes
 * the event of an answer: the message of `message.received`, or the data of `authorization.received`. With the schema
 * of the question's `meta` it gives what that has parsed, and never throws there. Throws InvalidParams with the path of
 * each violation, as in `message.parts.day`, and TypeError for an asynchronous schema. It is pure, so guards may call
 * it.
 */
export function dataOf<T>(
  source: { readonly parts: readonly Part[] } | MessageReceived | AuthorizationReceived,
  schema: StandardSchema<T>
): T {
  const event: object = isObject(source) ? source : {}
  const parsed = parsedAnswers.get(event)
  if (parsed && parsed.schema === schema) return parsed.answer as T
  if (isAuthorization(event)) return given(schema, event.data, 'data')
  const content = isMessage(event) ? event.message : (source as { readonly parts: readonly Part[] })
  return given(schema, contentValue(content), 'artifactId' in content ? 'artifact.parts' : 'message.parts')
}

function isMessage(event: { readonly type?: unknown }): event is MessageReceived {
  return event.type === 'message.received'
}

function isAuthorization(event: { readonly type?: unknown }): event is AuthorizationReceived {
  return event.type === 'authorization.received'
}

function given<T>(schema: StandardSchema<T>, value: unknown, field: string): T {
  if (!isStandardSchema(schema))
    throw new TypeError(
      `A schema of zod, valibot, arktype or the like (Standard Schema) is missing: dataOf(message, z.object({ … })), not ${kindOf(schema)}.`
    )
  const checked = validateValue(schema, value, field)
  if ('value' in checked) return checked.value
  throw invalidParams(...checked.violations)
}

/** A client's message to a work chart: while the task is interrupted or, with `messages: 'deliver'`, while it works. */
export interface MessageReceived {
  readonly type: 'message.received'
  readonly message: Message
  /** Metadata and configuration of the message's request; missing if the request has neither. */
  readonly request?: RequestDetails
  /** The id of the state whose question is open; missing while the task works. */
  readonly question?: string
}

/**
 * An authorization that arrived out of band (`runtime.authorized`) while the work chart is tagged auth-required. Add it
 * to the chart's `events`.
 */
export interface AuthorizationReceived {
  readonly type: 'authorization.received'
  readonly data: unknown
  /** The id of the state whose question is open. */
  readonly question?: string
}
