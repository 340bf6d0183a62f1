import { join } from 'node:path'
import t from 'tap'
import { runBare } from '../fixtures/processes/bare-process.ts'
import { openGuide } from '../fixtures/guides/compiled-guide.ts'
import { NO_SQLITE } from '../fixtures/stores/sqlite.ts'

const { folder } = await openGuide(t, 'testing', {
  files: {
    'agent.ts': `
import { defineAgent, setupWork, textOf } from 'taskchart'
export { cases } from './block-2.ts'
const work = setupWork({ guards: { isSize: (_, said: string) => said === 'large' } }).createMachine({
  initial: 'asking',
  states: { asking: { tags: 'input-required', on: { 'message.received': { guard: { type: 'isSize', params: ({ event }) => textOf(event.message) }, target: 'done' } } }, done: { type: 'final' } }
})
export default defineAgent({ card: { name: 'Barista' }, work })
`
  }
})

const run = (...args: string[]) => runBare(...args).catch((error: { stdout: string }) => error)

await t.test("the guide's programs test an agent with Node's runner and with tap", { skip: NO_SQLITE }, async t => {
  const tap = (await run('--import', 'tsx', join(folder, 'block-1.ts'))).stdout
  t.match(tap, /# states: 3 of 3\n# transitions: 1 of 1\n# tags: 1 of 1\n# guard outcomes: 2 of 2/)
  t.match(tap, /# \{ total: 37, pass: 37 \}/)
  const node = (await run('--import', 'tsx', '--test-reporter=tap', join(folder, 'block-0.ts'))).stdout
  t.match(node, /# pass 37\n# fail 0/)
})
