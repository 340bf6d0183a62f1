import type { Socket } from 'node:net'
import type { AgentInterface } from '../../machines/protocol/card.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { AGENT_CARD_PATH } from '../../machines/protocol/uris.ts'
import { NO_ADDRESS } from '../../runtime/access/call-context.ts'
import type { Runtime } from '../../runtime/index.ts'
import { memoizeLast } from '../../runtime/primitives/collections.ts'
import { roundEnd } from '../../runtime/primitives/event-loop.ts'
import { checkOptions, textSuchAs, TRUE_OR_FALSE, type OptionKinds } from '../../runtime/primitives/options.ts'
import { type ServedRuntime, servedRuntime } from '../../runtime/runtime-options.ts'
import {
  refusalForVersion,
  hostRefusal,
  authenticateRequest,
  originRefusal,
  queryRefusal,
  type Authentication,
  type RefusedRequest
} from '../entry/admission.ts'
import { LightResponse, refusalAnswer, refusalOf, statusAnswer } from '../entry/answers.ts'
import type { Handler, HttpRequest, NodeResponse } from '../entry/connection.ts'
import {
  checkInterfaces,
  INTERFACES,
  interfacesAt,
  originMounted,
  connectionOrigin,
  tenantIn,
  type OfferedBindings
} from '../entry/interfaces.ts'
import { A_PATH, joinAgentUrl, basePath } from '../entry/listen.ts'
import { type Dialect, DIALECTS, methodsOf, operationsOf, Versions } from '../json-rpc/dispatch.ts'
import { traceParameters } from '../json-rpc/service-parameters.ts'
import { CardAnswers, pageOf } from './agent-card.ts'
import { delayRefusal, type RequestHead, HttpCall, parametersOf } from './call.ts'
import { codingRefusal, routeOf } from './parameters.ts'
import { answerDialect, answerRest, notAllowed, restFormOf } from './rest.ts'
import { answerRpc } from './rpc.ts'

/** The options of the HTTP bindings. */
export interface HandlerOptions {
  /** The path of the agent. Default `/`. */
  readonly path?: string
  /**
   * The URL in the card, if it differs from the one that the handler sees: behind a proxy, or if the app strips a path.
   * Default: the runtime's `publicUrl`, else the requested host in `hosts`, else the requested URL if it is a loopback
   * one.
   */
  readonly url?: string
  /** Whether the URL also accepts WebSockets, so that the card lists them. Default false. */
  readonly webSocket?: boolean
  /** Older versions of A2A to support beside 1.0. Default none. */
  readonly dialects?: readonly Dialect[]
  /** Other interfaces of the agent, such as gRPC. The card and the extended card list them last. Default none. */
  readonly interfaces?: readonly AgentInterface[]
}

const OPTIONS: OptionKinds<HandlerOptions> = {
  path: A_PATH,
  url: textSuchAs("'https://agent.example/'"),
  webSocket: TRUE_OR_FALSE,
  dialects: DIALECTS,
  interfaces: INTERFACES
}

/** The answer to a request for a card or page if the agent's URL is unknown. */
export const NOWHERE: RefusedRequest = { status: 421, message: NO_ADDRESS }

/** The path of the card in A2A before 0.3. */
const OLD_CARD_PATH = '/.well-known/agent.json'

/**
 * The HTTP bindings of a runtime as one fetch handler: JSON-RPC at the path itself (§9), REST below it (§11), and a
 * page for people. The card is at its well-known path, below this path and on the host (§8.2). Streams are server-sent
 * events. Other servers use it through an adapter. Throws TypeError for invalid `interfaces`.
 */
