import { Worker } from 'node:worker_threads'
import type { ElkEdgeSection, ElkExtendedEdge, ElkNode, ElkPoint, ElkShape } from 'elkjs'
import { onReceived } from '../../runtime/primitives/event-loop.ts'
import { checkPackages } from '../peers/installed-packages.ts'
import { dotOf, graphOf, type Arrow, type ElkState, PADDING } from './elk-graph.ts'
import type { LaidOut } from './layout-thread.ts'
import type { ChartOutline } from './outline.ts'

/** The distance between the texts of a state and an arrow below them, in pixels. */
const BELOW_TEXTS = 8

/** Gives regions side by side the same height, unless an arrow starts or ends at one of them. */
export function asColumns(states: readonly PlacedState[], ends: ReadonlySet<string>): PlacedState[] {
  return states.map(region => {
    const beside = states.filter(({ state: { parent }, isRegion }) => isRegion && parent === region.state.parent)
    const isRow = beside.every(({ id, place: { y } }) => y === region.place.y && !ends.has(id))
    return region.isRegion && isRow ? { ...region, place: asHigh(region.place, beside) } : region
  })
}

function asHigh(place: Rectangle, beside: readonly PlacedState[]): Rectangle {
  return { ...place, height: Math.max(...beside.map(({ place: { height } }) => height)) }
}

/** A rectangle, in pixels from the drawing's corner. */
export interface Rectangle {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** A state with its place. */
export interface PlacedState extends ElkState {
  readonly place: Rectangle
  /** Whether it contains states. */
  readonly isGroup: boolean
  /** Whether it is one of the regions of a parallel state. */
  readonly isRegion: boolean
}

/** An arrow with its place: its points from source to target, and the place of its label. */
export interface PlacedArrow extends Arrow {
  readonly points: readonly ElkPoint[]
  readonly labelPlace: Rectangle
}

/** A chart with the places of all its parts. */
export interface ChartLayout extends Rectangle {
  /** Parents before their children. */
  readonly states: readonly PlacedState[]
  readonly arrows: readonly PlacedArrow[]
  /** The marks of initial states. */
  readonly dots: readonly Rectangle[]
}

/** Lays out a chart. The same chart gets the same layout. Rejects with TypeError without elkjs. */
export async function layoutOf(outline: ChartOutline): Promise<ChartLayout> {
  const { parts, arrows, graph } = graphOf(outline)
  thread ??= new LayoutThread()
  const laid = await thread.layout(graph)
  const { edges = [] } = laid
  const places = new Map(nodesIn(laid).map(node => [node.id, placeOf(node)]))
  const placed = parts.map(part => {
    const place = placeOf(places.get(part.id))
    return {
      ...part,
      place,
      isGroup: parts.some(({ state }) => state.parent === part.state.id),
      isRegion: isRegion(part, parts)
    }
  })
  const placedArrows = arrows.map((arrow, i) => placedArrow(arrow, edges[i], placed))
  const columns = asColumns(placed, new Set(arrows.flatMap(({ from, to }) => [from, to])))
  return {
    ...placeOf(laid),
    states: columns.map(state => (state.isGroup ? clearOfArrows(state, placedArrows) : state)),
    arrows: placedArrows,
    dots: parts.flatMap(({ id }) => places.get(dotOf(id)) ?? [])
  }
}

function isRegion({ state: { parent } }: ElkState, parts: readonly ElkState[]): boolean {
  return parts.some(({ state }) => state.id === parent && state.type === 'parallel')
}

function placedArrow(
  arrow: Arrow,
  { labels: [label] = [], sections = [] }: Partial<ElkExtendedEdge> = {},
  states: readonly PlacedState[]
): PlacedArrow {
  const [source, target] = [arrow.from, arrow.to].map(end => states.find(({ id }) => id === end))
  const points = pointsOf(arrow, sections).map((point, i, { length }) =>
    i === 0 ? atBorder(point, source) : i === length - 1 ? atBorder(point, target) : point
  )
  return { ...arrow, points: aroundTexts(points, source), labelPlace: placeOf(label) }
}

function pointsOf({ isUpwards }: Arrow, sections: readonly ElkEdgeSection[]): ElkPoint[] {
  const downwards = sections.flatMap(({ startPoint, bendPoints = [], endPoint }) => [
    startPoint,
    ...bendPoints,
    endPoint
  ])
  return isUpwards ? downwards.toReversed() : downwards
}

/** The end of an arrow at the border of a state. That of a history is a circle, while the layout knows its square. */
function atBorder(point: ElkPoint, end: PlacedState | undefined): ElkPoint {
  if (end?.state.type !== 'history') return point
  const { x, y, width } = end.place
  const radius = width / 2
  const height = Math.sqrt(Math.max(0, radius ** 2 - (point.x - x - radius) ** 2))
  return { x: point.x, y: y + radius + (point.y > y + radius ? height : -height) }
}

/** An arrow from a state to its descendant starts at the nearer side of the state, below the state's texts. */
function aroundTexts(points: readonly ElkPoint[], source: PlacedState | undefined): readonly ElkPoint[] {
  const [start, next] = points
  if (!source || !start || !next || Math.abs(start.y - source.place.y) > 0.5 || next.y <= start.y) return points
  const { x, width } = source.place
  const y = Math.min(next.y, start.y + source.box.height + BELOW_TEXTS)
  return [{ x: start.x < x + width / 2 ? x : x + width, y }, { x: start.x, y }, ...points.slice(1)]
}

/** The free space on each side of an arrow through a group, in pixels. */
const CLEARANCE = 6

/** Moves the texts of a group to the right of arrows that would cross them, if there is room. */
function clearOfArrows(group: PlacedState, arrows: readonly PlacedArrow[]): PlacedState {
  const { place, box } = group
  const lines = arrows.flatMap(({ points }) => points.slice(1).map((to, i) => lineBetween(points[i] as ElkPoint, to)))
  const isFree = (right: number) =>
    right + box.width <= place.width &&
    textPlaces(group).every(text => !lines.some(line => overlap(line, { ...text, x: text.x + right })))
  const inHeading = lines.filter(({ y }) => y < place.y + box.height).map(({ x }) => x - place.x + CLEARANCE - PADDING)
  const right = [0, ...inHeading.filter(x => x > 0).toSorted((a, b) => a - b)].find(isFree) ?? 0
  return { ...group, box: { ...box, texts: box.texts.map(text => ({ ...text, x: text.x + right })) } }
}

/** The height of a text above its baseline and below it, in pixels. */
const [ASCENT, DESCENT] = [13, 4]

/** The places of a state's texts. */
export function textPlaces({ place, box }: PlacedState): Rectangle[] {
  return box.texts.map(({ x, y, width }) => ({
    x: place.x + x - CLEARANCE,
    y: place.y + y - ASCENT,
    width: width + 2 * CLEARANCE,
    height: ASCENT + DESCENT
  }))
}

/** The rectangle of a line of an arrow, which is horizontal or vertical. */
export function lineBetween(a: ElkPoint, b: ElkPoint): Rectangle {
  return { x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) }
}

