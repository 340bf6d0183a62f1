import { echo, express, ours } from '../contenders.ts'
import { repeat } from '../load/load.ts'
import type { Race } from '../race.ts'
import type { Scale } from '../scale.ts'
import { streamed } from './stream.ts'

/**
 * One task that appends chunk after chunk to one artifact, in three lengths: a round has as many chunks in each, so
 * that a server whose chunks cost the same however many there are takes as long for all three.
 */
export function chunkRaces({ chunks, rounds }: Scale): Race[] {
  const race = (tasks: number): Race => ({
    title: `One task of ${(chunks / tasks).toLocaleString('en')} appended chunks`,
    unit: 'chunk',
    contenders: [ours, express, echo],
    work: 'chunks',
    inFlight: 1,
    rounds,
    times: tasks,
    isTimed: true,
    warmUp: load => repeat(200, 1, async () => void (await streamed(load, 100))),
    begin: async load => {
      // Others have had their turns for a minute: who comes back slowly is not to be slow in the first chunks.
      await streamed(load, chunks / 8)
      return async () => {
        await streamed(load, chunks / tasks)
        return chunks / tasks
      }
    }
  })
  return [race(4), race(2), race(1)]
}
