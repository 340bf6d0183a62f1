import type { LanguageModel } from 'ai'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { type NegotiateFunction, type WorkFunction, reply } from '../../runtime/index.ts'
import { checkArgument } from '../../runtime/primitives/options.ts'
import {
  type AnswerOptions,
  type AnyOutput,
  type ModelCallOptions,
  checkAi,
  checkAnswerOptions,
  withInstructions,
  type Instructed,
  loadAi,
  noLocalDownloads,
  type TextOutput
} from './answer-options.ts'
import { answerWithModel } from './answer-with-model.ts'
import { withDefaultBounds, modelMessage, newestWithin, type ConversationBounds } from './conversation.ts'

/**
 * Work by a model, as in {@link answerWithModel}: `defineAgent({ card, work: modelWork({ model, instructions: '…' })
 * })`. Throws TypeError or RangeError for invalid options, and if the AI SDK is not installed.
 */
export function modelWork<Output extends AnyOutput = TextOutput>(options: AnswerOptions<Output>): WorkFunction {
  checkAi()
  checkAnswerOptions(options)
  return work => answerWithModel(work, options)
}

/** The options of `modelReply`. Options of `streamText` other than tools are passed on. */
export interface ReplyOptions
  extends
    Instructed,
    Omit<
      ModelCallOptions,
      | 'toolChoice'
      | 'activeTools'
      | 'toolOrder'
      | 'repairToolCall'
      | `on${string}`
      | `experimental_${string}`
      | 'includeRawChunks'
    >,
    Pick<ModelCallOptions, 'experimental_download' | 'experimental_telemetry'> {
  /** A model of any provider, as in `openai('…')`. */
  readonly model: LanguageModel
  /** How much of the context goes into the prompt. */
  readonly history?: ConversationBounds
}

/**
 * A negotiation by a model. It replies to each message, with the earlier ones in its prompt, and opens no task:
 * `defineAgent({ card, negotiate: modelReply({ model, instructions: '…' }) })`. Throws as `modelWork` does.
 */
export function modelReply(options: ReplyOptions): NegotiateFunction {
  checkArgument(options, [isObject, 'options as an object'], "modelReply({ model: openai('…') })")
  const { model, history: bounds, ...passedOn } = options
  checkAi()
  checkAnswerOptions({ model })
  const { messages: limit, characters } = withDefaultBounds(bounds)
  return async ({ message, history, signal }) => {
    const { generateText } = await loadAi()
    const earlier = newestWithin(characters, (await history(limit)).flatMap(modelMessage))
    const { text } = await generateText({
      experimental_download: noLocalDownloads,
      ...withInstructions(passedOn),
      model,
      messages: [...earlier, ...modelMessage(message)],
      abortSignal: signal
    })
    if (text === '') throw new A2AError('InvalidAgentResponse', 'The model said nothing.')
    return reply(text)
  }
}
