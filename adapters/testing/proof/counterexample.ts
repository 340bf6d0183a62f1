import { type Fairness, type Mode, modeAfter, type Property } from '../../../machines/properties/properties.ts'
import type { Moment } from '../../../machines/properties/terms.ts'
import type { Edge, Node, StateSpace } from './state-space.ts'

/** The shortest walk that violates a property: its steps, and for an endless one the steps that then repeat. */
export interface Counterexample {
  readonly steps: readonly Edge[]
  readonly loop: readonly Edge[]
}

/** A configuration of the chart with the mode of the property. */
interface Vertex {
  readonly node: Node
  readonly mode: Mode
  readonly depth: number
  readonly way?: { readonly from: Vertex; readonly edge: Edge }
  readonly edges: ProductEdge[]
}

/** A step of both. */
interface ProductEdge extends CycleEdge {
  readonly edge: Edge
  /** Whether the property demands the same thing before and after it, without having got it in between. */
  readonly isOwing: boolean
}

/**
 * Finds the shortest counterexample: the property, as an automaton, walks every way of the chart with it. A property
 * about what never happens is violated at once. One about what happens in the end is violated where nothing goes on, or
 * by a fair cycle, in which it owes all the time.
 */
export function counterexampleIn({ nodes, moments }: StateSpace, property: Property): Counterexample | undefined {
  const vertices: Vertex[] = []
  const numbers = new Map<string, number>()
  const enter = (number: number, vertex: Omit<Vertex, 'node' | 'edges'>): number => {
    const key = `${vertex.mode} ${number}`
    const known = numbers.get(key) ?? vertices.push({ ...vertex, node: nodes[number] as Node, edges: [] }) - 1
    numbers.set(key, known)
    return known
  }
  const start = modeAfter(property, property.start, moments)
  if (start === 'violated') return { steps: [], loop: [] }
  enter(0, { mode: start, depth: 0 })
  for (const from of vertices) {
    const { node, mode, depth, edges } = from
    for (const edge of node.edges) {
      const next = modeAfter(property, mode, edge.moments)
      if (next === 'violated') return { steps: [...wayTo(from), edge], loop: [] }
      const to = enter(edge.to, { mode: next, depth: depth + 1, way: { from, edge } })
      edges.push({
        to,
        edge,
        source: edge.transition.source,
        restarts: edge.restarts,
        isOwing: owesThroughout(property, mode, edge.moments)
      })
    }
  }
  const { fairness } = property
  if (!fairness) return undefined
  const vertexAt = (number: number) => vertices[number] as Vertex
  const owing = [...vertices.keys()].filter(number => vertexAt(number).mode === 'owes')
  const graph: CycleGraph<ProductEdge> = {
    // A client that cancels ends the claim, so this leads out of no cycle.
    edgesFrom: number =>
      vertexAt(number).edges.filter(({ isOwing, edge }) => isOwing && edge.transition.type !== 'cancel'),
    sourcesAt: number => vertexAt(number).node.sources,
    leaves: number =>
      vertexAt(number).node.isCut ||
      vertexAt(number).edges.some(({ isOwing, edge }) => !isOwing && edge.transition.type !== 'cancel')
  }
  const stuck = owing
    .map(vertexAt)
    .filter(({ node }) => isEnd(node))
    .map(vertex => ({ vertex, loop: [] as ProductEdge[] }))
  const cycles = componentsOf(owing, graph).flatMap(component => {
    // Vertices are numbered by their distance from the start.
    const first = component.reduce((one, other) => Math.min(one, other))
    const loop = fairCycle(first, component, graph, fairness)
    return loop ? [{ vertex: vertexAt(first), loop }] : []
  })
  const [best] = [...stuck, ...cycles].toSorted(
    (one, other) => one.vertex.depth + one.loop.length - other.vertex.depth - other.loop.length
  )
  return best && { steps: wayTo(best.vertex), loop: best.loop.map(({ edge }) => edge) }
}

/** The steps of the shortest way to a vertex. */
function wayTo({ way }: Vertex): Edge[] {
  const steps: Edge[] = []
  for (let last = way; last; last = last.from.way) steps.push(last.edge)
  return steps.toReversed()
}

/** Whether nothing goes on in a configuration. A client that cancels makes no further moves. */
function isEnd({ sources, isCut, configuration: { over } }: Node): boolean {
  return sources.size === 0 && !isCut && over !== 'canceled'
}

function owesThroughout(property: Property, before: Mode, moments: readonly Moment[]): boolean {
  let mode = before
  return moments.every(moment => (mode = property.next(mode, moment)) === 'owes')
}

/** A graph in which cycles are sought. Vertices are numbered. */
interface CycleGraph<E extends CycleEdge> {
  readonly edgesFrom: (vertex: number) => readonly E[]
  /** The sources that can act at a vertex. */
  readonly sourcesAt: (vertex: number) => ReadonlySet<string>
  /** Whether something else may happen at a vertex that leads out of the graph. */
  readonly leaves: (vertex: number) => boolean
}

