import type { FinishReason, ModelMessage, StepResult, ToolSet } from 'ai'
import type { Part } from '../../machines/protocol/objects.ts'
import { file, progress } from '../../runtime/index.ts'
import type { WorkStepArguments } from '../../runtime/work-port.ts'
import {
  type AnswerOptions,
  type AnyOutput,
  type ModelCallOptions,
  withInstructions,
  noLocalDownloads
} from './answer-options.ts'
import { addTo, progressLine, isText, sumUsage, type Usage, type Ai } from './conversation.ts'
import type { HeldBack, ToolApprovalRequest, ToolCall } from './tools.ts'

/** A call of a model. */
interface ModelRequest {
  readonly options: ModelCallOptions &
    Pick<AnswerOptions<AnyOutput>, 'model' | 'output' | 'showReasoning' | 'instructions'>
  /** As the SDK gets them: without `execute`. */
  readonly tools: ToolSet
  /** The calls of tools that may not run at once, by id. The tools add to it. */
  readonly held: ReadonlyMap<string, HeldBack>
  readonly messages: ModelMessage[]
}

/** The stored result of one call of a model, as JSON. */
export interface ModelCall {
  /** The messages to append to the prompt. */
  readonly messages: ModelMessage[]
  readonly text: string
  readonly said: AnswerOutput
  /** The tool calls that the agent executes; the provider of the model executes the others. */
  readonly calls: ToolCall[]
  readonly approvals: ToolApprovalRequest[]
  /** Whether the model has to be called again, since it called tools. */
  readonly goesOn: boolean
  readonly finishReason: FinishReason
  readonly usage: Usage
  /** The typed output, if the options have one and this is the last call. */
  readonly output?: unknown
}

/** Calls a model once, and writes its output to `stream`. Throws the SDK's error, after the SDK's retries. */
export async function callModel(
  ai: Ai,
  { emit, signal }: WorkStepArguments,
  { options, tools, held, messages }: ModelRequest,
  stream: AnswerStream | undefined
): Promise<ModelCall> {
  let made: StepResult<ToolSet> | undefined
  const onStepFinish = (step: StepResult<ToolSet>) => {
    made = step
    return options.onStepFinish?.(step)
  }
  // An empty `onError`: the SDK's default writes errors to the console. They also come in the stream.
  const result = ai.streamText({
    experimental_download: noLocalDownloads,
    ...withInstructions(options),
    tools,
    messages,
    abortSignal: signal,
    onStepFinish,
    onError() {}
  })
  try {
    await listen(
      result,
      stream,
      options.showReasoning ? thought => emit(progress(progressLine(thought, { reasoning: true }))) : undefined
    )
    // Not `await result.steps` at once, which makes the SDK read the whole stream again. Without a step, it rejects
    // with the reason.
    const [step] = made ? [made] : await result.steps
    /* c8 ignore next -- the SDK rejects instead */
    if (!step) throw new TypeError('The AI SDK gave no step.')
    const call = callOf(step, held)
    const output: unknown = options.output && !call.goesOn ? await result.output : undefined
    stream?.end(!call.goesOn)
    return { ...call, said: stream?.output ?? { parts: [], chunks: 0 }, ...(output !== undefined && { output }) }
  } finally {
    stream?.stop()
  }
}

async function listen(
  { fullStream }: Pick<ReturnType<Ai['streamText']>, 'fullStream'>,
  stream: AnswerStream | undefined,
  think: ((thought: string) => void) | undefined
): Promise<void> {
  const thoughts = new Map<string, string>()
  for await (const part of fullStream) {
    if (part.type === 'error') throw part.error
    if (part.type === 'text-delta') stream?.add({ text: part.text })
    if (part.type === 'file') stream?.add(file(part.file.uint8Array, { mediaType: part.file.mediaType }))
    if (part.type === 'reasoning-delta') thoughts.set(part.id, (thoughts.get(part.id) ?? '') + part.text)
    if (part.type === 'reasoning-end' && thoughts.get(part.id)) think?.(thoughts.get(part.id) as string)
  }
}