export function httpHandler(agentRuntime: Runtime, given: HandlerOptions = {}): Handler {
  const runtime = servedRuntime(agentRuntime, 'httpHandler')
  checkOptions(given, OPTIONS, 'httpHandler', "httpHandler(runtime, { path: '/agent' })")
  const { webSocket = false, dialects = [], ...options } = given
  const { settings } = runtime
  const versions = new Versions(dialects, settings.versions)
  const methods = methodsOf(runtime, versions)
  const operations = operationsOf(runtime)
  const { authenticate, hasTenants, counters, telemetry } = settings

  const refused = (refusal: RefusedRequest, head: RequestHead, isRpc: boolean) => {
    counters.refused(refusal.status)
    const { parameters, headers } = head
    return refusalAnswer(
      refusalForVersion(refusal, parameters.version, versions),
      headers,
      isRpc ? 'JSONRPC' : restFormOf(versions, head)
    )
  }

  /** Answers a request of an identified caller, or of anybody. */
  const answered = (
    request: HttpRequest,
    head: RequestHead,
    served: NodeResponse,
    { principal, refusal }: Authentication
  ): Promise<Response> => {
    const { path } = head
    const routed = hasTenants ? routeOf(request.method, path) : undefined
    const tenant = hasTenants && request.method === 'POST' && !routed ? tenantIn(path) : undefined
    const isRpc = path === '/' || tenant !== undefined
    const binding = isRpc ? 'JSONRPC' : 'HTTP+JSON'
    if (refusal) return Promise.resolve(refused(refusal, head, isRpc))
    const pathTenant = tenant ?? tenantOf(routed)
    const full = principal && served.direct?.claim?.(settings.ownerOf(principal, pathTenant))
    const wrong = full ?? (request.method === 'POST' ? codingRefusal(request) : undefined)
    if (wrong) {
      const over = settings.rejected.count({ tenant: pathTenant, principal: principal?.id, claims: principal?.claims })
      return delayRefusal(over, settings).then(() => refused(over ? refusalOf(over) : wrong, head, isRpc))
    }
    const traced = telemetry && traceParameters(telemetry, request.headers, binding)
    const call = new HttpCall(settings, request, served, head, { principal, pathTenant, traced }, tenant)
    return isRpc
      ? answerRpc(runtime, methods, call)
      : (answerDialect(runtime, versions, call) ?? answerRest(runtime, operations, call))
  }
  return mountedHandler(runtime, { ...options, webSocket, dialects, http: true }, (request, head, served) => {
    const answer = authenticate
      ? authenticateRequest(() => Object.fromEntries(request.headers), settings).then(caller =>
          answered(request, head, served, caller)
        )
      : answered(request, head, served, ANYBODY)
    return served.direct ? answer : answer.then(response => roundEnd().then(() => response))
  })
}

/** The caller of an agent without authentication. */
const ANYBODY: Authentication = {}

/** The tenant in a REST route. */
function tenantOf(routed: ReturnType<typeof routeOf>): string | undefined {
  return routed && 'method' in routed && routed.tenant !== undefined ? tenantIn(`/${routed.tenant}`) : undefined
}

/** Serves only the card and the page, for an agent that is not served over HTTP. */
export function cardAndPage(runtime: ServedRuntime, options: MountOptions): Handler {
  const nothing = `Nothing is here. The agent's card is at ${AGENT_CARD_PATH}.`
  return mountedHandler(runtime, options, async (_, { headers }) =>
    statusAnswer(new A2AError('MethodNotFound', nothing), headers)
  )
}

type MountOptions = Pick<HandlerOptions, 'path' | 'url'> & OfferedBindings

