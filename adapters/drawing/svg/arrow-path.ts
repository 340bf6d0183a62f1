import type { Place } from '../layout/layout.ts'
import { rounded } from './svg-element.ts'

/** A point, in pixels. */
export interface Point {
  readonly x: number
  readonly y: number
}

const RADIUS = 7
const HEAD_LENGTH = 9
const HEAD_WIDTH = 8

/** The path of an arrow through these points, with round corners. It ends within the head, and has a gap for its label. */
export function arrowLine(points: readonly Point[], label?: Place): string {
  const [start, ...others] = points
  if (!start) return ''
  const line = others.map((point, i) => {
    const before = points[i] as Point
    const next = others[i + 1]
    const gap = label ? gapAt(label, before, point) : ''
    if (!next) return `${gap}L${at(towards(point, before, HEAD_LENGTH - 2))}`
    const radius = Math.min(RADIUS, distance(before, point) / 2, distance(point, next) / 2)
    return `${gap}L${at(towards(point, before, radius))}Q${at(point)} ${at(towards(point, next, radius))}`
  })
  return `M${at(start)}${line.join('')}`
}

/** The head of an arrow, as a triangle. */
export function arrowHead(points: readonly Point[]): string {
  const [before, tip] = points.slice(-2)
  if (!before || !tip) return ''
  const base = towards(tip, before, HEAD_LENGTH)
  const [dx, dy] = [
    ((tip.y - base.y) / HEAD_LENGTH) * (HEAD_WIDTH / 2),
    ((base.x - tip.x) / HEAD_LENGTH) * (HEAD_WIDTH / 2)
  ]
  return `M${at(tip)}L${at({ x: base.x + dx, y: base.y + dy })}L${at({ x: base.x - dx, y: base.y - dy })}Z`
}

/** A gap where a vertical line crosses a label. */
function gapAt({ x, y, width, height }: Place, from: Point, to: Point): string {
  const [above, below] = [
    { x: from.x, y },
    { x: from.x, y: y + height }
  ]
  const isThrough =
    from.x === to.x &&
    from.x > x &&
    from.x < x + width &&
    Math.min(from.y, to.y) <= above.y &&
    Math.max(from.y, to.y) >= below.y
  const sides = from.y < to.y ? [above, below] : [below, above]
  return isThrough ? sides.map((side, i) => `${i === 0 ? 'L' : 'M'}${at(side)}`).join('') : ''
}

/** The point at a distance from one point towards another. */
function towards(from: Point, to: Point, far: number): Point {
  const share = far / (distance(from, to) || 1)
  return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }
}

function distance(a: Point, b: Point): number {
  return Math.hypot(a.x - b.x, a.y - b.y)
}

function at({ x, y }: Point): string {
  return `${rounded(x)} ${rounded(y)}`
}
