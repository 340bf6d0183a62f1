import { isObject, type JsonValue } from '../../../machines/protocol/codec/json.ts'
import { inputRequired, type Question } from '../../../runtime/authoring/questions.ts'
import { data, text } from '../../../runtime/authoring/words.ts'
import type { StandardSchema } from '../../../runtime/ports/standard-schema.ts'
import type { ToolCall } from './tools.ts'

/** A call that waits for approval, under the id that the SDK gave it. */
export interface ToolApprovalRequest {
  readonly approvalId: string
  readonly call: ToolCall
  /** Whether the provider of the model executes it. */
  readonly isProviders: boolean
}

/** What a client decides upon a call of a tool. */
export interface ToolDecision {
  readonly approved: boolean
  readonly reason?: string
}

const ASSENT = /^\s*(?:y|yes|ok|okay|sure|approve|approved|go ahead)\s*[.!]*\s*$/i
const DENIAL = /^\s*(?:n|no|never|deny|denied|reject|rejected|don['’]t|stop)\b[\s,.;:!-]*(?<reason>[^]*)$/i

/**
 * Asks whether a tool may be called: in words, and as data `{ approval: { approvalId, toolName, input } }`. The answer is
 * data `{ approved, reason? }`, or words: yes alone, or no with a reason behind it. Whatever else is said is refused.
 */
export function approval({ approvalId, call: { toolName, input } }: ToolApprovalRequest): Question<ToolDecision> {
  const question = `May I call ${toolName} with ${JSON.stringify(input)}? Say yes or no.`
  return inputRequired({ parts: [text(question), data({ approval: { approvalId, toolName, input: input as JsonValue } })] }, { schema: decisionOn(approvalId) })
}

/** Asks for what a tool without `execute` gives. The answer is the value of the first data part, or else the text. */
export function toolQuestion({ toolName, input }: ToolCall): Question {
  const question = isObject(input) && typeof input.question === 'string' ? input.question : `${toolName}: ${JSON.stringify(input)}`
  return inputRequired({ parts: [text(question), data({ toolCall: { toolName, input: input as JsonValue } })] }, { schema: ANYTHING })
}

const ANYTHING: StandardSchema<unknown> = { '~standard': { version: 1, vendor: 'taskchart', validate: value => ({ value }) } }

function decisionOn(approvalId: string): StandardSchema<ToolDecision> {
  return {
    '~standard': {
      version: 1,
      vendor: 'taskchart',
      validate: given => {
        const decision = typeof given === 'string' ? decisionIn(given) : given
        if (!isDecision(decision)) return { issues: [{ message: 'has to be yes, no, or no with a reason, or data such as { "approved": true }' }] }
        if (decision.approvalId !== undefined && decision.approvalId !== approvalId) return { issues: [{ message: `is about another approval than ${approvalId}`, path: ['approvalId'] }] }
        const { approved, reason } = decision
        return { value: { approved, ...(reason && { reason }) } }
      }
    }
  }
}

function decisionIn(words: string): unknown {
  if (ASSENT.test(words)) return { approved: true }
  const denial = DENIAL.exec(words)
  return denial && { approved: false, reason: denial.groups?.reason?.trim() }
}

function isDecision(value: unknown): value is ToolDecision & { readonly approvalId?: unknown } {
  return isObject(value) && typeof value.approved === 'boolean' && ['string', 'undefined'].includes(typeof value.reason)
}
