import type { McpHttpHandler, McpRequestContext } from '@modelcontextprotocol/server'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { A2AError } from '../../machines/protocol/errors.ts'
import type { Runtime } from '../../runtime/index.ts'
import { onAbort } from '../../runtime/primitives/event-loop.ts'
import {
  checkOptions,
  kindOf,
  objectSuchAs,
  TRUE_OR_FALSE,
  textsSuchAs,
  type OptionKinds
} from '../../runtime/primitives/options.ts'
import { type ServedRuntime, servedRuntime } from '../../runtime/runtime-options.ts'
import type { RefusedRequest } from '../entry/admission.ts'
import { errorHeaders, jsonAnswer, LightResponse, rpcStatus, shownError } from '../entry/answers.ts'
import {
  type Direction,
  type Handler,
  type HttpRequest,
  type NodeResponse,
  requestConnectionName,
  type Tap
} from '../entry/connection.ts'
import { connectionOrigin, endpointTenant, originMounted, withScheme } from '../entry/interfaces.ts'
import { A_PATH, basePath } from '../entry/listen.ts'
import { callContextOf, delayRefusal, goneSignal, HttpCall, type RequestHead } from '../http/call.ts'
import { admitPost, refusePost } from '../http/endpoint.ts'
import { crossOrigin, NOWHERE, preflight, requestRefusal } from '../http/handler.ts'
import { bodyOf } from '../http/parameters.ts'
import { notAllowed } from '../http/rest.ts'
import { inPieces, passEvents, type PassedStream } from '../http/streaming.ts'
import { errorFrame, readEnvelope, type Envelope, type RequestId } from '../json-rpc/dispatch.ts'
import { checkPackages } from '../peers/installed-packages.ts'
import { AgentOverMcp, BINDING, checkRequest, type McpConnection, type McpSdk } from './mcp-server.ts'
import { isBearer, metadataPath, resourceMetadata, withMetadata } from './resource-metadata.ts'
import type { McpSettings } from './tool-calls.ts'
import type { ToolAnnotations } from './tools.ts'

/** Options of an agent over MCP. */
export interface McpOptions {
  /** The path of the endpoint; for `serve`, below the path of the agent. Default `/mcp`. */
  readonly path?: string
  /**
   * The URL of the endpoint, if it differs from the one that the handler sees. Default: `path` below `publicUrl`, whose
   * own path `mcpHandler` does not repeat.
   */
  readonly url?: string
  /**
   * How long a call waits for its task, in milliseconds, if its client knows no tasks; then it gets the state. Default
   * 50,000, because many hosts end a call after 60 seconds.
   */
  readonly waitMs?: number
  /**
   * The effect of a user's no to a question: `cancel` of the task, or a `message`; a question that refuses the message is
   * asked again. Default: a message if the question takes one, else cancel.
   */
  readonly declined?: 'message' | 'cancel'
  /**
   * The fate of a call's task if the client disconnects before it has the task's id. Default `cancel`, since nobody
   * could ever read it.
   */
  readonly closed?: 'cancel' | 'keep'
  /** Whether forms have texts and choices only, for hosts that show no numbers. Default false. */
  readonly plainForms?: boolean
  /** Hints for hosts about tools, by the ids of skills, such as `{ weather: { readOnlyHint: true } }`. Default none. */
  readonly annotations?: Readonly<Record<string, ToolAnnotations>>
  /** The issuers of access tokens, for the metadata of the resource. Default: those in the card's security schemes. */
  readonly authorizationServers?: readonly string[]
  /** The scopes that a client should ask for. Default: those in the card's security schemes. */
  readonly scopes?: readonly string[]
}

/** The kinds of the options. */
const OPTIONS: OptionKinds<McpOptions> = {
  path: A_PATH,
  url: [
    value => typeof value === 'string' && /^https?:/i.test(value) && URL.canParse(value),
    "a URL such as 'https://agent.example/mcp'"
  ],
  waitMs: [value => typeof value === 'number' && value >= 0 && value < 2 ** 31, 'milliseconds such as 50_000'],
  declined: [value => value === 'message' || value === 'cancel', "'message' or 'cancel'"],
  closed: [value => value === 'cancel' || value === 'keep', "'cancel' or 'keep'"],
  plainForms: TRUE_OR_FALSE,
  annotations: objectSuchAs('{ weather: { readOnlyHint: true } }'),
  authorizationServers: textsSuchAs("['https://login.example']"),
  scopes: textsSuchAs("['tasks']")
}

