import { isObject, type JsonValue } from '../../../machines/protocol/codec/json.ts'
import { inputRequired, type Question } from '../../../runtime/authoring/questions.ts'
import { data, text } from '../../../runtime/authoring/words.ts'
import type { StandardSchema } from '../../../runtime/ports/standard-schema.ts'
import type { ToolCall } from './tools.ts'

/** A call that needs approval, with the SDK's id for it. */
export interface ToolApprovalRequest {
  readonly approvalId: string
  readonly call: ToolCall
  /** Whether the provider of the model executes it. */
  readonly isProviders: boolean
  /** Whether the option `toolApproval` denied it, so that the client is not asked. */
  readonly isDenied?: boolean
  /** Why it needs approval, or was denied. */
  readonly reason?: string
}

/** The client's decision about a call of a tool. */
export interface ToolDecision {
  readonly approved: boolean
  readonly reason?: string
}

const ASSENT = /^(?:y|yes|ok|okay|sure|approve|approved|go ahead)\s*[.!]*$/i
const DENIAL = /^\s*(?:n|no|never|deny|denied|reject|rejected|don['’]t|stop)\b[\s,.;:!-]*(?<reason>[^]*)$/i

/**
 * Asks for approval of a call, as text and as data `{ approval: { approvalId, toolName, input, reason? } }`. Accepts data
 * `{ approved, reason? }`, or text: yes, or no with an optional reason after it. Any other answer is invalid.
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
    { schema: decisionOn(approvalId) }
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
