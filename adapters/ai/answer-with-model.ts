import { isDeepStrictEqual } from 'node:util'
import type { FinishReason, InferGenerateOutput, ModelMessage } from 'ai'
import type { JsonValue } from '../../machines/protocol/codec/json.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { Part } from '../../machines/protocol/objects.ts'
import { type GeneratorArguments, artifact, data, type WorkResult } from '../../runtime/index.ts'
import type { WorkStepArguments } from '../../runtime/work-port.ts'
import {
  type AnswerArtifactOptions,
  type AnswerOptions,
  type AnyOutput,
  checkAnswerOptions,
  loadAi,
  type TextOutput
} from './answer-options.ts'
import { addTo, conversation, joinTextParts, MODEL_METADATA, sumUsage } from './conversation.ts'
import { AnswerStream, callModel, type ModelCall, type AnswerOutput } from './model-call.ts'
import { toolResults } from './tool-results.ts'
import { type HeldBack, shownTools } from './tools.ts'

const MAX_STEPS = 20

/** Options of `streamText` that only `ai` 7 has, and that tools get too. */
interface LaterOptions {
  readonly runtimeContext?: unknown
  readonly experimental_sandbox?: unknown
}

/** The answer of a model. Work can return it: the task completes, with the usage in its metadata. */
export interface ModelAnswer<Output = string> extends WorkResult {
  /** The text of the last call. */
  readonly text: string
  /** The typed output, if the options have one; else the text. */
  readonly output: Output
  readonly finishReason: FinishReason
  /** The messages to append to the prompt: the output of the model, and the results of tools. */
  readonly messages: readonly ModelMessage[]
}

/**
 * Has a model answer in a task. Its text streams as chunks of one artifact. Tools that need approval ask the client.
 * Each call of the model and of a tool is a step, so that its result is kept when the work runs again. Several answers
 * of one work have to run in sequence. Throws the SDK's error when the model cannot be called. Throws
 * InvalidAgentResponse when the model withholds its answer, ends with an error, or has no answer after `maxSteps`
 * calls.
 */
export async function answerWithModel<Output extends AnyOutput = TextOutput>(
  work: GeneratorArguments,
  options: AnswerOptions<Output>
): Promise<ModelAnswer<InferGenerateOutput<Output>>> {
  checkAnswerOptions(options)
  const {
    model,
    tools = {},
    output,
    maxSteps = MAX_STEPS,
    messages: givenMessages,
    history,
    artifact = {},
    showTools = true,
    showReasoning = false,
    toolApproval,
    toolsContext,
    experimental_context,
    ...passedOn
  } = options
  const ai = await loadAi()
  const prompt = givenMessages ?? (await conversation(work, history))
  const { runtimeContext, experimental_sandbox } = options as LaterOptions
  const own = { tools, toolApproval, toolsContext, runtimeContext }
  const held = new Map<string, HeldBack>()
  const shown = shownTools(ai, own, held)
  const contexts = {
    ...(toolsContext && { toolsContext }),
    ...(experimental_context !== undefined && { experimental_context })
  }
  const answer = artifact && !output ? new AnswerArtifact(work, artifact) : undefined
  const calls: ModelCall[] = []
  const messages: ModelMessage[] = []
  while (calls.length < maxSteps) {
    const before = [...prompt, ...messages]
    const request = {
      options: { ...passedOn, ...contexts, model, showReasoning, ...(output && { output }) },
      tools: shown,
      held,
      messages: before
    }
    const call = await work.step('model', async step => callModel(ai, step, request, await answer?.stream(step)))
    calls.push(call)
    answer?.add(call.said)
    messages.push(...call.messages)
    if (!call.goesOn) return { ...ended(call, calls, output && artifact), messages }
    const content = await toolResults(ai, work, call, {
      ...own,
      messages: before,
      options: { showTools, experimental_context, experimental_sandbox }
    })
    if (content.length > 0) messages.push({ role: 'tool', content })
  }
  throw new A2AError('InvalidAgentResponse', `The model gave no answer within ${maxSteps} calls.`)
}

