import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { answers } from '../fixtures/processes/answers.ts'
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

await t.test('a task of the example goes on with the new name that the guide gives', async t => {
  const renamed = "{ states: { choosing: 'asking' } }"
  t.match(String(blocks[2]), `export const renamed = ${renamed}`)
  const mended = String(blocks[1])
    .replace("version: '1'", "version: '2'")
    .replace('work: order', `work: order, renamed: ${renamed}`)
  writeFileSync(join(folder, 'renamed.ts'), mended)
  const { code, stdout } = await runCommand(['diff', 'before.ts', 'renamed.ts'], { cwd: folder })
  t.equal(code, 11)
  t.match(stdout, /\n {2}choosing {2}otherwise/)
})

const workflow =
  Array.from(text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm), ([, block = '']) => block).find(block =>
    block.includes('- run: |')
  ) ?? ''
const noTools = ['git', 'bash'].find(tool => !answers(tool, ['--version'], /version/))

await t.test(
  'the workflow comments what a pull request means, and fails if tasks cannot go on',
  {
    skip: noTools === undefined ? false : `no ${noTools}`
  },
  async t => {
    const script = workflow.slice(workflow.lastIndexOf('- run: |') + '- run: |'.length).replaceAll(/^ {10}/gm, '')
    t.match(script, /npx taskchart diff agent\.ts --since/)
    const root = t.testdir({ '.gitignore': 'node_modules\ntools\n', tools: {}, node_modules: {} })
    symlinkSync(process.cwd(), join(root, 'node_modules', 'taskchart'))
    symlinkSync(join(process.cwd(), 'node_modules', 'xstate'), join(root, 'node_modules', 'xstate'))
    const command = fileURLToPath(new URL('../../adapters/cli/bin.js', import.meta.url))
    const tool = (name: string, lines: string) =>
      writeFileSync(join(root, 'tools', name), `#!/bin/sh\n${lines}\n`, { mode: 0o755 })
    tool('npx', `shift; exec '${process.execPath}' '${command}' "$@"`)
    tool('gh', `echo "$@" > '${root}/tools/said'; cp "$5" '${root}/tools/body'`)
    const git = (...args: string[]) =>
      execFileSync('git', ['-C', root, '-c', 'user.name=a', '-c', 'user.email=a@a.example', ...args])
    writeFileSync(join(root, 'agent.ts'), String(blocks[0]))
    git('init', '-q')
    git('add', '-A')
    git('commit', '-qm', 'first')
    git('update-ref', 'refs/remotes/origin/main', 'HEAD')
    const run = () => {
      const { status } = spawnSync('bash', ['-e', '-c', script.replaceAll('${{ github.event.number }}', '7')], {
        cwd: root,
        env: {
          ...process.env,
          GITHUB_BASE_REF: 'main',
          PATH: [join(root, 'tools'), process.env['PATH']].join(delimiter)
        }
      })
      const read = (name: string) => readFileSync(join(root, 'tools', name), 'utf8')
      return { status, said: read('said'), body: read('body') }
    }
    writeFileSync(join(root, 'agent.ts'), String(blocks[1]))
    t.match(run(), {
      status: 1,
      said: 'pr comment 7 --body-file diff.md\n',
      body: /^## What this change means for open tasks\n[\s\S]*\| choosing \| not restored \|/
    })
    const mended = String(blocks[1]).replace("version: '1'", "version: '2'")
    writeFileSync(
      join(root, 'agent.ts'),
      mended.replace('work: order', "work: order, renamed: { states: { choosing: 'asking' } }")
    )
    t.match(run(), { status: 0, body: /\| choosing \| otherwise \|/ })
  }
)
