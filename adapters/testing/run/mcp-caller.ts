import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import {
  isNegotiationPart,
  moveIn,
  type NegotiationMove,
  type Offer,
  offerIn
} from '../../../machines/protocol/negotiation.ts'
import type { Message, Part, SendMessageResponse, Task } from '../../../machines/protocol/objects.ts'
import { isTerminal } from '../../../machines/protocol/states.ts'
import { ANSWER_SCHEMA } from '../../../machines/protocol/uris.ts'
import type { ServedRuntime } from '../../../runtime/runtime-options.ts'
import { elicitedForm } from '../../mcp/form.ts'
import { FOLLOW_UP, MCP_METADATA, readToolArguments, skillTools, type SkillTool } from '../../mcp/tools.ts'
import {
  attemptIn,
  baseOf,
  callDifference,
  taskIdIn,
  type TaskAnswers,
  type WireCallResult,
  type WireTaskAnswer
} from './mcp-answers.ts'
import type { TestClient } from './official-caller.ts'

type Values = Readonly<Record<string, unknown>>

const PREFIX = 'io.modelcontextprotocol/'
const REVISION = '2026-07-28'

/** The metadata of each request of a host that knows tasks and shows forms. */
const META = {
  [`${PREFIX}protocolVersion`]: REVISION,
  [`${PREFIX}clientInfo`]: { name: 'taskchart test', version: '1' },
  [`${PREFIX}clientCapabilities`]: {
    elicitation: { form: {}, url: {} },
    extensions: { [`${PREFIX}tasks`]: {} }
  }
}

/** So often a path answers a question by its form. The fifth refused answer would cancel the task. */
const MOST_ATTEMPTS = 3

/** A runtime that records its answers to messages, in the order of the messages. */
export interface RecordingRuntime {
  readonly runtime: ServedRuntime
  readonly sent: readonly Promise<SendMessageResponse>[]
}

/** A runtime that records its answers. */
export function recordAnswers(runtime: ServedRuntime): RecordingRuntime {
  const sent: Promise<SendMessageResponse>[] = []
  const sendMessage: ServedRuntime['sendMessage'] = (params, call) => {
    const answer = runtime.sendMessage(params, call)
    sent.push(answer)
    return answer
  }
  return { runtime: { ...runtime, sendMessage }, sent }
}

/** A response of JSON-RPC. */
interface WireResponse {
  readonly result?: Values
  readonly error?: Error
}

/** A call whose user has a form with an offer. */
interface OfferRound {
  /** The parameters of the next round, without the user's response. */
  readonly params: Values
  readonly offer: Offer
  /** The fields of the form, by name. */
  readonly fields: Values
}

/**
 * A host of MCP at the URL of a runtime. Messages that a host cannot send, such as files, go to the runtime over A2A.
 * `answers`: the answers so far about the task.
 */
