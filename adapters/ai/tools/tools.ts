import type { ToolExecutionOptions, ToolModelMessage, ToolSet } from 'ai'
import type { Ai } from '../model/peer.ts'

/** A tool of the AI SDK. */
export type AiTool = ToolSet[string]

/** The result of a tool, as the model gets it. */
export type ToolOutput = Extract<ToolModelMessage['content'][number], { type: 'tool-result' }>['output']

type ApprovalOptions = Omit<ToolExecutionOptions, 'abortSignal'>

/** A call of a tool by the model. The input is JSON that the tool's schema accepts. */
export interface ToolCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
}

/**
 * The tools as the SDK gets them. It validates their inputs and decides whether they need approval, but executes none. Inputs stay as the
 * model wrote them, since a schema may transform them into something that is not JSON and could not be stored.
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

/** The input after the tool's schema. Throws if the schema rejects it. */
async function inputOf(ai: Ai, tool: AiTool, value: unknown): Promise<unknown> {
  const result = await ai.asSchema<unknown>(tool.inputSchema).validate?.(value)
  if (result?.success === false) throw result.error
  return result ? result.value : value
}

/** Executes a tool. Its error becomes a result for the model, unless the work has ended. */
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

/** The result of a tool for the model: by its `toModelOutput`, else as text or JSON. */
export async function outputOf(tool: AiTool, { toolCallId, input }: ToolCall, output: unknown): Promise<ToolOutput> {
  if (tool.toModelOutput) return tool.toModelOutput({ toolCallId, input, output })
  return typeof output === 'string' ? { type: 'text', value: output } : { type: 'json', value: (output ?? null) as never }
}

/** The result of a tool; the last one of a tool with preliminary results. */
async function lastOf(given: unknown): Promise<unknown> {
  const awaited: unknown = await given
  if (typeof awaited !== 'object' || awaited === null || !(Symbol.asyncIterator in awaited)) return awaited
  let last: unknown
  for await (const each of awaited as AsyncIterable<unknown>) last = each
  return last
}
