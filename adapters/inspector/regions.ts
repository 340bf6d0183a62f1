import type { Place, PlacedState } from './chart-layout.ts'

/** Regions side by side as columns of one height. Those that an arrow ends at stay as they are, with all beside them. */
export function asColumns(states: readonly PlacedState[], ends: ReadonlySet<string>): PlacedState[] {
  return states.map(region => {
    const beside = states.filter(({ state: { parent }, isRegion }) => isRegion && parent === region.state.parent)
    const isRow = beside.every(({ id, place: { y } }) => y === region.place.y && !ends.has(id))
    return region.isRegion && isRow ? { ...region, place: asHigh(region.place, beside) } : region
  })
}

function asHigh(place: Place, beside: readonly PlacedState[]): Place {
  return { ...place, height: Math.max(...beside.map(({ place: { height } }) => height)) }
}
