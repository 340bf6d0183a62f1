import { signal } from '@preact/signals'
import type { Frame } from '../../feed.ts'

/** How many frames are kept. */
const MOST_FRAMES = 2000

/** The newest frames, in order. */
export const frames = signal<readonly Frame[]>([])

/** How many frames this page was too slow for. */
export const missedFrames = signal(0)

/** Notes frames; those that are known already count for nothing. */
export function noteFrames(more: readonly Frame[]): void {
  const last = frames.peek().at(-1)?.n ?? 0
  frames.value = [...frames.peek(), ...more.filter(({ n }) => n > last)].slice(-MOST_FRAMES)
}

/** Forgets the frames that are here. */
export function forgetFrames(): void {
  frames.value = []
  missedFrames.value = 0
}
