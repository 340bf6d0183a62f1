import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { runCommand } from '../../fixtures/cli/run-command.ts'

const agent = (more = '', rest = '', head = '') => `
import { defineAgent, fromPromise, setupWork } from 'taskchart'
${head}
const child = setupWork({}).createMachine({ id: 'child', initial: 'asking', states: { asking: { tags: 'input-required', on: { 'message.received': 'told' } }, told: { type: 'final' } } })
const work = setupWork({ actors: { child }, guards: { isOld: ({ context }) => context.age > 18 } }).createMachine({
  id: 'work', context: { age: 0 }, initial: 'asking',
  states: {
    asking: { tags: 'input-required', on: { 'message.received': [{ guard: 'isOld', target: 'talking' }, { target: 'refused' }] } },
    talking: { invoke: { src: 'child', onDone: 'done' } },${more}
    refused: { type: 'final', tags: 'rejected' },
    done: { type: 'final' }
  }
})
export default defineAgent({ card: { name: 'A', version: '1' }, work${rest} })
`

const cwd = t.testdir({
  'old.js': agent(),
  'same.js': agent().replace('> 18', '/* years */ > 18'),
  'guard.js': agent().replace('> 18', '> 21'),
  'gone.js': agent()
    .replace(/asking/g, 'greeting')
    .replace(
      "id: 'child', initial: 'greeting', states: { greeting",
      "id: 'child', initial: 'asking', states: { asking"
    ),
  'child.js': agent().replace(
    "initial: 'asking', states: { asking: { tags: 'input-required', on: { 'message.received': 'told' } }",
    "initial: 'begging', states: { begging: { tags: 'input-required', on: { 'message.received': 'told' } }"
  ),
  'options.js': agent('', ", messages: 'deliver', deadlineMs: 1000, migrate: ({ snapshot }) => snapshot"),
  'module.js': agent('', '', "import './more.js'"),
  'more.js': '',
  'function.js':
    "import { defineAgent } from 'taskchart'\nexport default defineAgent({ card: { name: 'A', version: '1' }, work: async () => {} })\n",
  'function2.js':
    "import { defineAgent } from 'taskchart'\n// Works.\nexport default defineAgent({ card: { name: 'A', version: '1' }, work: async () => {} })\n",
  'function3.js':
    "import { defineAgent } from 'taskchart'\nexport default defineAgent({ card: { name: 'A', version: '1' }, work: async () => 'done' })\n",
  'function4.js':
    "import { defineAgent } from 'taskchart'\nexport default defineAgent({ card: { name: 'A', version: '1' }, messages: 'queue', work: async () => {} })\n",
  'talker.js':
    "import { defineAgent, reply } from 'taskchart'\nexport default defineAgent({ card: { name: 'A', version: '1' }, negotiate: () => reply('x') })\n"
})
const diff = (...argv: string[]) => runCommand(['diff', ...argv], { cwd })

await t.test('the exit code says whether all tasks go on, some otherwise, or some not', async t => {
  const codes = { 'old.js': 0, 'same.js': 0, 'guard.js': 11, 'gone.js': 10, 'options.js': 11, 'module.js': 11 }
  for (const [file, code] of Object.entries(codes)) t.equal((await diff('old.js', file)).code, code, file)
  t.match(
    (await diff('old.js', 'same.js')).stdout,
    /\nThe work\n {2}no changes\nTasks in\n {2}asking {3}same\n {2}talking {2}same\n/
  )
})

await t.test('a guard whose source has changed is shown with its source and both ways', async t => {
  t.match(
    (await diff('old.js', 'guard.js')).stdout,
    `
  ~ the source of the guard isOld has changed
      before  ( { context } ) => context . age > 18
      now     ( { context } ) => context . age > 21
Tasks in
  asking   depends       depends on the guard isOld, whose source changed
                         asking on message.received: talking if it holds, else refused
                         if it always holds: done, the failure of child; if it never does: refused (rejected)
  talking  same
`
  )
})

