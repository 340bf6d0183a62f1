import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { taskIdIn, waiting } from '../checks.ts'
import { oursDurable } from '../contenders.ts'
import { repeat, type Load } from '../load/load.ts'
import { webSocketLoad } from '../load/websocket-load.ts'
import type { Scale } from '../scale.ts'
import { ServerProcess } from '../server-process.ts'
import { mebibytes, short, table, whole } from '../tables.ts'
import { messageParams } from './message.ts'

const TASKS_A_SECOND = 1000
const PACED_MS = 10_000
const TICK_MS = 5
const IN_FLIGHT = 64
const FAR_MS = 30 * 24 * 60 * 60 * 1000
const SOON_MS = 2000

/** What only a durable store has to be asked: how long an acknowledgement takes, and a start after a kill. */
export async function durableTables({ openTasks }: Scale): Promise<{ title: string; rows: string }[]> {
  const folder = await mkdtemp(join(tmpdir(), 'taskchart-bench-'))
  try {
    return [
      {
        title: `SQLite: SendMessage acknowledged, ${whole(TASKS_A_SECOND)} tasks a second`,
        rows: await acknowledgements(join(folder, 'paced.db'))
      },
      {
        title: `SQLite: serving again after a kill with ${whole(openTasks)} open tasks`,
        rows: await restart(join(folder, 'open.db'), openTasks)
      }
    ]
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/**
 * Messages that come at a steady pace, whether those before are answered or not; each is answered once its task is
 * durable.
 */
async function acknowledgements(file: string): Promise<string> {
  // Where the disk halts for a moment more wait than one client may have under way: that is a figure, no error.
  const server = await ServerProcess.start(oursDurable.file, {
    work: 'artifact',
    file,
    limits: { advanced: { callsPerConnection: 100_000 } }
  })
  const load = await webSocketLoad(server.port, 1)
  try {
    await paced(load, PACED_MS / 5)
    await server.delayMs()
    const tookMs = (await paced(load, PACED_MS)).toSorted((a, b) => a - b)
    const delayMs = await server.delayMs()
    const at = (part: number) => short(tookMs[Math.floor(part * (tookMs.length - 1))] ?? NaN)
    return table(
      ['', 'ms'],
      [
        ['median', at(0.5)],
        ['99 of 100', at(0.99)],
        ['longest', at(1)],
        ['event loop late, 99 of 100', short(delayMs)]
      ]
    )
  } finally {
    await load.close()
    await server.stop()
  }
}

async function paced(load: Load, forMs: number): Promise<number[]> {
  const params = { ...messageParams({ kind: 'artifact' }), configuration: { returnImmediately: true } }
  const answers: Promise<number>[] = []
  const beganMs = performance.now()
  const ask = async () => {
    const sentMs = performance.now()
    await load.call('SendMessage', params)
    return performance.now() - sentMs
  }
  for (let atMs = 0; atMs < forMs; atMs = performance.now() - beganMs) {
    while (answers.length < (atMs * TASKS_A_SECOND) / 1000) answers.push(ask())
    await new Promise(resolve => setTimeout(resolve, TICK_MS))
  }
  return Promise.all(answers)
}

/** A server with many tasks that wait, each with a deadline, and one whose deadline comes while no server is there. */
async function restart(file: string, openTasks: number): Promise<string> {
  const options = {
    work: 'ask',
    file,
    limits: { perPrincipal: { openTasks: 2 * openTasks }, advanced: { idleContexts: 1 } }
  }
  const taskId = await killedAfter({ ...options, deadlineMs: FAR_MS }, openTasks)
  const overdueId = await killedAfter({ ...options, deadlineMs: SOON_MS }, 1)
  await new Promise(resolve => setTimeout(resolve, SOON_MS))

  const startedMs = performance.now()
  const server = await ServerProcess.start('lean', { ...options, deadlineMs: FAR_MS })
  const load = await webSocketLoad(server.port, 1)
  try {
    waiting(await load.call('GetTask', { id: taskId }))
    const servedMs = performance.now() - startedMs
    while (!(await load.call('GetTask', { id: overdueId })).includes('TASK_STATE_FAILED'))
      await new Promise(resolve => setImmediate(resolve))
    const overdueMs = performance.now() - startedMs
    const { heap, rss } = await server.memory()
    return table(
      ['', ''],
      [
        ['first answer, from the start of the process, ms', short(servedMs)],
        ['an overdue deadline has taken effect, ms', short(overdueMs)],
        ['heap of the idle process, MiB', mebibytes(heap)],
        ['resident, MiB', mebibytes(rss)]
      ]
    )
  } finally {
    await load.close()
    await server.stop()
  }
}

/** Opens so many tasks at a server, and kills it when the last one waits. Answers with the id of that one. */
async function killedAfter(options: object, tasks: number): Promise<string> {
  const server = await ServerProcess.start('lean', options)
  const load = await webSocketLoad(server.port, 1)
  let taskId = ''
  await repeat(tasks, Math.min(tasks, IN_FLIGHT), async () => {
    taskId = taskIdIn(waiting(await load.call('SendMessage', messageParams({ kind: 'ask' }))))
  })
  await load.close()
  await server.stop('SIGKILL')
  return taskId
}
