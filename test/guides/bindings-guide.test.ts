import { join } from 'node:path'
import t from 'tap'
import { runBare } from '../fixtures/processes/bare-process.ts'
import { openGuide } from '../fixtures/guides/compiled-guide.ts'

const {
  text: guide,
  blocks: [text = ''],
  folder
} = await openGuide(t, 'bindings', { change: block => block.replace('4242', '0').replace('50051', '0') })
const [, printed = ''] = /^It prints:\n\n```\n([\s\S]*?)^```$/m.exec(guide) ?? []

await t.test('the program of the guide has at most 40 lines', async t => {
  t.ok(text.split('\n').length <= 40)
})

await t.test('the program prints what the guide shows, except the ports', async t => {
  const withoutPorts = (lines: string) => lines.replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1')
  const { stdout } = await runBare('--import', 'tsx', join(folder, 'block-0.ts'))
  t.equal(withoutPorts(stdout), withoutPorts(printed))
})
