import type { LanguageModel, ModelMessage, OutputInterface, streamText, ToolSet } from 'ai'
import { checkOptions, textSuchAs, type OptionKinds } from '../../../runtime/primitives/options.ts'
import { boundsOf, type ConversationBounds } from '../conversation.ts'

type Owned = 'model' | 'tools' | 'output' | 'prompt' | 'messages' | 'abortSignal' | 'stopWhen' | 'prepareStep' | 'onError' | 'onAbort' | 'onFinish' | 'experimental_output' | 'experimental_activeTools' | 'experimental_toolApprovalSecret' | '_internal'

/** What of `streamText` is passed on as it is: system, temperature, toolChoice, providerOptions, maxRetries, timeout, … */
export type CallOptions = Omit<Parameters<typeof streamText>[0], Owned>

/** The artifact in which an answer comes. */
export interface AnswerArtifactOptions {
  /** Default `answer`. A work that answers more than once gives each answer an id of its own. */
  readonly artifactId?: string
  /** Default `answer`. */
  readonly name?: string
}

/** How a model answers. Everything that `streamText` takes is passed on to it, except for what is taken care of here. */
export interface AnswerOptions<Output extends OutputInterface = OutputInterface<string, string, never>> extends CallOptions {
  /** A model of any provider, as in `openai('…')`. */
  readonly model: LanguageModel
  /**
   * What the model may call. A tool with `needsApproval` asks the client first. One without `execute` asks the client for
   * its result: with the `question` of its input, if it has one.
   */
  readonly tools?: ToolSet
  /** What the answer is to be, as in `Output.object({ schema })`. Then it comes as one data part, when it is whole. */
  readonly output?: Output
  /** How often the model may be called, tools between the calls. Without an answer by then the task fails. Default 20. */
  readonly maxSteps?: number
  /** What the model is told. Default: the conversation of the context up to the message that opened the task. */
  readonly messages?: readonly ModelMessage[]
  /** How much of the conversation the model is told. */
  readonly history?: ConversationBounds
  /** The artifact in which the answer comes, as it is made; `false` for none. */
  readonly artifact?: AnswerArtifactOptions | false
  /** Whether the client hears of each call of a tool, as progress; never of its input. Default true. */
  readonly showTools?: boolean
  /** Whether the client hears what the model thinks, as progress. Default false. */
  readonly showReasoning?: boolean
}

const ARTIFACT: OptionKinds<AnswerArtifactOptions> = { artifactId: textSuchAs("'answer'"), name: textSuchAs("'answer'") }

/** Throws TypeError or RangeError that says what to write instead. */
export function checkAnswerOptions(options: Pick<AnswerOptions, 'model' | 'maxSteps' | 'artifact' | 'history'>): void {
  const { model, maxSteps = 1, artifact, history } = (options as typeof options | undefined) ?? {}
  if (!model) throw new TypeError("A model is missing: modelWork({ model: openai('…') }), or a model of another provider of the AI SDK.")
  if (!Number.isInteger(maxSteps) || maxSteps < 1) throw new RangeError(`maxSteps has to be a whole number from 1, not ${String(maxSteps)}.`)
  if (artifact) checkOptions(artifact, ARTIFACT, 'artifact', "artifact: { name: 'answer' }")
  boundsOf(history)
}
