import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { type AgentCard, type AgentInterface, tenantUrl } from '../../machines/protocol/card.ts'
import { AGENT_CARD_PATH } from '../../machines/protocol/uris.ts'
import type { Runtime } from '../../runtime/index.ts'
import { checkOptions, type OptionKinds } from '../../runtime/primitives/options.ts'
import { type ServedRuntime, servedRuntime } from '../../runtime/runtime-options.ts'
import { type AnswerHeaders, LightResponse, statusAnswer } from '../entry/answers.ts'
import type { HttpRequest } from '../entry/connection.ts'
import { checkInterfaces, INTERFACES, withScheme } from '../entry/interfaces.ts'
import { type Dialect, DIALECTS, Versions } from '../json-rpc/dispatch.ts'
import { parametersOf } from './call.ts'
import { notAllowed } from './rest.ts'

const MAX_AGE_SECONDS = 300

/** Answers requests for a runtime's card, in the requested version, signed if the runtime signs. */
export class CardAnswers {
  readonly #runtime: ServedRuntime
  readonly #versions: Versions
  /** The dialect whose members are added to the card of 1.0, for clients that request no version. */
  readonly #merging: Dialect | undefined
  readonly #since: Date

  constructor(runtime: ServedRuntime, versions: Versions) {
    this.#runtime = runtime
    this.#versions = versions
    this.#merging = versions.dialects.find(({ withCard }) => withCard)
    this.#since = new Date(runtime.settings.clock.now())
  }

