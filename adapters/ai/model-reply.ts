import type { LanguageModel } from 'ai'
import { A2AError } from '../../machines/protocol/errors.ts'
import { reply } from '../../runtime/authoring/words.ts'
import type { NegotiateFunction } from '../../runtime/negotiation/per-message.ts'
import { checkAnswerOptions, type CallOptions } from './answer/answer-options.ts'
import { boundsOf, modelMessage, newestWithin, type ConversationBounds } from './conversation.ts'
import { noLocalDownloads } from './model/no-local-downloads.ts'
import { checkAi, loadAi } from './model/peer.ts'

/** How a model replies. What `streamText` takes beside tools is passed on. */
export interface ReplyOptions extends Omit<CallOptions, 'toolChoice' | 'activeTools' | `on${string}` | `experimental_${string}` | 'includeRawChunks'>, Pick<CallOptions, 'experimental_download' | 'experimental_telemetry'> {
  /** A model of any provider, as in `openai('…')`. */
  readonly model: LanguageModel
  /** How much of the conversation the model is told. */
  readonly history?: ConversationBounds
}

/**
 * A negotiation that a model leads: it answers each message, with those before it in mind, and opens no task:
 * `defineAgent({ card, negotiate: modelReply({ model, system: '…' }) })`. Throws as `modelWork` does.
 */
export function modelReply({ model, history: bounds, ...passedOn }: ReplyOptions): NegotiateFunction {
  checkAi()
  checkAnswerOptions({ model })
  const { messages: limit, characters } = boundsOf(bounds)
  return async ({ message, history, signal }) => {
    const { generateText } = await loadAi()
    const earlier = newestWithin(characters, (await history(limit)).flatMap(modelMessage))
    const { text } = await generateText({ experimental_download: noLocalDownloads, ...passedOn, model, messages: [...earlier, ...modelMessage(message)], abortSignal: signal })
    if (text === '') throw new A2AError('InvalidAgentResponse', 'The model said nothing.')
    return reply(text)
  }
}
