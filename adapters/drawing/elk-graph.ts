import type { ElkExtendedEdge, ElkNode, LayoutOptions } from 'elkjs'
import { isMadeUp } from '../../machines/xstate-names.ts'
import { occasionOf } from '../../machines/xstate-names.ts'
import type { ChartOutline, OutlineActor, OutlineState, OutlineTransition } from './outline.ts'
import { cutText, type CutText, KEY_SIZE, TAG_SIZE, TEXT_SIZE, widthOf, wrapText } from './style.ts'
import { shownText } from './svg-element.ts'

/**
 * Returns a function that decides whether an arrow points up in a drawing. Drawings are read downwards: the initial
 * state comes first, then the other states in the author's order. An arrow to an ancestor or a descendant does not
 * point up.
 */
function upwards(states: readonly OutlineState[]): (from: string, to: string) => boolean {
  const ranks = new Map<string, readonly number[]>()
  const ranksOf = (id = ''): readonly number[] => ranks.get(id) ?? []
  for (const [i, { id, parent }] of states.entries()) {
    const outer = states.find(state => state.id === parent)
    const isBeginning =
      outer?.type === 'compound' && outer.initial.some(begun => begun === id || isIn(begun, id, states))
    ranks.set(id, [...ranksOf(parent), isBeginning ? -1 : i])
  }
  return (from, to) => {
    const [ofFrom, ofTo] = [ranksOf(from), ranksOf(to)]
    const level = ofFrom.findIndex((rank, i) => rank !== ofTo[i])
    return level >= 0 && Number(ofTo[level]) < Number(ofFrom[level])
  }
}

function isIn(id: string, outer: string, states: readonly OutlineState[]): boolean {
  const parent = states.find(state => state.id === id)?.parent
  return parent !== undefined && (parent === outer || isIn(parent, outer, states))
}

/** A state to place; `id` is the id of its node. */
export interface ElkState {
  readonly id: string
  readonly state: OutlineState
  readonly box: StateBox
}

/** A transition of an arrow. */
interface Arrival {
  readonly transition: OutlineTransition
  /** A transition with several targets has its label on the first arrow only. */
  readonly label?: TransitionLabel
}

/** An arrow to place, between two nodes, with all transitions that share it; none for an initial state. */
export interface Arrow {
  readonly from: string
  readonly to: string
  /** Whether it points up. Its edge in the graph is then reversed, since all edges there point down. */
  readonly isUpwards: boolean
  readonly arrivals: readonly Arrival[]
}

/** A chart as a graph to lay out. */
interface ChartGraph {
  /** In the order of the outline: parents before their children. */
  readonly parts: readonly ElkState[]
  /** In the order of the graph's edges. */
  readonly arrows: readonly Arrow[]
  readonly graph: ElkNode
}

/** For every node with children, since they do not inherit these from the root. */
const SPACING: LayoutOptions = { 'elk.spacing.nodeNode': '28', 'elk.layered.spacing.nodeNodeBetweenLayers': '24' }
const OPTIONS: LayoutOptions = {
  ...SPACING,
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.json.edgeCoords': 'ROOT',
  'elk.json.shapeCoords': 'ROOT',
  'elk.padding': '[top=16,left=16,bottom=16,right=16]'
}
/** Aligns the names of neighbouring states. */
const IN_LINE: LayoutOptions = { 'elk.alignment': 'TOP' }
/** Keeps the order of the regions of a parallel state, which is that of their positions. */
const IN_ORDER: LayoutOptions = { 'elk.layered.crossingMinimization.semiInteractive': 'true' }
const ON_ITS_ARROW: LayoutOptions = { 'elk.edgeLabels.inline': 'true', 'elk.edgeLabels.placement': 'CENTER' }
/** The gap between two labels of one arrow, in pixels. */
export const LABEL_GAP = 2
const HISTORY_SIZE = 28
const DOT_SIZE = 12

/** The graph of a chart: states as nested nodes, a dot for each initial state, and an edge for each arrow. */
export function graphOf({ states, transitions }: ChartOutline): ChartGraph {
  // Ids with numbers, since an author's state ids could equal the ids of dots.
  const parts = states.map((state, i) => ({
    id: `state ${i}`,
    state,
    box: stateBox(
      state,
      transitions.filter(({ source, targets }) => source === state.id && targets.length === 0)
    )
  }))
  const nodes = new Map(parts.map(({ id, state }) => [state.id, id]))
  const leadsUp = upwards(states)
  const arrow = (from: OutlineState, to: string, arrivals: readonly Arrival[] = []): Arrow => ({
    from: String(nodes.get(from.id)),
    to: String(nodes.get(to)),
    isUpwards: leadsUp(from.id, to),
    arrivals
  })
  const beginnings = states.flatMap(state =>
    state.initial.map(to =>
      state.type === 'history'
        ? arrow(state, to)
        : { ...arrow(state, to), from: dotOf(String(nodes.get(state.id))), isUpwards: false }
    )
  )
  const arrows = [
    ...beginnings,
    ...states.flatMap(state =>
      [...arrivalsFrom(state, transitions)].map(([to, arrivals]) => arrow(state, to, arrivals))
    )
  ]
  const roots = parts.filter(({ state: { parent } }) => parent === undefined)
  return {
    parts,
    arrows,
    graph: {
      id: 'chart',
      layoutOptions: OPTIONS,
      children: roots.map(part => elkNode(part, parts)),
      edges: arrows.map(elkEdge)
    }
  }
}