await t.test('a chart among the actors has verdicts of its own, on which the work depends', async t => {
  const { code, stdout } = await diff('old.js', 'child.js')
  t.equal(code, 10)
  t.match(stdout, /\n {2}talking {2}depends {7}depends on the actor child, whose source changed\n/)
  t.match(
    stdout,
    /\nThe actor child\n {2}~ the state asking is now named begging\nTasks in\n {2}asking {2}not restored {2}the chart has no state child.asking\n$/
  )
  t.match((await diff('old.js', 'child.js', '--chart', 'child:child')).stdout, /^(?![^]*The work)[^]*The actor child/)
  t.match(await diff('old.js', 'child.js', '--chart', 'x'), {
    code: 1,
    stderr: /no chart x. There are: work, child:child.\n/
  })
})

await t.test('options of the agent and local modules are named', async t => {
  const options = await diff('old.js', 'options.js')
  t.match(
    options.stdout,
    `
  ~ the agent's messages is "deliver", and was "reject"
  + the agent's deadlineMs is 1000, and was undefined
  + the agent's migrate has changed
`
  )
  t.match(
    options.stdout,
    /asking {3}otherwise {5}the agent's messages has changed\n {25}the agent's deadlineMs has changed\n/
  )
  const module = await diff('old.js', 'module.js')
  t.match(
    module.stdout,
    /compared {2}the local modules more.js\n[^]*\n {2}\+ the local module more.js is new\n[^]*asking {3}depends {7}depends on the local module more.js is new/
  )
})

await t.test('a module that changes while it is loaded, and a path that is no file, are refused', async t => {
  const folder = t.testdir({
    'old.js': agent(),
    'odd.js': agent(
      '',
      '',
      "import './more.js'\nimport { appendFileSync } from 'node:fs'\nappendFileSync(MORE, '//')"
    ).replace('MORE', "new URL('./more.js', import.meta.url)"),
    'more.js': ''
  })
  const compare = (...files: string[]) => runCommand(['diff', ...files], { cwd: folder })
  t.match(await compare('old.js', 'odd.js'), {
    code: 1,
    stdout: '',
    stderr:
      /^taskchart: The local modules of odd\.js are not known: .*more\.js has changed while it was loaded\. Run the command again\.\n$/
  })
  t.match(await compare('old.js', '/dev/null'), {
    code: 1,
    stderr: /\/dev\/null is no file that can be read twice\. Give/
  })
})

await t.test('of functions it says whether anything has changed, and that the journal decides', async t => {
  t.match(await diff('function.js', 'function2.js'), { code: 0, stdout: /\n {2}every task {2}same\n$/ })
  t.match(await diff('function.js', 'function3.js'), {
    code: 11,
    stdout:
      /\n {2}every task {2}depends {7}the source of the work, or of its module, has changed\n {28}a function runs again from its start: it depends on what the journal of each task has\n$/
  })
  t.match(await diff('function.js', 'function4.js'), { code: 11, stdout: /every task {2}depends/ })
  t.match(await diff('function.js', 'old.js'), {
    code: 10,
    stdout: /not restored {2}the work was no statechart, and is one now\n$/
  })
  t.match(await diff('old.js', 'function.js'), {
    code: 10,
    stdout: /not restored {2}the work was a statechart, and is none now\n$/
  })
  t.match(await diff('old.js', 'talker.js'), { code: 10, stdout: /not restored {2}the agent has no work\n$/ })
  t.match(await diff('talker.js', 'old.js'), {
    code: 0,
    stdout: /same {10}the agent had no work, so there are no tasks\n$/
  })
  t.match(await diff('function.js', 'function3.js', '-o', 'svg'), { code: 1, stderr: /There is no drawing/ })
  t.match(await diff('function.js', 'function3.js', '--chart', 'work'), {
    code: 1,
    stderr: /no chart work. They have none.\n/
  })
  t.match(
    (await diff('function.js', 'function3.js', '-o', 'markdown')).stdout,
    /\nEvery task: \*\*depends\*\*\. the source/
  )
})