/** A step, with the source that acts in it, and the sources that it restarts. */
interface CycleEdge {
  readonly to: number
  readonly source?: string | undefined
  readonly restarts: readonly string[]
}

/** The strongly connected components of a graph, each with at least one edge inside (Tarjan, without recursion). */
function componentsOf<E extends CycleEdge>(vertices: readonly number[], { edgesFrom }: CycleGraph<E>): number[][] {
  const index = new Map<number, number>()
  const low = new Map<number, number>()
  const stack: number[] = []
  const onStack = new Set<number>()
  const components: number[][] = []
  for (const root of vertices) {
    const calls = index.has(root) ? [] : [{ vertex: root, next: 0 }]
    for (let call = calls.at(-1); call; call = calls.at(-1)) {
      const { vertex } = call
      if (call.next === 0) {
        index.set(vertex, index.size)
        low.set(vertex, index.size - 1)
        stack.push(vertex)
        onStack.add(vertex)
      }
      const edge = edgesFrom(vertex)[call.next]
      call.next += 1
      if (edge) {
        if (!index.has(edge.to)) calls.push({ vertex: edge.to, next: 0 })
        else if (onStack.has(edge.to)) low.set(vertex, Math.min(at(low, vertex), at(index, edge.to)))
        continue
      }
      calls.pop()
      const caller = calls.at(-1)
      if (caller) low.set(caller.vertex, Math.min(at(low, caller.vertex), at(low, vertex)))
      if (low.get(vertex) !== index.get(vertex)) continue
      const component = stack.splice(stack.lastIndexOf(vertex))
      for (const member of component) onStack.delete(member)
      if (component.length > 1 || edgesFrom(vertex).some(({ to }) => to === vertex)) components.push(component)
    }
  }
  return components
}

/**
 * A cycle within a component that may go on for ever, from a vertex of it and back; `undefined` if fairness excludes
 * every such walk. With `progress`, each source that can act at every vertex acts or restarts in it. With `choice`,
 * nothing may lead out of the component.
 */
function fairCycle<E extends CycleEdge>(
  from: number,
  component: readonly number[],
  graph: CycleGraph<E>,
  fairness: Fairness
): E[] | undefined {
  const inside = new Set(component)
  const edgesFrom = (vertex: number) => graph.edgesFrom(vertex).filter(({ to }) => inside.has(to))
  if (fairness === 'choice') {
    const isClosed = component.every(
      vertex => !graph.leaves(vertex) && graph.edgesFrom(vertex).every(({ to }) => inside.has(to))
    )
    return isClosed ? cycleThrough(from, [], edgesFrom) : undefined
  }
  const sources = new Set(component.flatMap(vertex => [...graph.sourcesAt(vertex)]))
  const duties: Duty<E>[] = []
  for (const source of sources) {
    const rests = component.some(vertex => !graph.sourcesAt(vertex).has(source))
    const acts = (edge: E) =>
      edge.source === source || edge.restarts.includes(source) || (rests && !graph.sourcesAt(edge.to).has(source))
    if (!component.some(vertex => edgesFrom(vertex).some(acts))) return undefined
    duties.push(acts)
  }
  return cycleThrough(from, duties, edgesFrom)
}

/** A step that a fair cycle has to contain. */
type Duty<E> = (edge: E) => boolean

/** A short cycle with one step for each duty. */
function cycleThrough<E extends CycleEdge>(
  from: number,
  duties: readonly Duty<E>[],
  edgesFrom: (vertex: number) => readonly E[]
): E[] {
  const cycle: E[] = []
  const walk = (isIt: (edge: E) => boolean) => cycle.push(...shortest(cycle.at(-1)?.to ?? from, isIt, edgesFrom))
  for (const duty of duties) if (!cycle.some(duty)) walk(duty)
  if (cycle.length === 0 || cycle.at(-1)?.to !== from) walk(({ to }) => to === from)
  return cycle
}

/** The shortest walk whose last step is the one that is sought. There is one in a strongly connected component. */
function shortest<E extends CycleEdge>(
  from: number,
  isIt: (edge: E) => boolean,
  edgesFrom: (vertex: number) => readonly E[]
): E[] {
  const seen = new Set([from])
  let ways: { readonly at: number; readonly way: readonly E[] }[] = [{ at: from, way: [] }]
  while (ways.length > 0) {
    const next: typeof ways = []
    for (const { at, way } of ways) {
      for (const edge of edgesFrom(at)) {
        if (isIt(edge)) return [...way, edge]
        if (!seen.has(edge.to)) next.push({ at: edge.to, way: [...way, edge] })
        seen.add(edge.to)
      }
    }
    ways = next
  }
  /* c8 ignore next 2 -- every vertex of a component leads to every other */
  return []
}

function at(numbers: ReadonlyMap<number, number>, vertex: number): number {
  return Number(numbers.get(vertex))
}
