/** What the hub wrote into the page. */
function meta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? ''
}

const socketOrigin = `${location.protocol === 'https:' ? 'wss:' : 'ws:'}//${location.host}`

/** The address of the hub's feed. */
export function feedUrl(): string {
  return `${socketOrigin}/inspector/feed?token=${encodeURIComponent(meta('taskchart-token'))}`
}

/** The agent's address, by the name under which this page knows the host: a browser lets the page speak to no other. */
export function agentUrl(given: string): string {
  return new URL(new URL(given).pathname, socketOrigin).href
}
