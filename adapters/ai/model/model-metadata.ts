import type { Message } from '../../../machines/protocol/parts.ts'
import { text, type Words } from '../../../runtime/authoring/words.ts'

/** The key in `metadata` for data about models: `{ usage }` on a task, and `{ tool }` or `{ reasoning: true }` on a progress message. */
export const MODEL_METADATA = 'urn:taskchart:model:1'

/** A line about the progress of the model, which is not part of the prompt later. */
export function aside(line: string, about: { readonly tool: string } | { readonly reasoning: true }): Words {
  return { parts: [text(line)], metadata: { [MODEL_METADATA]: about } }
}

/** Whether a message only reports progress of the model. */
export function isAside({ metadata }: Message): boolean {
  return metadata !== undefined && MODEL_METADATA in metadata
}

/** The numbers of input and output tokens, as far as the provider reports them. */
export interface Usage {
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly totalTokens?: number
}

const KEYS = ['inputTokens', 'outputTokens', 'totalTokens'] as const

/** The sum over several calls, without what none of them reports. */
export function sumOf(usages: readonly { readonly [key in (typeof KEYS)[number]]?: number | undefined }[]): Usage {
  const told = KEYS.map(key => [key, usages.flatMap(usage => usage[key] ?? [])] as const)
  return Object.fromEntries(
    told
      .filter(([, counts]) => counts.length > 0)
      .map(([key, counts]) => [key, counts.reduce((sum, count) => sum + count)])
  )
}
