import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import { ANSWER_SCHEMA } from '../../machines/protocol/uris.ts'

/**
 * The JSON Schema of the answer that a question wants, for a form or a model to answer it: of the message in the status of a
 * task that waits for its client. `undefined` if the agent says nothing of it. It is what the agent said, and may hold
 * anything that JSON can.
 */
export function answerSchemaOf(message: Message | undefined): Record<string, unknown> | undefined {
  const schema = message?.metadata?.[ANSWER_SCHEMA]
  return isObject(schema) ? schema : undefined
}
