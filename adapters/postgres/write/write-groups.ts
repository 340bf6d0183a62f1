import type { Cell } from '../../rows/damage.ts'
import { WRITE_GROUPS } from '../schema/functions.ts'
import type { Ownership } from '../session/owner.ts'
import { binaryArray } from './row-shapes.ts'

type GroupName = Exclude<keyof typeof WRITE_GROUPS, 'owned'>

/** The call of the function that writes rows. */
export const WRITE_ROWS = {
  name: 'taskchart_write_rows',
  text: `SELECT write_rows(${Object.values(WRITE_GROUPS)
    .flat()
    .map((type, i) => `$${i + 1}::${type}[]`)
    .join(', ')})`
}

/** The rows of one call of `write_rows`, by group. A group without rows is sent as nulls. */
export class WriteGroups {
  readonly #rows = new Map<GroupName, (readonly Cell[])[]>()

  add(group: GroupName, ...cells: readonly Cell[]): void {
    const rows = this.#rows.get(group)
    if (rows) rows.push(cells)
    else this.#rows.set(group, [cells])
  }

  get isEmpty(): boolean {
    return this.#rows.size === 0
  }

  /** The parameters of {@link WRITE_ROWS}, for rows in some of the shards that are owned. */
  parameters(
    { shards, epochs }: Pick<Ownership, 'shards' | 'epochs'>,
    touched: ReadonlySet<number>
  ): (Buffer | null)[] {
    // The epoch of a shard that is not owned is -1, which refuses the write.
    const checked = Array.from(touched, shard => ({ shard, epoch: epochs[shards.indexOf(shard)] ?? -1 }))
    const owned = [
      binaryArray(
        'int4',
        checked.map(({ shard }) => shard)
      ),
      binaryArray(
        'int8',
        checked.map(({ epoch }) => epoch)
      )
    ]
    return [
      ...owned,
      ...Object.entries(WRITE_GROUPS)
        .slice(1)
        .flatMap(([name, types]) => {
          const rows = this.#rows.get(name as GroupName)
          return types.map((type, column) =>
            rows
              ? binaryArray(
                  type,
                  rows.map(cells => cells[column] as Cell)
                )
              : null
          )
        })
    ]
  }
}
