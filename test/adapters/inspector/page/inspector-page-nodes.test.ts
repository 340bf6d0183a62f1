import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import t from 'tap'
import { serve } from '../../../../adapters/serve/serve.ts'
import type { SeenNodes } from '../../../../adapters/inspector/nodes-seen.ts'
import { createRuntime, defineAgent } from '../../../../runtime/index.ts'
import { CHROMIUM, openPage } from '../../../fixtures/pages/chromium.ts'
import { fakeHub } from '../../../fixtures/pages/fake-hub.ts'
import { until } from '../../../fixtures/runtime/runtime-helpers.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const [A, B, C] = ['ws://127.0.0.1:4342', 'ws://127.0.0.1:4343', 'ws://127.0.0.1:4344'] as const
const nowMs = Date.now()
const shards = (first: number) => Array.from({ length: 16 }, (_, i) => ({ shard: first + 3 * i, epoch: 1 + (i % 4) }))
const node = (address: string, first: number) => ({
  address,
  state: 'alive' as const,
  takesShards: true,
  agent: '1.2.0',
  process: '1234 on host',
  sinceMs: nowMs - 90_000,
  shards: shards(first)
})

const SEEN: SeenNodes = {
  self: A,
  nodes: [node(A, 0), node(B, 1), { ...node(C, 2), state: 'gone', shards: [] }],
  free: [{ shard: 2, epoch: 3 }],
  moves: [
    { shard: 4, epoch: 2, from: C, to: B, atMs: nowMs - 5000 },
    { shard: 3, epoch: 2, from: undefined, to: A, atMs: nowMs - 50_000 }
  ],
  way: {
    taskId: 'task-1',
    shard: 4,
    stays: [
      { owner: C, epoch: 1, fromMs: nowMs - 9000, untilMs: nowMs - 5000 },
      { owner: B, epoch: 2, fromMs: nowMs - 5000, untilMs: undefined }
    ]
  }
}

await t.test(
  'Nodes shows nodes, shards, moves, and the way of the chosen task',
  { skip: CHROMIUM === undefined && 'no Chromium on this machine' },
  async t => {
    const runtime = createRuntime({ agent: defineAgent({ card: { name: 'Painter' }, work: () => {} }) })
    const server = await serve(runtime, { port: 0, http: false })
    t.teardown(() => server.close().then(() => runtime.close()))
    const hub = await fakeHub(t, Number(new URL(server.url).port), { isNode: true })
    const page = await openPage(t)
    const troubles: string[] = []
    page.on('pageerror', error => troubles.push(error.message))
    await page.goto(`${hub.url}#part=nodes&context=context-1&task=task-1`)
    await page.waitForSelector('text=Reading the nodes')
    await until(() => hub.asked.some(asked => asked.type === 'nodes' && asked.taskId === 'task-1'), 'it asks')
    await hub.tell({ type: 'nodes', seen: SEEN })
    await page.waitForSelector('text=3 nodes, 33 shards')
    t.match(
      await page.innerText('#part'),
      /Task task\S1, in shard 4[^]*127\.0\.0\.1:4344\s+epoch 1, from [\d:.]+ for 4\.0 s[^]*127\.0\.0\.1:4343\s+epoch 2, from [\d:.]+ until now[^]*127\.0\.0\.1:4342\s+alive\s+this node\s+version 1\.2\.0, process 1234 on host, joined 1 min ago[^]*gone[^]*no shards[^]*no owner/
    )
    t.match(
      await page.innerText('.panel > .moves'),
      /127\.0\.0\.1:4344 → 127\.0\.0\.1:4343[^]*a server without --node → 127\.0\.0\.1:4342/
    )
    for (const scheme of ['light', 'dark'] as const) {
      for (const width of [1440, 390]) {
        await page.emulateMedia({ colorScheme: scheme })
        await page.setViewportSize({ width, height: 900 })
        if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/nodes-${scheme}-${width}.png` })
        await page.evaluate(`${AXE}; 0`)
        t.strictSame(
          await page.evaluate(
            "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].target}`))"
          ),
          [],
          `${scheme}, ${width}`
        )
        t.ok(
          await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
          'nothing is wider than the page'
        )
      }
    }
    await hub.tell({
      type: 'nodes',
      seen: { ...SEEN, moves: [], free: [], way: { taskId: 'task-1', shard: 4, stays: [] } }
    })
    await page.waitForSelector('text=No shard has moved.')
    await page.waitForSelector('text=Its owners are not known.')
    await hub.tell({ type: 'nodes', error: 'The database is away.' })
    await page.waitForSelector('[role=alert] >> text=The database is away.')
    t.same(troubles, [])
  }
)