/** Whether two rectangles have a point in common that is not on the border of one. */
export function overlap(a: Rectangle, b: Rectangle): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}

function nodesIn(node: ElkNode): ElkNode[] {
  return [node, ...(node.children ?? []).flatMap(nodesIn)]
}

function placeOf({ x = 0, y = 0, width = 0, height = 0 }: ElkShape = {}): Rectangle {
  return { x, y, width, height }
}

/**
 * The hint of a command that lacks an optional peer. It names the peers of all commands that read an agent's file, so
 * that one install is enough.
 */
export const INSTALL_TOOLS = 'Install what the commands use: npm i -D tsx @xstate/graph elkjs'

/**
 * The layout engine, in a thread of its own: on the main thread its start and the layouts would block all tasks for a
 * third of a second.
 */
export class LayoutThread {
  readonly #worker: Worker
  readonly #waiting: { readonly resolve: (laid: ElkNode) => void; readonly reject: (error: Error) => void }[] = []
  #error: TypeError | undefined

  constructor(engine = 'elkjs') {
    checkPackages(['elkjs'])
    this.#worker = new Worker(new URL('./layout-thread.js', import.meta.url), {
      name: 'taskchart layout',
      workerData: engine,
      execArgv: []
    })
    this.#worker.unref()
    const fail = (cause: unknown) => {
      this.#error = new TypeError(`Charts are laid out by ${engine}. ${INSTALL_TOOLS}`, { cause })
      for (const { reject } of this.#waiting) reject(this.#error)
    }
    const settle = (answer: LaidOut) => {
      const waiting = this.#waiting.shift()
      if (this.#waiting.length === 0) this.#worker.unref()
      if ('laid' in answer) waiting?.resolve(answer.laid)
      else waiting?.reject(new Error(answer.failure))
    }
    onReceived(this.#worker, 'message', settle, fail)
    this.#worker.on('error', fail)
  }

  /**
   * Gives the graph with its places. Keeps the process alive until then. Rejects with TypeError without the engine, an
   * optional peer.
   */
  layout(graph: ElkNode): Promise<ElkNode> {
    return new Promise((resolve, reject) => {
      if (this.#error) throw this.#error
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows
      this.#worker.postMessage(graph)
      this.#waiting.push({ resolve, reject })
      this.#worker.ref()
    })
  }
}

/** Created by the first layout. */
let thread: LayoutThread | undefined
