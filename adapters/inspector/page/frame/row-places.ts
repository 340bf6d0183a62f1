/** How many rows are made beyond those in sight, so that fast scrolling shows no gaps. */
const BEYOND = 8

/** Where each row begins, in pixels from the top, and where the last one ends. */
export function places<Item>(items: readonly Item[], heightOf: (item: Item) => number): Float64Array {
  const tops = new Float64Array(items.length + 1)
  let top = 0
  for (const [index, item] of items.entries()) {
    tops[index] = top
    top += heightOf(item)
  }
  tops[items.length] = top
  return tops
}

/** The rows that are in sight, from one up to, without, another. */
export function visible(tops: Float64Array, top: number, height: number): [from: number, to: number] {
  const count = tops.length - 1
  return [Math.max(0, rowAt(tops, top) - BEYOND), Math.min(count, rowAt(tops, top + height) + 1 + BEYOND)]
}

/** The last row that begins at a place or above it. */
function rowAt(tops: Float64Array, place: number): number {
  let low = 0
  let high = tops.length - 1
  while (low + 1 < high) {
    const middle = (low + high) >> 1
    if ((tops[middle] ?? 0) <= place) low = middle
    else high = middle
  }
  return low
}
