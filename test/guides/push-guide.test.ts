import t from 'tap'
import { defaultLimits } from '../../runtime/access/limits.ts'
import { type Runtime, servedRuntime } from '../../runtime/runtime-options.ts'
import { openGuide } from '../fixtures/guides/compiled-guide.ts'

const guide = await openGuide(t, 'push', { change: block => block.replace('port: 4242', 'port: 0') })

await t.test("the guide's program serves an agent with push notifications", async t => {
  const { runtime, served } = await guide.load<{ runtime: Runtime; served: { close: () => Promise<void> } }>(
    'block-0.ts'
  )
  t.teardown(async () => {
    await served.close()
    await runtime.close()
  })
  t.equal(servedRuntime(runtime, 'a test').agentCard([]).capabilities.pushNotifications, true)
})

await t.test('the numbers of the guide match the code', t => {
  const {
    webhooksPerTask,
    webhooksPerPrincipal,
    webhooksAtOnce,
    webhooksAtOncePerHost,
    webhookTimeoutMs,
    webhookTriesMs
  } = defaultLimits
  for (const text of [
    `\`webhooksPerTask\` | ${webhooksPerTask} |`,
    `| ${webhooksPerPrincipal.toLocaleString('en')} |`,
    `\`webhooksAtOnce\` | ${webhooksAtOnce} posts`,
    `\`webhooksAtOncePerHost\` | ${webhooksAtOncePerHost} |`,
    `\`webhookTimeoutMs\` | ${webhookTimeoutMs / 1000} seconds |`,
    `\`webhookTriesMs\` | ${webhookTriesMs / 86_400_000} days |`
  ])
    t.match(guide.words, text)
  t.end()
})
