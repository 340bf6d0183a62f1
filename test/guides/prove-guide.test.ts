import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runBare } from '../fixtures/processes/bare-process.ts'
import { openGuide } from '../fixtures/guides/compiled-guide.ts'
import { runCommand } from '../fixtures/cli/run-command.ts'

// Agents beside the guide's are JavaScript, which Node loads once for all commands.
const { text, blocks, folder, load } = await openGuide(t, 'prove', {
  files: {
    'refund.ts': "export { default, cases } from './block-0.ts'\n",
    'lamps.js': `
import { defineAgent, fromPromise, propertiesOf, setupWork } from 'taskchart'
import { sendTo } from 'xstate'
const work = setupWork({ actors: { hand: fromPromise(async () => '') } }).createMachine({
  id: 'lamps', type: 'parallel',
  states: {
    one: { initial: 'off', states: { off: { after: { 10: 'on' } }, on: { entry: sendTo('hand', { type: 'pull; #1' }), initial: 'dim', states: { dim: {} } } } },
    two: { invoke: { id: 'hand', src: 'hand' } }
  }
})
const { eventually, sent, terminal } = propertiesOf(work)
export const cases = { results: { hand: {} } }
export default defineAgent({ card: { name: 'Lamps' }, work, properties: { 'it\\'s over': eventually(terminal), 'it pulls': eventually(sent('pull; #1')) } })
`,
    'price.js': `
import { defineAgent, fromPromise, propertiesOf, setupWork } from 'taskchart'
const work = setupWork({ actors: { price: fromPromise(async () => 1) }, guards: { isCheap: ({ event }) => Number(Object(event).output) < 10 } }).createMachine({
  id: 'price', initial: 'asking',
  states: { asking: { invoke: { src: 'price', onError: 'dear', onDone: [{ guard: 'isCheap', target: 'cheap' }, { target: 'dear' }] } }, cheap: { type: 'final' }, dear: { type: 'final' } }
})
const { precedes, fails, never, told } = propertiesOf(work)
export default defineAgent({ card: { name: 'Price' }, work, properties: { 'only an error is dear': precedes(fails('price'), 'dear'), 'nothing is said': never(told('SUBMITTED')), 'nothing is cheap': never('cheap'), 'it knows': never(({ status }) => status === 'stopped') } })
`,
    'moody.js': `
import { defineAgent, fromPromise, propertiesOf, setupWork } from 'taskchart'
let times = 0
const work = setupWork({ actors: { mood: fromPromise(async () => '') }, guards: { isFirst: () => (times += 1) === 1 } }).createMachine({
  id: 'mood', initial: 'waiting',
  states: { waiting: { invoke: { src: 'mood', onDone: [{ guard: 'isFirst', target: 'bad' }, { target: 'good' }], onError: 'good' } }, bad: { type: 'final' }, good: { type: 'final' } }
})
export const cases = { results: { mood: { done: 'x' } } }
export default defineAgent({ card: { name: 'Mood' }, work, properties: { 'it is never bad': propertiesOf(work).unreachable('bad') } })
`,
    'over.js':
      "import { defineAgent, setupWork } from 'taskchart'\nconst work = setupWork({}).createMachine({ id: 'over', initial: 'over', states: { over: { type: 'final' } } })\nexport default defineAgent({ card: { name: 'Over' }, work })\n",
    'function.js':
      "import { defineAgent } from 'taskchart'\nexport default defineAgent({ card: { name: 'A' }, work: async () => {} })"
  }
})

const prove = (...argv: string[]) => runCommand(['prove', ...argv], { cwd: folder })
const [proof = ''] = Array.from(text.matchAll(/^```text\n([\s\S]*?)^```$/gm), ([, block]) => block ?? '')

await t.test("the guide's bugs pass the tests of every transition, and are found by its properties", async t => {
  t.match(await runCommand(['test', 'refund.ts', '--driver', 'the chart'], { cwd: folder }), {
    code: 0,
    stdout: / 0 failed\n/
  })
  t.match(await prove('refund.ts'), { code: 10, stdout: proof, stderr: '' })
  t.match(await prove('refund.ts', '--only', 'at most once'), {
    code: 0,
    stdout: /^Refunds: 9 configurations, all, opened by "a refund"\nproved {5}the bank pays at most once\n$/
  })
})

