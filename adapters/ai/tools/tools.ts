import type { ToolExecutionOptions, ToolModelMessage, ToolSet } from 'ai'
import type { Ai } from '../model/peer.ts'

/** A tool of the AI SDK. */
export type AiTool = ToolSet[string]

/** What a tool gave, as a model is told. */
export type ToolOutput = Extract<ToolModelMessage['content'][number], { type: 'tool-result' }>['output']

type ApprovalOptions = Omit<ToolExecutionOptions, 'abortSignal'>

/** A call of a tool as the model made it: its input is JSON, as a schema of the tool takes it. */
export interface ToolCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
}

/**
 * The tools as the SDK is to have them. It validates their inputs and finds out whether they need approval, but executes
 * none, and leaves inputs as the model wrote them: what a schema makes of them may be no JSON, which could not be kept.
 */
export function shownTools(ai: Ai, tools: ToolSet): ToolSet {
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, shown(ai, tool)]))
}

function shown(ai: Ai, tool: AiTool): AiTool {
  const { execute: _, needsApproval, ...others } = tool
  const schema = ai.asSchema<unknown>(tool.inputSchema)
  const inputSchema = ai.jsonSchema(() => schema.jsonSchema, {
    validate: async value => {
      const result = await schema.validate?.(value)
      return result?.success === false ? result : { success: true, value }
    }
  })
  const isNeeded = typeof needsApproval === 'function' ? async (input: unknown, options: ApprovalOptions) => needsApproval(await inputOf(ai, tool, input), options) : needsApproval
  return { ...others, inputSchema, ...(isNeeded !== undefined && { needsApproval: isNeeded }) }
}

/** An input as the tool's schema gives it. Throws if the schema does not take it. */
async function inputOf(ai: Ai, tool: AiTool, value: unknown): Promise<unknown> {
  const result = await ai.asSchema<unknown>(tool.inputSchema).validate?.(value)
  if (result?.success === false) throw result.error
  return result ? result.value : value
}

/** Executes a tool. What it throws is a result, too: the model is told, unless the work is over. */
export async function executed(ai: Ai, tool: AiTool, call: ToolCall, options: ToolExecutionOptions): Promise<ToolOutput> {
  try {
    const input = await inputOf(ai, tool, call.input)
    const output: unknown = await lastOf(tool.execute?.(input, options))
    return await outputOf(tool, call, output)
  } catch (error) {
    options.abortSignal?.throwIfAborted()
    return { type: 'error-text', value: error instanceof Error ? error.message : String(error) }
  }
}

/** What a tool gave, as its own `toModelOutput` or else JSON says it to the model. */
export async function outputOf(tool: AiTool, { toolCallId, input }: ToolCall, output: unknown): Promise<ToolOutput> {
  if (tool.toModelOutput) return tool.toModelOutput({ toolCallId, input, output })
  return typeof output === 'string' ? { type: 'text', value: output } : { type: 'json', value: (output ?? null) as never }
}

/** The result of a tool, or the last one of a tool that gives preliminary ones. */
async function lastOf(given: unknown): Promise<unknown> {
  const awaited: unknown = await given
  if (typeof awaited !== 'object' || awaited === null || !(Symbol.asyncIterator in awaited)) return awaited
  let last: unknown
  for await (const each of awaited as AsyncIterable<unknown>) last = each
  return last
}
