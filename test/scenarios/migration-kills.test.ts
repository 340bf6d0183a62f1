import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { AgentClient } from '../../adapters/client/agent-client.ts'
import type { KillPoint } from '../../runtime/primitives/kill-points.ts'
import { textOf } from '../../runtime/index.ts'
import { persistentClient } from '../fixtures/kills/kill-oracle.ts'
import { KilledHost } from '../fixtures/kills/killed-host.ts'
import { say, taskIn, until } from '../fixtures/runtime/runtime-helpers.ts'
import { IS_DEEP, IS_WHOLE, SEED } from '../fixtures/sample.ts'
import { NO_POSTGRES, PostgresServer } from '../fixtures/stores/postgres.ts'
import { NO_SQLITE } from '../fixtures/stores/sqlite.ts'

t.setTimeout(600_000)
t.jobs = 3

/** The moments at which a migration may be lost: before it, while it is stored, and before anybody knows of it. */
const POINTS: readonly KillPoint[] = [
  'before migration',
  'timer due',
  'transaction open',
  'events written',
  'rows written',
  'before sync',
  'synced',
  'streams told',
  'caller answered',
  'effect started',
  'effect ended'
]

/** Those that a store on PostgreSQL comes to. */
const ON_POSTGRES = POINTS.filter(point => !['transaction open', 'events written', 'rows written'].includes(point))

/** How often a process comes to a point before it is killed there. */
const TIMES = IS_WHOLE ? 4 : IS_DEEP ? 2 : 1

/** All points, or half of them: each store has others. */
function sampleOf(points: readonly KillPoint[], half: number): readonly KillPoint[] {
  return IS_DEEP ? points : points.filter((_, i) => (i + SEED) % 2 === half)
}

type Started = { readonly host: KilledHost; readonly url: string }

/**
 * Opens tasks with version 1 that ask, brew and ask again. Then kills the process. The next one has version 2, and is
 * killed at a point. Every task has to end rightly, and to be migrated once.
 */
async function killed(t: Test, point: string, start: (folder: string, ...killAt: string[]) => Promise<Started>) {
  const folder = t.testdir()
  const { host, url } = await start(folder, 'caller answered 1000', point)
  const client = await persistentClient(url)
  t.teardown(async () => {
    await client.close()
    await host.end()
  })
  const asks = (id: string, words: string) => until(async () => (await wordsOf(client, id)) === words, words)
  const waiting = await opened(client, 'c')
  const [brewing, beside] = [await opened(client, 'd'), await opened(client, 'c')]
  const offering = await opened(client, 'e')
  const grinding = await opened(client, 'f')
  await answer(client, grinding, 'endless')
  await answer(client, offering, 'small')
  await asks(offering, 'Sugar?')
  await answer(client, brewing, 'large')
  writeFileSync(join(folder, 'new'), '')
  host.kill()
  await Promise.all([answer(client, waiting, 'huge'), answer(client, beside, 'tiny')])
  for (const id of [brewing, grinding, waiting, beside]) await asks(id, 'Sugar?')
  for (const id of [waiting, brewing, grinding, beside, offering]) await answer(client, id, 'yes')
  for (const [id, size] of [
    [waiting, 'huge'],
    [brewing, 'large'],
    [grinding, 'endless'],
    [beside, 'tiny'],
    [offering, 'small']
  ] as const) {
    const { status, artifacts } = await client.getTask({ id })
    t.equal(status.state, 'TASK_STATE_COMPLETED', size)
    t.equal(artifacts?.map(textOf).join(), `${size}, ground 5, 1`, 'it was migrated once, and its actor has run')
  }
  const file = join(folder, 'migrated')
  const calls = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
  t.ok(calls.length >= 5)
  t.match(
    calls,
    calls.map(() => /^1 \{"open":"(?:picking|crushing|making|offering)"\}$/),
    'each is a task of version 1, with the names of now'
  )
  return host.killsNoticed()
}

async function opened(client: AgentClient, contextId: string): Promise<string> {
  return taskIn(await client.sendMessage(say('coffee', { contextId }))).id
}

async function answer(client: AgentClient, taskId: string, words: string): Promise<void> {
  await client.sendMessage(say(words, { taskId }, { returnImmediately: true }))
}

async function wordsOf(client: AgentClient, id: string): Promise<string | undefined> {
  const { message } = (await client.getTask({ id })).status
  return message && textOf(message)
}

async function killedAtEach(
  t: Test,
  points: readonly KillPoint[],
  start: (folder: string, ...killAt: string[]) => Promise<Started>
): Promise<void> {
  t.jobs = 3
  const cases = points.flatMap(point => Array.from({ length: TIMES }, (_, n) => `${point} ${n + 1}`))
  await Promise.all(
    cases.map(point =>
      t.test(point, async t => {
        const kills = await killed(t, point, start)
        t.ok(kills === 2 || !point.endsWith('1'), 'the process with the new version was killed too')
      })
    )
  )
}

void t.test('on SQLite a task is migrated once, whenever its process is killed', { skip: NO_SQLITE }, t =>
  killedAtEach(t, sampleOf(POINTS, 0), (folder, ...killAt) => KilledHost.start('renamed', folder, ...killAt))
)

void t.test('on PostgreSQL too', { skip: NO_POSTGRES }, async t => {
  const server = await PostgresServer.start(['max_connections=60'])
  t.teardown(() => server.stop())
  let schemas = 0
  await killedAtEach(t, sampleOf(ON_POSTGRES, 1), (folder, ...killAt) =>
    KilledHost.startOn(server.url(), `killed_${(schemas += 1)}`, 'renamed', folder, ...killAt)
  )
})