/** The path of the endpoint. */
const DEFAULT_PATH = '/mcp'

/** The package that serves MCP. */
export const MCP_PACKAGE = '@modelcontextprotocol/server'

/** How long a call waits for its task, in milliseconds. */
const WAIT_MS = 50_000

/**
 * The cost of a request beyond that of its bytes, as a number of bytes. The SDK takes 0.2 ms of CPU more for a request
 * than the other bindings (`npm run bench -- --only mcp`), so two begin in a round of the event loop for each of
 * several callers.
 */
const SDK_COST = 8 * 1024

/** Methods that reach an operation of the runtime, which counts them. */
export const COUNTED: ReadonlySet<string> = new Set([
  'tools/call',
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
  'resources/read'
])

/** The settings of an agent over MCP, with their defaults. */
export function mcpSettings(options: McpOptions): McpSettings {
  const { waitMs = WAIT_MS, closed = 'cancel', plainForms = false, annotations = {}, declined } = options
  return { waitMs, closed, plainForms, annotations, declined }
}

/** Throws TypeError for an unknown option, and for one of another kind. */
export function checkMcpOptions(options: unknown, taker: string): asserts options is McpOptions {
  if (!isObject(options))
    throw new TypeError(`${taker} takes options such as { waitMs: 50_000 }, not ${kindOf(options)}.`)
  checkOptions(options, OPTIONS, taker, `${taker}(runtime, { waitMs: 50_000 })`)
}

/** Throws TypeError if the package that serves MCP is not installed, or known to fail. */
export function checkMcpInstalled(taker: string): void {
  try {
    import.meta.resolve(MCP_PACKAGE)
  } catch (cause) {
    throw new TypeError(`${taker} needs the MCP SDK. Install it: npm install ${MCP_PACKAGE}`, { cause })
  }
  checkPackages([MCP_PACKAGE])
}

/**
 * An agent over MCP as one fetch handler: the tools of 2026-07-28, with the extension for tasks, and on the same path
 * the versions from 2025-06-18 on that begin with `initialize`. Other servers use it through an adapter. `serve` has it
 * beside the other bindings, with the option `mcp`. The first request loads the SDK. Throws TypeError if
 * `@modelcontextprotocol/server` is not installed, and for an unknown option.
 */
export function mcpHandler(given: Runtime, options: McpOptions = {}): Handler {
  const runtime = servedRuntime(given, 'mcpHandler')
  checkMcpOptions(options, 'mcpHandler')
  return endpointOf(runtime, options, 'mcpHandler', mountedUrl(runtime.settings, options)).answer
}

/**
 * A handler that answers requests over MCP, below the path of an agent, and passes on all others. `tap` receives the
 * messages over MCP.
 */
export function withMcp(
  runtime: ServedRuntime,
  agentPath: string,
  options: McpOptions,
  other: Handler,
  tap?: Tap
): Handler {
  checkMcpOptions(options, 'serve({ mcp })')
  const path = `${basePath(agentPath)}${options.path ?? DEFAULT_PATH}`
  const agentUrl = knownAgentUrl(runtime.settings, 'serve({ mcp })')
  const url = agentUrl === undefined ? undefined : mcpUrlAt(agentUrl, options)
  const { isAt, answer } = endpointOf(runtime, { ...options, path }, 'serve({ mcp })', url, tap)
  return (request, served) => (isAt(new URL(request.url).pathname) ? answer : other)(request, served)
}

/** The URL of the endpoint of an agent at a URL. */
export function mcpUrlAt(agentUrl: string, { path = DEFAULT_PATH }: McpOptions = {}): string {
  return `${basePath(agentUrl)}${path}`
}

