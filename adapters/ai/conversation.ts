import type { ModelMessage } from 'ai'
import type { Message } from '../../machines/protocol/parts.ts'
import { namedArtifacts } from '../../runtime/authoring/artifact-choices.ts'
import type { EarlierArtifact, WorkArguments } from '../../runtime/authoring/work-arguments.ts'
import { checkArgument, checkOptions, withMethods, type OptionKinds } from '../../runtime/primitives/options.ts'
import { isAside } from './model/model-metadata.ts'
import { filesAndText, onlyText } from './model/model-parts.ts'

/** How many earlier messages go into a prompt. The newest message is always in it. */
export interface ConversationBounds {
  /** The most messages before the newest. Default 20; 0 for none. */
  readonly messages?: number
  /** The most text of these messages and of their artifacts, in characters. The oldest are dropped. Default 100,000. */
  readonly characters?: number
}

const BOUNDS: OptionKinds<ConversationBounds> = { messages: true, characters: true }

/** The bounds with their defaults. */
export function boundsOf(bounds: ConversationBounds = {}): Required<ConversationBounds> {
  checkOptions(bounds, BOUNDS, 'history', 'history: { messages: 20 }')
  const { messages = 20, characters = 100_000 } = bounds
  return { messages, characters }
}

/**
 * The prompt for a task, oldest message first. It has the messages of the context, each earlier task's followed by the text of its
 * artifacts. The last one is the message that opened the task, with its files.
 */
export async function conversation(
  work: Pick<WorkArguments, 'message' | 'history' | 'earlierArtifacts' | 'referenceTasks'>,
  bounds?: ConversationBounds
): Promise<ModelMessage[]> {
  const { messages, characters } = boundsOf(bounds)
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
