import { createHash } from 'node:crypto'
import type { AgentCard } from '../../machines/protocol/card.ts'
import { AGENT_CARD_PATH } from '../../machines/protocol/uris.ts'
import { tenantUrl } from '../../runtime/tenant-interfaces.ts'
import { LightResponse } from './light-response.ts'

const MAX_AGE_SECONDS = 300

/**
 * Answers a request for an agent's card (§8.2). It may be cached for 5 minutes and is asked for again by its ETag or its
 * date (§8.6.1), which is `since`: that of the start of the server. `card` is JSON in the dialect that was asked for, `more`
 * the headers of every answer to the request.
 */
export function cardAnswer(card: unknown, since: Date, { method, headers: asked }: Request, more: Readonly<Record<string, string>>): Response {
  const body = JSON.stringify(card)
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  const caching = { ETag: etag, 'Last-Modified': since.toUTCString(), 'Cache-Control': `public, max-age=${MAX_AGE_SECONDS}`, Vary: 'A2A-Version, Origin' }
  const headers = { ...more, ...caching, ...SAFE }
  if (isKnown(asked, etag, since)) return new LightResponse(null, { status: 304, headers })
  return pageAnswer(method, body, { 'Content-Type': 'application/json', ...headers })
}

/** Answers a request for `/` with a page that says how to talk to the agent. */
export function pageOf(card: AgentCard, { method }: Request): Response {
  return pageAnswer(method, page(card), { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'", ...SAFE })
}

const SAFE = { 'X-Content-Type-Options': 'nosniff' }

function pageAnswer(method: string, body: string, headers: Record<string, string>): Response {
  return new LightResponse(method === 'HEAD' ? null : body, { headers: { ...headers, 'Content-Length': String(Buffer.byteLength(body)) } })
}

/** An ETag says more than a date: with one, the date is not looked at (RFC 9110 §13.1.3). */
function isKnown(asked: Headers, etag: string, since: Date): boolean {
  const tags = asked.get('if-none-match')
  if (tags !== null) return tags.split(',').some(tag => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
  const date = asked.get('if-modified-since')
  return date !== null && Date.parse(date) >= Math.floor(since.getTime() / 1000) * 1000
}

function page({ name, description, skills, supportedInterfaces }: AgentCard): string {
  const { url = '', tenant = '' } = supportedInterfaces[0] ?? {}
  const example = skills.flatMap(({ examples = [] }) => examples)[0] ?? 'hello'
  const places = supportedInterfaces.map(({ url, protocolBinding, protocolVersion, tenant }) => `<li><code>${escaped(url)}</code> ${escaped(protocolBinding)}, A2A ${escaped(protocolVersion)}${tenant === undefined ? '' : `, tenant ${escaped(tenant)}`}`)
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(name)}</title>
<style>body { font: 1rem/1.5 system-ui; margin: 3rem auto; max-width: 42rem; padding: 0 1rem; color-scheme: light dark } pre { padding: 1rem; border: 1px solid; border-radius: .4rem; overflow: auto } code { overflow-wrap: anywhere }</style>
<h1>${escaped(name)}</h1>
<p>${escaped(description)}</p>
<p>An A2A agent. Its card is at <a href="${AGENT_CARD_PATH}">${AGENT_CARD_PATH}</a>. It is served at:</p>
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