/** The URL of the agent over HTTP, if the runtime has a `publicUrl`. Throws TypeError if that is no URL. */
function knownAgentUrl({ publicUrl }: ServedRuntime['settings'], taker: string): string | undefined {
  if (publicUrl === undefined) return undefined
  if (URL.canParse(publicUrl)) return withScheme(publicUrl, 'http')
  throw new TypeError(`${taker} needs a publicUrl such as 'https://agent.example/', not ${JSON.stringify(publicUrl)}.`)
}

/**
 * The URL of an endpoint below `publicUrl`. Its path is that of the requests, so one that begins with the path of the
 * agent has that already.
 */
function mountedUrl(settings: ServedRuntime['settings'], { path = DEFAULT_PATH }: McpOptions): string | undefined {
  const agentUrl = knownAgentUrl(settings, 'mcpHandler')
  if (agentUrl === undefined) return undefined
  const { origin, pathname } = new URL(agentUrl)
  return mcpUrlAt(path.startsWith(`${basePath(pathname)}/`) ? origin : agentUrl, { path })
}

/** An endpoint: whether a path belongs to it, and its handler. */
interface Endpoint {
  readonly isAt: (pathname: string) => boolean
  readonly answer: Handler
}

/** `ownUrl`: the URL of the endpoint for clients, if the runtime says where the agent is. */
function endpointOf(
  runtime: ServedRuntime,
  options: McpOptions,
  taker: string,
  ownUrl: string | undefined,
  tap?: Tap
): Endpoint {
  checkMcpInstalled(taker)
  const { settings } = runtime
  const paths = new McpPaths(options.path ?? DEFAULT_PATH, settings.hasTenants, options.url ?? ownUrl)
  let loaded: Promise<LoadedSdk> | undefined
  const load = () => (loaded ??= loadSdk(runtime, mcpSettings(options)))

  /** The path that a path of metadata describes. Only what asks for bearer tokens has metadata. */
  const described = (pathname: string) => (isBearer(settings.challenge) ? paths.describedBy(pathname) : undefined)

  /** The URL of the endpoint that a request is for; `undefined` if it cannot be known. */
  const urlOf = (address: URL, { direct }: NodeResponse, path: string): string | undefined => {
    const { hosts } = settings
    const own = paths.urlOf(path)
    if (own !== undefined) return own
    const origin = direct ? connectionOrigin(address.hostname, direct.socket, hosts) : originMounted(address, hosts)
    return origin === undefined ? undefined : `${origin}${path}`
  }

  const refuse = (refusal: RefusedRequest, headers: RequestHead['headers']) => refusePost(settings, refusal, headers)

  const metadata = (address: URL, served: NodeResponse, path: string, headers: RequestHead['headers']) => {
    const url = urlOf(address, served, path)
    if (url === undefined) return refuse(NOWHERE, headers)
    const body = JSON.stringify(resourceMetadata(url, runtime.agentCard([]), options))
    return new LightResponse(body, { headers: { 'Content-Type': 'application/json', ...headers } })
  }

  const answer = async (request: HttpRequest, served: NodeResponse = {}): Promise<Response> => {
    const address = new URL(request.url)
    const refusal = requestRefusal(request, address, served, settings)
    if (refusal) return refuse(refusal, {})
    const origin = request.headers.get('origin') ?? undefined
    if (request.method === 'OPTIONS') return preflight(origin, request)
    const headers = crossOrigin(origin)
    const path = described(address.pathname)
    if (path !== undefined)
      return request.method === 'GET' || request.method === 'HEAD'
        ? metadata(address, served, path, headers)
        : notAllowed(['GET', 'HEAD'], headers)
    const place = paths.find(address.pathname)
    if (!place) return refuse({ status: 404, message: `MCP is at ${paths.path}.` }, headers)
    if (request.method !== 'POST') return notAllowed(['POST', 'OPTIONS'], headers)
    const post = { address, headers, tenant: place.tenant, binding: BINDING, extraCost: SDK_COST }
    const call = await admitPost(settings, request, served, post, refusal =>
      withMetadata(refusal, urlOf(address, served, address.pathname), options)
    )
    if (!(call instanceof HttpCall)) return call
    const gone = new AbortController()
    let stream: PassedStream | undefined
    const isBehind = () => stream?.isBehind() === true
    const answer = await answered(call, await answerRpc(call, await readBody(call), { gone, isBehind }))
    if (answer.body && isEventStream(answer)) {
      stream = passEvents(runtime, call, answer.body, () => gone.abort())
      return stream.response
    }
    const { space } = call
    if (space && answer.status === 200) return inPieces(runtime, call, space, [await answer.text()], headers)
    space?.end()
    return answer
  }

  const tellTap = ({ served }: HttpCall, direction: Direction, text: string) =>
    tap?.onFrame?.(requestConnectionName('mcp', served), direction, text)

  /** An answer whose messages are recorded, if anybody records. */
  const answered = (call: HttpCall, answer: Response) =>
    tap?.onFrame ? withMessages(answer, text => tellTap(call, 'out', text)) : answer

  const readBody = async (call: HttpCall): Promise<Envelope> => {
    try {
      const text = await bodyOf(call, settings.limits.messageBytes)
      tellTap(call, 'in', text)
      return readEnvelope(text, settings.jsonLimits)
    } catch (error) {
      return { kind: 'invalid', id: null, error: shownError(error) }
    }
  }

  const answerRpc = async (call: HttpCall, given: Envelope, { gone, isBehind }: Reader): Promise<Response> => {
    const context = callContextOf(call)
    const { headers } = call
    const { handler, sdk } = await load()
    const envelope = checkRequest(sdk, given)
    const id = 'id' in envelope ? envelope.id : null
    const refused = async (error: A2AError) => {
      await delayRefusal(error, settings)
      return errorAnswer(id, error, headers)
    }
    if (envelope.kind === 'invalid') return refused(settings.rejected.answerTo(envelope.error, context))
    const disconnected = goneSignal(call)
    const isCounted = envelope.kind === 'request' && COUNTED.has(envelope.method) && !disconnected.aborted
    const over = isCounted ? undefined : settings.rejected.count(context)
    if (over) return refused(over)
    // Nobody reads the answer to a client that has disconnected while its request waited.
    if (envelope.kind === 'response' || disconnected.aborted) return new LightResponse(null, { status: 202, headers })
    let failure: A2AError | undefined
    let isReached = false
    const stop = onAbort(disconnected, () => gone.abort())
    try {
      const request = new Request(call.request.url, {
        method: 'POST',
        headers: Array.from(call.request.headers),
        signal: gone.signal
      })
      const { method, params } = envelope
      const message = { jsonrpc: '2.0', method, ...(params !== undefined && { params }) }
      const extra: SdkExtra = {
        call: context,
        isBehind,
        onReached: () => (isReached = true),
        onError: error => (failure = error)
      }
      const answer = await handler.fetch(request, {
        parsedBody: envelope.kind === 'request' ? { ...message, id: envelope.id } : message,
        authInfo: { token: '', clientId: '', scopes: [], extra: { ...extra } }
      })
      // The SDK has refused it.
      const over = isCounted && !isReached ? settings.rejected.count(context) : undefined
      if (over) return await refused(over)
      if (failure) await delayRefusal(failure, settings)
      return withHeaders(answer, headers, failure)
    } finally {
      stop()
    }
  }
  return { isAt: pathname => paths.find(pathname) !== undefined || described(pathname) !== undefined, answer }
}

