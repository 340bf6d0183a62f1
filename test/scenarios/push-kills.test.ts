import '../fixtures/stores/needs-sqlite.ts'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { StreamResponse } from '../../machines/protocol/objects.ts'
import type { KillPoint } from '../../runtime/primitives/kill-points.ts'
import { httpReceiver } from '../fixtures/peers/http-receiver.ts'
import { persistentClient } from '../fixtures/kills/kill-oracle.ts'
import { KilledHost } from '../fixtures/kills/killed-host.ts'
import { sampleOf } from '../fixtures/sample.ts'
import { brief, taskIn, until } from '../fixtures/runtime/runtime-helpers.ts'

/** The moments at which a process can be killed that tells a webhook, and how often it comes there at least. */
const POINTS: readonly (readonly [point: KillPoint, times: readonly number[]])[] = [
  ['rows written', [1, 3]],
  ['synced', [1, 3]],
  ['before delivery', [1, 2, 5]],
  ['delivery answered', [1, 2, 5]]
]

t.setTimeout(300_000)
t.jobs = 4

for (const [point, times] of POINTS) {
  for (const nth of sampleOf(t, times, 1)) {
    void t.test(
      `a webhook receives every event in order after a kill at ${point}, time ${nth}`,
      { timeout: 120_000 },
      t => killedWhileTelling(t, point, nth)
    )
  }
}

async function killedWhileTelling(t: Test, point: KillPoint, nth: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'taskchart-push-kills-'))
  const { url, got } = await httpReceiver(t)
  const { host, url: agent } = await KilledHost.start('generator', folder, `${point} ${nth}`)
  const client = await persistentClient(agent)
  t.teardown(async () => {
    await client.close()
    await host.end()
    await rm(folder, { recursive: true, force: true })
  })
  const heard = () =>
    got.map(({ headers, body }) => ({
      id: String(headers['taskchart-delivery-id']),
      says: brief(JSON.parse(body) as StreamResponse)
    }))
  const { id: taskId } = taskIn(
    await client.sendMessage({
      message: { messageId: 'begins', role: 'ROLE_USER', parts: [{ text: 'a boat' }] },
      configuration: { taskPushNotificationConfig: { id: 'w', url } }
    })
  )
  await client.sendMessage({ message: { messageId: 'answers', taskId, role: 'ROLE_USER', parts: [{ text: 'red' }] } })
  await until(() => heard().at(-1)?.says === 'completed')
  t.equal(await host.killsNoticed(), 1)
  const deliveries = heard()
  const once = deliveries.filter(({ id }, i) => id !== deliveries[i - 1]?.id)
  t.strictSame(
    once.map(({ id }) => id),
    // The messages have generations too: the first and the eighth of the log.
    [2, 3, 4, 5, 6, 7, 9, 10, 11, 12].map(generation => `${taskId}/w/${generation}`)
  )
  const again = deliveries.length - once.length
  t.ok(
    point === 'before delivery' ? again === 0 : point === 'delivery answered' ? again === 1 : again <= 1,
    'only a delivery that had been answered, which was not noted, comes again, under its id'
  )
}
