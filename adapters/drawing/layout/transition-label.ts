import { occasionOf } from '../chart-parts.ts'
import type { OutlineActor, OutlineTransition } from '../outline.ts'
import { TEXT_SIZE } from '../svg/style.ts'
import { cutText, widthOf, type CutText } from './text-width.ts'

/** A transition, and the actors of its state, whose completion it may react to. */
export interface Taken {
  readonly transition: OutlineTransition
  readonly invoked: readonly OutlineActor[]
}

/** The lines of a transition's label, and its size with margins, in pixels. */
export interface TransitionLabel {
  readonly lines: readonly CutText[]
  readonly width: number
  readonly height: number
}

const LONGEST = 240
const LINE = 16
const MARGIN = 8

/** The baseline of a line of a label, below its top. */
export function baseLine(index: number): number {
  return 15 + index * LINE
}

/** The label of a transition. The guard moves to a line of its own if one line would be too long; longer lines are truncated. */
export function labelOf(taken: Taken): TransitionLabel {
  const lines = linesOf(taken)
    .flatMap(line => (widthOf(line, TEXT_SIZE) > LONGEST ? line.split(/ (?=\[)/) : [line]))
    .map(line => cutText(LONGEST, line, TEXT_SIZE))
  return { lines, width: Math.max(...lines.map(({ width }) => width)) + 2 * MARGIN, height: lines.length * LINE + 6 }
}

/** A transition in words: its event and guard, then its actions. */
export function linesOf({ transition: { event, guard, actions }, invoked }: Taken): string[] {
  return [
    occasionOf({ eventType: event, guard, invoked }) || 'always',
    ...(actions.length > 0 ? [`/ ${actions.join(', ')}`] : [])
  ]
}