function ended<Output extends AnyOutput>(
  { text, output = text, finishReason }: ModelCall,
  calls: readonly ModelCall[],
  artifact: AnswerOptions['artifact']
): Omit<ModelAnswer<InferGenerateOutput<Output>>, 'messages'> {
  if (finishReason === 'content-filter') throw new A2AError('InvalidAgentResponse', 'The model withheld its answer.')
  if (finishReason === 'error') throw new A2AError('InvalidAgentResponse', 'The model ended with an error.')
  const usage = sumUsage(calls.map(call => call.usage))
  return {
    text,
    finishReason,
    output: output as InferGenerateOutput<Output>,
    artifacts: [],
    ...(artifact && { artifact: { artifactId: 'answer', ...artifact, parts: [data(output as JsonValue)] } }),
    ...(finishReason === 'length' && { message: 'The answer is incomplete: the model reached its length limit.' }),
    ...(Object.keys(usage).length > 0 && { metadata: { [MODEL_METADATA]: { usage } } })
  }
}

/** Separates the texts of two calls. */
const BREAK = '\n\n'

/**
 * The artifact of an answer, over all calls of the model. A completed call has its text in its step, and does not emit
 * it again. After a restart, the artifact is appended to if the client's copy equals the text of the completed calls.
 * If the copy has more, from an interrupted call, the artifact is replaced.
 */
class AnswerArtifact {
  readonly #work: Pick<GeneratorArguments, 'readTask'>
  readonly #about: Required<AnswerArtifactOptions>
  /** The text of the completed calls. */
  readonly #completed: Part[] = []
  #chunks = 0
  /** The artifact on the task, compared with `#completed`; unknown before the first call of a run. */
  #there: 'nothing' | 'this' | 'another' | undefined

  constructor(
    work: Pick<GeneratorArguments, 'readTask'>,
    { artifactId = 'answer', name = artifactId }: AnswerArtifactOptions
  ) {
    this.#work = work
    this.#about = { artifactId, name }
  }

  /** Adds the output of a completed call, in this run or an earlier one. */
  add({ parts, chunks }: AnswerOutput): void {
    for (const part of parts) addTo(this.#completed, part)
    this.#chunks += chunks
  }

  /** Starts a call, whose output goes into the artifact. Call `add` when it is complete. */
  async stream({ emit, signal }: Pick<WorkStepArguments, 'emit' | 'signal'>): Promise<AnswerStream> {
    this.#there ??= await this.#onTask()
    const lead = this.#completed.length > 0 ? BREAK : ''
    return new AnswerStream({
      lead,
      chunksBefore: this.#chunks,
      emit: (parts, isLast) => this.#emitChunk(parts, isLast, emit),
      signal
    })
  }

  #emitChunk(parts: Part[], isLast: boolean, emit: WorkStepArguments['emit']): void {
    const append = this.#there === 'this'
    if (parts.length === 0 && !(isLast && this.#there === 'another')) return
    const content = append
      ? { artifactId: this.#about.artifactId, parts }
      : { ...this.#about, parts: this.#begun(parts) }
    emit(artifact(content, { append, lastChunk: isLast }))
    this.#there = 'this'
  }

  #begun(parts: readonly Part[]): Part[] {
    const all = joinTextParts([...this.#completed, ...parts])
    // An artifact cannot be removed, and needs at least one part.
    return all.length > 0 ? all : [{ text: '' }]
  }

  async #onTask(): Promise<'nothing' | 'this' | 'another'> {
    const { artifacts = [] } = await this.#work.readTask()
    const there = artifacts.find(({ artifactId }) => artifactId === this.#about.artifactId)
    if (!there) return 'nothing'
    return this.#completed.length > 0 && isDeepStrictEqual(joinTextParts(there.parts), this.#completed)
      ? 'this'
      : 'another'
  }
}