await t.test('a counterexample is written as a test that fails until the chart is mended', async t => {
  const { stdout } = await prove('refund.ts', '--only', 'approved', '--test')
  t.equal(stdout, blocks[1])
  const ran = await runBare('--import', 'tsx', '--test-reporter=tap', join(folder, 'block-1.ts')).catch(
    (error: { stdout: string }) => error
  )
  t.match(ran.stdout, /not ok 1 - an amount is approved before it is paid[\s\S]*outcome: 'confirmed'/)
  t.match(
    (await prove('refund.ts', '--only', 'end', '--test')).stdout,
    /\n\/\/ Refuted by: opened by "a refund"; the client says "an amount"; "a yes" arrives\n\/\/ and then for ever: /
  )
  t.equal((await prove('refund.ts', '--only', 'once', '--test')).stdout, '')
  t.match((await prove('lamps.js', '--only', 'over', '--test')).stdout, /test\("it's over"/)
  t.match(
    (await prove('price.js', '--only', 'dear', '--test')).stdout,
    /import agent from '\.\/price\.js'\n[\s\S]*proveAgent\(agent, \{ only: /
  )
})

await t.test('it is drawn as a sequence', async t => {
  const { stdout } = await prove('refund.ts', '--mermaid')
  t.match(
    stdout,
    'sequenceDiagram\n  %% an amount is approved before it is paid\n  participant client as client\n  participant task as task\n  participant pay as pay\n'
  )
  t.match(
    stdout,
    '  pay->>task: pay ends with the error #34;no#34;\n  task-->>client: INPUT_REQUIRED\n  Note right of task: declined\n'
  )
  t.match(stdout, /loop for ever\n[\s\S]*\n {2}end\n/)
  t.match(
    (await prove('lamps.js', '--mermaid')).stdout,
    /sends pull#59; #35;1\n[\s\S]*Note right of task: one\.on\.dim and two\n[\s\S]*Note over client,task: and then nothing goes on\n/
  )
})

await t.test('the command says what may be false, what is unknown, and why', async t => {
  const still = await prove('lamps.js')
  t.match(
    still.stdout,
    /confirmed {2}it's over\n[\s\S]*10 ms pass +one\.on\.dim and two +sends pull; #1\n[\s\S]* {2}and then nothing goes on\nproved {5}it pulls\n/
  )
  const price = await prove('price.js', '--only', 'is')
  t.match(price, {
    code: 10,
    stdout:
      /possible {3}only an error is dear, if not isCheap\n[\s\S]*price ends with "done" \(if not isCheap\)[\s\S]*No case gives results of price, so guards hold both ways from there\.\n$/
  })
  t.match(await prove('price.js', '--only', 'knows'), {
    code: 11,
    stdout: /unknown {4}it knows: it reads the context, which depends on data that no case gives\n/
  })
  t.match(await prove('moody.js', '--only', 'bad'), {
    code: 11,
    stdout: /possible {3}it is never bad, but the real chart walks differently\n/
  })
  t.match(await prove('refund.ts', '--limit', '1'), { stdout: /, not all, / })
  t.match(await prove('price.js', '--only', 'cheap'), {
    code: 11,
    stdout: /possible {3}nothing is cheap, if isCheap\n/
  })
  t.match(await prove('over.js'), { code: 0, stdout: /^Over: 1 configuration, all, opened by "start"\nproved / })
  const tap = await prove('price.js', '--tap')
  t.match(
    tap.stdout,
    /^TAP version 14\n1\.\.6\nnot ok 1 - only an error is dear\n[\s\S]* {4}possible, if not isCheap\n[\s\S]*unknown: it reads[\s\S]*ok 6 - every task can end\n# 4 configurations, all/
  )
  t.match(JSON.parse((await prove('price.js', '--json', '--only', 'dear')).stdout), {
    verdicts: [{ outcome: 'possible', guards: [{ guard: 'isCheap', isTrue: false }] }],
    isWhole: true
  })
})

await t.test("the model for SPIN goes to stdout, or to a file that is not the user's", async t => {
  const { code, stdout } = await prove('refund.ts', '--promela', '--only', 'approved')
  t.match(
    { code, stdout },
    {
      code: 0,
      stdout:
        /^\/\* Written by taskchart prove --promela\n {3}Refunds: 9 configurations\.\n[\s\S]*\n\/\* precedes: an amount is approved before it is paid \*\/\nltl p1 /
    }
  )
  for (const _ of ['new', 'again'])
    t.strictSame(await prove('refund.ts', '--promela', 'refund.pml', '--only', 'approved'), {
      code: 0,
      stdout: '',
      stderr: 'refund.pml\n'
    })
  t.equal(readFileSync(join(folder, 'refund.pml'), 'utf8'), stdout)
  t.match(await prove('over.js', '--promela', 'over.js'), {
    code: 1,
    stderr: 'taskchart: over.js exists and was not written by this command. Move it away, or give another FILE.\n'
  })
  t.match(await prove('refund.ts', '--promela', '--limit', '1'), {
    code: 11,
    stderr: /Refunds, of refund\.ts, cannot be written as a model: there are more than 1 configurations\./
  })
  t.match(await prove('price.js', '--promela'), { stdout: /No case gives results of price/ })
})

await t.test('wrong arguments are refused', async t => {
  t.match(await prove('refund.ts', 'refund.pml'), { code: 2, stderr: /"refund\.pml" is one argument too many/ })
  t.match(await prove('refund.ts', '--json', '--tap'), {
    code: 2,
    stderr: /^taskchart: Choose one of --json and --tap\./
  })
  t.match(await prove('refund.ts', '--limit', 'many'), {
    code: 2,
    stderr: /^taskchart: --limit has to be a number above 0, not many\./
  })
  t.match(await prove('function.js'), {
    code: 1,
    stderr: /A, of function\.js, cannot be proved: its work is no statechart/
  })
})

await t.test('a chart of any kind is proved in code', async t => {
  t.match(await load('block-2.ts'), { verdicts: [{ outcome: 'proved' }] })
})

await t.test('the guide names every word', t => {
  const words = readFileSync('machines/properties/properties-of.ts', 'utf8').matchAll(
    /^ {2}readonly (\w+): (?:\(|<|Term$)/gm
  )
  for (const [, word = ''] of words) t.match(text, new RegExp(`\`[^\`\n]*\\b${word}\\b`), word)
  t.end()
})
