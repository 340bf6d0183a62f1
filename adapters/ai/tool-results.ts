import type { ModelMessage, ToolModelMessage } from 'ai'
import { type GeneratorArguments, progress } from '../../runtime/index.ts'
import { toolsOf } from '../../runtime/work-port.ts'
import type { AnswerOptions } from './answer-options.ts'
import { progressLine, type Ai } from './conversation.ts'
import type { ModelCall } from './model-call.ts'
import {
  approval,
  toolContextOf,
  executeTool,
  outputOf,
  toolQuestion,
  type AiTool,
  type ExecuteOptions,
  type OwnTools,
  type ToolCall,
  type ToolOutput
} from './tools.ts'

type ToolContent = ToolModelMessage['content']

/** The tools of an answer, and what they are called with. */
export interface ToolSurroundings extends OwnTools {
  /** The prompt of the call that called them. */
  readonly messages: ModelMessage[]
  readonly options: Pick<AnswerOptions, 'showTools' | 'experimental_context'> & {
    readonly experimental_sandbox?: unknown
  }
}

/**
 * Executes the calls of a model, and gives their results for the next prompt. Calls that need no client run first, in
 * parallel. Then the client decides about the others, one by one. Then the approved ones run. Each call is a step.
 */
export async function toolResults(
  ai: Ai,
  work: GeneratorArguments,
  { calls, approvals }: ModelCall,
  surroundings: ToolSurroundings
): Promise<ToolContent> {
  const {
    tools,
    messages,
    options: { showTools, experimental_context, experimental_sandbox }
  } = surroundings
  const client = toolsOf(work)
  const toolOf = ({ toolName }: ToolCall): AiTool | undefined =>
    Object.hasOwn(tools, toolName) ? tools[toolName] : undefined
  const isForClient = (call: ToolCall) => toolOf(call)?.execute === undefined
  const run = async (call: ToolCall) => {
    const { toolName } = call
    const tool = toolOf(call) as AiTool
    if (showTools) client.emit(progress(progressLine(`Calls ${tool.title ?? toolName}.`, { tool: toolName })))
    const output = await work.step(`tool ${toolName}`, async ({ idempotencyKey, signal }) => {
      const context = await toolContextOf(ai, surroundings, toolName)
      // Call ids from models need not be unique. The key is unique, and stays the same in every attempt.
      const options: object = {
        toolCallId: idempotencyKey,
        messages,
        abortSignal: signal,
        context,
        experimental_context,
        experimental_sandbox
      }
      return executeTool(ai, tool, call, options as ExecuteOptions)
    })
    return resultOf(call, output)
  }
  const ask = async (call: ToolCall) => {
    const tool = toolOf(call)
    // The SDK found a tool by an inherited name, such as `constructor`.
    if (!tool) return resultOf(call, { type: 'error-text', value: `There is no tool ${call.toolName}.` })
    return resultOf(call, await outputOf(tool, call, await client.ask(toolQuestion(call))))
  }
  const waiting = new Set(approvals.map(({ call }) => call.toolCallId))
  const free = calls.filter(({ toolCallId }) => !waiting.has(toolCallId))
  const content: ToolContent = await Promise.all(free.filter(call => !isForClient(call)).map(run))
  const approved = free.filter(isForClient)
  for (const request of approvals) {
    const { isDenied, reason } = request
    const decision = isDenied
      ? { approved: false, ...(reason !== undefined && { reason }) }
      : await client.ask(approval(request))
    if (request.isProviders)
      content.push({
        type: 'tool-approval-response',
        approvalId: request.approvalId,
        providerExecuted: true,
        ...decision
      })
    else if (decision.approved) approved.push(request.call)
    else
      content.push(
        resultOf(request.call, {
          type: 'execution-denied',
          ...(decision.reason !== undefined && { reason: decision.reason })
        })
      )
  }
  for (const call of approved.filter(isForClient)) content.push(await ask(call))
  return content.concat(await Promise.all(approved.filter(call => !isForClient(call)).map(run)))
}

function resultOf({ toolCallId, toolName }: ToolCall, output: ToolOutput): ToolContent[number] {
  return { type: 'tool-result', toolCallId, toolName, output }
}