/** The transitions of a state by their targets: those with the same target share an arrow. */
function arrivalsFrom({ id, invoke }: OutlineState, transitions: readonly OutlineTransition[]): Map<string, Arrival[]> {
  const arrivals = new Map<string, Arrival[]>()
  for (const transition of transitions.filter(({ source }) => source === id)) {
    for (const [i, target] of transition.targets.entries()) {
      const arrival = { transition, ...(i === 0 && { label: labelOf({ transition, invoked: invoke }) }) }
      arrivals.set(target, [...(arrivals.get(target) ?? []), arrival])
    }
  }
  return arrivals
}

/** The id of the dot that marks the initial state. */
export function dotOf(id: string): string {
  return `dot of ${id}`
}

function elkNode({ id, state, box: { width, height } }: ElkState, parts: readonly ElkState[]): ElkNode {
  if (state.type === 'history') return { id, width: HISTORY_SIZE, height: HISTORY_SIZE }
  const inside = parts.filter(({ state: { parent } }) => parent === state.id)
  if (inside.length === 0) return { id, width, height, layoutOptions: IN_LINE }
  const dots = state.type === 'compound' ? [{ id: dotOf(id), width: DOT_SIZE, height: DOT_SIZE }] : []
  const children = inside.map(part => elkNode(part, parts))
  const isParallel = state.type === 'parallel'
  const layoutOptions = {
    ...SPACING,
    ...IN_LINE,
    ...(isParallel && IN_ORDER),
    'elk.padding': `[top=${height + 16},left=20,bottom=20,right=20]`,
    'elk.nodeSize.constraints': 'MINIMUM_SIZE',
    // With the direction DOWN, elk reads the first number as the height.
    'elk.nodeSize.minimum': `(${height}, ${width})`
  }
  return { id, layoutOptions, children: [...dots, ...(isParallel ? children.map(atPosition) : children)] }
}

function atPosition({ layoutOptions, ...node }: ElkNode, i: number): ElkNode {
  return { ...node, layoutOptions: { ...layoutOptions, 'elk.position': `(${i}, ${i})` } }
}

function elkEdge({ from, to, isUpwards, arrivals }: Arrow, i: number): ElkExtendedEdge {
  const labels = arrivals.flatMap(({ label }) => label ?? [])
  const size = {
    width: Math.max(...labels.map(({ width }) => width)),
    height: labels.reduce((sum, { height }) => sum + height + LABEL_GAP, -LABEL_GAP)
  }
  return {
    id: `arrow ${i}`,
    sources: [isUpwards ? to : from],
    targets: [isUpwards ? from : to],
    labels: labels.length > 0 ? [{ text: ' ', ...size, layoutOptions: ON_ITS_ARROW }] : []
  }
}

/** A text in a drawing. `x` and `y` are the left end of its baseline. */
export interface PlacedText extends CutText {
  readonly kind: 'key' | 'tag' | 'description' | 'does' | 'stays'
  readonly x: number
  readonly y: number
  /** The transition without a target that the text is for. */
  readonly transition?: OutlineTransition
}

/** The texts at the top of a state's box, and its size, in pixels from its corner. */
interface StateBox {
  readonly texts: readonly PlacedText[]
  readonly width: number
  readonly height: number
  /** The line between its name and its actions, if it has any. */
  readonly divider?: number
}

/** The padding of a tag's chip. */
export const TAG_PADDING = 6

/** The distance between the two borders of a final state. */
export const BORDERS = 4

/** The distance between the border of a state and its texts, in pixels. */
export const PADDING = 12
const KEY_LINE = 19
const TEXT_LINE = 17
const TEXT_WIDTH = 320
/** The indent of the second and later lines of a text. */
const INDENT = 14
/** The most lines of one text; of a name, two. */
const MOST_LINES = 3

