import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { Message, Part, Task } from '../../../machines/protocol/objects.ts'
import { isTerminal } from '../../../machines/protocol/states.ts'
import { ANSWER_SCHEMA, NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { ServedRuntime } from '../../../runtime/runtime-options.ts'
import { elicitedForm } from '../../mcp/form.ts'
import { FOLLOW_UP, MCP_METADATA, readToolArguments, skillTools, type SkillTool } from '../../mcp/tools.ts'
import { attemptIn, baseOf, type WireTaskAnswer, type TaskAnswers } from './mcp-answers.ts'
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

/**
 * A host of MCP at a URL, whose tasks are those of a runtime. Messages that a host cannot send, such as files, go to
 * the runtime over A2A. `answers`: the answers so far about the task.
 */
export function mcpCaller(
  runtime: ServedRuntime,
  overA2A: TestClient,
  url: string,
  answers: TaskAnswers
): Omit<TestClient, 'close'> {
  const tools = skillTools(runtime.agentCard([]))
  let requests = 0

  const request = async (method: string, params: Values): Promise<Values> => {
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
    const { result, error } = (await response.json()) as { readonly result?: Values; readonly error?: Error }
    if (!result) throw new Error(`${method} fails: ${String(error?.message)}`)
    return result
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

  const open = async (message: Message) => {
    const tool = toolFor(tools, message)
    const given = tool && argumentsFor(tool, message)
    if (!given) return overA2A.send(message)
    const result = await request('tools/call', { name: tool.listed.name, arguments: given })
    const taskId = typeof result['taskId'] === 'string' ? result['taskId'] : taskIdIn(result)
    if (taskId === undefined) return { message: { ...message, parts: [{ text: textsIn(result).join('\n') }] } }
    return { task: await overA2A.task(taskId) }
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
    const result = await request('tools/call', { name: FOLLOW_UP, arguments: { taskId, ...given } })
    return result['isError'] === true && taskIdIn(result) === undefined ? textsIn(result).join('\n') : undefined
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
  const moves = parts.flatMap(part => termsIn(part) ?? [])
  const words = parts.filter(part => termsIn(part) === undefined)
  const [first, second] = words
  const given: unknown[] = [{ message: textIn(first), data: dataIn(second) }, dataIn(first), { input: dataIn(first) }]
  return given
    .flatMap(values => (isObject(values) ? [{ ...values, contextId, negotiation: moves[0] }] : []))
    .find(values => {
      const read = readToolArguments(tool, values)
      return 'parts' in read && isDeepStrictEqual(read.parts, words)
    })
}

/** The terms that a part proposes, as an argument of a tool. */
function termsIn(part: Part): Values | undefined {
  const data = dataIn(part)
  const move = isObject(data) ? data[NEGOTIATION_EXTENSION] : undefined
  return isObject(move) && isObject(move['propose']) ? { propose: move['propose']['terms'] } : undefined
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
  const shown = (name: string, each: unknown) => {
    const isText = schema.properties[name]?.type === 'string'
    return isText && typeof each !== 'string' ? JSON.stringify(each) : each
  }
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

function textsIn({ content }: Values): string[] {
  return (content as readonly { readonly text?: string }[]).map(({ text = '' }) => text)
}

/** The id of the task in the last text of a result. */
function taskIdIn(result: Values): string | undefined {
  return /^taskId: (\S+)$/m.exec(textsIn(result).slice(-1).join())?.[1]
}
