import { A2AError, violationsText, type FieldViolation } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import { validated, type StandardSchema } from '../ports/standard-schema.ts'
import { publishedSchema } from './json-schema.ts'
import { contentValue } from './message-data.ts'

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
  const checked = validated(schema, contentValue(message), 'message.parts')
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

/** Parses the message that opened a task. Throws InvalidAgentResponse if the agent's present schema does not accept it. */
export function parseInput(schema: StandardSchema<unknown>, message: Message): unknown {
  const checked = validated(schema, contentValue(message), 'message.parts')
  if ('value' in checked) return checked.value
  throw new A2AError(
    'InvalidAgentResponse',
    "The message that opened this task does not match the agent's present input schema."
  )
}
