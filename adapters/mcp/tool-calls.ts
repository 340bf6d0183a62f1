import { createHash, randomUUID } from 'node:crypto'
import type { AgentCard } from '../../machines/protocol/card.ts'
import { isObject, toJson, type JsonValue } from '../../machines/protocol/codec/json.ts'
import { A2AError, invalidParams, isA2AError, type ErrorCode } from '../../machines/protocol/errors.ts'
import { movePart, type Offer } from '../../machines/protocol/negotiation.ts'
import type { Message, Part, SendMessageResponse, Task } from '../../machines/protocol/objects.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import { NEGOTIATION_EXTENSION, RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { messageResult, taskResult, textResult, type ToolResult } from './content.ts'
import { readMove, offerElicitation, offerForm, offerResult, openOfferIn, type OfferInMessage } from './offers.ts'
import {
  cancelUnlessEnded,
  NO_TASK,
  reasonOf,
  type Abilities,
  type Elicitation,
  type ElicitationOptions,
  type TaskQuestion,
  type UserResponse,
  type Questions
} from './questions.ts'
import type { StateSeal } from './sealed-state.ts'
import type { TaskFields, TaskViews } from './task-view.ts'
import { FOLLOW_UP, MCP_METADATA, readToolArguments, skillTools, type Annotations, type SkillTool } from './tools.ts'
import { taskAfter } from './waiting.ts'

/** A call of a tool, as its client sent it. */
export interface ToolRequest {
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
  /** The state that an earlier round gave to the client. */
  readonly state: string | undefined
  /** The responses of the client's user, by key. */
  readonly responses: Readonly<Record<string, UserResponse>>
  /** Tells the client how a task goes on, if it wants to know. */
  readonly onProgress: ((words: string) => void) | undefined
}

/** The outcome of a round: a result, the handle of a task, or questions to the client's user. */
export type ToolOutcome =
  | ToolResult
  | ({ readonly resultType: 'task' } & TaskFields)
  | {
      readonly resultType: 'input_required'
      readonly inputRequests: Readonly<Record<string, Elicitation>>
      readonly requestState: string
    }

/** Options of calls. */
export interface ToolOptions {
  /** How long a call waits for its task, if the client knows no tasks. */
  readonly waitMs: number
  /** The fate of a call's task if the client disconnects before it has the task's id. */
  readonly closed: 'cancel' | 'keep'
  readonly plainForms: boolean
  readonly annotations: Annotations
}

/** Options of an agent over MCP, on any transport. */
export type McpSettings = ElicitationOptions & ToolOptions

/** The sealed state between two rounds of a call: the task that asks, or the offer. */
type RoundState = { readonly call: string } & (
  | { readonly taskId: string; readonly key: string }
  | {
      readonly contextId: string
      readonly offerId: string
      readonly terms: Offer['terms']
      readonly messageId: string
      readonly expiresAt: string
    }
)

/** The parts of the adapter that calls use. */
export interface CallServices {
  readonly runtime: ServedRuntime
  readonly questions: Questions
  readonly views: TaskViews
  readonly seal: StateSeal
}

/** One request of a client: its caller, and what its client can do. */
export interface McpCaller {
  readonly call: CallContext
  readonly abilities: Abilities
}

/** Errors that are those of the request. All others are results for the model, which can correct itself. */
const OF_REQUEST: ReadonlySet<ErrorCode> = new Set([
  'RateLimited',
  'Overloaded',
  'DeadlineExceeded',
  'Unauthenticated',
  'InternalError'
])

/** Runs calls of tools: a message to the agent, its task, and the questions on the way. */
export class ToolCalls {
  readonly #services: CallServices
  readonly #options: ToolOptions

  constructor(services: CallServices, options: ToolOptions) {
    this.#services = services
    this.#options = options
  }

