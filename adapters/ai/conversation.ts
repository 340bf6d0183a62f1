import type * as ai from 'ai'
import type { FilePart, ModelMessage, TextPart } from 'ai'
import type { Message, Part } from '../../machines/protocol/objects.ts'
import { type EarlierArtifact, type GeneratorArguments, text, type Words } from '../../runtime/index.ts'
import { checkArgument, checkOptions, type OptionKinds, withMethods } from '../../runtime/primitives/options.ts'
import { namedArtifacts } from '../../runtime/work-port.ts'

/** The AI SDK: an optional peer, loaded for the first task. */
export type Ai = typeof ai

/** How many earlier messages go into a prompt. The newest message is always in it. */
export interface ConversationBounds {
  /** The most messages before the newest. Default 20; 0 for none. */
  readonly messages?: number
  /** The most text of these messages and of their artifacts, in characters. The oldest are dropped. Default 100,000. */
  readonly characters?: number
}

const BOUNDS: OptionKinds<ConversationBounds> = { messages: true, characters: true }

/** The bounds with their defaults. */
export function withDefaultBounds(bounds: ConversationBounds = {}): Required<ConversationBounds> {
  checkOptions(bounds, BOUNDS, 'history', 'history: { messages: 20 }')
  const { messages = 20, characters = 100_000 } = bounds
  return { messages, characters }
}

/**
 * The prompt for a task, oldest message first. It has the messages of the context, each earlier task's followed by the
 * text of its artifacts. The last one is the message that opened the task, with its files.
 */
export async function conversation(
  work: Pick<GeneratorArguments, 'message' | 'history' | 'earlierArtifacts' | 'referenceTasks'>,
  bounds?: ConversationBounds
): Promise<ModelMessage[]> {
  const { messages, characters } = withDefaultBounds(bounds)
  checkArgument(work, withMethods(['history'], 'the arguments of the work'), 'conversation(work)')
  const history = await work.history(messages)
  const meant = new Set([
    ...work.referenceTasks.map(({ id }) => id),
    ...namedArtifacts(work.message).map(({ taskId }) => taskId)
  ])
  const tasks = new Set(history.map(({ taskId }) => taskId))
  const elsewhere = work.earlierArtifacts.filter(({ taskId }) => meant.has(taskId) && !tasks.has(taskId))
  const earlier = history.flatMap((message, index) => {
    const isLastOfTask =
      message.taskId !== undefined && history.findLastIndex(({ taskId }) => taskId === message.taskId) === index
    const artifacts = isLastOfTask ? work.earlierArtifacts.filter(({ taskId }) => taskId === message.taskId) : []
    return [...modelMessage(message), ...handedOver(artifacts)]
  })
  return [...newestWithin(characters, earlier), ...handedOver(elsewhere), ...modelMessage(work.message)]
}

/** A message for the prompt; none for one that only reports progress of the model. */
export function modelMessage(message: Message): ModelMessage[] {
  if (isAside(message)) return []
  return message.role === 'ROLE_USER'
    ? [{ role: 'user', content: filesAndText(message.parts) }]
    : [{ role: 'assistant', content: onlyText(message.parts) }]
}

/** The newest messages, up to this much text. */
export function newestWithin(characters: number, messages: readonly ModelMessage[]): ModelMessage[] {
  let left = characters
  const first = messages.findLastIndex(message => (left -= lengthOf(message)) < 0)
  return messages.slice(first + 1)
}

function lengthOf({ content }: ModelMessage): number {
  if (typeof content === 'string') return content.length
  return content.reduce((sum, part) => sum + ('text' in part ? part.text.length : 0), 0)
}

/** Artifacts as messages of the agent, oldest first. */
function handedOver(artifacts: readonly EarlierArtifact[]): ModelMessage[] {
  return artifacts.toReversed().map(({ artifact }) => ({ role: 'assistant', content: onlyText(artifact.parts) }))
}

/** The media types that models accept as files. */
const SEEN = /^(?:image\/.+|application\/pdf)$/i

/** Parts of a client's message for a prompt: images and PDFs as files, data as JSON text, other files by name. */
function filesAndText(parts: readonly Part[]): (TextPart | FilePart)[] {
  return parts.map(part => fileOf(part) ?? { type: 'text', text: textIn(part) })
}

/** The text of an agent's parts; data as JSON, files by name. */
function onlyText(parts: readonly Part[]): string {
  return joinTextParts(parts).map(textIn).join('\n')
}

function fileOf(part: Part): FilePart | undefined {
  const { mediaType, filename } = part
  if (mediaType === undefined || !SEEN.test(mediaType)) return undefined
  const data = 'raw' in part ? part.raw : 'url' in part ? webAddress(part.url) : undefined
  return data === undefined ? undefined : { type: 'file', data, mediaType, ...(filename !== undefined && { filename }) }
}

function webAddress(url: string): URL | undefined {
  return /^https?:/i.test(url) && URL.canParse(url) ? new URL(url) : undefined
}

function textIn(part: Part): string {
  if ('text' in part) return part.text
  if ('data' in part) return JSON.stringify(part.data)
  const { filename = 'without a name', mediaType = 'of an unknown type' } = part
  return `[a file ${filename}, ${mediaType}${'url' in part ? `, at ${part.url}` : ''}]`
}

/** Joins adjacent text parts, as a client does with the chunks of an artifact. */
export function joinTextParts(parts: readonly Part[]): Part[] {
  const whole: Part[] = []
  for (const part of parts) addTo(whole, part)
  return whole
}

/** Appends a part. Text after text joins it. */
export function addTo(parts: Part[], part: Part): void {
  const last = parts.at(-1)
  if (last && isText(last) && isText(part)) parts[parts.length - 1] = { text: last.text + part.text }
  else parts.push(part)
}

/** Whether a part has text and no other member. */
export function isText(part: Part): part is { text: string } {
  return 'text' in part && Object.keys(part).length === 1
}

/**
 * The key in `metadata` for data about models: `{ usage }` on a task, and `{ tool }` or `{ reasoning: true }` on a
 * progress message.
 */
export const MODEL_METADATA = 'urn:taskchart:model:1'

/** A line about the progress of the model, which is not part of the prompt later. */
export function progressLine(line: string, about: { readonly tool: string } | { readonly reasoning: true }): Words {
  return { parts: [text(line)], metadata: { [MODEL_METADATA]: about } }
}

/** Whether a message only reports progress of the model. */
function isAside({ metadata }: Message): boolean {
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
export function sumUsage(usages: readonly { readonly [key in (typeof KEYS)[number]]?: number | undefined }[]): Usage {
  const reported = KEYS.map(key => [key, usages.flatMap(usage => usage[key] ?? [])] as const)
  return Object.fromEntries(
    reported
      .filter(([, counts]) => counts.length > 0)
      .map(([key, counts]) => [key, counts.reduce((sum, count) => sum + count)])
  )
}
