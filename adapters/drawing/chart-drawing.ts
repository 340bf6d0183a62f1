import type { AnyStateMachine } from 'xstate'
import type { WrittenChart } from '../../runtime/xstate/written-chart.ts'
import { baseLine, BORDERS, LABEL_GAP, type PlacedText, TAG_PADDING, type TransitionLabel } from './elk-graph.ts'
import { type ChartLayout, layoutOf, type Rectangle, type PlacedArrow, type PlacedState } from './layout.ts'
import { type DifferenceMarks, type Mark, mergedChart, type MergedChart } from './merged-chart.ts'
import { type ChartOutline, collapsedOutline, outlineOf, outlineOfChart, type OutlineTransition } from './outline.ts'
import { CHART_STYLE, MARK_STYLE, type CutText } from './style.ts'
import { element, formatDecimal, svgText } from './svg-element.ts'

/**
 * Draws a chart as a self-contained SVG, with a light and a dark theme. Each state is a `<g data-state>` with its id,
 * and each transition a `<g data-transition>` with its name (`transitionName`). The classes `active`, `visited`,
 * `taken` and `uncovered` highlight them. Texts of the chart are escaped. The same chart gives the same drawing.
 * `collapsed`: the ids of states that are drawn without the states in them (`collapsedOutline`). Rejects with TypeError
 * without elkjs, an optional peer.
 */
export async function drawChart(machine: AnyStateMachine, collapsed: readonly string[] = []): Promise<string> {
  const outline = collapsedOutline(outlineOf(machine), new Set(collapsed))
  return svgOf(outline, await layoutOf(outline), new Map())
}

/**
 * Draws two charts in one. What is new, gone or changed has the class `added`, `removed` or `changed`. Rejects as
 * `drawChart` does.
 */
export function drawMerged({ chart, marks }: MergedChart): Promise<string> {
  return drawMarked(chart, marks)
}

async function drawMarked(chart: WrittenChart, marks: Marks): Promise<string> {
  const outline = outlineOfChart(chart)
  return svgOf(outline, await layoutOf(outline), marks)
}

/** The maximum number of states of a chart that is drawn before and now: a larger one would take minutes. */
const MOST_STATES = 400

/** Two charts, and what differs. */
interface ChartPair {
  readonly before: WrittenChart
  readonly after: WrittenChart
  readonly marks: DifferenceMarks
}

/** The drawings of a pair; empty if it has too many states. */
export interface PairDrawings {
  readonly before: string
  readonly now: string
}

/**
 * Draws the chart before, with the class `active` for states in which tasks are, and the chart of now as `drawMerged`
 * does. Rejects as `drawChart` does.
 */
export async function drawPair(
  { before, after, marks }: ChartPair,
  active: readonly string[] = []
): Promise<PairDrawings> {
  const merged = mergedChart(before, after, marks)
  if (merged.chart.states.length > MOST_STATES) return { before: '', now: '' }
  const lit = new Map(active.map(id => [id, 'active' as const]))
  return { before: await drawMarked(before, lit), now: await drawMerged(merged) }
}

/** The class of a mark, after others. */
function markClass(marks: Marks, name: string): string {
  const mark = marks.get(name)
  return mark ? ` ${mark}` : ''
}

type Marks = ReadonlyMap<string, Mark | 'active'>

/** Draws a laid-out chart as SVG: arrows first, states above them, so that state names stay readable. */
function svgOf(outline: ChartOutline, { width, height, states, arrows, dots }: ChartLayout, marks: Marks): string {
  const [wide, high] = [Math.ceil(width), Math.ceil(height)]
  const content = [
    element('title', {}, [svgText(`${outline.id}: a statechart`)]),
    element('desc', {}, [svgText(summaryOf(outline))]),
    element('style', {}, marks.size === 0 ? [CHART_STYLE] : [CHART_STYLE, MARK_STYLE]),
    element('rect', { class: 'canvas', width: wide, height: high, rx: 8 }),
    ...arrows
      .filter(({ arrivals }) => arrivals.length === 0)
      .map(({ points }) => element('g', { class: 'beginning' }, linesThrough(points))),
    ...transitionsIn(arrows, marks),
    ...dots.map(dotOf),
    ...states.map(state => stateOf(state, marks))
  ]
  const frame = {
    xmlns: 'http://www.w3.org/2000/svg',
    class: 'statechart',
    role: 'img',
    viewBox: `0 0 ${wide} ${high}`,
    width: wide,
    height: high
  }
  return `${element(
    'svg',
    frame,
    content.map(part => `\n${part}`)
  )}\n`
}

/** A description for screen readers. */
function summaryOf({ states: [root, ...states], transitions }: ChartOutline): string {
  const beginning = root?.initial[0] === undefined ? '' : ` It begins in ${root.initial.join(' and ')}.`
  return `${states.length} states and ${transitions.length} transitions.${beginning} ${transitions.map(({ name }) => `${name}.`).join(' ')}`
}

/**
 * The part of a transition on one arrow: its line, hidden if another transition has already drawn it, and its label, if
 * any.
 */
interface Drawn {
  readonly transition: OutlineTransition
  readonly parts: readonly string[]
}

