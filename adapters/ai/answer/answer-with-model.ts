import type { FinishReason, InferGenerateOutput, ModelMessage } from 'ai'
import type { JsonValue } from '../../../machines/protocol/codec/json.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import { data, type WorkResult } from '../../../runtime/authoring/words.ts'
import type { WorkArguments } from '../../../runtime/authoring/work-arguments.ts'
import { conversation } from '../conversation.ts'
import { callModel, type ModelCall } from '../model/model-call.ts'
import { MODEL_METADATA, sumOf } from '../model/model-metadata.ts'
import { loadAi } from '../model/peer.ts'
import type { HeldBack } from '../tools/tool-approval.ts'
import { toolResults } from '../tools/tool-results.ts'
import { shownTools } from '../tools/tools.ts'
import { AnswerArtifact } from './answer-artifact.ts'
import { checkAnswerOptions, type AnswerOptions, type AnyOutput, type TextOutput } from './answer-options.ts'

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
  /** The messages to append to the prompt: what the model said, and the results of tools. */
  readonly messages: readonly ModelMessage[]
}

/**
 * Has a model answer in a task. Its text streams as chunks of one artifact. Tools that need approval ask the client. Each call of the model
 * and of a tool is a step, so that its result is kept when the work runs again. Several answers of one work have to run in sequence. Throws
 * the SDK's error when the model cannot be called. Throws InvalidAgentResponse when the model withholds its answer, ends with an error, or
 * has no answer after `maxSteps` calls.
 */
export async function answerWithModel<Output extends AnyOutput = TextOutput>(
  work: WorkArguments,
  options: AnswerOptions<Output>
): Promise<ModelAnswer<InferGenerateOutput<Output>>> {
  checkAnswerOptions(options)
  const {
    model,
    tools = {},
    output,
    maxSteps = MAX_STEPS,
    messages: told,
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
  const prompt = told ?? (await conversation(work, history))
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
  const usage = sumOf(calls.map(call => call.usage))
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
