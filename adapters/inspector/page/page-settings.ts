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
  return `/inspector/story?${fileOf(taskId)}`
}

/** The URL of a task as a recorded example, as a file. */
export function exampleUrl(taskId: string): string {
  return `/inspector/example?${fileOf(taskId)}`
}

function fileOf(task: string): URLSearchParams {
  return new URLSearchParams({ token: meta('taskchart-token'), task })
}

/** The agent's URL on this page's host: the browser allows no other. */
export function agentUrl(given: string): string {
  return new URL(new URL(given).pathname, socketOrigin).href
}
