import { createHash } from 'node:crypto'
import type { AgentCard, AgentInterface } from '../../machines/protocol/card.ts'
import { AGENT_CARD_PATH } from '../../machines/protocol/uris.ts'
import { normaliseVersion } from '../../machines/protocol/versions.ts'
import { tenantUrl } from '../../runtime/agent/tenant-interfaces.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { LightResponse, statusAnswer, type Headers } from '../entry/answers.ts'
import type { HttpRequest } from '../entry/connection.ts'
import { withScheme } from '../entry/interfaces.ts'
import type { Dialect } from '../json-rpc/dialect.ts'

const MAX_AGE_SECONDS = 300

/** Answers requests for a runtime's card, in the requested version, signed if the runtime signs. */
export class CardAnswers {
  readonly #runtime: Runtime
  readonly #dialects: readonly Dialect[]
  /** The dialect whose members are added to the card of 1.0, for clients that request no version. */
  readonly #merging: Dialect | undefined
  readonly #since: Date

  constructor(runtime: Runtime, dialects: readonly Dialect[]) {
    this.#runtime = runtime
    this.#dialects = dialects
    this.#merging = dialects.find(({ withCard }) => withCard)
    this.#since = new Date(runtime.settings.clock.now())
  }

  /** Answers with the card in the version `named`, the raw value from the request, which may be empty. `more`: headers of every answer. */
  async card(
    request: HttpRequest,
    named: string,
    interfaces: readonly AgentInterface[],
    more: Headers,
    tenant?: string
  ): Promise<Response> {
    const version = asked(named)
    const dialect = this.#dialectOf(version)
    try {
      const made = dialect
        ? dialect.card(this.#runtime.agentCard(interfaces, tenant))
        : await this.#runtime.signedCard(interfaces, tenant, version === '' ? this.#merging?.withCard : undefined)
      return cardAnswer(made, this.#since, request, more)
    } catch (error) {
      return statusAnswer(error, more)
    }
  }

  /** Answers with a card from before 1.0. A request without a version gets all of them merged, since no members conflict. */
  oldCard(
    request: HttpRequest,
    named: string,
    interfaces: readonly AgentInterface[],
    more: Headers
  ): Promise<Response> | Response {
    if (this.#dialectOf(asked(named))) return this.card(request, named, interfaces, more)
    const made = this.#runtime.agentCard(interfaces)
    return cardAnswer(
      Object.assign({}, ...this.#dialects.map(dialect => dialect.card(made)).toReversed()),
      this.#since,
      request,
      more
    )
  }

  #dialectOf(version: string): Dialect | undefined {
    return this.#dialects.find(dialect => dialect.version === version)
  }
}

/** The requested version; empty if the request names none, as most do. */
function asked(version: string): string {
  return version === '' ? '' : (normaliseVersion(version) ?? '')
}

/**
 * Answers a request for an agent's card (§8.2). It may be cached for 5 minutes and revalidated by its ETag or its date (§8.6.1):
 * `since`, the start of the server. `card` is JSON in the requested dialect, `more` the headers of every answer.
 */
function cardAnswer(
  card: unknown,
  since: Date,
  { method, headers: asked }: HttpRequest,
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
  if (isKnown(asked, etag, since)) return new LightResponse(null, { status: 304, headers })
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
function isKnown(asked: HttpRequest['headers'], etag: string, since: Date): boolean {
  const tags = asked.get('if-none-match')
  if (tags !== null) return tags.split(',').some(tag => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
  const date = asked.get('if-modified-since')
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
