import type { TransitionCount } from '../../../runtime/work-port.ts'
import type { CountChange } from '../../rows/commit-rows.ts'
import { type Cell, originalText, storedText, checksumOf, unlessDamaged } from '../../rows/damage.ts'
import { TRANSITION_TYPES } from '../schema/functions.ts'
import type { Ownership } from '../session/owner.ts'
import type { PostgresCell } from '../session/session.ts'
import { binaryArray, verifyRow } from './row-shapes.ts'

/** The columns of a count, for {@link transitionOf}. */
export const TRANSITION_COLUMNS = 'chart, previous, taken, writer, count, timed, ms, at_ms, sum'

const OF_WRITER = {
  name: 'taskchart_transitions_of_writer',
  text: `SELECT ${TRANSITION_COLUMNS} FROM transitions WHERE chart = ANY ($1::text[]) AND writer = $2`
}

const COUNT = {
  name: 'taskchart_count_transitions',
  text: `SELECT count_transitions($1::int4[], $2::int8[], ${TRANSITION_TYPES.map((type, i) => `$${i + 3}::${type}[]`).join(', ')})`
}

/** A count from its columns. Throws DamagedRow. */
export function transitionOf([
  chart,
  previous,
  transition,
  writer,
  count,
  timed,
  ms,
  atMs,
  sum
]: readonly PostgresCell[]): TransitionCount {
  const names = { chart: String(chart), previous: String(previous), transition: String(transition) }
  const figures = { count: Number(count), timed: Number(timed), ms: Number(ms) }
  const cells = [...Object.values(names), Number(writer), ...Object.values(figures), Number(atMs)]
  return verifyRow(
    'transitions',
    { ...figures, chart: names.chart, previous: originalText(names.previous), taken: originalText(names.transition) },
    checksumOf(cells),
    sum
  )
}

/**
 * Adds counts to the rows of this process, which are those of its first shard. Without a shard it writes nothing. A
 * damaged row begins again.
 */
export async function countTransitions(
  { session, shards, epochs }: Pick<Ownership, 'session' | 'shards' | 'epochs'>,
  { counts, atMs }: CountChange
): Promise<true> {
  const [writer] = shards
  if (writer === undefined) return true
  const found = await session.rows(OF_WRITER, [[...new Set(counts.map(({ chart }) => chart))], writer])
  const known = new Map(
    found.flatMap(fields => unlessDamaged(() => [[nameOf(transitionOf(fields)), transitionOf(fields)] as const]) ?? [])
  )
  const rows = counts.map(one => {
    const before = known.get(nameOf(one)) ?? { count: 0, timed: 0, ms: 0 }
    const cells = [
      one.chart,
      storedText(one.previous),
      storedText(one.taken),
      writer,
      before.count + one.count,
      before.timed + one.timed,
      before.ms + one.ms,
      atMs
    ]
    return [...cells, checksumOf(cells)]
  })
  const columns = TRANSITION_TYPES.map((type, column) =>
    binaryArray(
      type,
      rows.map(row => row[column] as Cell)
    )
  )
  await session.rows(COUNT, [[writer], [epochs[0]], ...columns])
  return true
}

function nameOf(count: TransitionCount): string {
  return JSON.stringify([count.chart, count.previous, count.taken])
}
