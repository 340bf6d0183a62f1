import type { ModelMessage, ToolModelMessage, ToolSet } from 'ai'
import { isObject, type JsonValue } from '../../machines/protocol/codec/json.ts'
import { type StandardSchema, inputRequired, type Question, data, text } from '../../runtime/index.ts'
import type { Ai } from './conversation.ts'

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
interface ApprovalOptions {
  readonly toolCallId: string
  readonly messages: ModelMessage[]
}

/**
 * The tools as the SDK gets them. It validates their inputs and asks whether they need approval, but executes none.
 * Inputs stay as the model wrote them, since a schema may transform them into something that is not JSON and could not
 * be stored. `held` gets the calls that may not run at once.
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
  const isNeeded = async (input: unknown, options: ApprovalOptions) => {
    const decision = heldBack(await statusOf(ai, own, name, tool, input, options))
    if (decision) held.set(options.toolCallId, decision)
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
  options: ApprovalOptions
): Promise<ToolApprovalStatus> {
  const { tools, toolApproval, toolsContext, runtimeContext } = own
  const { toolCallId, messages } = options
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
    return decide(input, { toolCallId, messages, toolContext: await toolContextOf(ai, own, name), runtimeContext })
  if (decide !== undefined) return decide
  const { needsApproval } = tool
  if (typeof needsApproval !== 'function') return needsApproval ? 'user-approval' : undefined
  const isNeeded = await needsApproval(input, Object.assign(options, { context: await toolContextOf(ai, own, name) }))
  return isNeeded ? 'user-approval' : undefined
}

/** The input after the tool's schema. Throws if the schema rejects it. */
async function inputOf(ai: Ai, tool: AiTool, value: unknown): Promise<unknown> {
  return acceptedBy(ai, tool.inputSchema, value)
}

/** The context of a tool, after its `contextSchema`. Throws if that rejects it. */
export async function toolContextOf(ai: Ai, { tools, toolsContext }: OwnTools, name: string): Promise<unknown> {
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
export async function executeTool(ai: Ai, tool: AiTool, call: ToolCall, options: ExecuteOptions): Promise<ToolOutput> {
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

type Decision = 'not-applicable' | 'approved' | 'denied' | 'user-approval'

/** Whether a call may run: at once, never, or if the client approves. `undefined`, as `not-applicable`, lets it run. */
export type ToolApprovalStatus = Decision | { readonly type: Decision; readonly reason?: string } | undefined

/** Of any type, as the SDK has it for a tool that it does not know. */
type Anything = Parameters<NonNullable<ToolSet[string]['execute']>>[0]

type Answered = ToolApprovalStatus | PromiseLike<ToolApprovalStatus>

interface Surroundings {
  /** The prompt of the call of the model. */
  readonly messages: ModelMessage[]
  /** The option `runtimeContext`. */
  readonly runtimeContext: Anything
}

/** Decides about a call of any tool. The input is that after the tool's schema. */
type DecideOnCall = (
  call: Surroundings & {
    readonly toolCall: ToolCall & { readonly input: Anything }
    readonly tools: ToolSet
    readonly toolsContext: Anything
  }
) => Answered

/** Decides about a call of one tool. */
type DecideOnTool = (
  input: Anything,
  options: Surroundings & { readonly toolCallId: string; readonly toolContext: Anything }
) => Answered

/**
 * Which calls need approval: one function for all tools, or a status or a function by the name of the tool. It
 * overrides `needsApproval`.
 */
export type ToolApproval = DecideOnCall | { readonly [toolName: string]: ToolApprovalStatus | DecideOnTool }

/** A decision that lets no call run at once. */
export interface HeldBack {
  readonly isDenied: boolean
  readonly reason?: string
}

/** The meaning of a status; `undefined`: the call runs. A status that nobody knows asks the client. */
export function heldBack(status: ToolApprovalStatus): HeldBack | undefined {
  const { type, reason }: { readonly type: Decision; readonly reason?: string } =
    typeof status === 'object' ? status : { type: status ?? 'not-applicable' }
  return type === 'not-applicable' || type === 'approved'
    ? undefined
    : { isDenied: type === 'denied', ...(reason !== undefined && { reason }) }
}

/** A call that needs approval, with the SDK's id for it. */
export interface ToolApprovalRequest {
  readonly approvalId: string
  readonly call: ToolCall
  /** Whether the provider of the model executes it. */
  readonly isProviders: boolean
  /** Whether the option `toolApproval` denied it, so that the client gets no question. */
  readonly isDenied?: boolean
  /** Why it needs approval, or was denied. */
  readonly reason?: string
}

/** The client's decision about a call of a tool. */
export interface ToolDecision {
  readonly approved: boolean
  readonly reason?: string
}

/** The data of a decision, as clients see it: a form with two buttons. Text is an answer too. */
const DECISION = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' } },
  required: ['approved']
}

const ASSENT = /^(?:y|yes|ok|okay|sure|approve|approved|go ahead)\s*[.!]*$/i
const DENIAL = /^\s*(?:n|no|never|deny|denied|reject|rejected|don['’]t|stop)\b[\s,.;:!-]*(?<reason>[^]*)$/i

/**
 * Asks for approval of a call, as text and as data `{ approval: { approvalId, toolName, input, reason? } }`. Accepts
 * data `{ approved, reason? }`, or text: yes, or no with an optional reason after it. Any other answer is invalid.
 */
export function approval({
  approvalId,
  call: { toolName, input },
  reason
}: ToolApprovalRequest): Question<ToolDecision> {
  const question = `May I call ${toolName} with ${JSON.stringify(input)}?${reason === undefined ? '' : ` ${reason}`} Say yes or no.`
  return inputRequired(
    {
      parts: [
        text(question),
        data({ approval: { approvalId, toolName, input: input as JsonValue, ...(reason !== undefined && { reason }) } })
      ]
    },
    { schema: decisionOn(approvalId), jsonSchema: DECISION }
  )
}

/** Asks for the result of a tool without `execute`. The answer is the value of the first data part, else the text. */
export function toolQuestion({ toolName, input }: ToolCall): Question {
  const question =
    isObject(input) && typeof input.question === 'string' ? input.question : `${toolName}: ${JSON.stringify(input)}`
  return inputRequired(
    { parts: [text(question), data({ toolCall: { toolName, input: input as JsonValue } })] },
    { schema: ANYTHING }
  )
}

const ANYTHING: StandardSchema<unknown> = {
  '~standard': { version: 1, vendor: 'taskchart', validate: value => ({ value }) }
}

function decisionOn(approvalId: string): StandardSchema<ToolDecision> {
  return {
    '~standard': {
      version: 1,
      vendor: 'taskchart',
      validate: given => {
        const decision = typeof given === 'string' ? decisionIn(given) : given
        if (!isDecision(decision))
          return {
            issues: [{ message: 'has to be yes, no, or no with a reason, or data such as { "approved": true }' }]
          }
        if (decision.approvalId !== undefined && decision.approvalId !== approvalId)
          return { issues: [{ message: `is not the id of this approval, ${approvalId}`, path: ['approvalId'] }] }
        const { approved, reason } = decision
        return { value: { approved, ...(reason && { reason }) } }
      }
    }
  }
}

function decisionIn(words: string): unknown {
  if (ASSENT.test(words.trim())) return { approved: true }
  const denial = DENIAL.exec(words)
  return denial && { approved: false, reason: denial.groups?.reason?.trim() }
}

function isDecision(value: unknown): value is ToolDecision & { readonly approvalId?: unknown } {
  return isObject(value) && typeof value.approved === 'boolean' && ['string', 'undefined'].includes(typeof value.reason)
}
