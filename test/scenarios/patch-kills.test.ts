import '../fixtures/stores/needs-sqlite.ts'
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { KillPoint } from '../../runtime/primitives/kill-points.ts'
import { textOf } from '../../runtime/index.ts'
import { persistentClient } from '../fixtures/kills/kill-oracle.ts'
import { KilledHost } from '../fixtures/kills/killed-host.ts'
import { until } from '../fixtures/runtime/runtime-helpers.ts'
import { IS_DEEP, IS_WHOLE } from '../fixtures/sample.ts'

t.setTimeout(600_000)

/** The moments at which a decision on a patch may be lost, or kept without what follows it. */
const POINTS: readonly KillPoint[] = ['effect started', 'effect ended', 'rows written', 'synced']

/** Starts the agent in a folder with these files, and opens a task; gives how it ends and the steps that ran. */
async function started(t: Test, files: readonly string[], ...killAt: readonly string[]) {
  const folder = t.testdir()
  for (const name of files) writeFileSync(join(folder, name), '')
  const { host, url } = await KilledHost.start('patched', folder, ...killAt)
  const client = await persistentClient(url)
  t.teardown(async () => {
    await client.close()
    await host.end()
  })
  const opened = client.sendMessage({
    message: { messageId: 'opens', role: 'ROLE_USER', parts: [{ text: 'go' }] },
    configuration: { returnImmediately: true }
  })
  const steps = () => {
    const file = join(folder, 'steps')
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
  }
  const result = async () => {
    const response = await opened
    const id = 'task' in response ? response.task.id : ''
    const asks = async () => (await client.getTask({ id })).status.state === 'TASK_STATE_INPUT_REQUIRED'
    await until(asks, 'the question')
    const end = await client.sendMessage({
      message: { messageId: 'answers', role: 'ROLE_USER', taskId: id, parts: [{ text: 'Well.' }] }
    })
    return 'task' in end ? end.task.artifacts?.map(textOf).join() : undefined
  }
  return { folder, host, steps, result }
}

await t.test('a task that was opened with the patch keeps it over kill -9 at every moment', async t => {
  for (const point of POINTS)
    for (let nth = 1; nth <= (IS_WHOLE ? 12 : IS_DEEP ? 4 : 2); nth += 1)
      await t.test(`${point} ${nth}`, async t => {
        const { steps, result } = await started(t, ['new'], `${point} ${nth}`)
        const [left, right] = (await result())?.split(',') ?? []
        t.equal(left, right, 'both branches got one answer')
        t.equal(left === 'true', steps().includes('left added'), 'the step ran for the patch, and for nothing else')
        t.equal(right === 'true', steps().includes('right added'))
      })
})

await t.test('a task that was killed behind the point goes on without the patch, and its steps run again', async t => {
  const { folder, host, steps, result } = await started(t, ['hang'])
  await until(() => steps().filter(name => name.endsWith('after')).length === 2, 'both branches behind the point')
  rmSync(join(folder, 'hang'))
  writeFileSync(join(folder, 'new'), '')
  appendFileSync(join(folder, 'steps'), 'killed\n')
  host.kill()
  t.equal(await result(), 'false,false')
  t.strictSame(
    steps()
      .slice(steps().indexOf('killed') + 1)
      .toSorted(),
    ['left after', 'right after']
  )
})
