/**
 * The orders in which pending timers can fire, exactly: a zone of timed automata (a difference bound matrix). Row and column 0 stand for now,
 * the others for the timers' remaining times. An entry bounds the remaining time of its row minus that of its column. Any time may pass
 * between two steps. Timers that are due at the same moment fire in either order.
 */
export interface Zone {
  readonly ids: readonly string[]
  /** (ids + 1)² bounds in milliseconds. */
  readonly bounds: readonly (readonly number[])[]
}

/** No timer is pending. */
export const NO_TIMERS: Zone = { ids: [], bounds: [[0]] }

/** The zone after a timer is set, in place of an earlier one with its id. */
export function set(zone: Zone, id: string, delayMs: number): Zone {
  const { ids, bounds } = clear(zone, id)
  const wider = [...bounds.map(row => [...row, Infinity]), Array<number>(ids.length + 2).fill(Infinity)]
  const last = ids.length + 1
  bound(wider, last, last, 0)
  bound(wider, last, 0, delayMs)
  bound(wider, 0, last, -delayMs)
  return { ids: [...ids, id], bounds: tightened(wider) }
}

/** The zone without a timer. */
export function clear({ ids, bounds }: Zone, id: string): Zone {
  const at = ids.indexOf(id) + 1
  if (at === 0) return { ids, bounds }
  const without = <T>(list: readonly T[]) => list.filter((_, i) => i !== at)
  return { ids: ids.filter(other => other !== id), bounds: without(bounds).map(without) }
}

/** The zone after any time that lets no timer fire. */
export function elapsed({ ids, bounds }: Zone): Zone {
  const later = bounds.map((row, i) => row.map((limit, j) => (i === 0 && j > 0 ? 0 : limit)))
  return { ids, bounds: tightened(later) }
}

/** The zone at which a timer fires, without it; `undefined` if another always fires before. */
export function fired({ ids, bounds }: Zone, id: string): Zone | undefined {
  const at = ids.indexOf(id) + 1
  const due = bounds.map(row => [...row])
  bound(due, at, 0, Math.min(0, Number(due[at]?.[0])))
  const tight = tightened(due)
  return tight.some((row, i) => Number(row[i]) < 0) ? undefined : clear({ ids, bounds: tight }, id)
}

/** The zone as text that is equal for equal zones. */
export function zoneKey({ ids, bounds }: Zone): string {
  const order = ids.map((id, i) => ({ id, at: i + 1 })).toSorted((one, other) => (one.id < other.id ? -1 : 1))
  const places = [0, ...order.map(({ at }) => at)]
  return JSON.stringify([order.map(({ id }) => id), places.map(i => places.map(j => bounds[i]?.[j]))])
}

function bound(bounds: number[][], row: number, column: number, limit: number): void {
  const limits = bounds[row]
  if (limits) limits[column] = limit
}

/** The tightest bounds that say the same (Floyd and Warshall). */
function tightened(bounds: readonly (readonly number[])[]): number[][] {
  const tight = bounds.map(row => [...row])
  for (const [k, through] of tight.entries()) {
    for (const row of tight) {
      for (const [j, rest] of through.entries()) row[j] = Math.min(Number(row[j]), Number(row[k]) + rest)
    }
  }
  return tight
}
