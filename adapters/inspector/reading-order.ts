import type { OutlineState } from './chart-outline.ts'

/**
 * Tells whether what leads from one state to another leads up in a drawing, which is read downwards: first where a state begins,
 * then its other states as their author has them. What leads into a state, or out of one that it is in, does not.
 */
export function upwards(states: readonly OutlineState[]): (from: string, to: string) => boolean {
  const ranks = new Map<string, readonly number[]>()
  const ranksOf = (id = ''): readonly number[] => ranks.get(id) ?? []
  for (const [i, { id, parent }] of states.entries()) {
    const outer = states.find(state => state.id === parent)
    const isBeginning = outer?.type === 'compound' && outer.initial.some(begun => begun === id || isIn(begun, id, states))
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