await t.test('long sources are cut, and histories, endings and parents are shown', async t => {
  const chart = (guard: string, more: string, inner: string) => `
import { defineAgent, setupWork } from 'taskchart'
const work = setupWork({ guards: { isOld: ${guard} } }).createMachine({
  id: 'work', initial: 'a', context: {},
  states: {
    a: { ${inner} on: { 'message.received': [{ guard: 'isOld', target: 'pause' }, { target: 'end' }] } },
    pause: { tags: 'input-required', on: { 'message.received': 'back' } },
    back: { ${more} },
    end: { type: 'final' }
  }
})
export default defineAgent({ card: { name: 'A', version: '1' }, work, messages: 'deliver' })`
  const inner = "initial: 'b', states: { b: { on: { X: 'c' } }, c: {}, past: { type: 'history' } },"
  const long = (word: string) =>
    `() => 'a text that is long' === 'another text that is long' || 'a third text that is long' === 'a ${word} text'`
  const never = (guard: string) => chart(guard, "always: 'a'", '').replace(", { target: 'end' }", '')
  writeFileSync(join(cwd, 'h1.js'), chart(long('fourth'), "always: 'a.past'", inner))
  writeFileSync(join(cwd, 'h2.js'), chart(long('fifth'), "type: 'final'", inner))
  writeFileSync(join(cwd, 'h3.js'), never('() => true'))
  writeFileSync(join(cwd, 'h4.js'), never('() => 2 > 1'))
  const { stdout } = await diff('h1.js', 'h2.js')
  t.match(stdout, /\n {6}before {2}.{110}…\n/)
  t.match(stdout, /\n {2}pause \(history work.a.past: work.a.b\) {2}otherwise/)
  t.match(stdout, 'new endings: back')
  t.match((await diff('h2.js', 'h1.js')).stdout, 'endings that are gone: back')
  t.match((await diff('h1.js', 'h3.js', '-o', 'markdown')).stdout, /class work_a_b removed/)
  t.match((await diff('h3.js', 'h4.js')).stdout, 'if it always holds: no end; if it never does: no end')
  t.match(
    (await diff('old.js', 'options.js', '-o', 'markdown')).stdout,
    "\n- added: the agent's deadlineMs is 1000, and was undefined\n"
  )
})

await t.test('json is one document, Markdown has a table and a drawing, and drawings mark what differs', async t => {
  const json = await diff('old.js', 'gone.js', '--json')
  t.same(json, await diff('old.js', 'gone.js', '-o', 'json'))
  const { charts, versions } = JSON.parse(json.stdout) as {
    charts: { chart: string; configurations: object[] }[]
    versions: object
  }
  t.match(
    [versions, charts],
    [
      { before: '1', after: '1' },
      [
        {
          chart: 'work',
          configurations: [
            { state: 'asking', verdict: 'not restored' },
            { state: 'talking', verdict: 'same' }
          ]
        },
        { chart: 'child:child' }
      ]
    ]
  )
  const { stdout } = await diff('old.js', 'gone.js', '-o', 'markdown')
  t.match(
    stdout,
    /^## What this change means for open tasks\n[^]*\n- renamed: the state asking is now named greeting\n[^]*\n\| Tasks in \| Verdict \| Why \|\n[^]*\n\| asking \| not restored \| the chart has no state work\.asking \|\n[^]*```mermaid\nstateDiagram-v2\n[^]*class work_greeting changed\n```\n/
  )
  writeFileSync(
    join(cwd, 'step.js'),
    agent("\n    step: { after: { 10: 'done' } },")
      .replace("onDone: 'done'", "onDone: 'step', onError: 'refused'")
      .replace(
        "refused: { type: 'final', tags: 'rejected' },",
        "refused: { type: 'final', tags: 'rejected', description: 'No.' },"
      )
  )
  t.match((await diff('step.js', 'old.js', '-o', 'mermaid')).stdout, /gone: after 10 ms\n[^]*class work_step removed\n/)
  const svg = (await diff('old.js', 'step.js', '-o', 'svg')).stdout
  t.match(svg, /<g class="state leaf atomic added" data-state="work.step">[^]*/)
  t.match(svg, /\.statechart \.removed>\.box/)
  t.match(await diff('old.js', 'gone.js', '-o', 'pdf'), {
    code: 2,
    stderr: /no -o pdf. There are: text, json, markdown, mermaid, svg, html.\n/
  })
  t.match(await diff('old.js', 'gone.js', '--json', '-o', 'svg'), { code: 2, stderr: /Choose one of --json and -o.\n/ })
  t.match(await diff('old.js'), { code: 2, stderr: /NEW.ts\|js is missing/ })
  t.match(await diff('old.js', 'gone.js', '-x'), { code: 2, stderr: /There is no option -x/ })
})

