import type { Frame } from '../../feed.ts'

/** What a frame is, in a few words. */
export interface FrameFacts {
  /** The method, or what is answered. */
  readonly what: string
  readonly id: string
  readonly isError: boolean
}

const known = new WeakMap<Frame, FrameFacts>()

/** What a frame is: read once from its text, which may be cut off. */
export function factsOf(frame: Frame): FrameFacts {
  const before = known.get(frame)
  if (before) return before
  const facts = read(frame.text)
  known.set(frame, facts)
  return facts
}

/** Narrows frames to a connection, a direction, and those with some words in them. */
export function shownFrames(frames: readonly Frame[], { connection, direction, search }: { readonly connection: string; readonly direction: string; readonly search: string }): Frame[] {
  const wanted = search.toLowerCase()
  return frames.filter(frame => {
    if (connection !== '' && frame.connection !== connection) return false
    if (direction !== '' && frame.direction !== direction) return false
    return wanted === '' || frame.text.toLowerCase().includes(wanted)
  })
}

function read(text: string): FrameFacts {
  const isError = /"error"\s*:\s*\{/.test(text)
  const method = /"method"\s*:\s*"([^"]*)"/.exec(text)?.[1]
  const id = /"id"\s*:\s*("[^"]*"|\d+)/.exec(text)?.[1] ?? ''
  const kind = /"(statusUpdate|artifactUpdate|task|message|streamEnd)"\s*:/.exec(text)?.[1]
  return { what: isError ? 'error' : (method ?? kind ?? 'result'), id, isError }
}