/** The client of a request, as far as it reads the answer. */
interface Reader extends Pick<SdkExtra, 'isBehind'> {
  /** Ends the request. */
  readonly gone: AbortController
}

/** The parts of a request that the SDK passes on to the factory of its server. */
type SdkExtra = Required<Omit<McpConnection, 'era'>>

interface LoadedSdk {
  readonly sdk: McpSdk
  readonly handler: McpHttpHandler
}

async function loadSdk(runtime: ServedRuntime, settings: McpSettings): Promise<LoadedSdk> {
  const sdk = await import('@modelcontextprotocol/server')
  const agent = new AgentOverMcp(runtime, sdk, settings)
  const serverFor = ({ era, authInfo }: McpRequestContext) =>
    agent.serverFor({ era, ...(authInfo?.extra as unknown as SdkExtra) })
  // Streams have comments of their own.
  return { sdk, handler: sdk.createMcpHandler(serverFor, { keepAliveMs: 0 }) }
}

/** The answer to a request that does not reach the SDK. */
function errorAnswer(id: RequestId | null, error: A2AError, headers: RequestHead['headers']): Response {
  const status = rpcStatus(error)
  return jsonAnswer(errorFrame(id, error), { ...headers, ...errorHeaders(error) }, status === 200 ? 400 : status)
}

