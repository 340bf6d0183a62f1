import type { ModelMessage } from 'ai'
import type { Message } from '../../machines/protocol/parts.ts'
import { namedArtifacts } from '../../runtime/authoring/artifact-choices.ts'
import type { EarlierArtifact, WorkArguments } from '../../runtime/authoring/work-arguments.ts'
import { checkOptions, type OptionKinds } from '../../runtime/primitives/options.ts'
import { isAside } from './model/model-metadata.ts'
import { filesAndText, onlyText } from './model/model-parts.ts'

/** How much of a conversation a model is told, beside the newest message, which it is told in any case. */
export interface ConversationBounds {
  /** How many messages before the newest. Default 20; 0 for none. */
  readonly messages?: number
  /** How much text they hold in all, with the artifacts that came of them, in characters. The oldest stay out. Default 100,000. */
  readonly characters?: number
}

const BOUNDS: OptionKinds<ConversationBounds> = { messages: true, characters: true }

/** Bounds with the defaults of what is left out of them. */
export function boundsOf(bounds: ConversationBounds = {}): Required<ConversationBounds> {
  checkOptions(bounds, BOUNDS, 'history', 'history: { messages: 20 }')
  const { messages = 20, characters = 100_000 } = bounds
  return { messages, characters }
}

/**
 * The conversation of a task's context as a model is told it, oldest first: the messages of both sides, after those of each
 * earlier task the text of its artifacts, and at last the message that opened the task, with the files in it.
 */
export async function conversation(work: Pick<WorkArguments, 'message' | 'history' | 'earlierArtifacts' | 'referenceTasks'>, bounds?: ConversationBounds): Promise<ModelMessage[]> {
  const { messages, characters } = boundsOf(bounds)
  const history = await work.history(messages)
  const meant = new Set([...work.referenceTasks.map(({ id }) => id), ...namedArtifacts(work.message).map(({ taskId }) => taskId)])
  const tasks = new Set(history.map(({ taskId }) => taskId))
  const elsewhere = work.earlierArtifacts.filter(({ taskId }) => meant.has(taskId) && !tasks.has(taskId))
  const earlier = history.flatMap((message, index) => {
    const isLastOfTask = message.taskId !== undefined && history.findLastIndex(({ taskId }) => taskId === message.taskId) === index
    const artifacts = isLastOfTask ? work.earlierArtifacts.filter(({ taskId }) => taskId === message.taskId) : []
    return [...modelMessage(message), ...handedOver(artifacts)]
  })
  return [...newestWithin(characters, earlier), ...handedOver(elsewhere), ...modelMessage(work.message)]
}

/** A message as a model is told it; none for one that has nothing to tell. */
export function modelMessage(message: Message): ModelMessage[] {
  if (isAside(message)) return []
  return message.role === 'ROLE_USER' ? [{ role: 'user', content: filesAndText(message.parts) }] : [{ role: 'assistant', content: onlyText(message.parts) }]
}

/** The newest messages that hold no more text than this. */
export function newestWithin(characters: number, messages: readonly ModelMessage[]): ModelMessage[] {
  let left = characters
  const first = messages.findLastIndex(message => (left -= lengthOf(message)) < 0)
  return messages.slice(first + 1)
}

function lengthOf({ content }: ModelMessage): number {
  if (typeof content === 'string') return content.length
  return content.reduce((sum, part) => sum + ('text' in part ? part.text.length : 0), 0)
}

/** Artifacts as what the agent said, oldest first. */
function handedOver(artifacts: readonly EarlierArtifact[]): ModelMessage[] {
  return artifacts.toReversed().map(({ artifact }) => ({ role: 'assistant', content: onlyText(artifact.parts) }))
}