const gitIn =
  (folder: string) =>
  (...args: string[]): string =>
    execFileSync('git', ['-C', folder, '-c', 'user.name=a', '-c', 'user.email=a@a.example', ...args], {
      encoding: 'utf8'
    })

/** A repository with one commit of an agent in a folder, which has packages of its own. */
function repository(t: Test) {
  const folder = t.testdir({
    agents: {
      'agent.js': agent(),
      node_modules: {
        words: { 'package.json': '{"name":"words","main":"index.js"}', 'index.js': 'export const word = 1' }
      }
    },
    '.gitignore': 'node_modules',
    node_modules: {}
  })
  symlinkSync(join(process.cwd()), join(folder, 'node_modules', 'taskchart'))
  symlinkSync(join(process.cwd(), 'node_modules', 'xstate'), join(folder, 'node_modules', 'xstate'))
  const git = gitIn(folder)
  git('init', '-q')
  git('add', '-A')
  git('commit', '-qm', 'first')
  for (const hook of ['post-checkout', 'post-index-change'])
    writeFileSync(join(folder, '.git', 'hooks', hook), `#!/bin/sh\ntouch "$GIT_DIR/${hook}-ran"\nexit 1\n`, {
      mode: 0o755
    })
  return folder
}

const folders = () => readdirSync(tmpdir()).filter(name => name.startsWith('taskchart-diff-'))

await t.test(
  'a revision of git is compared in a folder that is gone afterwards, and that the repository does not know',
  async t => {
    const folder = repository(t)
    const before = folders()
    const repositoryBefore = readdirSync(join(folder, '.git'))
    writeFileSync(join(folder, 'agents', 'agent.js'), agent().replace('> 18', '> 21'))
    const { code, stdout } = await runCommand(['diff', 'agents/agent.js', '--since', 'HEAD'], { cwd: folder })
    t.equal(code, 11)
    t.match(
      stdout,
      /^Version 1 before, 1 now\ncompared {2}agents\/agent.js at HEAD \([0-9a-f]{10}\) with the node_modules of today\n/
    )
    t.match(stdout, /depends on the guard isOld/)
    t.strictSame(folders(), before)
    t.match(await runCommand(['diff', 'agents/agent.js', '--since', 'nope'], { cwd: folder }), {
      code: 1,
      stderr: /git knows no revision nope/
    })
    t.match(await runCommand(['diff', 'agents/agent.js', '--since', '--all'], { cwd: folder }), { code: 2 })
    writeFileSync(join(folder, 'agents', 'late.js'), agent())
    t.match(await runCommand(['diff', 'agents/late.js', '--since', 'HEAD'], { cwd: folder }), {
      code: 1,
      stderr: /agents\/late.js did not exist at HEAD/
    })
    t.strictSame(folders(), before)
    t.strictSame(readdirSync(join(folder, '.git')), repositoryBefore)
  }
)