export function mcpCaller(
  { runtime, sent }: RecordingRuntime,
  overA2A: TestClient,
  url: string,
  answers: TaskAnswers
): Omit<TestClient, 'close'> {
  const tools = skillTools(runtime.agentCard([]))
  let requests = 0
  let round: OfferRound | undefined

  const post = async (method: string, params: Values): Promise<WireResponse> => {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': REVISION,
        'Mcp-Method': method,
        'Mcp-Name': String(params['taskId'] ?? params['name'])
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: (requests += 1), method, params: { ...params, _meta: META } })
    })
    return (await response.json()) as WireResponse
  }

  const request = async (method: string, params: Values): Promise<Values> => {
    const { result, error } = await post(method, params)
    if (!result) throw new Error(`${method} fails: ${String(error?.message)}`)
    return result
  }

  /** The result of a call of a tool. An error of the request is one, too. */
  const callTool = async (params: Values): Promise<WireCallResult> => {
    const { result, error } = await post('tools/call', params)
    return result ?? { isError: true, content: [{ type: 'text', text: String(error?.message) }] }
  }

  const read = async (taskId: string) => (await request('tasks/get', { taskId })) as unknown as WireTaskAnswer

  /** `tasks/update` and `tasks/cancel` acknowledge, and say nothing of the task. */
  const acknowledged = async (method: string, params: Values): Promise<void> => {
    const { _meta, ...answer } = await request(method, params)
    if (!isDeepStrictEqual(answer, { resultType: 'complete' }))
      throw new Error(`${method} has to acknowledge, not to answer ${JSON.stringify(answer)}`)
  }

  const respond = (taskId: string, key: string, content: Values) =>
    acknowledged('tasks/update', { taskId, inputResponses: { [key]: { action: 'accept', content } } })

  /** The response of the user to the form of an offer that has not expired; `undefined` if the message is none. */
  const decisionIn = (message: Message): Values | undefined => {
    if (!round || Date.parse(round.offer.expiresAt) <= runtime.settings.clock.now()) return undefined
    const { params, offer } = round
    const content = decisionContent(message, round)
    return content && { ...params, inputResponses: { [offer.offerId]: { action: 'accept', content } } }
  }

  /** A message before there is a task: the response to an offer, or else a call of a tool. */
  const open = async (message: Message): Promise<SendMessageResponse> => {
    const tool = toolFor(tools, message)
    const given = tool && argumentsFor(tool, message)
    const decision = decisionIn(message)
    const params = decision ?? (given && { name: tool.listed.name, arguments: given })
    if (!params) return overA2A.send(message)
    // A form is answered once.
    if (decision) round = undefined
    const before = sent.length
    const result = await callTool(params)
    const arrived = sent[before]
    const words = textsIn(result).join('\n')
    if (!arrived) throw new Error(`The call of a tool sends no message: ${words}`)
    const answer = await arrived.catch((refusal: unknown) => {
      throw result.isError ? refusal : new Error(`A message that A2A refuses has to be refused: ${words}`)
    })
    const difference = callDifference(result, answer)
    if (difference) throw new Error(`${difference.what}: ${JSON.stringify(difference)}`)
    if ('task' in answer) return { task: await overA2A.task(answer.task.id) }
    const offer = offerIn(answer.message)
    const fields = offer && result.inputRequests?.[offer.offerId]?.params.requestedSchema?.properties
    if (fields) round = { params: { ...params, requestState: result.requestState }, offer, fields }
    return answer
  }

  /** A message to a task: the response to its question, or else a call of the follow-up tool. */
  const goOn = async (message: Message, taskId: string): Promise<string | undefined> => {
    const before = await overA2A.task(taskId)
    const { inputRequests = {} } = await read(taskId)
    const [[key, asked] = []] = Object.entries(inputRequests)
    const content = asked?.params.mode === 'form' ? contentFor(message, before) : undefined
    if (key !== undefined && content && attemptIn(key) <= MOST_ATTEMPTS) {
      await respond(taskId, answers.staleKey, content)
      const { status, metadata } = await overA2A.task(taskId)
      if (!isDeepStrictEqual({ status, metadata }, { status: before.status, metadata: before.metadata }))
        throw new Error('a response under a key that is not open has to do nothing')
      await respond(taskId, key, content)
      answers.responded(key)
      const after = Object.entries((await read(taskId)).inputRequests ?? {})
      const again = after.find(([next]) => next !== key && baseOf(next) === baseOf(key))
      return again?.[1].params.message
    }
    const given = followUpFor(message)
    if (!given) {
      await overA2A.send(message)
      return undefined
    }
    const result: WireCallResult = await request('tools/call', { name: FOLLOW_UP, arguments: { taskId, ...given } })
    return result.isError === true && taskIdIn(result) === undefined ? textsIn(result).join('\n') : undefined
  }

  return {
    ...overA2A,
    send: async message => {
      const { taskId } = message
      if (taskId === undefined) return open(message)
      const refusal = await goOn(message, taskId)
      if (refusal === undefined) return { task: await overA2A.task(taskId) }
      // A2A refuses it too, with the code that the path expects.
      await overA2A.send(message)
      throw new Error(`Over MCP it is refused: ${refusal}`)
    },
    cancel: async taskId => {
      const { status } = await overA2A.task(taskId)
      await acknowledged('tasks/cancel', { taskId })
      // A wish to cancel an ended task is acknowledged, where A2A refuses it.
      return isTerminal(status.state) ? overA2A.cancel(taskId) : overA2A.task(taskId)
    },
    difference: async task => answers.add(await read(task.id), task)
  }
}

/** The tool of a message: the one that its metadata names, or the first one. */
function toolFor(tools: readonly SkillTool[], { metadata }: Message): SkillTool | undefined {
  const named = metadata?.[MCP_METADATA]
  return isObject(named) ? tools.find(({ skill }) => skill === named['tool']) : tools[0]
}

