import type { FinishReason, ModelMessage, OutputInterface, StepResult, StreamTextResult, ToolSet } from 'ai'
import { file, progress } from '../../../runtime/authoring/words.ts'
import type { WorkStepArguments } from '../../../runtime/authoring/work-arguments.ts'
import type { AnswerOptions, CallOptions } from '../answer/answer-options.ts'
import type { AnswerStream, SaidOfAnswer } from '../answer/answer-stream.ts'
import type { ToolApprovalRequest } from '../tools/tool-questions.ts'
import type { ToolCall } from '../tools/tools.ts'
import { aside } from './model-metadata.ts'
import { noLocalDownloads } from './no-local-downloads.ts'
import type { Ai } from './peer.ts'
import { sumOf, type Usage } from './usage.ts'

/** What a model is called with. */
export interface ModelRequest {
  readonly options: CallOptions & Pick<AnswerOptions<OutputInterface>, 'model' | 'output' | 'showReasoning'>
  /** As the SDK is to have them. */
  readonly tools: ToolSet
  readonly messages: ModelMessage[]
}

/** What is kept of one call of a model: a JSON value. */
export interface ModelCall {
  /** What it adds to the conversation. */
  readonly messages: ModelMessage[]
  readonly text: string
  readonly said: SaidOfAnswer
  /** The tools to be called that the provider of the model does not call itself. */
  readonly calls: ToolCall[]
  readonly approvals: ToolApprovalRequest[]
  /** Whether the model is to be called again, for it has called tools. */
  readonly goesOn: boolean
  readonly finishReason: FinishReason
  readonly usage: Usage
  /** The typed output, if it was wanted and this is the last call. */
  readonly output?: unknown
}

/** Calls a model once, and has it say into `stream` what it says. Throws what the SDK finds wrong, after its retries. */
export async function callModel(ai: Ai, { emit, signal }: WorkStepArguments, { options, tools, messages }: ModelRequest, stream: AnswerStream | undefined): Promise<ModelCall> {
  let made: StepResult<ToolSet> | undefined
  const onStepFinish = (step: StepResult<ToolSet>) => {
    made = step
    return options.onStepFinish?.(step)
  }
  // Without a callback of ours the SDK writes errors to the console; they come with the stream, too.
  const result = ai.streamText<ToolSet, OutputInterface>({ experimental_download: noLocalDownloads, ...options, tools, messages, abortSignal: signal, onStepFinish, onError() {} })
  try {
    await listen(result, stream, options.showReasoning ? thought => emit(progress(aside(thought, { reasoning: true }))) : undefined)
    // The SDK knows why there is none. It is not asked otherwise, for to answer it reads all of the stream again.
    const [step] = made ? [made] : await result.steps
    /* c8 ignore next -- it says so by an error */
    if (!step) throw new TypeError('The AI SDK gave no step.')
    const call = callOf(step)
    const output: unknown = options.output && !call.goesOn ? await result.output : undefined
    stream?.end(!call.goesOn)
    return { ...call, said: stream?.said ?? { parts: [], chunks: 0 }, ...(output !== undefined && { output }) }
  } finally {
    stream?.stop()
  }
}

async function listen({ fullStream }: StreamTextResult<ToolSet, OutputInterface>, stream: AnswerStream | undefined, think: ((thought: string) => void) | undefined): Promise<void> {
  const thoughts = new Map<string, string>()
  for await (const part of fullStream) {
    if (part.type === 'error') throw part.error
    if (part.type === 'text-delta') stream?.add({ text: part.text })
    if (part.type === 'file') stream?.add(file(part.file.uint8Array, { mediaType: part.file.mediaType }))
    if (part.type === 'reasoning-delta') thoughts.set(part.id, (thoughts.get(part.id) ?? '') + part.text)
    if (part.type === 'reasoning-end' && thoughts.get(part.id)) think?.(thoughts.get(part.id) as string)
  }
}

function callOf({ response, text, content, toolCalls, finishReason, usage }: StepResult<ToolSet>): Omit<ModelCall, 'said' | 'output'> {
  // A call in a message that was cut off may be cut off, too.
  const isWhole = finishReason === 'stop' || finishReason === 'tool-calls'
  const ours = isWhole ? toolCalls.filter(({ providerExecuted }) => !providerExecuted) : []
  const approvals = isWhole ? content.flatMap(part => (part.type === 'tool-approval-request' ? [{ approvalId: part.approvalId, call: plainCall(part.toolCall), isProviders: part.toolCall.providerExecuted === true }] : [])) : []
  // What is wrong with an invalid one stands in the messages.
  const calls = ours.filter(call => !('invalid' in call && call.invalid)).map(plainCall)
  return { messages: response.messages, text, calls, approvals, goesOn: ours.length + approvals.length > 0, finishReason, usage: sumOf([usage]) }
}

function plainCall({ toolCallId, toolName, input }: ToolCall): ToolCall {
  return { toolCallId, toolName, input }
}
