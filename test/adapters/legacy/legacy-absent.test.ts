import { register } from 'node:module'
import t from 'tap'
import { start } from '../../fixtures/runtime/runtime-helpers.ts'
import { obedient } from '../../fixtures/servers/served-agent.ts'

register('../../fixtures/processes/without-peers.js', import.meta.url)

await t.test('0.1 needs no official SDK, and 0.3 says what to install', async t => {
  const { dialect01, dialect03 } = await import('../../../adapters/legacy/index.ts')
  const { legacyDialects } = await import('../../../adapters/cli/serve/parts.ts')
  const { runtime } = start(t, { work: obedient })
  t.throws(() => dialect03(runtime), {
    name: 'TypeError',
    message: 'dialect03 needs the official SDK. Install it: npm install @a2a-js/sdk'
  })
  await t.rejects(legacyDialects(runtime), { name: 'CommandError', message: /npm install @a2a-js\/sdk/ })
  const method = dialect01(runtime).method('tasks/send')
  if (!method || method.streaming) throw new TypeError('tasks/send answers')
  t.match(await method.answer({ id: 'mine', message: { role: 'user', parts: [{ type: 'text', text: 'x' }] } }, {}), {
    id: 'mine',
    status: { state: 'completed' }
  })
})
