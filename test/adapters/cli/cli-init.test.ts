import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { KINDS, projectFiles } from '../../../adapters/cli/init.ts'
import type { LineInput } from '../../../adapters/cli/command.ts'
import { compilerOutput } from '../../fixtures/guides/compiled-guide.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'

const FILES = ['.gitignore', 'agent.test.ts', 'agent.ts', 'package.json', 'tsconfig.json']

/** A user at a terminal who types these lines. */
function typing(...lines: string[]): LineInput {
  return { isTerminal: true, ask: async () => lines.shift() }
}

interface Manifest {
  readonly name: string
  readonly scripts: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
}

await t.test('the files that taskchart init writes compile with their own settings, for each kind', async t => {
  // The packages are those of the clone, and the provider of models is only a type.
  const cwd = t.testdir({ node_modules: { taskchart: t.fixture('symlink', resolve('.')) } })
  for (const kind of Object.keys(KINDS)) {
    const { code, stdout, stderr } = await runCommand(['init', kind, '--kind', kind], { cwd })
    t.equal(code, 0, stderr)
    t.strictSame(stdout.trim().split('\n').toSorted(), FILES.map(name => join(kind, name)).toSorted())
    t.strictSame(readdirSync(join(cwd, kind)).toSorted(), FILES)
    const { scripts, dependencies, devDependencies } = manifestOf(join(cwd, kind))
    t.match(scripts, {
      dev: 'taskchart dev agent.ts',
      start: 'taskchart serve agent.ts',
      test: /--test agent\.test\.ts$/
    })
    for (const range of Object.values({ ...dependencies, ...devDependencies })) t.match(range, /^\^\d+\.\d+\.\d+$/)
    const imports = Array.from(
      readFileSync(join(cwd, kind, 'agent.ts'), 'utf8').matchAll(/from '(@[^/']+\/[^/']+|[^.@/'][^/']*)/g),
      ([, name]) => String(name)
    )
    for (const name of imports.filter(name => !name.startsWith('node:')))
      t.ok(name in dependencies, `${kind} has ${name}`)
  }
  const [first] = Object.keys(KINDS)
  const settings = JSON.parse(readFileSync(join(cwd, String(first), 'tsconfig.json'), 'utf8')) as object
  writeFileSync(join(cwd, 'tsconfig.json'), JSON.stringify({ ...settings, include: ['*/*.ts', '*.d.ts'] }))
  writeFileSync(
    join(cwd, 'provider.d.ts'),
    "declare module '@ai-sdk/openai' { export const openai: (id: string) => import('ai').LanguageModel }\n"
  )
  t.equal(await compilerOutput(cwd), '')
})

await t.test('a project with a model has the newest tested AI SDK that runs on this Node', async t => {
  const manifestFor = async (node: string) =>
    JSON.parse((await projectFiles('model', 'mine', node))['package.json']) as object
  t.match(await manifestFor('20.19.0'), {
    engines: { node: '>=20.19' },
    dependencies: { ai: /^\^6\.\d/, '@ai-sdk/openai': /^\^3\.\d/ }
  })
  t.match(await manifestFor('22.3.0'), {
    engines: { node: '>=22.0.0' },
    dependencies: { ai: /^\^7\.\d/, '@ai-sdk/openai': /^\^4\.\d/ }
  })
})

await t.test('taskchart init prints the commands that come next', async t => {
  const cwd = t.testdir()
  const { stderr } = await runCommand(['init', 'my agent', '--kind', 'model'], { cwd })
  t.equal(
    stderr,
    '\nNext:\n\n  cd "my agent"\n  npm install\n  npm test\n  export OPENAI_API_KEY=…\n  npx taskchart dev agent.ts\n'
  )
  t.equal(
    (await runCommand(['init', '--kind', 'chart'], { cwd })).stderr,
    '\nNext:\n\n  npm install\n  npm test\n  npx taskchart dev agent.ts\n'
  )
})

await t.test("a project has its folder's name in npm's letters, and never that of a dependency", async t => {
  const cwd = t.testdir()
  for (const [folder, name] of [
    ['My Agent!', 'my-agent'],
    ['taskchart', 'taskchart-agent'],
    ['ai', 'ai-agent'],
    ['…', 'my-agent'],
    ['.hidden', 'hidden']
  ] as const) {
    await runCommand(['init', folder, '--kind', 'function'], { cwd })
    t.equal(manifestOf(join(cwd, folder)).name, name)
  }
})

await t.test('on a terminal taskchart init asks for the kind', async t => {
  const cwd = t.testdir()
  const asked = await runCommand(['init', 'one'], { cwd, input: typing('9', 'nothing', ' 3 ') })
  t.match(asked.stderr, /Which kind of agent\?\n\n {2}1 {2}function .*\n[\s\S]*\n {2}5 {2}model .*\n/)
  t.equal(
    asked.stderr.match(/That is not one of 1 to 5, function, question, chart, negotiation, model\.\n/g)?.length,
    2
  )
  t.match(readFileSync(join(cwd, 'one/agent.ts'), 'utf8'), 'setupWork')
  await runCommand(['init', 'two'], { cwd, input: typing('Negotiation') })
  t.match(readFileSync(join(cwd, 'two/agent.ts'), 'utf8'), 'negotiation({')
  await runCommand(['init', 'three'], { cwd, input: typing('') })
  t.match(readFileSync(join(cwd, 'three/agent.ts'), 'utf8'), 'Work is a function')
  t.match(await runCommand(['init', 'four'], { cwd, input: typing() }), {
    code: 1,
    stderr: /No kind was given, so nothing was written\.\n$/
  })
  t.notOk(existsSync(join(cwd, 'four')))
})

await t.test('taskchart init refuses wrong usage with exit code 2', async t => {
  const cwd = t.testdir()
  t.match(await runCommand(['init'], { cwd }), {
    code: 2,
    stderr:
      /There is no terminal .* --kind function\|question\|chart\|negotiation\|model\.\nUsage: taskchart init \[DIR\]/
  })
  t.match(await runCommand(['init', '--kind', 'robot'], { cwd }), {
    code: 2,
    stderr: /There is no --kind robot\. There are: function, question/
  })
  t.match(await runCommand(['init', 'two', 'folders', '--kind', 'chart'], { cwd }), {
    code: 2,
    stderr: /"folders" is one argument too many/
  })
  for (const dir of ['../x', '../../x', 'a/../../x', '..'])
    t.match(
      await runCommand(['init', dir, '--kind', 'chart'], { cwd }),
      { code: 2, stderr: /DIR has to be in this folder, not / },
      dir
    )
  for (const dir of ['CON', 'aux.txt', 'a/nul', 'com1', 'a:b', 'a?', 'b\u202e', 'a.', 'a ', 'a\nb'])
    t.match(
      await runCommand(['init', dir, '--kind', 'chart'], { cwd }),
      { code: 2, stderr: /cannot be the name of a folder on every system/ },
      dir
    )
  t.strictSame(readdirSync(cwd), [])
})

await t.test('taskchart init overwrites nothing', async t => {
  const cwd = t.testdir({ 'package.json': '{}', 'a-file': '' })
  t.match(await runCommand(['init', '--kind', 'chart'], { cwd }), {
    code: 1,
    stderr:
      /package\.json exists in this folder, so nothing was written\. Give a new folder: npx taskchart init my-agent\n$/
  })
  mkdirSync(join(cwd, 'mine'))
  for (const name of ['agent.ts', '.gitignore']) writeFileSync(join(cwd, 'mine', name), '')
  t.match(await runCommand(['init', 'mine', '--kind', 'chart'], { cwd }), {
    code: 1,
    stderr: /agent\.ts, \.gitignore exist in mine, so nothing was written/
  })
  t.strictSame(readdirSync(join(cwd, 'mine')).toSorted(), ['.gitignore', 'agent.ts'])
  t.match(await runCommand(['init', 'a-file/below', '--kind', 'chart'], { cwd }), {
    code: 1,
    stderr: /The project could not be written: /
  })
})

await t.test('taskchart init writes all files or none', async t => {
  const cwd = t.testdir({ linked: {}, raced: {} })
  symlinkSync('nowhere', join(cwd, 'linked/agent.test.ts'))
  t.match(await runCommand(['init', 'linked', '--kind', 'chart'], { cwd }), {
    code: 1,
    stderr: /agent\.test\.ts exists in linked, so nothing was written/
  })
  t.strictSame(readdirSync(join(cwd, 'linked')), ['agent.test.ts'])
  const input: LineInput = {
    isTerminal: true,
    ask: async () => {
      writeFileSync(join(cwd, 'raced/agent.ts'), 'mine')
      return 'chart'
    }
  }
  t.match(await runCommand(['init', 'raced'], { cwd, input }), {
    code: 1,
    stderr: /The project could not be written: EEXIST/
  })
  t.strictSame(readdirSync(join(cwd, 'raced')), ['agent.ts'])
  t.equal(readFileSync(join(cwd, 'raced/agent.ts'), 'utf8'), 'mine')
  if (existsSync('/proc/self'))
    t.match(await runCommand(['init', '/proc/taskchart', '--kind', 'chart'], { cwd }), {
      code: 1,
      stderr: /The project could not be written: ENOENT/
    })
})

await t.test('create-taskchart has the version of the package that it calls', async t => {
  const [own, creator] = ['package.json', 'create-taskchart/package.json'].map(
    path =>
      JSON.parse(readFileSync(path, 'utf8')) as {
        version: string
        dependencies: { taskchart?: string; xstate?: string }
        devDependencies?: { xstate: string }
      }
  )
  t.match(creator, {
    version: own?.version,
    dependencies: { taskchart: `^${own?.version}`, xstate: own?.devDependencies?.xstate }
  })
})
