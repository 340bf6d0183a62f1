import { StreamCheck } from '../checks.ts'
import { core, echo, express, ours, oursCrowd, oursHttp } from '../contenders.ts'
import { repeat, type Load } from '../load/load.ts'
import type { Race } from '../race.ts'
import type { Scale } from '../scale.ts'
import { messageParams } from './message.ts'

const IN_FLIGHT = 16
/** With the opened task, WORKING and COMPLETED they make ten events. */
const CHUNKS = 7

/** SendStreamingMessage: short tasks that tell ten events each, many at a time. */
export function streamRaces({ requests, requestRounds: rounds, warmUps }: Scale): Race[] {
  const title = `SendStreamingMessage, tasks of ${CHUNKS + 3} events, ${IN_FLIGHT} in flight`
  return [
    {
      title,
      unit: 'event',
      contenders: [ours, oursCrowd, oursHttp, express, core, echo],
      work: 'chunks',
      inFlight: IN_FLIGHT,
      rounds,
      times: requests / 2,
      warmUp: load => repeat(warmUps, IN_FLIGHT, async () => void (await streamed(load, CHUNKS))),
      begin: async load => {
        await repeat(IN_FLIGHT, IN_FLIGHT, async () => void (await streamed(load, CHUNKS)))
        return () => streamed(load, CHUNKS)
      }
    }
  ]
}

/** Streams one task of so many chunks, and says how many events it had. */
export async function streamed(load: Load, chunks: number): Promise<number> {
  const check = new StreamCheck(chunks)
  await load.stream('SendStreamingMessage', messageParams({ kind: 'chunks', count: chunks }), check.see)
  return check.end()
}