/** An answer whose messages are also passed to a listener: its JSON, or each event of its stream. */
async function withMessages(answer: Response, onMessage: (text: string) => void): Promise<Response> {
  if (!answer.body) return answer
  if (!isEventStream(answer)) {
    const text = await answer.text()
    onMessage(text)
    return new LightResponse(text, answer)
  }
  const decoder = new TextDecoder()
  let rest = ''
  const transform = (chunk: Uint8Array, controller: TransformStreamDefaultController<Uint8Array>) => {
    controller.enqueue(chunk)
    const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split('\n')
    rest = lines.pop() as string
    for (const line of lines) if (line.startsWith(DATA)) onMessage(line.slice(DATA.length))
  }
  return new Response(answer.body.pipeThrough(new TransformStream({ transform })), answer)
}

/** The beginning of a line of an event stream with a message. */
const DATA = 'data: '

function isEventStream({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('text/event-stream') === true
}

/** An answer of the SDK with the headers of every answer, and with the status of its error. */
function withHeaders(answer: Response, own: RequestHead['headers'], failure: A2AError | undefined): Response {
  const headers = new Headers(answer.headers)
  for (const [name, value] of Object.entries({ ...own, ...(failure && errorHeaders(failure)) }))
    headers.set(name, value)
  const status =
    failure && answer.status === 200 && !isEventStream(answer) && failure.code !== 'Forbidden'
      ? rpcStatus(failure)
      : answer.status
  return new Response(answer.body, { status, headers })
}

/**
 * The paths of an endpoint: its own, one for each tenant, and those of its metadata. Behind a proxy the URLs that
 * clients use have other paths than those of the requests.
 */
class McpPaths {
  readonly path: string
  readonly #hasTenants: boolean
  /** The URL of the endpoint, if it does not follow from requests. */
  readonly #url: URL | undefined

  constructor(path: string, hasTenants: boolean, url: string | undefined) {
    this.path = basePath(path)
    this.#hasTenants = hasTenants
    this.#url = url === undefined ? undefined : new URL(url)
  }

  /** The tenant of a path of this endpoint; `undefined` for another path. */
  find(pathname: string): { readonly tenant: string | undefined } | undefined {
    return endpointTenant(pathname, this.path, this.#hasTenants)
  }

  /** The URL that clients use for a path of this endpoint; `undefined` if it follows from requests. */
  urlOf(path: string): string | undefined {
    const asked = basePath(path)
    if (!this.#url || asked === this.path) return this.#url?.href
    return `${this.#url.origin}${moved(asked, this.path, this.#url.pathname)}`
  }

  /** The path of this endpoint that a path of metadata describes: that of the requests, or that of the URL. */
  describedBy(pathname: string): string | undefined {
    const path = metadataPath(pathname)
    if (path === undefined) return undefined
    const asked = basePath(path)
    const own = this.#url ? moved(asked, basePath(this.#url.pathname), this.path) : asked
    return [own, asked].find(each => this.find(each) !== undefined)
  }
}

/** A path of one endpoint as that of another one: its own path, or one in its folder. Others stay as they are. */
function moved(path: string, from: string, to: string): string {
  if (path === from) return to
  const folder = folderOf(from)
  return path.startsWith(`${folder}/`) ? `${folderOf(to)}${path.slice(folder.length)}` : path
}

/** A path without its last segment. */
function folderOf(path: string): string {
  return path.replace(/\/[^/]*$/, '')
}