  /** The tools of an agent. */
  toolsOf(card: AgentCard): SkillTool[] {
    return skillTools(card, this.#options.annotations)
  }

  /** Runs one round of a call. Throws InvalidParams for an unknown tool, and for a state that was not sealed for it. */
  async run(request: ToolRequest, card: AgentCard, caller: McpCaller): Promise<ToolOutcome> {
    const tool = this.toolsOf(card).find(({ listed }) => listed.name === request.name)
    if (!tool && request.name !== FOLLOW_UP)
      throw this.#rejected(
        new A2AError('InvalidParams', `There is no tool ${JSON.stringify(request.name.slice(0, 64))}. List the tools.`),
        caller
      )
    const state = request.state === undefined ? undefined : await this.#openState(request, request.state, caller)
    try {
      if (state) return await this.#goOn(state, request, card, caller)
      return tool ? await this.#open(tool, request, card, caller) : await this.#followUp(request, caller)
    } catch (error) {
      if (!isA2AError(error) || OF_REQUEST.has(error.code)) throw error
      return textResult(refusalText(error), true)
    }
  }

  /** Sends the first message of a call. */
  async #open(tool: SkillTool, request: ToolRequest, card: AgentCard, caller: McpCaller): Promise<ToolOutcome> {
    const read = readToolArguments(tool, request.arguments)
    if ('violations' in read) throw this.#rejected(invalidParams(...read.violations), caller)
    const { value: move, violations } = read.move === undefined ? {} : readMove(read.move)
    if (violations) throw this.#rejected(invalidParams(...violations), caller)
    const message: Message = {
      messageId: randomUUID(),
      role: 'ROLE_USER',
      parts: [...read.parts, ...(move ? [movePart(move)] : [])],
      ...read.address,
      metadata: { [MCP_METADATA]: { tool: tool.skill } }
    }
    const answer = await this.#send(message, caller.call, move ? [NEGOTIATION_EXTENSION] : [])
    return this.#answerOf(answer, request, card, caller, { isFirst: true })
  }

  /** Sends a message. The call may go on without its client: what it opens has to be known. */
  #send(message: Message, call: CallContext, extensions: readonly string[]): Promise<SendMessageResponse> {
    return this.#services.runtime.sendMessage(
      { message, configuration: { returnImmediately: true, historyLength: 0 } },
      { ...call, signal: undefined, extensions }
    )
  }

  /** The outcome of a message: what the agent says, with `more` lines, an offer, or a task. */
  async #answerOf(
    answer: SendMessageResponse,
    request: ToolRequest,
    card: AgentCard,
    caller: McpCaller,
    { isFirst = false, more = [] }: { readonly isFirst?: boolean; readonly more?: readonly string[] }
  ): Promise<ToolOutcome> {
    if ('message' in answer) {
      const open = openOfferIn(answer.message)
      return open ? this.#offer(open, request, card, caller) : messageResult(answer.message, more)
    }
    const { task } = answer
    if (caller.abilities.tasks && !isTerminal(task.status.state))
      return this.#services.views.handleOf(task, caller.abilities, caller.call)
    return this.#wait(task, request, caller, { isFirst })
  }

  /** Asks the client's user about an offer, or gives it as the result. */
  async #offer(
    open: OfferInMessage,
    request: ToolRequest,
    card: AgentCard,
    { call, abilities }: McpCaller
  ): Promise<ToolOutcome> {
    if (!abilities.form) return offerResult(open)
    const { offerId, terms, expiresAt } = open.offer
    const form = offerForm(open.offer, card, { plain: this.#options.plainForms })
    const { contextId } = open
    const state: RoundState = {
      call: callDigest(request),
      contextId,
      offerId,
      terms,
      expiresAt,
      messageId: randomUUID()
    }
    return {
      resultType: 'input_required',
      inputRequests: { [offerId]: offerElicitation(open, form) },
      requestState: await this.#services.seal.seal(toJson(state) as JsonValue, call)
    }
  }

  /** Goes on with a call after its client's user has responded. */
  async #goOn(state: RoundState, request: ToolRequest, card: AgentCard, caller: McpCaller): Promise<ToolOutcome> {
    const { runtime, questions } = this.#services
    const { call, abilities } = caller
    if ('offerId' in state) return this.#decide(state, request, card, caller)
    const task = await runtime.getTask({ id: state.taskId, historyLength: 0 }, call)
    const question = await questions.openOf(task, call)
    const response = question?.key === state.key ? request.responses[state.key] : undefined
    if (!question || response === undefined) return this.#wait(task, request, caller, {})
    await questions.answer(question, response, abilities, call)
    const isOpened = question.url !== undefined && abilities.url && response['action'] === 'accept'
    const now = await runtime.getTask({ id: state.taskId, historyLength: 0 }, call)
    return this.#wait(now, request, caller, { passing: isOpened ? question.messageId : '' })
  }

  /** Sends the user's decision about an offer. */
  async #decide(
    { contextId, offerId, terms, messageId, expiresAt }: Extract<RoundState, { readonly offerId: string }>,
    request: ToolRequest,
    card: AgentCard,
    caller: McpCaller
  ): Promise<ToolOutcome> {
    const { action, content } = request.responses[offerId] ?? {}
    const advice = `To answer it, call this tool with contextId ${contextId} and negotiation.`
    if (action !== 'accept' && action !== 'decline')
      return textResult(`The user has not decided about the offer ${offerId}. ${advice}`, true)
    const form = offerForm({ offerId, terms }, card, { plain: this.#options.plainForms })
    const { value: move, violations } =
      action === 'decline' ? { value: { decline: { offerId } } } : form.moveOf(isObject(content) ? content : {})
    if (violations) {
      const described = violations.map(({ field, description }) => ({
        field,
        description: `${description}. The offer ${offerId} is as it was. ${advice}`
      }))
      throw this.#rejected(invalidParams(...described), caller)
    }
    const message: Message = { messageId, contextId, role: 'ROLE_USER', parts: [movePart(move)] }
    const answer = await this.#send(message, caller.call, [NEGOTIATION_EXTENSION, RELIABILITY_EXTENSION])
    const standing = `The offer before: offerId: ${offerId}, until ${expiresAt}. To accept it, if it stands, call this tool again with the contextId and negotiation: { "accept": offerId }.`
    const more = 'propose' in move ? [standing] : []
    return this.#answerOf(answer, request, card, caller, { more })
  }

  /** Reads, answers, steers or cancels a task. */
  async #followUp(request: ToolRequest, caller: McpCaller): Promise<ToolOutcome> {
    const { runtime } = this.#services
    const { call } = caller
    const read = readFollowUp(request.arguments)
    if (isA2AError(read)) throw this.#rejected(read, caller)
    const { taskId, message, data, cancel } = read
    if (cancel) await cancelUnlessEnded(runtime, taskId, call)
    const parts: Part[] = [
      ...(message === undefined ? [] : [{ text: message }]),
      ...(data === undefined ? [] : [{ data: data as JsonValue }])
    ]
    if (parts.length > 0 && !cancel)
      await this.#send({ messageId: randomUUID(), taskId, role: 'ROLE_USER', parts }, call, [])
    const task = await runtime.getTask({ id: taskId, historyLength: 0 }, call)
    return this.#wait(task, request, caller, {})
  }

  /** Waits for a task, and gives its result, its question, or its state in words. */
  async #wait(
    task: Task,
    request: ToolRequest,
    caller: McpCaller,
    { isFirst = false, passing = '' }: { readonly isFirst?: boolean; readonly passing?: string }
  ): Promise<ToolOutcome> {
    const { runtime, questions, seal } = this.#services
    const { call, abilities } = caller
    try {
      const { waitMs } = this.#options
      const now = await taskAfter(runtime, task, { waitMs, passing, onProgress: request.onProgress }, call)
      const question = await questions.openOf(now, call)
      const asked = question && question.messageId !== passing && questions.elicitationOf(question, abilities)
      if (!question || !asked) return await this.#inWords(now, question, call)
      const state: RoundState = { call: callDigest(request), taskId: task.id, key: question.key }
      return {
        resultType: 'input_required',
        inputRequests: { [question.key]: asked },
        requestState: await seal.seal(state, call)
      }
    } catch (error) {
      if (call.signal?.aborted && isFirst && this.#options.closed === 'cancel') {
        // Nobody knows the task's id.
        await cancelUnlessEnded(runtime, task.id, { ...call, signal: undefined })
        throw error
      }
      if (!isA2AError(error) || !['RateLimited', 'Overloaded'].includes(error.code)) throw error
      return textResult(`${error.message}\ntaskId: ${task.id}\n${goOnText(task.id)}`, true)
    }
  }

  async #inWords(task: Task, question: TaskQuestion | undefined, call: CallContext): Promise<ToolResult> {
    const { id, status } = task
    if (question) {
      const how = isObject(question.schema)
        ? `data that fits this JSON Schema: ${JSON.stringify(question.schema)}`
        : 'message'
      const reason = question.note.reason === '' ? [] : [question.note.reason]
      return taskResult(task, [...reason, `The task waits for an answer. Call ${FOLLOW_UP} with taskId and ${how}.`])
    }
    if (!isTerminal(status.state)) return taskResult(task, [`The task is still working. ${goOnText(id)}`])
    if (status.state !== 'TASK_STATE_CANCELED') return taskResult(task)
    const reason = await this.#services.questions.cancelReason(task, call)
    return taskResult(task, [reason === undefined ? 'The task was canceled.' : `The task was canceled: ${reason}`])
  }

  async #openState(request: ToolRequest, sealed: string, caller: McpCaller): Promise<RoundState> {
    const { call } = caller
    const { seal, runtime } = this.#services
    const state = (await seal.open(sealed, call)) as RoundState | undefined
    const isValid =
      state?.call === callDigest(request) &&
      (!('expiresAt' in state) || runtime.settings.clock.now() < Date.parse(state.expiresAt))
    if (isValid) return state
    throw this.#rejected(
      new A2AError('InvalidParams', 'Invalid or expired requestState', {
        metadata: { reason: 'invalid_request_state' }
      }),
      caller
    )
  }

  /** The error of a request that reaches no operation, which counts like others. */
  #rejected(error: A2AError, { call }: McpCaller): A2AError {
    return this.#services.runtime.settings.rejected.answerTo(error, call)
  }
}

