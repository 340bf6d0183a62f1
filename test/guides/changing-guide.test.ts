import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runCommand } from '../fixtures/cli/run-command.ts'
import { openGuide } from '../fixtures/guides/compiled-guide.ts'

const { text, blocks, folder } = await openGuide(t, 'changing')
const [said = ''] = Array.from(text.matchAll(/^```text\n([\s\S]*?)^```$/gm), ([, block]) => block ?? '')

await t.test('diff says of the example what the guide shows', async t => {
  for (const [i, name] of ['before.ts', 'after.ts'].entries()) writeFileSync(join(folder, name), String(blocks[i]))
  t.same(await runCommand(['diff', 'before.ts', 'after.ts'], { cwd: folder }), { code: 10, stdout: said, stderr: '' })
  const mended = String(blocks[1]).replace("version: '1'", "version: '2'")
  writeFileSync(join(folder, 'mended.ts'), mended)
  t.match((await runCommand(['diff', 'before.ts', 'mended.ts'], { cwd: folder })).stdout, /\n {2}brewing {3}otherwise/)
})

await t.test('the guide names every verdict, and each of its rows is one that diff gives', t => {
  const rows = Array.from(text.matchAll(/^\| `([a-z ]+)` \| .* \| (\d+) \|$/gm), ([, verdict, code]) => [verdict, code])
  t.strictSame(rows, [
    ['same', '0'],
    ['otherwise', '11'],
    ['other answer', '11'],
    ['depends', '11'],
    ['unknown', '11'],
    ['never ends', '10'],
    ['not restored', '10']
  ])
  t.end()
})
