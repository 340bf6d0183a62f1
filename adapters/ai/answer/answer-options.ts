import type { LanguageModel, ModelMessage, OutputInterface, streamText, ToolSet } from 'ai'
import { checkOptions, textSuchAs, type OptionKinds } from '../../../runtime/primitives/options.ts'
import { boundsOf, type ConversationBounds } from '../conversation.ts'

type Owned = 'model' | 'tools' | 'output' | 'prompt' | 'messages' | 'abortSignal' | 'stopWhen' | 'prepareStep' | 'onError' | 'onAbort' | 'onFinish' | 'experimental_output' | 'experimental_activeTools' | 'experimental_toolApprovalSecret' | '_internal'

/** The options that are passed on to `streamText`: system, temperature, toolChoice, providerOptions, maxRetries, timeout, … */
export type CallOptions = Omit<Parameters<typeof streamText>[0], Owned>

/** The artifact of an answer. */
export interface AnswerArtifactOptions {
  /** Default `answer`. Work with several answers needs an id for each. */
  readonly artifactId?: string
  /** Default `answer`. */
  readonly name?: string
}

/** The options of an answer. Options of `streamText` are passed on to it, except those that are set here. */
export interface AnswerOptions<Output extends OutputInterface = OutputInterface<string, string, never>> extends CallOptions {
  /** A model of any provider, as in `openai('…')`. */
  readonly model: LanguageModel
  /**
   * The tools of the model. A tool with `needsApproval` asks the client first. One without `execute` asks the client for its result, with
   * the `question` of its input, if any.
   */
  readonly tools?: ToolSet
  /** The type of the output, as in `Output.object({ schema })`. It comes as one data part when it is complete. */
  readonly output?: Output
  /** The most calls of the model, with tools between them. The task fails without an answer by then. Default 20. */
  readonly maxSteps?: number
  /** The prompt. Default: the messages of the context, up to the one that opened the task. */
  readonly messages?: readonly ModelMessage[]
  /** How much of the context goes into the prompt. */
  readonly history?: ConversationBounds
  /** The artifact that streams the answer; `false` for none. */
  readonly artifact?: AnswerArtifactOptions | false
  /** Whether calls of tools are reported as progress, without their input. Default true. */
  readonly showTools?: boolean
  /** Whether the model's reasoning is reported as progress. Default false. */
  readonly showReasoning?: boolean
}

const ARTIFACT: OptionKinds<AnswerArtifactOptions> = { artifactId: textSuchAs("'answer'"), name: textSuchAs("'answer'") }

/** Throws TypeError or RangeError for invalid options. */
export function checkAnswerOptions(options: Pick<AnswerOptions, 'model' | 'maxSteps' | 'artifact' | 'history'>): void {
  const { model, maxSteps = 1, artifact, history } = (options as typeof options | undefined) ?? {}
  if (!model) throw new TypeError("A model is missing: modelWork({ model: openai('…') }), or a model of another provider of the AI SDK.")
  if (!Number.isInteger(maxSteps) || maxSteps < 1) throw new RangeError(`maxSteps has to be a whole number from 1, not ${String(maxSteps)}.`)
  if (artifact) checkOptions(artifact, ARTIFACT, 'artifact', "artifact: { name: 'answer' }")
  boundsOf(history)
}
