import '../fixtures/stores/needs-sqlite.ts'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { KillPoint } from '../../runtime/primitives/kill-points.ts'
import { keepResult } from '../fixtures/kills/guarantee-results.ts'
import { converse, persistentClient, tasksIn, violations } from '../fixtures/kills/kill-oracle.ts'
import type { AgentName } from '../fixtures/kills/killed-agents.ts'
import { KilledHost } from '../fixtures/kills/killed-host.ts'
import { IS_DEEP, IS_WHOLE, SEED } from '../fixtures/sample.ts'

/** The moments at which a process can be killed while somebody talks to its agent. */
const POINTS: readonly KillPoint[] = [
  'frame received',
  'request checked',
  'transaction open',
  'sends written',
  'events written',
  'rows written',
  'before sync',
  'synced',
  'caller answered',
  'streams told',
  'effect started',
  'effect ended',
  'timer due'
]
const AGENTS: readonly AgentName[] = ['generator', 'chart']

/** More often than that no conversation comes to a moment. */
const BOUND = 100

/** How often a moment has to come before it is enough, unless everything is tested. */
const ENOUGH = IS_WHOLE ? BOUND : 3

/** Conversations at once: each waits most of its time for a process to start. */
const AT_ONCE = 4

t.setTimeout(600_000)
t.jobs = AT_ONCE

for (const [n, agent] of AGENTS.entries()) {
  if (IS_DEEP)
    for (const point of POINTS)
      void t.test(`the ${agent}’s conversation continues after a kill at ${point}`, { timeout: 300_000 }, t =>
        killedEverywhere(t, agent, point)
      )
  else
    void t.test(
      `the ${agent}’s conversations continue after a kill at each of half the points`,
      { timeout: 300_000 },
      t =>
        killedInTurn(
          t,
          agent,
          POINTS.filter((_, i) => (i + SEED) % AGENTS.length === n)
        )
    )
}

/** Has conversations with an agent whose processes are killed one after the other, each at the next point. */
async function killedInTurn(t: Test, agent: AgentName, points: readonly KillPoint[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'taskchart-kills-'))
  const { host, url } = await KilledHost.start(agent, folder, ...points.map(point => `${point} 1`))
  const client = await persistentClient(url)
  t.teardown(async () => {
    await client.close()
    await host.end()
    await rm(folder, { recursive: true, force: true })
  })
  for (const n of points.keys()) {
    const before = host.kills
    const told = await converse(client, `conversation ${n + 1}`)
    const kills = await host.killsNoticed()
    t.strictSame(await violations(folder, told), [], `killed at ${points.slice(before, kills).join(', ') || 'none'}`)
    t.equal(await tasksIn(folder), n + 1, 'each message opened one task')
    if (kills === points.length) return
  }
  t.fail(`it did not come to ${points.slice(host.kills).join(', ')}`)
}

/**
 * Has the same conversation again and again, with the process killed the first time that it comes to a point, the
 * second, … until it does not come there so often.
 */
async function killedEverywhere(t: Test, agent: AgentName, point: KillPoint): Promise<void> {
  for (let n = 1; n <= ENOUGH; n += 1) {
    const { kills, wrong } = await killedOnce(agent, `${point} ${n}`)
    t.strictSame(wrong, [], kills === 0 ? 'never killed' : `killed, time ${n}`)
    if (kills > 0) continue
    t.ok(n > 1, 'it reaches that point')
    return keepResult({ agent, point, kills: n - 1 })
  }
  t.ok(ENOUGH < BOUND, `it comes to ${point} again and again`)
}

async function killedOnce(agent: AgentName, killAt: string): Promise<{ kills: number; wrong: string[] }> {
  const folder = await mkdtemp(join(tmpdir(), 'taskchart-kills-'))
  const { host, url } = await KilledHost.start(agent, folder, killAt)
  const client = await persistentClient(url)
  try {
    const told = await converse(client, 'one')
    const kills = await host.killsNoticed()
    const wrong = await violations(folder, told)
    const tasks = await tasksIn(folder)
    return { kills, wrong: tasks === 1 ? wrong : [...wrong, `I6 one message opened ${tasks} tasks`] }
  } finally {
    await client.close()
    await host.end()
    await rm(folder, { recursive: true, force: true })
  }
}