/** Each transition as one group with all its lines, so that a class highlights all of it. */
function transitionsIn(arrows: readonly PlacedArrow[], marks: Marks): string[] {
  const drawn = arrows.flatMap(({ arrivals, points, labelPlace }) => {
    const lines = (isShared: boolean): string[] => linesThrough(points, isShared ? ' shared' : '', labelPlace)
    return arrivals.map(({ transition, label }, i): Drawn => {
      const above = arrivals.slice(0, i).reduce((sum, { label }) => sum + (label ? label.height + LABEL_GAP : 0), 0)
      return {
        transition,
        parts: [
          ...lines(i > 0),
          ...(label ? labelAt(label, labelPlace.x + labelPlace.width / 2, labelPlace.y + above) : [])
        ]
      }
    })
  })
  return [...new Set(drawn.map(({ transition }) => transition))].map(transition =>
    element('g', { class: `transition${markClass(marks, transition.name)}`, 'data-transition': transition.name }, [
      titleOf(transition),
      ...drawn.flatMap(part => (part.transition === transition ? part.parts : []))
    ])
  )
}

function linesThrough(points: PlacedArrow['points'], more = '', label?: Rectangle): string[] {
  return [
    element('path', { class: `edge${more}`, d: arrowLine(points, label) }),
    element('path', { class: `head${more}`, d: arrowHead(points) })
  ]
}

function labelAt({ lines, width, height }: TransitionLabel, centre: number, y: number): string[] {
  const texts = lines.map((line, i) =>
    textElement(line, { class: line.kind, x: centre, y: y + baseLine(i), 'text-anchor': 'middle' })
  )
  return [element('rect', { class: 'label', x: centre - width / 2, y, width, height, rx: 6 }), ...texts]
}

function dotOf({ x, y, width }: Rectangle): string {
  return element('circle', { class: 'dot', cx: x + width / 2, cy: y + width / 2, r: width / 2 })
}

function stateOf({ state, box, place, isGroup, isRegion }: PlacedState, marks: Marks): string {
  const { id, type, history, description, hidden } = state
  const classes = [
    'state',
    isGroup ? 'group' : 'leaf',
    type,
    ...(isRegion ? ['region'] : []),
    ...(hidden === undefined ? [] : ['collapsed'])
  ].join(' ')
  const title = element('title', {}, [svgText(description === undefined ? id : `${id}: ${description}`)])
  return element('g', { class: `${classes}${markClass(marks, id)}`, 'data-state': id }, [
    title,
    ...(history ? historyOf(place, history === 'deep') : boxOf(state.type === 'final', place, box, marks))
  ])
}

function boxOf(isFinal: boolean, place: Rectangle, { texts, divider }: PlacedState['box'], marks: Marks): string[] {
  const { x, y, width, height } = place
  const inner = { x: x + BORDERS, y: y + BORDERS, width: width - 2 * BORDERS, height: height - 2 * BORDERS }
  return [
    element('rect', { class: 'box', ...place, rx: 9 }),
    ...(isFinal ? [element('rect', { class: 'inner', ...inner, rx: 6 })] : []),
    ...(divider === undefined
      ? []
      : [
          element('path', {
            class: 'divider',
            d: `M${formatDecimal(x)} ${formatDecimal(y + divider)}h${formatDecimal(width)}`
          })
        ]),
    ...texts.filter(({ transition }) => transition === undefined).map(text => textOf(text, place)),
    ...[...new Set(texts.flatMap(({ transition }) => transition ?? []))].map(transition =>
      element('g', { class: `stays${markClass(marks, transition.name)}`, 'data-transition': transition.name }, [
        titleOf(transition),
        ...texts.filter(text => text.transition === transition).map(text => textOf(text, place))
      ])
    )
  ]
}

function historyOf({ x, y, width }: Rectangle, isDeep: boolean): string[] {
  const centre = { x: x + width / 2, y: y + width / 2 }
  return [
    element('circle', { class: 'box', cx: centre.x, cy: centre.y, r: width / 2 }),
    element('text', { x: centre.x, y: centre.y + 4, 'text-anchor': 'middle' }, [isDeep ? 'H*' : 'H'])
  ]
}

function textOf(text: PlacedText, { x, y }: Rectangle): string {
  const [left, base] = [x + text.x, y + text.y]
  if (text.kind !== 'tag') return textElement(text, { class: text.kind, x: left, y: base })
  const chip = { x: left - TAG_PADDING, y: base - 13, width: text.width + 2 * TAG_PADDING, height: 18, rx: 9 }
  return (
    element('rect', { class: 'chip', ...chip }) +
    textElement(text, { class: 'tag', x: left + text.width / 2, y: base, 'text-anchor': 'middle' })
  )
}

/** A text element. A truncated text has the original as its title. */
function textElement({ text, whole }: CutText, attributes: Readonly<Record<string, string | number>>): string {
  return element('text', attributes, [
    ...(whole === undefined ? [] : [element('title', {}, [svgText(whole)])]),
    svgText(text)
  ])
}

function titleOf({ name, description }: OutlineTransition): string {
  return element('title', {}, [svgText(description === undefined ? name : `${name}: ${description}`)])
}

/** A point, in pixels. */
export interface Point {
  readonly x: number
  readonly y: number
}

const RADIUS = 7
const HEAD_LENGTH = 9
const HEAD_WIDTH = 8

/**
 * The path of an arrow through these points, with round corners. It ends within the head, and has a gap for its label.
 */
export function arrowLine(points: readonly Point[], label?: Rectangle): string {
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
function gapAt({ x, y, width, height }: Rectangle, from: Point, to: Point): string {
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
  return `${formatDecimal(x)} ${formatDecimal(y)}`
}
