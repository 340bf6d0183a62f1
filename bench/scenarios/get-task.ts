import { completed, taskIdIn } from '../checks.ts'
import { core, echo, express, ours } from '../contenders.ts'
import { repeat, type Load } from '../load/load.ts'
import type { Race } from '../race.ts'
import type { Scale } from '../scale.ts'
import { messageParams } from './message.ts'

const IN_FLIGHT = 16
const TASKS = 100

/** GetTask of tasks that have completed, with their history and artifact. */
export function getTaskRaces({ requests, requestRounds: rounds, warmUps }: Scale): Race[] {
  const begin = async (load: Load) => {
    const taskIds: string[] = []
    await repeat(TASKS, IN_FLIGHT, async () => {
      taskIds.push(taskIdIn(completed(await load.call('SendMessage', messageParams({ kind: 'artifact' })))))
    })
    let asked = 0
    return async () => {
      asked += 1
      completed(await load.call('GetTask', { id: taskIds[asked % TASKS] }))
      return 1
    }
  }
  const warmUp = async (load: Load) => {
    const once = await begin(load)
    await repeat(warmUps, IN_FLIGHT, async () => void (await once()))
  }
  const title = `GetTask of a completed task, ${IN_FLIGHT} in flight`
  return [
    {
      title,
      unit: 'answer',
      contenders: [ours, express, core, echo],
      work: 'artifact',
      inFlight: IN_FLIGHT,
      rounds,
      times: 2 * requests,
      warmUp,
      begin
    }
  ]
}