function callOf(
  { response, text, content, toolCalls, finishReason, usage }: StepResult<ToolSet>,
  held: ReadonlyMap<string, HeldBack>
): Omit<ModelCall, 'said' | 'output'> {
  // A truncated message may have truncated calls.
  const isWhole = finishReason === 'stop' || finishReason === 'tool-calls'
  const own = isWhole ? toolCalls.filter(({ providerExecuted }) => !providerExecuted) : []
  const approvals = isWhole
    ? content.flatMap(part =>
        part.type === 'tool-approval-request'
          ? [
              {
                approvalId: part.approvalId,
                call: plainCall(part.toolCall),
                isProviders: part.toolCall.providerExecuted === true,
                ...held.get(part.toolCall.toolCallId)
              }
            ]
          : []
      )
    : []
  // The messages already contain the error of an invalid call.
  const calls = own.filter(call => !('invalid' in call && call.invalid)).map(plainCall)
  return {
    messages: response.messages,
    text,
    calls,
    approvals,
    goesOn: own.length + approvals.length > 0,
    finishReason,
    usage: sumUsage([usage])
  }
}

function plainCall({ toolCallId, toolName, input }: ToolCall): ToolCall {
  return { toolCallId, toolName, input }
}

/**
 * After this many chunks of an answer the minimum length of a chunk doubles, so that a long answer has not too many.
 */
const CHUNKS_OF_A_LENGTH = 256

/** The output of one call, as its step stores it. */
export interface AnswerOutput {
  readonly parts: readonly Part[]
  readonly chunks: number
}

/** The position of a call in an answer. */
interface PlaceInAnswer {
  /** The separator before the text of this call. */
  readonly lead: string
  /** The number of chunks of the answer so far. */
  readonly chunksBefore: number
  /** Emits a chunk. `isLast`: it ends the answer. */
  readonly emit: (parts: Part[], isLast: boolean) => void
  readonly signal: AbortSignal
}

/**
 * Splits the output of one call into chunks: all that comes within one turn of the event loop is one chunk. The newest
 * part is held back until the next one comes, so that the last chunk can be marked.
 */
export class AnswerStream {
  readonly #place: PlaceInAnswer
  readonly #parts: Part[] = []
  #chunks = 0
  #ready: Part[] = []
  #held: Part | undefined
  #flush: NodeJS.Immediate | undefined

  constructor(place: PlaceInAnswer) {
    this.#place = place
  }

  get output(): AnswerOutput {
    return { parts: this.#parts, chunks: this.#chunks }
  }

  add(given: Part): void {
    const part = this.#parts.length === 0 && isText(given) ? { text: this.#place.lead + given.text } : given
    addTo(this.#parts, part)
    if (this.#held) addTo(this.#ready, this.#held)
    this.#held = part
    this.#flush ??= setImmediate(() => this.#emitReady())
  }

  /** Emits the rest. */
  end(isLast: boolean): void {
    if (this.#held) addTo(this.#ready, this.#held)
    this.#emit(isLast)
  }

  /** Emits nothing more. */
  stop(): void {
    clearImmediate(this.#flush)
  }

  #emitReady(): void {
    this.#flush = undefined
    const shortest = 2 ** Math.floor((this.#place.chunksBefore + this.#chunks) / CHUNKS_OF_A_LENGTH)
    if (!this.#place.signal.aborted && lengthOf(this.#ready) >= shortest) this.#emit(false)
  }

  #emit(isLast: boolean): void {
    this.#chunks += 1
    this.#place.emit(this.#ready, isLast)
    this.#ready = []
  }
}

/** The length in characters. A file counts as long enough for a chunk. */
function lengthOf(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + (isText(part) ? part.text.length : Infinity), 0)
}