/** Admits requests, answers those for the public card and page, and passes on the rest. */
function mountedHandler(
  runtime: ServedRuntime,
  { path = '/', url, ...offer }: MountOptions,
  answer: (request: HttpRequest, head: RequestHead, served: NodeResponse) => Promise<Response>
): Handler {
  checkInterfaces(offer.interfaces)
  const { settings } = runtime
  const base = basePath(path)
  const cards = new CardAnswers(runtime, new Versions(offer.dialects, settings.versions))
  const publicUrl = url ?? settings.publicUrl

  const interfacesFor = memoizeLast(address => interfacesAt(address, offer, settings.versions))
  /** The interfaces to show to a request; empty if the agent's URL is unknown. */
  const interfacesShown = (address: URL, { direct }: NodeResponse): readonly AgentInterface[] => {
    if (publicUrl !== undefined) return interfacesFor(publicUrl)
    if (direct) return interfacesByConnection(address.hostname, direct.socket)
    const origin = originMounted(address, settings.hosts)
    return origin === undefined ? [] : interfacesFor(joinAgentUrl(origin, base))
  }
  /** The last result for a connection to a Node server: most requests have the same. */
  let lastResult:
    | {
        readonly name: string
        readonly localAddress: string | undefined
        readonly localPort: number | undefined
        readonly interfaces: readonly AgentInterface[]
      }
    | undefined
  const interfacesByConnection = (name: string, { localAddress, localPort }: Socket): readonly AgentInterface[] => {
    if (lastResult?.name !== name || lastResult.localAddress !== localAddress || lastResult.localPort !== localPort) {
      lastResult = {
        name,
        localAddress,
        localPort,
        interfaces: interfacesFor(
          joinAgentUrl(connectionOrigin(name, { localAddress, localPort }, settings.hosts), base)
        )
      }
    }
    return lastResult.interfaces
  }
  const belowBase = memoizeLast(pathname => pathBelow(base, pathname))
  const addressOf = memoizeLast(url => new URL(url))

  const admitted = (
    request: HttpRequest,
    address: URL,
    headers: Record<string, string>,
    served: NodeResponse
  ): Promise<Response> | Response => {
    const { pathname, searchParams: query } = address
    const interfaces = interfacesShown(address, served)
    const below = belowBase(pathname)
    const parameters = parametersOf(request, query, settings.extensions)
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const tenant =
      settings.hasTenants && below.endsWith(AGENT_CARD_PATH)
        ? tenantIn(below.slice(0, -AGENT_CARD_PATH.length))
        : undefined
    const isHome = below === '/' || pathname === '/'
    const isCard = below === AGENT_CARD_PATH || pathname === AGENT_CARD_PATH || tenant !== undefined
    const isOldCard = below === OLD_CARD_PATH && offer.dialects.length > 0
    if (isRead && interfaces.length === 0 && (isHome || isCard || isOldCard)) return refusalAnswer(NOWHERE, headers)
    if (isCard) {
      return isRead
        ? cards.card(request, parameters.version, interfaces, headers, tenant)
        : notAllowed(['GET', 'HEAD'], headers)
    }
    if (isOldCard && isRead) return cards.oldCard(request, parameters.version, interfaces, headers)
    if (isHome && isRead) return pageOf(runtime.agentCard(interfaces), request)
    if (isHome && !(offer.http && request.method === 'POST'))
      return notAllowed(offer.http ? ['GET', 'HEAD', 'POST'] : ['GET', 'HEAD'], headers)
    return answer(request, { path: below, query, parameters, headers, interfaces }, served)
  }

  const answered = (request: HttpRequest, served: NodeResponse): Promise<Response> | Response => {
    const address = addressOf(request.url)
    const origin = request.headers.get('origin') ?? undefined
    const refusal = requestRefusal(request, address, served, settings)
    if (refusal) {
      settings.counters.refused(refusal.status)
      return refusalAnswer(refusal)
    }
    if (request.method === 'OPTIONS') return preflight(origin, request)
    return admitted(request, address, crossOrigin(origin), served)
  }
  return (request, served = {}) => Promise.resolve(answered(request, served))
}

/**
 * The rules for every request: Host, for one of an app for its URL too, which has the host of an absolute target;
 * Origin; and no credentials in the URL.
 */
export function requestRefusal(
  request: HttpRequest,
  address: URL,
  { direct }: NodeResponse,
  settings: ServedRuntime['settings']
): RefusedRequest | undefined {
  const host = (direct ? undefined : request.headers.get('host')) ?? address.host
  const mountedRefusal = direct
    ? undefined
    : (hostRefusal(address.host, undefined, settings) ?? hostRefusal(host, undefined, settings))
  return (
    mountedRefusal ??
    originRefusal(request.headers.get('origin') ?? undefined, host, settings) ??
    queryRefusal(address.searchParams)
  )
}

/**
 * The path below the base, with one leading slash and no trailing one; empty outside of the base. Joined URLs may have
 * two slashes.
 */
function pathBelow(base: string, pathname: string): string {
  const inside = pathname === base || pathname.startsWith(`${base}/`)
  if (!inside) return ''
  return pathname.slice(base.length).replace(/^\/+/, '/').replace(/\/$/, '') || '/'
}

/** Response headers that a page may read. */
const EXPOSED = 'A2A-Extensions, X-A2A-Extensions, ETag, Retry-After, WWW-Authenticate'

const NO_HEADERS = {}

/** The CORS headers of an answer to an admitted origin. */
export function crossOrigin(origin: string | undefined): Record<string, string> {
  return origin === undefined
    ? NO_HEADERS
    : { 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': EXPOSED, Vary: 'Origin' }
}

/** Answers a CORS preflight request. Credentials are sent in headers, never in cookies. */
export function preflight(origin: string | undefined, { headers }: HttpRequest): Response {
  return new LightResponse(null, {
    status: 204,
    headers: {
      Allow: 'GET, HEAD, POST, DELETE, OPTIONS',
      ...crossOrigin(origin),
      ...(origin !== undefined && {
        'Access-Control-Allow-Methods': 'GET, POST, DELETE',
        'Access-Control-Allow-Headers': headers.get('access-control-request-headers') ?? 'content-type',
        'Access-Control-Max-Age': '600'
      })
    }
  })
}
