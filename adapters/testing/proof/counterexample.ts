import { modeAfter, type Mode, type Property } from '../../../machines/properties/properties.ts'
import type { Moment } from '../../../machines/properties/terms.ts'
import { componentsOf, fairCycle, type CycleEdge, type CycleGraph } from './fair-cycles.ts'
import type { Edge, Node, Space } from './space.ts'

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
 * Finds the shortest counterexample: the property, as an automaton, walks every way of the chart with it. A property about what never happens
 * is violated at once. One about what happens in the end is violated where nothing goes on, or by a fair cycle, in which it owes all the time.
 */
export function counterexampleIn({ nodes, moments }: Space, property: Property): Counterexample | undefined {
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
        source: edge.stride.source,
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
    edgesFrom: number => vertexAt(number).edges.filter(({ isOwing, edge }) => isOwing && edge.stride.type !== 'cancel'),
    sourcesAt: number => vertexAt(number).node.sources,
    leaves: number =>
      vertexAt(number).node.isCut ||
      vertexAt(number).edges.some(({ isOwing, edge }) => !isOwing && edge.stride.type !== 'cancel')
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

/** Whether nothing goes on in a configuration. A client that cancels takes nothing more. */
function isEnd({ sources, isCut, spot: { over } }: Node): boolean {
  return sources.size === 0 && !isCut && over !== 'canceled'
}

function owesThroughout(property: Property, before: Mode, moments: readonly Moment[]): boolean {
  let mode = before
  return moments.every(moment => (mode = property.next(mode, moment)) === 'owes')
}
