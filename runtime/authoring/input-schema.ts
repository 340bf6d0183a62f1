import { A2AError, violationsText, type FieldViolation } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import { validated, type StandardSchema } from '../ports/standard-schema.ts'
import { publishedSchema } from './json-schema.ts'
import { contentValue } from './message-data.ts'

/** The JSON Schema that an agent's card shows of its `input`, if there is one. Throws as {@link publishedSchema}. */
export function shownInput({ input, inputJsonSchema }: { readonly input?: StandardSchema<unknown> | undefined; readonly inputJsonSchema?: Record<string, unknown> | undefined }): Record<string, unknown> | undefined {
  return publishedSchema({ schema: input, jsonSchema: inputJsonSchema }, { schema: 'input', jsonSchema: 'inputJsonSchema' })
}

/** What is wrong with a message that is to open a task of an agent with this `input` schema, by field; nothing if it may. */
export function inputViolations(schema: StandardSchema<unknown>, message: Message): readonly FieldViolation[] {
  const checked = validated(schema, contentValue(message), 'message.parts')
  return 'violations' in checked ? checked.violations : []
}

/** The error for a message that opens no task, for it does not hold what the agent wants. */
export function notThisMessage(violations: readonly FieldViolation[]): A2AError {
  return new A2AError('InvalidParams', `The agent opens no task for this message: ${violationsText(violations)}. Its card says what the message has to hold.`, { violations })
}

/** What opened a task, as the agent's schema gives it now. Throws InvalidAgentResponse if it does not take it any more. */
export function parseInput(schema: StandardSchema<unknown>, message: Message): unknown {
  const checked = validated(schema, contentValue(message), 'message.parts')
  if ('value' in checked) return checked.value
  throw new A2AError('InvalidAgentResponse', 'The agent does not take any more what this task was opened with: its input has another schema now.')
}