/** The arguments that become the opening message; `undefined` if none do. */
function argumentsFor(tool: SkillTool, message: Message): Values | undefined {
  const { messageId: _, role: __, parts, contextId, metadata = {}, ...more } = message
  if (Object.keys(more).length > 0 || Object.keys(metadata).some(name => name !== MCP_METADATA)) return undefined
  const { value: move, violations } = moveIn(message) ?? {}
  if (violations) return undefined
  const words = parts.filter(part => !isNegotiationPart(part))
  const [first, second] = words
  const given: unknown[] = [{ message: textIn(first), data: dataIn(second) }, dataIn(first), { input: dataIn(first) }]
  const negotiation = move && moveArgument(move)
  return given
    .flatMap(values => (isObject(values) ? [{ ...values, contextId, negotiation }] : []))
    .find(values => {
      const read = readToolArguments(tool, values)
      return 'parts' in read && isDeepStrictEqual(read.parts, words)
    })
}

/** A move as an argument of a tool. */
function moveArgument(move: NegotiationMove): Values {
  if ('propose' in move) return { propose: move.propose.terms }
  return 'accept' in move ? { accept: move.accept.offerId } : { decline: move.decline.offerId }
}

/**
 * The content of the form of an offer that says the move of a message. `undefined` if the form cannot: a term that is
 * left out would stay as it was offered.
 */
function decisionContent(message: Message, { offer, fields }: OfferRound): Values | undefined {
  const { value: move } = moveIn(message) ?? {}
  if (!move) return undefined
  if ('propose' in move) {
    const { terms } = move.propose
    if (Object.keys({ ...offer.terms, ...terms }).some(name => (terms[name] ?? null) === null)) return undefined
    const shown = Object.entries(terms).map(([name, value]) => [name, fieldValue(fields[name], value)])
    if (shown.every(([name]) => String(name) in fields)) return { decision: 'propose', ...Object.fromEntries(shown) }
    return 'terms' in fields ? { decision: 'propose', terms: JSON.stringify(terms) } : undefined
  }
  const [decision, { offerId }] = 'accept' in move ? ['accept', move.accept] : ['decline', move.decline]
  return offerId === offer.offerId ? { decision } : undefined
}

/**
 * The content of a form that becomes the message; `undefined` if none does. A text that answers a question with a
 * schema is data over MCP, as the agent's schema reads both.
 */
function contentFor(message: Message, { status }: Task): Values | undefined {
  const [part] = message.parts
  if (!part || isMore(message) || message.parts.length > 1) return undefined
  if (status.state === 'TASK_STATE_AUTH_REQUIRED')
    return 'text' in part && part.text !== '' ? { answer: part.text } : undefined
  const { schema, partOf } = elicitedForm(status.message?.metadata?.[ANSWER_SCHEMA])
  const value = textIn(part) ?? dataIn(part)
  const shown = (name: string, each: unknown) => fieldValue(schema.properties[name], each)
  const fields = isObject(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([name, each]) => (each === null ? [] : [[name, shown(name, each)]]))
      )
    : {}
  return [{ answer: shown('answer', value) }, fields].find(content => {
    const given = partOf(content)
    return isDeepStrictEqual(given, part) || ('data' in given && given.data === textIn(part))
  })
}

/** A value in a field of a form: as JSON in a field of text. */
function fieldValue(field: unknown, value: unknown): unknown {
  return isObject(field) && field['type'] === 'string' && typeof value !== 'string' ? JSON.stringify(value) : value
}

/** The arguments of the follow-up tool that become the message; `undefined` if none do. */
function followUpFor(message: Message): Values | undefined {
  const words = message.parts.find(part => 'text' in part)
  const values = message.parts.find(part => 'data' in part)
  const given = [words, values].filter(part => part !== undefined)
  if (isMore(message) || !isDeepStrictEqual(given, message.parts)) return undefined
  return { message: textIn(words), data: dataIn(values) }
}

/** Whether a message has more than its parts. */
function isMore(message: Message): boolean {
  const names = Object.keys(message).filter(name => !['messageId', 'role', 'taskId', 'parts'].includes(name))
  return names.length > 0 || message.parts.some(part => Object.keys(part).length > 1)
}

function textIn(part: Part | undefined): string | undefined {
  return part && 'text' in part ? part.text : undefined
}

function dataIn(part: Part | undefined): unknown {
  return part && 'data' in part ? part.data : undefined
}

function textsIn({ content = [] }: WireCallResult): string[] {
  return content.map(({ text = '' }) => text)
}