/** The box of a state, with its transitions that have no target. Long texts are wrapped, and then truncated. */
function stateBox(state: OutlineState, stays: readonly OutlineTransition[]): StateBox {
  const heading = headingOf(state)
  const lines = [
    ...doingsOf(state).map(text => ({ kind: 'does' as const, text })),
    ...stays.map(transition => ({
      kind: 'stays' as const,
      text: linesOf({ transition, invoked: state.invoke }).join(' '),
      transition
    }))
  ].flatMap(({ text, ...line }) =>
    wrapText(TEXT_WIDTH - INDENT, text, TEXT_SIZE, MOST_LINES).map((cut, i) => ({ ...line, ...cut, ...indented(i) }))
  )
  const top = heading.height
  const texts = lines.map((line, i) => ({ ...line, y: top + 10 + (i + 1) * TEXT_LINE - 6 }))
  const all = [...heading.texts, ...texts]
  return {
    texts: all,
    width: Math.max(64, ...all.map(({ x, width, kind }) => x + width + PADDING + (kind === 'tag' ? TAG_PADDING : 0))),
    height: top + (texts.length === 0 ? 0 : 13 + texts.length * TEXT_LINE) + (state.type === 'final' ? BORDERS : 0),
    ...(texts.length > 0 && { divider: top + 3 })
  }
}

function indented(line: number): { x: number } {
  return { x: line === 0 ? PADDING : PADDING + INDENT }
}

/** The name, then the tags and the description, all wrapped. */
function headingOf({ key, tags, description = '' }: OutlineState): { texts: PlacedText[]; height: number } {
  const names = wrapText(TEXT_WIDTH, key, KEY_SIZE, 2, true)
  const texts = names.map((name, i): PlacedText => ({ kind: 'key', ...name, x: PADDING, y: 23 + i * KEY_LINE }))
  let [x, y] = [PADDING + Number(names.at(-1)?.width) + 10, 23 + (names.length - 1) * KEY_LINE]
  for (const tag of tags) {
    const cut = cutText(TEXT_WIDTH - 2 * TAG_PADDING, tag, TAG_SIZE)
    if (x + cut.width + 2 * TAG_PADDING > PADDING + TEXT_WIDTH) [x, y] = [PADDING, y + TEXT_LINE + 4]
    texts.push({ kind: 'tag', ...cut, x: x + TAG_PADDING, y })
    x += cut.width + 2 * TAG_PADDING + 6
  }
  if (shownText(description) === '') return { texts, height: y + 11 }
  const lines = wrapText(TEXT_WIDTH, description, TEXT_SIZE, MOST_LINES)
  const described = lines.map((line, i) => ({
    kind: 'description' as const,
    ...line,
    x: PADDING,
    y: y + (i + 1) * TEXT_LINE
  }))
  return { texts: [...texts, ...described], height: y + lines.length * TEXT_LINE + 11 }
}

function doingsOf({ entry, exit, invoke, hidden }: OutlineState): string[] {
  return [
    ...(hidden === undefined ? [] : [hidden === 1 ? '1 state is hidden' : `${hidden} states are hidden`]),
    ...(entry.length > 0 ? [`entry / ${entry.join(', ')}`] : []),
    ...(exit.length > 0 ? [`exit / ${exit.join(', ')}`] : []),
    ...invoke.map(actor => `invoke / ${actorText(actor)}`)
  ]
}

function actorText({ id, src = 'an actor' }: OutlineActor): string {
  return !isMadeUp(id) && id !== src ? `${src} as ${id}` : src
}

/** A transition, and the actors of its state, whose completion it may react to. */
interface LabelledTransition {
  readonly transition: OutlineTransition
  readonly invoked: readonly OutlineActor[]
}

/** The lines of a transition's label, those of its event first, and its size with margins, in pixels. */
export interface TransitionLabel {
  readonly lines: readonly (CutText & { readonly kind: 'occasion' | 'does' })[]
  readonly width: number
  readonly height: number
}

const LABEL_WIDTH = 220
const LABEL_LINE = 16
const MARGIN = 8

/** The baseline of a line of a label, below its top. */
export function baseLine(index: number): number {
  return 15 + index * LABEL_LINE
}

/**
 * The label of a transition. The guard moves to a line of its own if one line would be too long; longer lines are
 * wrapped, and then truncated.
 */
function labelOf(labelled: LabelledTransition): TransitionLabel {
  const lines = linesOf(labelled)
    .flatMap(line => (widthOf(line, TEXT_SIZE) > LABEL_WIDTH ? line.split(/ (?=\[)/) : [line]))
    .flatMap((line, i) =>
      wrapText(LABEL_WIDTH, line, TEXT_SIZE, MOST_LINES).map(cut => ({
        kind: i === 0 ? ('occasion' as const) : ('does' as const),
        ...cut
      }))
    )
  return {
    lines,
    width: Math.max(...lines.map(({ width }) => width)) + 2 * MARGIN,
    height: lines.length * LABEL_LINE + 6
  }
}

/** A transition in words: its event and guard, then its actions. */
function linesOf({ transition: { event, guard, actions }, invoked }: LabelledTransition): string[] {
  return [occasionOf(event, guard, invoked) || 'always', ...(actions.length > 0 ? [`/ ${actions.join(', ')}`] : [])]
}