await t.test('a submodule is checked out at its commit, and what a clone has not is named', async t => {
  const folder = repository(t)
  const git = gitIn(folder)
  const lib = join(folder, 'lib')
  mkdirSync(lib)
  const gitLib = gitIn(lib)
  gitLib('init', '-q')
  const commitAge = (age: number) => {
    writeFileSync(join(lib, 'age.js'), `export const age = ${age}\n`)
    gitLib('add', '-A')
    gitLib('commit', '-qm', String(age))
  }
  commitAge(18)
  const source = agent('', '', "import { age } from '../lib/age.js'").replace('> 18', '> age')
  writeFileSync(join(folder, 'agents', 'agent.js'), source)
  git('-c', 'advice.addEmbeddedRepo=false', 'add', '-A')
  git('commit', '-qm', 'with a submodule')
  const diff = () => runCommand(['diff', 'agents/agent.js', '--since', 'HEAD'], { cwd: folder })
  t.match(await diff(), { code: 0, stdout: /agents\/agent.js at HEAD/ })
  commitAge(21)
  const { code, stdout } = await diff()
  t.equal(code, 11)
  t.match(stdout, /lib\/age\.js/)
  const gone = gitLib('rev-parse', 'HEAD~1').trim()
  rmSync(join(lib, '.git'), { recursive: true })
  gitLib('init', '-q')
  t.match(await diff(), { code: 1, stderr: `The submodule lib has no commit ${gone}. Run git -C lib fetch.` })
  const shallow = join(folder, 'shallow')
  git('clone', '-q', '--depth', '1', pathToFileURL(folder).href, shallow)
  writeFileSync(join(shallow, 'agents', 'agent.js'), agent())
  t.match(await runCommand(['diff', 'agents/agent.js', '--since', 'HEAD~1'], { cwd: shallow }), {
    code: 1,
    stderr: /git knows no revision HEAD~1\..* git fetch --unshallow/
  })
})

await t.test('outside a repository, --since says so', async t => {
  const outside = t.testdir({ 'agent.js': agent() })
  const env = { GIT_CEILING_DIRECTORIES: process.env['GIT_CEILING_DIRECTORIES'] }
  process.env['GIT_CEILING_DIRECTORIES'] = dirname(outside)
  t.teardown(() => void (process.env['GIT_CEILING_DIRECTORIES'] = env.GIT_CEILING_DIRECTORIES ?? ''))
  t.match(await runCommand(['diff', 'agent.js', '--since', 'HEAD'], { cwd: outside }), {
    code: 1,
    stderr: /is not in a repository of git/
  })
})

await t.test('as one HTML file the charts stand side by side, with what differs, and nothing in it runs', async t => {
  writeFileSync(
    join(cwd, 'hostile.js'),
    agent("\n    '<script>alert(1)</script>': { after: { 10: 'done' } },").replace('> 18', '> 21')
  )
  const { stdout, code } = await diff('old.js', 'hostile.js', '-o', 'html')
  t.equal(code, 11)
  t.match(stdout, /^<!doctype html>\n[^]*content="default-src 'none'; style-src 'unsafe-inline'/)
  t.notMatch(stdout, /<script/)
  t.match(stdout, /<h1>Version 1 before, 1 now<\/h1>[^]*<section aria-label="Before">[^]*<section aria-label="Now">/)
  t.match(stdout, /class="[^"]* added" data-state="work\.&lt;script/)
  t.match(stdout, /<summary>source<\/summary><pre>before  [^]*18<\/pre><pre>now  [^]*21<\/pre>/)
  t.match(stdout, /<td>asking<\/td><td><b class="yellow">depends<\/b><\/td><td><ul><li>depends on the guard isOld/)
  const works = (await diff('function.js', 'function3.js', '-o', 'html')).stdout
  t.match(works, /Every task: <b class="yellow">depends<\/b><\/p><ul><li>the source of the work/)
  t.match(
    (await diff('function.js', 'function2.js', '-o', 'html')).stdout,
    /<b class="green">same<\/b><\/p><\/section>/
  )
  t.match((await diff('old.js', 'options.js', '-o', 'html')).stdout, /<li class="changed">the agent&#39;s messages is/)
  const states = Array.from({ length: 400 }, (_, i) => `s${i}: {},`).join('')
  writeFileSync(join(cwd, 'large.js'), agent(`\n${states}`))
  const large = (await diff('old.js', 'large.js', '-o', 'html')).stdout
  t.match(large, /<p>The chart has too many states to be drawn.<\/p>/)
  t.match((await diff('old.js', 'same.js', '-o', 'html')).stdout, /<p>No changes.<\/p>/)
})
