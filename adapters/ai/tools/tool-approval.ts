import type { ModelMessage, ToolSet } from 'ai'
import type { ToolCall } from './tools.ts'

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
export type DecideOnCall = (
  asked: Surroundings & {
    readonly toolCall: ToolCall & { readonly input: Anything }
    readonly tools: ToolSet
    readonly toolsContext: Anything
  }
) => Answered

/** Decides about a call of one tool. */
export type DecideOnTool = (
  input: Anything,
  asked: Surroundings & { readonly toolCallId: string; readonly toolContext: Anything }
) => Answered

/** Which calls need approval: one function for all tools, or a status or a function by the name of the tool. It overrides `needsApproval`. */
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
