import { completed } from '../checks.ts'
import { core, echo, express, ours, oursCrowd, oursDurable, oursHttp } from '../contenders.ts'
import { repeat, type Load } from '../load/load.ts'
import type { Race } from '../race.ts'
import type { Scale } from '../scale.ts'
import { messageParams } from './message.ts'

/** SendMessage, answered with the completed task and its artifact, by so many clients at a time. */
export function sendRaces({ requests, requestRounds: rounds, warmUps }: Scale): Race[] {
  const race = (inFlight: number, times: number): Race => ({
    title: `SendMessage → completed task, ${inFlight} in flight`,
    unit: 'task',
    contenders: [ours, oursDurable, ...(inFlight === 1 ? [] : [oursCrowd]), oursHttp, express, core, echo],
    work: 'artifact',
    inFlight,
    rounds,
    times,
    warmUp: load => repeat(warmUps, inFlight, () => send(load)),
    begin: async load => {
      await repeat(inFlight, inFlight, () => send(load))
      return async () => {
        await send(load)
        return 1
      }
    }
  })
  return [race(1, requests / 4), race(16, requests), race(64, requests)]
}

async function send(load: Load): Promise<void> {
  completed(await load.call('SendMessage', messageParams({ kind: 'artifact' })))
}
