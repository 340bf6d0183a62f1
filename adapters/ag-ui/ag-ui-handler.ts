import { isObject } from '../../machines/protocol/codec/json.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import { createRuntime, defineAgent, type Runtime } from '../../runtime/index.ts'
import { checkOptions, kindOf, textsSuchAs, type OptionKinds } from '../../runtime/primitives/options.ts'
import { type ServedRuntime, servedRuntime } from '../../runtime/runtime-options.ts'
import { type AgentClient, connect } from '../client/connect.ts'
import { shownError, statusAnswer } from '../entry/answers.ts'
import type { Handler, HttpRequest, NodeResponse } from '../entry/connection.ts'
import { endpointTenant } from '../entry/interfaces.ts'
import { A_PATH, basePath } from '../entry/listen.ts'
import { callContextOf, delayRefusal, HttpCall } from '../http/call.ts'
import { admitPost, refusePost } from '../http/endpoint.ts'
import { crossOrigin, preflight, requestRefusal } from '../http/handler.ts'
import { bodyParameters } from '../http/parameters.ts'
import { notAllowed } from '../http/rest.ts'
import { streamAnswer } from '../http/streaming.ts'
import { jsonPieces } from '../json-rpc/json-pieces.ts'
import { traceParameters } from '../json-rpc/service-parameters.ts'
import { type RunInput, readRunInput } from './run-input.ts'
import { type AgentCalls, runEvents } from './run.ts'
import type { AgUiEvent } from './task-events.ts'

/** Options of an agent over AG-UI. */
export interface AgUiOptions {
  /** The path of the endpoint; for `serve`, below the path of the agent. Default `/ag-ui`. */
  readonly path?: string
  /**
   * The form of a task's question: `interrupt`, which the front end answers by a form or buttons, or `message`, for a
   * chat that has only a box for text. Default `interrupt`.
   */
  readonly questions?: 'interrupt' | 'message'
  /**
   * For the agent at a URL: hosts that requests may name, as `NAME[:PORT]`. Default: loopback names. A runtime has its
   * own.
   */
  readonly hosts?: readonly string[]
  /**
   * For the agent at a URL: origins whose pages may connect, as `https://app.example`, or `loopback`. Default: only the
   * handler's own. A runtime has its own.
   */
  readonly origins?: readonly string[]
}

/** The kinds of the options. */
const OPTIONS: OptionKinds<AgUiOptions> = {
  path: A_PATH,
  questions: [value => value === 'interrupt' || value === 'message', "'interrupt' or 'message'"],
  hosts: textsSuchAs("['app.example']"),
  origins: textsSuchAs("['https://app.example']")
}

/** The path of the endpoint. */
const DEFAULT_PATH = '/ag-ui'

/** The bindings to an agent at a URL: those without a connection that lasts. */
const BINDINGS = ['JSONRPC', 'HTTP+JSON']

/** Makes the calls of one run. */
type OpenCalls = (call: HttpCall, signal: AbortSignal) => Promise<AgentCalls & { close?(): Promise<void> }>

/**
 * An agent over AG-UI as one fetch handler: a POST is a run, and its answer the events of the run. The agent is a
 * runtime, or any A2A server at a URL, to whose origin the `authorization` of requests is passed on. Other servers use
 * it through an adapter. `serve` has it beside the other bindings, with the option `agui`. It has no state. Throws
 * TypeError for an invalid URL and for an unknown option.
 */
export function agUiHandler(agent: Runtime | string, options: AgUiOptions = {}): Handler {
  checkAgUiOptions(options, 'agUiHandler')
  const { hosts, origins } = options
  if (typeof agent !== 'string') {
    const own = [hosts && 'hosts', origins && 'origins'].find(name => name !== undefined)
    if (own !== undefined) throw new TypeError(`A runtime has ${own} of its own: createRuntime({ agent, ${own} }).`)
    const runtime = servedRuntime(agent, 'agUiHandler')
    return endpointOf(runtime, options, callsOfRuntime(runtime)).answer
  }
  if (!URL.canParse(agent) || !/^https?:/i.test(agent))
    throw new TypeError(`agUiHandler takes a runtime, or a URL such as 'https://agent.example/', not ${kindOf(agent)}.`)
  const gateway = servedRuntime(
    createRuntime({
      /* c8 ignore next -- no task is opened here: the runtime only has the rules for requests */
      agent: defineAgent({ card: { name: 'AG-UI' }, work: () => undefined }),
      ...(hosts && { hosts }),
      ...(origins && { origins })
    }),
    'agUiHandler'
  )
  return endpointOf(gateway, options, callsOfUrl(agent)).answer
}

/** A handler that answers requests over AG-UI, below the path of an agent, and passes on all others. */
export function withAgUi(runtime: ServedRuntime, agentPath: string, options: AgUiOptions, other: Handler): Handler {
  checkAgUiOptions(options, 'serve({ agui })')
  const path = `${basePath(agentPath)}${options.path ?? DEFAULT_PATH}`
  const { isAt, answer } = endpointOf(runtime, { ...options, path }, callsOfRuntime(runtime))
  return (request, served) => (isAt(new URL(request.url).pathname) ? answer : other)(request, served)
}

/** The URL of the endpoint of an agent at a URL. */
export function agUiUrlAt(agentUrl: string, { path = DEFAULT_PATH }: AgUiOptions = {}): string {
  return `${basePath(agentUrl)}${path}`
}

