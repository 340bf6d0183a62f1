import { signal } from '@preact/signals'

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

/** The difference between the hub's clock and this one, in milliseconds. */
let aheadMs = 0

/** The hub's time in milliseconds since 1970, updated every second. */
export const nowMs = signal(Date.now())

setInterval(() => (nowMs.value = Date.now() + aheadMs), 1000)

/** The hub's time now, in milliseconds since 1970. */
export function hubNow(): number {
  return Date.now() + aheadMs
}

/** Sets the hub's time. */
export function setClock(hubNowMs: number): void {
  aheadMs = hubNowMs - Date.now()
  nowMs.value = hubNowMs
}

/**
 * Corrects the hub's time where a hello came late: it is past everything that the hub has dated. Milliseconds since
 * 1970; NaN changes nothing.
 */
export function noteTime(datedMs: number): void {
  if (datedMs >= hubNow()) aheadMs = datedMs + 1 - Date.now()
}

/** Focuses an element once it is rendered, which is before the next key press: keys pressed at once all get there. */
export function focusOn(selector: string): void {
  queueMicrotask(() => document.querySelector<HTMLElement>(selector)?.focus())
}

/** The interval in a background tab, which has no animation frames. */
const UNSEEN_MS = 250

/**
 * Returns a function that runs `work` once in the next animation frame, however often it is called before. In a
 * background tab it runs a few times a second, so that nothing accumulates.
 */
export function onNextFrame(work: () => void): () => void {
  let isDue = false
  const run = () => {
    isDue = false
    work()
  }
  return () => {
    if (isDue) return
    isDue = true
    if (document.hidden) setTimeout(run, UNSEEN_MS)
    else requestAnimationFrame(run)
  }
}
