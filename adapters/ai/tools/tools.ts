import type { ModelMessage, ToolModelMessage, ToolSet } from 'ai'
import type { Ai } from '../model/peer.ts'
import { heldBack, type HeldBack, type ToolApproval, type ToolApprovalStatus } from './tool-approval.ts'

/** A tool of the AI SDK. */
export type AiTool = ToolSet[string]

/** The second argument of a tool's `execute`. */
export type ExecuteOptions = Parameters<NonNullable<AiTool['execute']>>[1]

/** The result of a tool, as the model gets it. */
export type ToolOutput = Extract<ToolModelMessage['content'][number], { type: 'tool-result' }>['output']

/** A call of a tool by the model. The input is JSON that the tool's schema accepts. */
export interface ToolCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
}

/** The tools of an answer, what decides about their calls, and their contexts. */
export interface OwnTools {
  readonly tools: ToolSet
  readonly toolApproval?: ToolApproval | undefined
  readonly toolsContext?: Readonly<Record<string, unknown>> | undefined
  readonly runtimeContext?: unknown
}

/** The second argument of `needsApproval`. */
interface Asked {
  readonly toolCallId: string
  readonly messages: ModelMessage[]
}

/**
 * The tools as the SDK gets them. It validates their inputs and asks whether they need approval, but executes none. Inputs stay as the
 * model wrote them, since a schema may transform them into something that is not JSON and could not be stored. `held` gets the calls that
 * may not run at once.
 */
export function shownTools(ai: Ai, own: OwnTools, held: Map<string, HeldBack>): ToolSet {
  return Object.fromEntries(Object.entries(own.tools).map(([name, tool]) => [name, shown(ai, own, name, tool, held)]))
}

function shown(ai: Ai, own: OwnTools, name: string, tool: AiTool, held: Map<string, HeldBack>): AiTool {
  const { execute: _, needsApproval, ...others } = tool
  const schema = ai.asSchema<unknown>(tool.inputSchema)
  const inputSchema = ai.jsonSchema(() => schema.jsonSchema, {
    validate: async value => {
      const result = await schema.validate?.(value)
      return result?.success === false ? result : { success: true, value }
    }
  })
  const isNeeded = async (input: unknown, asked: Asked) => {
    const decision = heldBack(await statusOf(ai, own, name, tool, input, asked))
    if (decision) held.set(asked.toolCallId, decision)
    return decision !== undefined
  }
  return {
    ...others,
    inputSchema,
    ...((needsApproval !== undefined || own.toolApproval !== undefined) && { needsApproval: isNeeded })
  }
}

/** Whether a call may run, by the option `toolApproval`, else by the tool. */
async function statusOf(
  ai: Ai,
  own: OwnTools,
  name: string,
  tool: AiTool,
  value: unknown,
  asked: Asked
): Promise<ToolApprovalStatus> {
  const { tools, toolApproval, toolsContext, runtimeContext } = own
  const { toolCallId, messages } = asked
  const input = await inputOf(ai, tool, value)
  if (typeof toolApproval === 'function')
    return toolApproval({
      toolCall: { toolCallId, toolName: name, input },
      tools,
      toolsContext,
      runtimeContext,
      messages
    })
  const decide = toolApproval && Object.hasOwn(toolApproval, name) ? toolApproval[name] : undefined
  if (typeof decide === 'function')
    return decide(input, { toolCallId, messages, toolContext: await contextOf(ai, own, name), runtimeContext })
  if (decide !== undefined) return decide
  const { needsApproval } = tool
  if (typeof needsApproval !== 'function') return needsApproval ? 'user-approval' : undefined
  const isNeeded = await needsApproval(input, Object.assign(asked, { context: await contextOf(ai, own, name) }))
  return isNeeded ? 'user-approval' : undefined
}

/** The input after the tool's schema. Throws if the schema rejects it. */
async function inputOf(ai: Ai, tool: AiTool, value: unknown): Promise<unknown> {
  return acceptedBy(ai, tool.inputSchema, value)
}

/** The context of a tool, after its `contextSchema`. Throws if that rejects it. */
export async function contextOf(ai: Ai, { tools, toolsContext }: OwnTools, name: string): Promise<unknown> {
  const context = toolsContext && Object.hasOwn(toolsContext, name) ? toolsContext[name] : undefined
  const { contextSchema } = tools[name] as { readonly contextSchema?: AiTool['inputSchema'] }
  return contextSchema ? acceptedBy(ai, contextSchema, context) : context
}

async function acceptedBy(ai: Ai, schema: AiTool['inputSchema'], value: unknown): Promise<unknown> {
  const result = await ai.asSchema<unknown>(schema).validate?.(value)
  if (result?.success === false) throw result.error
  return result ? result.value : value
}

/** Executes a tool. Its error becomes a result for the model, unless the work has ended. */
export async function executed(ai: Ai, tool: AiTool, call: ToolCall, options: ExecuteOptions): Promise<ToolOutput> {
  try {
    const input = await inputOf(ai, tool, call.input)
    const output: unknown = await lastOf(tool.execute?.(input, options))
    return await outputOf(tool, call, output)
  } catch (error) {
    options.abortSignal?.throwIfAborted()
    return { type: 'error-text', value: error instanceof Error ? error.message : String(error) }
  }
}

/** The result of a tool for the model: by its `toModelOutput`, else as text or JSON. */
export async function outputOf(tool: AiTool, { toolCallId, input }: ToolCall, output: unknown): Promise<ToolOutput> {
  if (tool.toModelOutput) return tool.toModelOutput({ toolCallId, input, output })
  return typeof output === 'string'
    ? { type: 'text', value: output }
    : { type: 'json', value: (output ?? null) as never }
}

/** The result of a tool; the last one of a tool with preliminary results. */
async function lastOf(given: unknown): Promise<unknown> {
  const awaited: unknown = await given
  if (typeof awaited !== 'object' || awaited === null || !(Symbol.asyncIterator in awaited)) return awaited
  let last: unknown
  for await (const each of awaited as AsyncIterable<unknown>) last = each
  return last
}
