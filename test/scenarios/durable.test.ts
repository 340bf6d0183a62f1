import '../fixtures/stores/needs-sqlite.ts'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sqliteStore } from '../../adapters/storage/sqlite.ts'
import type { StreamResponse } from '../../machines/protocol/objects.ts'
import type { AgentDefinition } from '../../runtime/agent/define-agent.ts'
import { inputRequired } from '../../runtime/authoring/questions.ts'
import { text, textOf } from '../../runtime/authoring/words.ts'
import type { Runtime } from '../../runtime/runtime-options.ts'
import {
  closed,
  collect,
  generationOf,
  reaches,
  say,
  start,
  taskIn,
  withGenerations
} from '../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../fixtures/runtime/test-clock.ts'

const HOUR = 60 * 60 * 1000
const DAY = 24 * HOUR
const YEAR = 365 * DAY

const START = Date.parse('2026-01-02T03:04:05.006Z')

/** A clock that can be put forward and back without its timers hearing of it, as a machine's can. */
class JumpingClock extends TestClock {
  #offsetMs = 0

  override now(): number {
    return super.now() + this.#offsetMs
  }

  jump(ms: number): void {
    this.#offsetMs += ms
  }
}

type Work = Pick<AgentDefinition, 'work' | 'deadlineMs'>

await t.test('a task that waits 40 days for its answer over five restarts completes', async t => {
  const { live, clock } = await fileOf(t)
  const work: Work = {
    work: async function* ({ message }) {
      const answer = yield* inputRequired(`Which day for ${textOf(message)}?`)
      return { artifact: text(`on ${textOf(answer)}`) }
    }
  }
  let taskId = ''
  for (let life = 0; life < 5; life += 1) {
    await live(work, async runtime => {
      if (life === 0) taskId = taskIn(await runtime.sendMessage(say('a trip'))).id
      t.equal((await runtime.getTask({ id: taskId })).status.state, 'TASK_STATE_INPUT_REQUIRED')
      clock.increment(8 * DAY)
    })
  }
  await live(work, async runtime => {
    const answered = taskIn(await runtime.sendMessage(say('Monday', { taskId })))
    t.match(answered, {
      id: taskId,
      status: { state: 'TASK_STATE_COMPLETED' },
      artifacts: [{ parts: [{ text: 'on Monday' }] }]
    })
    t.ok(Date.parse(answered.status.timestamp ?? '') - START >= 40 * DAY)
  })
})

await t.test('a sleep ends once, and not early, despite clock changes over restarts', async t => {
  for (const jumps of [
    [HOUR, HOUR, 10 * DAY],
    [-HOUR, 11 * DAY],
    [-10 * YEAR, 10 * YEAR, 10 * DAY],
    [10 * YEAR],
    [DAY, -2 * DAY, 30 * DAY]
  ]) {
    const { live, clock } = await fileOf(t)
    let woken = 0
    const work: Work = {
      work: async ({ sleep }) => {
        await sleep(10 * DAY)
        woken += 1
        return {}
      }
    }
    let taskId = ''
    await live(work, async runtime => {
      taskId = taskIn(await runtime.sendMessage({ ...say('x'), configuration: { returnImmediately: true } })).id
      await reaches(runtime, taskId, 'working')
    })
    for (const jump of jumps) {
      clock.jump(jump)
      const isDue = clock.now() - START >= 10 * DAY
      await live(work, async runtime => {
        if (isDue) {
          clock.increment(0)
          await reaches(runtime, taskId, 'completed')
        } else
          t.equal(
            (await runtime.getTask({ id: taskId })).status.state,
            'TASK_STATE_WORKING',
            `not early after ${jumps.join(', ')}`
          )
      })
      if (isDue) break
    }
    t.equal(woken, 1, `once after ${jumps.join(', ')}`)
  }
})

await t.test('after a restart a resent message is not processed again, and a stream resumes', async t => {
  const { live } = await fileOf(t)
  const work: Work = {
    work: async function* () {
      const answer = yield* inputRequired('Go on?')
      return { artifact: text(textOf(answer)) }
    }
  }
  const first = say('once')
  let taskId = ''
  let told = 0
  await live(work, async runtime => {
    const events = await collect(runtime.sendStreamingMessage(first, withGenerations))
    taskId = taskIn(events[0]).id
    told = Number(generationOf(events.at(-1) as StreamResponse))
  })
  await live(work, async runtime => {
    t.equal(taskIn(await runtime.sendMessage(first, withGenerations)).id, taskId)
    t.equal((await runtime.listTasks({}, withGenerations)).totalSize, 1)
    const rest = collect(
      runtime.subscribeToTask({ id: taskId }, { ...withGenerations, conditions: { afterGeneration: told } })
    )
    await runtime.sendMessage(say('yes', { taskId }), withGenerations)
    t.strictSame(
      (await rest).map(event => Object.keys(event)[0]),
      ['statusUpdate', 'artifactUpdate', 'statusUpdate']
    )
  })
})

/** One file, and the lives of an agent with it, one after the other on one clock. */
async function fileOf(t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'taskchart-durable-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const clock = new JumpingClock()
  const live = async (definition: Work, during: (runtime: Runtime) => Promise<void>) => {
    const { runtime } = start(t, definition, { store: sqliteStore(join(folder, 'tasks.db')), clock })
    await during(runtime)
    await closed(runtime, clock)
  }
  return { live, clock }
}
