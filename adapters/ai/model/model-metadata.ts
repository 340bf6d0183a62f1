import type { Message } from '../../../machines/protocol/parts.ts'
import { text, type Words } from '../../../runtime/authoring/words.ts'

/**
 * The key in `metadata` under which models are told of: `{ usage }` in that of a task, `{ tool }` or `{ reasoning: true }`
 * in that of a message which only says how the model is getting on.
 */
export const MODEL_METADATA = 'urn:taskchart:model:1'

/** A line that says how the model is getting on, and is no part of the conversation. */
export function aside(line: string, about: { readonly tool: string } | { readonly reasoning: true }): Words {
  return { parts: [text(line)], metadata: { [MODEL_METADATA]: about } }
}

/** Whether a message is no part of the conversation. */
export function isAside({ metadata }: Message): boolean {
  return metadata !== undefined && MODEL_METADATA in metadata
}
