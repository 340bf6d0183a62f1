import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AgentCard } from '../../machines/protocol/card.ts'
import { AGENT_CARD_PATH } from '../../machines/protocol/uris.ts'

const MAX_AGE_SECONDS = 300

/**
 * Answers requests for an agent's card (§8.2), and for `/` with a page that says how to talk to the agent. The card may
 * be cached for 5 minutes and is asked for again by its ETag (§8.6.1).
 */
export function answerCard(card: AgentCard, request: IncomingMessage, response: ServerResponse): void {
  const path = (request.url ?? '/').split('?')[0]
  if (path !== '/' && path !== AGENT_CARD_PATH) return end(response, 404, 'text/plain', `Nothing is here. The agent's card is at ${AGENT_CARD_PATH}.\n`)
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD')
    return end(response, 405, 'text/plain', 'Only GET is answered here.\n')
  }
  if (path === '/') {
    response.setHeader('Content-Security-Policy', "default-src 'none'; style-src 'unsafe-inline'")
    return end(response, 200, 'text/html; charset=utf-8', page(card))
  }
  const body = JSON.stringify(card)
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  response.setHeader('ETag', etag).setHeader('Cache-Control', `public, max-age=${MAX_AGE_SECONDS}`)
  if (request.headers['if-none-match']?.split(',').some(tag => tag.trim().replace(/^W\//, '') === etag)) {
    response.writeHead(304).end()
    return
  }
  end(response, 200, 'application/json', body)
}

function end(response: ServerResponse, status: number, type: string, body: string): void {
  response.setHeader('X-Content-Type-Options', 'nosniff')
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) })
  response.end(response.req.method === 'HEAD' ? undefined : body)
}

function page({ name, description, skills, supportedInterfaces }: AgentCard): string {
  const url = supportedInterfaces[0]?.url ?? ''
  const example = skills.flatMap(({ examples = [] }) => examples)[0] ?? 'hello'
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(name)}</title>
<style>body { font: 1rem/1.5 system-ui; margin: 3rem auto; max-width: 42rem; padding: 0 1rem; color-scheme: light dark } pre { padding: 1rem; border: 1px solid; border-radius: .4rem; overflow: auto }</style>
<h1>${escaped(name)}</h1>
<p>${escaped(description)}</p>
<p>An A2A agent, served over WebSocket at <code>${escaped(url)}</code>. Its card is at <a href="${AGENT_CARD_PATH}">${AGENT_CARD_PATH}</a>. Talk to it:</p>
<pre>npx taskchart send ${escaped(url)} "${escaped(example)}"</pre>
</html>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