function checkAgUiOptions(options: unknown, taker: string): asserts options is AgUiOptions {
  if (!isObject(options))
    throw new TypeError(`${taker} takes options such as { questions: 'message' }, not ${kindOf(options)}.`)
  checkOptions(options, OPTIONS, taker, `${taker}(runtime, { questions: 'message' })`)
}

/** An endpoint: whether a path belongs to it, and its handler. */
interface Endpoint {
  readonly isAt: (pathname: string) => boolean
  readonly answer: Handler
}

function endpointOf(
  runtime: ServedRuntime,
  { path = DEFAULT_PATH, questions = 'interrupt' }: AgUiOptions,
  open: OpenCalls
): Endpoint {
  const { settings } = runtime
  const own = basePath(path)
  const find = (pathname: string) => endpointTenant(pathname, own, settings.hasTenants)

  const answer = async (request: HttpRequest, served: NodeResponse = {}): Promise<Response> => {
    const address = new URL(request.url)
    const refusal = requestRefusal(request, address, served, settings)
    if (refusal) return refusePost(settings, refusal, {})
    const origin = request.headers.get('origin') ?? undefined
    if (request.method === 'OPTIONS') return preflight(origin, request)
    const headers = crossOrigin(origin)
    const place = find(address.pathname)
    if (!place) return refusePost(settings, { status: 404, message: `AG-UI is at ${own}.` }, headers)
    if (request.method !== 'POST') return notAllowed(['POST', 'OPTIONS'], headers)
    const call = await admitPost(settings, request, served, { address, headers, tenant: place.tenant })
    if (!(call instanceof HttpCall)) return call
    let input: RunInput
    try {
      input = readRunInput(await bodyParameters(runtime, call))
    } catch (error) {
      const refused = settings.rejected.answerTo(shownError(error), callContextOf(call))
      return errorAnswer(refused, call)
    }
    try {
      const events = ({ signal }: { readonly signal: AbortSignal }) => runOf(input, call, signal)
      return await streamAnswer(runtime, call, events, ENCODING)
    } catch (error) {
      call.space?.end()
      return errorAnswer(error, call)
    }
  }

  async function* runOf(input: RunInput, call: HttpCall, signal: AbortSignal): AsyncGenerator<object, void, undefined> {
    const calls = await open(call, signal)
    try {
      const begin: AgUiEvent[] = []
      for await (const event of runEvents(input, calls, { questions, clock: settings.clock, signal })) {
        if (begin.length === 2) yield event
        // The task comes with the start of its run, so that a large one is sent in pieces.
        else if (begin.push(event) === 2) yield begin
      }
    } finally {
      await calls.close?.()
    }
  }

  const errorAnswer = async (error: unknown, { headers }: HttpCall) => {
    await delayRefusal(error, settings)
    return statusAnswer(error, headers)
  }
  return { isAt: pathname => find(pathname) !== undefined, answer }
}

/** The text between the data of two events. */
const BETWEEN = '\n\ndata: '

/** How events become server-sent events: the first two together. */
const ENCODING = {
  encode: (item: object) =>
    Array.isArray(item) ? item.map(event => JSON.stringify(event)).join(BETWEEN) : JSON.stringify(item),
  *encodeLarge(item: object) {
    for (const [i, event] of (item as readonly AgUiEvent[]).entries()) {
      if (i > 0) yield BETWEEN
      yield* jsonPieces(event)
    }
  },
  encodeError: (error: unknown) => {
    const { code, message } = shownError(error)
    return JSON.stringify({ type: 'RUN_ERROR', message, code } satisfies AgUiEvent)
  }
}

/** The calls of a run to a runtime here. A message that is sent again is processed once. */
function callsOfRuntime(runtime: ServedRuntime): OpenCalls {
  const { telemetry, capabilities } = runtime.settings
  return async (call, signal) => {
    const traced = telemetry ? traceParameters(telemetry, call.request.headers, 'AG-UI') : { binding: 'AG-UI' }
    const context: CallContext = { ...callContextOf(call, { signal, onGeneration: () => {} }), ...traced }
    const once = (own: AbortSignal): CallContext => ({ ...context, signal: own, extensions: [RELIABILITY_EXTENSION] })
    return {
      async *send(request, own) {
        const configuration = { ...request.configuration, returnImmediately: true }
        if (capabilities.streaming) yield* runtime.sendStreamingMessage(request, once(own))
        else yield await runtime.sendMessage({ ...request, configuration }, once(own))
      },
      subscribe: (id, own) => runtime.subscribeToTask({ id }, { ...context, signal: own }),
      getTask: request => runtime.getTask(request, context),
      listTasks: request => runtime.listTasks(request, context),
      cancelTask: id => runtime.cancelTask({ id }, context)
    }
  }
}

/** The calls of a run to an agent at a URL, with the credentials of the request. */
function callsOfUrl(url: string): OpenCalls {
  return async ({ request }, signal) => {
    const authorization = request.headers.get('authorization')
    const headers = authorization === null ? {} : { authorization }
    const agent: AgentClient = await connect(url, { headers, bindings: BINDINGS })
    return {
      // The client sends it without a stream to an agent that does not stream.
      send: (params, own) => agent.sendStreamingMessage(params, { signal: own }),
      subscribe: (id, own) => agent.subscribeToTask({ id }, { signal: own }),
      getTask: params => agent.getTask(params, { signal }),
      listTasks: params => agent.listTasks(params, { signal }),
      cancelTask: id => agent.cancelTask({ id }, { signal }),
      close: () => agent.close()
    }
  }
}
