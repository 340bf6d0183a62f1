import type { Fairness } from '../../../machines/properties/properties.ts'

/** A graph in which cycles are sought. Vertices are numbered. */
export interface CycleGraph<E extends CycleEdge> {
  readonly edgesFrom: (vertex: number) => readonly E[]
  /** The sources that can act at a vertex. */
  readonly sourcesAt: (vertex: number) => ReadonlySet<string>
  /** Whether something else may happen at a vertex that leads out of the graph. */
  readonly leaves: (vertex: number) => boolean
}

/** A step, with the source that acts in it, and the sources that it restarts. */
export interface CycleEdge {
  readonly to: number
  readonly source?: string | undefined
  readonly restarts: readonly string[]
}

/** The strongly connected components of a graph, each with at least one edge inside (Tarjan, without recursion). */
export function componentsOf<E extends CycleEdge>(
  vertices: readonly number[],
  { edgesFrom }: CycleGraph<E>
): number[][] {
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
 * A cycle within a component that may go on for ever, from a vertex of it and back; `undefined` if fairness excludes every such walk. With
 * `progress`, each source that can act at every vertex acts or restarts in it. With `choice`, nothing may lead out of the component.
 */
export function fairCycle<E extends CycleEdge>(
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