  /**
   * Answers with the card in the version `named`, the raw value from the request, which may be empty. `more`: headers
   * of every answer.
   */
  async card(
    request: HttpRequest,
    named: string,
    interfaces: readonly AgentInterface[],
    more: AnswerHeaders,
    tenant?: string
  ): Promise<Response> {
    const asked = this.#versions.read(named)
    try {
      const made =
        typeof asked === 'object'
          ? asked.card(this.#runtime.agentCard(interfaces, tenant))
          : await this.#runtime.signedCard(
              interfaces,
              tenant,
              asked === 'unstated' ? this.#merging?.withCard : undefined
            )
      return cardAnswer(made, this.#since, request, more)
    } catch (error) {
      return statusAnswer(error, more)
    }
  }

  /**
   * Answers with a card from before 1.0. A request without a version gets all of them merged, since no members
   * conflict.
   */
  oldCard(
    request: HttpRequest,
    named: string,
    interfaces: readonly AgentInterface[],
    more: AnswerHeaders
  ): Promise<Response> | Response {
    if (typeof this.#versions.read(named) === 'object') return this.card(request, named, interfaces, more)
    const made = this.#runtime.agentCard(interfaces)
    return cardAnswer(
      Object.assign({}, ...this.#versions.dialects.map(dialect => dialect.card(made)).toReversed()),
      this.#since,
      request,
      more
    )
  }
}

/**
 * Answers a request for an agent's card (§8.2). It may be cached for 5 minutes and revalidated by its ETag or its date
 * (§8.6.1): `since`, the start of the server. `card` is JSON in the requested dialect, `more` the headers of every
 * answer.
 */
function cardAnswer(
  card: unknown,
  since: Date,
  { method, headers: requestHeaders }: HttpRequest,
  more: Readonly<Record<string, string>>
): Response {
  const body = JSON.stringify(card)
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  const caching = {
    ETag: etag,
    'Last-Modified': since.toUTCString(),
    'Cache-Control': `public, max-age=${MAX_AGE_SECONDS}`,
    Vary: 'A2A-Version, Origin'
  }
  const headers = { ...more, ...caching, ...SAFE }
  if (isKnown(requestHeaders, etag, since)) return new LightResponse(null, { status: 304, headers })
  return pageAnswer(method, body, { 'Content-Type': 'application/json', ...headers })
}

/** Answers a request for `/` with a page that shows how to call the agent. */
export function pageOf(card: AgentCard, { method }: HttpRequest): Response {
  return pageAnswer(method, page(card), {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'",
    ...SAFE
  })
}

const SAFE = { 'X-Content-Type-Options': 'nosniff' }

function pageAnswer(method: string, body: string, headers: Record<string, string>): Response {
  return new LightResponse(method === 'HEAD' ? null : body, {
    headers: { ...headers, 'Content-Length': String(Buffer.byteLength(body)) }
  })
}

/** With an ETag, the date is ignored (RFC 9110 §13.1.3). */
function isKnown(requestHeaders: HttpRequest['headers'], etag: string, since: Date): boolean {
  const tags = requestHeaders.get('if-none-match')
  if (tags !== null) return tags.split(',').some(tag => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
  const date = requestHeaders.get('if-modified-since')
  return date !== null && Date.parse(date) >= Math.floor(since.getTime() / 1000) * 1000
}

function page({ name, description, skills, supportedInterfaces }: AgentCard): string {
  const { url = '', tenant = '' } = supportedInterfaces[0] ?? {}
  const cardUrl = `${withScheme(url, 'http').replace(/\/$/, '')}${AGENT_CARD_PATH}`
  const example = skills.flatMap(({ examples = [] }) => examples)[0] ?? 'hello'
  const places = supportedInterfaces.map(
    ({ url, protocolBinding, protocolVersion, tenant }) =>
      `<li><code>${escaped(url)}</code> ${escaped(protocolBinding)}, A2A ${escaped(protocolVersion)}${tenant === undefined ? '' : `, tenant ${escaped(tenant)}`}`
  )
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(name)}</title>
<style>body { font: 1rem/1.5 system-ui; margin: 3rem auto; max-width: 42rem; padding: 0 1rem; color-scheme: light dark } pre { padding: 1rem; border: 1px solid; border-radius: .4rem; overflow: auto } code { overflow-wrap: anywhere }</style>
<h1>${escaped(name)}</h1>
<p>${escaped(description)}</p>
<p>An A2A agent. Its card is at <a href="${escaped(cardUrl)}">${escaped(cardUrl)}</a>. It is served at:</p>
<ul>
${places.join('\n')}
</ul>
<p>Talk to it:</p>
<pre>npx taskchart send ${escaped(tenantUrl(url, tenant))} "${escaped(example)}"</pre>
</html>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

/** The content of a card that depends on how the app serves the agent. */
export interface CardHandlerOptions {
  /** Every interface of the agent, the preferred one first. */
  readonly interfaces: readonly AgentInterface[]
  /** Older versions of A2A whose cards are served too: `[dialect03(runtime)]` of `taskchart/http`. Default none. */
  readonly dialects?: readonly Dialect[]
}

const OPTIONS: OptionKinds<CardHandlerOptions> = { interfaces: INTERFACES, dialects: DIALECTS }

/** A fetch handler that is also a listener for node:http and Express. */
export interface CardHandler {
  (request: Request): Promise<Response>
  (request: IncomingMessage, response: ServerResponse): Promise<void>
}

/**
 * The agent's card (§8.2) for an app with its own routing, such as one with the servers of the official SDK: mount it
 * at `/.well-known/agent-card.json`. Like the cards of `serve`, it is signed if the runtime signs, and cacheable: it
 * has `Cache-Control`, `ETag` and `Last-Modified`. It ignores path and Host. Throws TypeError for invalid `interfaces`.
 */
export function cardHandler(given: Runtime, options: CardHandlerOptions): CardHandler {
  const runtime = servedRuntime(given, 'cardHandler')
  checkOptions(options, OPTIONS, 'cardHandler', 'cardHandler(runtime, { interfaces })')
  const { interfaces, dialects = [] } = options
  if (!interfaces)
    throw new TypeError(`cardHandler needs interfaces, ${INTERFACES[1]}: a mounted card does not know its address.`)
  checkInterfaces(interfaces)
  const cards = new CardAnswers(runtime, new Versions(dialects, runtime.settings.versions))
  const answer = async (request: Request): Promise<Response> => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return notAllowed(['GET', 'HEAD'], {})
    const { version } = parametersOf(request, new URL(request.url).searchParams, [])
    return cards.card(request, version, interfaces, {})
  }
  const listener = getRequestListener(answer, { overrideGlobalObjects: false })
  const handler = (request: Request | IncomingMessage, response?: ServerResponse) =>
    response && 'rawHeaders' in request ? listener(request, response) : answer(request as Request)
  return handler as CardHandler
}
