import {
  WireRefusal,
  type CallAnswer,
  type WireCaller,
  type Stream,
  type WireParameters
} from '../../adapters/conformance/callers/caller.ts'
import type { EmittedContent } from '../../adapters/conformance/emitted.ts'
import type {
  ListTasksRequest,
  ListTasksResponse,
  Message,
  SendMessageConfiguration,
  SendMessageRequest,
  SendMessageResponse,
  StreamResponse,
  Task
} from '../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import { say, stateName, until } from '../fixtures/runtime/runtime-helpers.ts'

type More = Partial<Message>

/** A caller with a method for what rows ask most. `terms` are those of each call. */
export interface Client {
  readonly caller: WireCaller
  call(method: OperationMethod, params: object, terms?: WireParameters): Promise<CallAnswer>
  send(text: string, more?: More, configuration?: SendMessageConfiguration): Promise<SendMessageResponse>
  /** Sends, and gives the task of the answer. */
  task(text: string, more?: More, configuration?: SendMessageConfiguration): Promise<Task>
  /** Opens a task and waits until it is in a state: `working`, `input-required`. */
  opened(text: string, state: string, more?: More): Promise<Task>
  get(id: string, historyLength?: number): Promise<Task>
  list(params: ListTasksRequest): Promise<ListTasksResponse>
  cancel(id: string): Promise<Task>
  stream(text: string, more?: More, configuration?: SendMessageConfiguration): Stream
  subscribe(id: string, terms?: WireParameters): Stream
  /** What a call is refused with. Throws if it is not. */
  refusal(method: OperationMethod, params: object, terms?: WireParameters): Promise<WireRefusal>
}

/** Wraps a caller; all that it hears is added to `heard`. */
export function clientOf(caller: WireCaller, heard: EmittedContent[]): Client {
  const call: Client['call'] = async (method, params, terms) => {
    const answer = await caller.call(method, params, terms)
    heard.push({ method, streamed: false, value: answer.result })
    return answer
  }
  const stream = (method: OperationMethod, params: object, terms?: WireParameters): Stream => {
    const { next, leave } = caller.stream(method, params, terms)
    const noted = async () => {
      const value = await next()
      if (value !== undefined) heard.push({ method, streamed: true, value })
      return value
    }
    return { next: noted, leave }
  }
  const asked = async <T>(method: OperationMethod, params: object) => (await call(method, params)).result as T
  const send = (request: SendMessageRequest) => asked<SendMessageResponse>('SendMessage', request)
  const get = (id: string, historyLength?: number) =>
    asked<Task>('GetTask', { id, ...(historyLength !== undefined && { historyLength }) })
  const task: Client['task'] = async (text, more, configuration) => {
    const answer = await send(say(text, more, configuration))
    if ('task' in answer) return answer.task
    throw new Error(`${JSON.stringify(text)} was answered with a message`)
  }
  return {
    caller,
    call,
    send: (text, more, configuration) => send(say(text, more, configuration)),
    task,
    opened: async (text, state, more) => {
      const { id } = await task(text, more, { returnImmediately: true })
      return until(async () => {
        const now = await get(id)
        return stateName(now.status.state) === state && now
      }, `${text} ${state}`)
    },
    get,
    list: params => asked('ListTasks', params),
    cancel: id => asked('CancelTask', { id }),
    stream: (text, more, configuration) => stream('SendStreamingMessage', say(text, more, configuration)),
    subscribe: (id, terms) => stream('SubscribeToTask', { id }, terms),
    refusal: (method, params, terms) =>
      refusalOf(
        method.includes('Stream') || method === 'SubscribeToTask'
          ? stream(method, params, terms).next()
          : call(method, params, terms)
      )
  }
}

/** What a call is refused with. Throws if it is not. */
export async function refusalOf(answer: Promise<unknown>): Promise<WireRefusal> {
  const outcome = await answer.catch((error: unknown) => error)
  if (outcome instanceof WireRefusal) return outcome
  throw outcome instanceof Error ? outcome : new Error(`A refusal was expected, not ${JSON.stringify(outcome)}`)
}

/** The events of a stream from here to its end, or to the first for which `isLast` holds. */
export async function read(
  stream: Stream,
  isLast: (event: StreamResponse) => boolean = () => false
): Promise<StreamResponse[]> {
  const events: StreamResponse[] = []
  for (let event = await stream.next(); event; event = await stream.next()) {
    events.push(event)
    if (isLast(event)) break
  }
  return events
}
