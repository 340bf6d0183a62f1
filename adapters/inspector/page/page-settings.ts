/** A setting that the hub wrote into the page. */
function meta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? ''
}

const socketOrigin = `${location.protocol === 'https:' ? 'wss:' : 'ws:'}//${location.host}`

/** The URL of the hub's feed. */
export function feedUrl(): string {
  return `${socketOrigin}/inspector/feed?token=${encodeURIComponent(meta('taskchart-token'))}`
}

/** The URL of a task's story, as a file. */
export function storyUrl(taskId: string): string {
  return `/inspector/story?${new URLSearchParams({ token: meta('taskchart-token'), task: taskId })}`
}

/** The agent's URL on this page's host: the browser allows no other. */
export function agentUrl(given: string): string {
  return new URL(new URL(given).pathname, socketOrigin).href
}
