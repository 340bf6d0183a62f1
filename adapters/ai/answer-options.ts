import type { LanguageModel, ModelMessage, Output, streamText, ToolSet } from 'ai'
import { checkOptions, type OptionKinds, textSuchAs } from '../../runtime/primitives/options.ts'
import { checkPackages, installable } from '../peers/installed-packages.ts'
import { withDefaultBounds, type ConversationBounds, type Ai } from './conversation.ts'
import type { ToolApproval } from './tools.ts'

/** An output of any type, as `Output.object({ schema })` gives it. */
export type AnyOutput = NonNullable<Parameters<typeof streamText>[0]['output']>

/** The output of an answer that is text. */
export type TextOutput = ReturnType<typeof Output.text>

/** Options that are set here, that have the same form with every major of the SDK, or that do not fit single calls. */
type Owned =
  | 'model'
  | 'tools'
  | 'output'
  | 'prompt'
  | 'messages'
  | 'abortSignal'
  | 'stopWhen'
  | 'prepareStep'
  | 'onError'
  | 'onAbort'
  | 'onFinish'
  | 'onEnd'
  | 'instructions'
  | 'toolApproval'
  | 'toolsContext'
  | 'experimental_context'
  | 'streamRetries'
  | 'toolCallConcurrency'
  | 'experimental_steering'
  | 'experimental_output'
  | 'experimental_activeTools'
  | 'experimental_toolApprovalSecret'
  | '_internal'

/** The options that are passed on to `streamText`: temperature, toolChoice, providerOptions, maxRetries, timeout, … */
export type ModelCallOptions = Omit<Parameters<typeof streamText>[0], Owned>

/** The text before the messages, which instructs the model. */
export interface Instructed {
  /** The instructions for the model, in place of `system`. */
  readonly instructions?: NonNullable<ModelCallOptions['system']>
}

/** Options with the instructions by both names: `ai` 7 reads `instructions`, `ai` 6 only `system`. */
export function withInstructions<Options extends Instructed & Pick<ModelCallOptions, 'system'>>(
  options: Options
): Options {
  const { instructions = options.system } = options
  return instructions === undefined ? options : { ...options, instructions, system: instructions }
}

/** The artifact of an answer. */
export interface AnswerArtifactOptions {
  /** Default `answer`. Work with several answers needs an id for each. */
  readonly artifactId?: string
  /** Default `answer`. */
  readonly name?: string
}

/** The options of an answer. Options of `streamText` are passed on to it, except those that are set here. */
export interface AnswerOptions<Output extends AnyOutput = TextOutput> extends ModelCallOptions, Instructed {
  /** A model of any provider, as in `openai('…')`. */
  readonly model: LanguageModel
  /**
   * The tools of the model. A tool with `needsApproval` asks the client first. One without `execute` asks the client
   * for its result, with the `question` of its input, if any.
   */
  readonly tools?: ToolSet
  /** Which calls of tools need approval, run or are denied. It overrides their `needsApproval`. */
  readonly toolApproval?: ToolApproval
  /** The `context` of each tool by its name, as its `execute` gets it. */
  readonly toolsContext?: Readonly<Record<string, unknown>>
  /** The `experimental_context` that each `execute` gets, as in `ai` 6. */
  readonly experimental_context?: unknown
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

const ARTIFACT: OptionKinds<AnswerArtifactOptions> = {
  artifactId: textSuchAs("'answer'"),
  name: textSuchAs("'answer'")
}

/** Throws TypeError or RangeError for invalid options. */
export function checkAnswerOptions(options: Pick<AnswerOptions, 'model' | 'maxSteps' | 'artifact' | 'history'>): void {
  const { model, maxSteps = 1, artifact, history } = (options as typeof options | undefined) ?? {}
  if (!model)
    throw new TypeError(
      "A model is missing: modelWork({ model: openai('…') }), or a model of another provider of the AI SDK."
    )
  if (!Number.isInteger(maxSteps) || maxSteps < 1)
    throw new RangeError(`maxSteps has to be a whole number from 1, not ${String(maxSteps)}.`)
  if (artifact) checkOptions(artifact, ARTIFACT, 'artifact', "artifact: { name: 'answer' }")
  withDefaultBounds(history)
}

/** Throws TypeError with the install command if the AI SDK is not installed. */
export function checkAi(resolve: (name: string) => unknown = name => import.meta.resolve(name)): void {
  try {
    resolve('ai')
  } catch (cause) {
    throw new TypeError(`taskchart/ai calls models with the AI SDK. Install it: npm install ${installable('ai')}`, {
      cause
    })
  }
}

/** Loads the AI SDK. Throws as {@link checkAi} does. */
export async function loadAi(): Promise<Ai> {
  checkAi()
  checkPackages(['ai'])
  return import('ai')
}

/** Has the model, not this process, fetch files by URL: a client could name a URL that only this process can reach. */
export const noLocalDownloads: NonNullable<ModelCallOptions['experimental_download']> = async files =>
  files.map(() => null)
