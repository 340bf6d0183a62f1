import { occasionOf } from '../chart-words.ts'
import type { OutlineActor, OutlineTransition } from '../outline.ts'
import { TEXT_SIZE } from '../svg/style.ts'
import { cutText, widthOf, type CutText } from './text-width.ts'

/** A transition with the actors that its state invokes, whose ends it may be taken on. */
export interface Taken {
  readonly transition: OutlineTransition
  readonly invoked: readonly OutlineActor[]
}

/** What is written at a transition, line by line, and how large it is with its margins, in pixels. */
export interface TransitionLabel {
  readonly lines: readonly CutText[]
  readonly width: number
  readonly height: number
}

const LONGEST = 240
const LINE = 16
const MARGIN = 8

/** How far below the top of a label the base line of a line of it is. */
export function baseLine(index: number): number {
  return 15 + index * LINE
}

/** The label of a transition. Its condition has a line to itself where both would be too long for one; what is too long still is cut. */
export function labelOf(taken: Taken): TransitionLabel {
  const lines = linesOf(taken).flatMap(line => (widthOf(line, TEXT_SIZE) > LONGEST ? line.split(/ (?=\[)/) : [line])).map(line => cutText(LONGEST, line, TEXT_SIZE))
  return { lines, width: Math.max(...lines.map(({ width }) => width)) + 2 * MARGIN, height: lines.length * LINE + 6 }
}

/** A transition as people say it: what it is taken on, and then what it does. */
export function linesOf({ transition: { event, guard, actions }, invoked }: Taken): string[] {
  return [occasionOf({ eventType: event, guard, invoked }) || 'always', ...(actions.length > 0 ? [`/ ${actions.join(', ')}`] : [])]
}