/** Why a call was refused, for the model. Foreign, removed and unknown tasks look alike. */
function refusalText(error: A2AError): string {
  if (error.code === 'TaskNotFound') return NO_TASK
  return error.violations.length > 0 ? `Not accepted: ${reasonOf(error)}` : error.message
}

function goOnText(taskId: string): string {
  return `Call ${FOLLOW_UP} with taskId ${taskId} to wait for it.`
}

/** Identifies a call over its rounds: its tool and its arguments. */
function callDigest({ name, arguments: given }: ToolRequest): string {
  return createHash('sha256')
    .update(JSON.stringify([name, given]))
    .digest('base64url')
}

/** The arguments of the follow-up tool, or the error that names what is wrong with them. */
function readFollowUp({
  taskId,
  message,
  data,
  cancel
}: ToolRequest['arguments']):
  | { readonly taskId: string; readonly message: string | undefined; readonly data: unknown; readonly cancel: boolean }
  | A2AError {
  if (typeof taskId !== 'string' || taskId === '')
    return invalidParams({ field: 'taskId', description: 'must be the taskId of an earlier result' })
  if (message !== undefined && typeof message !== 'string')
    return invalidParams({ field: 'message', description: 'must be a string' })
  if (cancel !== undefined && typeof cancel !== 'boolean')
    return invalidParams({ field: 'cancel', description: 'must be true or false' })
  return { taskId, message, data, cancel: cancel ?? false }
}
