import t, { type Test } from 'tap'
import { authorErrorText } from '../../../../adapters/cli/dev/author-error.ts'
import { ConsoleTaskLog } from '../../../../adapters/cli/dev/task-log.ts'
import { connect } from '../../../../adapters/client/connect.ts'
import type { Commit } from '../../../../runtime/store/store.ts'
import { FeedReader } from '../../../fixtures/pages/feed-reader.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { deferred, say, userMessage } from '../../../fixtures/runtime/runtime-helpers.ts'

/** A text that no client may see. */
const SECRETS = /kaboom|helper|agent\.mjs|\.mjs:|at work/

const FOLDER = {
  'agent.mjs': `import { helper } from './helper.mjs'
import { inputRequired } from 'taskchart'
export default { card: { name: 'Boom' }, work: async ({ message, ask }) => {
  if (message.parts[0].text === 'ask') await ask(inputRequired('Well?'))
  return helper()
} }`,
  'helper.mjs':
    "\n\nexport function helper() {\n  throw new Error('kaboom token=hunter2', { cause: new TypeError('kaboom inside') })\n}"
}

/** Runs a command that serves the agent; stopped when the test ends. */
async function serving(t: Test, argv: readonly string[]) {
  const cwd = t.testdir(FOLDER)
  const stop = new AbortController()
  const announced = deferred<string>()
  let heard = ''
  const ended = runCommand([...argv, '--port', '0', '--json'], {
    printed: announced.resolve,
    heard: text => (heard += text),
    signal: stop.signal,
    cwd
  })
  t.teardown(async () => {
    stop.abort()
    await ended
  })
  const places = JSON.parse(await Promise.race([announced.promise, ended.then(({ stderr }) => stderr)])) as {
    http: string
    page: string
  }
  return { ...places, heard: () => heard }
}

/** All that a client hears of a task that fails, over one binding. */
async function heardOver(url: string, binding: string): Promise<string> {
  const client = await connect(url, { bindings: [binding] })
  try {
    const heard: unknown[] = []
    for await (const event of client.sendStreamingMessage(say('x'))) heard.push(event)
    const answer = await client.sendMessage(say('x'))
    const id = 'task' in answer ? answer.task.id : ''
    return JSON.stringify([heard, answer, await client.getTask({ id }), await client.listTasks({})])
  } finally {
    await client.close()
  }
}

async function post(url: string, method: string, params: object): Promise<string> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  })
  return answer.text()
}

await t.test('the error of an author in development', async t => {
  await t.test('is shown in the terminal and on the page, with its task and source position', async t => {
    const { http, heard } = await serving(t, ['dev', 'agent.mjs'])
    const [, token = ''] = /data-token="([^"]+)"/.exec(await (await fetch(`${http}stately`)).text()) ?? []
    const page = await FeedReader.open(t, http, undefined, { token })
    await page.frame('hello')
    const client = await connect(http)
    t.teardown(() => client.close())
    const answer = await client.sendMessage(say('go'))
    const id = 'task' in answer ? answer.task.id : ''
    const error =
      "Error: kaboom token=[redacted]\n    at helper (helper.mjs:4:9)\n    at work (agent.mjs:5:10)\nCause: TypeError: kaboom inside\n    at helper (helper.mjs:4:52)\n    at work (agent.mjs:5:10)\n\n  2 |\n  3 | export function helper() {\n> 4 |   throw new Error('kaboom token=[redacted]', { cause: new TypeError('kaboom inside') })\n    |         ^\n  5 | }"
    t.same(await page.frame('crash'), { type: 'crash', taskId: id, error })
    t.match(
      heard(),
      new RegExp(
        `^The work of task ${id} ended with an error:\n  Error: kaboom token=\\[redacted\\]\n      at helper \\(helper\\.mjs:4:9\\)\n[^]*\nfailed after \\d+\\.\\d s: go \\(task ${id}\\)\n$`
      )
    )
    const later = await FeedReader.open(t, http, undefined, { token })
    t.equal((await later.frame('crash')).error, error, 'a page that comes later is told too')
    await client.sendMessage(say('ask'))
    t.match(heard(), /\ninput-required after \d+\.\d s: ask \(task \S+\)\n$/)
  })

  await t.test('is an entry of the JSON log, as is the end of each task', async t => {
    const { http, heard } = await serving(t, ['dev', 'agent.mjs', '--log', 'json'])
    const client = await connect(http)
    t.teardown(() => client.close())
    await client.sendMessage(say('go'))
    t.match(
      heard()
        .trim()
        .split('\n')
        .map(line => JSON.parse(line)),
      [
        {
          level: 'error',
          message: 'the work of a task failed',
          details: { error: { message: 'kaboom token=[redacted]' } }
        },
        {
          level: 'info',
          message: 'a task has ended, or waits for its client',
          details: { state: 'failed', afterMs: Number }
        }
      ]
    )
  })

  await t.test('never reaches a client, over any binding', async t => {
    const dev = await serving(t, ['dev', 'agent.mjs', '--legacy'])
    for (const binding of ['WEBSOCKET', 'JSONRPC', 'HTTP+JSON']) {
      const heard = await heardOver(dev.http, binding)
      t.match(heard, 'The work ended with an error.', binding)
      t.notMatch(heard, SECRETS, binding)
    }
    const older = [
      await post(dev.http, 'message/send', {
        message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'x' }] }
      }),
      await post(dev.http, 'message/stream', {
        message: { kind: 'message', messageId: 'n', role: 'user', parts: [{ kind: 'text', text: 'x' }] }
      }),
      await post(dev.http, 'tasks/send', {
        id: 'mine',
        message: { role: 'user', parts: [{ type: 'text', text: 'x' }] }
      })
    ]
    for (const heard of older) {
      t.match(heard, 'The work ended with an error.')
      t.notMatch(heard, SECRETS)
    }
    const served = await serving(t, ['serve', 'agent.mjs', '--grpc', '0'])
    const heard = await heardOver(served.http, 'GRPC')
    t.match(heard, 'The work ended with an error.')
    t.notMatch(heard, SECRETS, 'GRPC')
    t.match(served.heard(), 'kaboom', 'it is in the log')
  })
})

await t.test('an error is shown with its stack, if it has one', async t => {
  t.equal(authorErrorText('words', '/'), 'words, which is not an Error and has no stack.')
  t.equal(authorErrorText({ stack: 5 }, '/'), '[object Object], which is not an Error and has no stack.')
  const odd = () => {
    throw new Error('odd')
  }
  t.equal(authorErrorText({ toString: odd }, '/'), 'A value of type object, which is not an Error and has no stack.')
  t.equal(authorErrorText(undefined, '/'), 'undefined, which is not an Error and has no stack.')
  const at = (...frames: string[]) =>
    authorErrorText(Object.assign(new Error('x'), { stack: ['Error: x', ...frames].join('\n') }), '/home/me')
  t.equal(
    at(
      '    at a (file:///home/me/a%20b.ts?taskchart-load=7:1:2)',
      '    at file:///etc/c.ts:3:4',
      '    at async Promise.all (index 0)',
      '    at b (node:internal/x:1:1)',
      '    at c (/home/me/node_modules/x/y.js:1:1)'
    ),
    'Error: x\n    at a (/home/me/a b.ts:1:2)\n    at /etc/c.ts:3:4\n    at async Promise.all (index 0)'
  )
})

await t.test('an error is shown with the source lines of the first frame that has them', async t => {
  const path = `${t.testdir({ 'a.ts': `${Array.from({ length: 12 }, (_, i) => `line ${i + 1}`).join('\n')}\n${'x'.repeat(200)}` })}/a.ts`
  const at = (...frames: string[]) =>
    authorErrorText(
      Object.assign(new Error('x'), { stack: ['Error: x', ...frames.map(frame => `    at ${frame}`)].join('\n') }),
      '/'
    ).split('\n\n')[1]
  t.equal(
    at('async Promise.all (index 0)', `a (${path}:10:3)`),
    '   8 | line 8\n   9 | line 9\n> 10 | line 10\n     |   ^\n  11 | line 11\n  12 | line 12'
  )
  t.equal(at(`async ${path}:1:1`), '> 1 | line 1\n    | ^\n  2 | line 2\n  3 | line 3')
  t.equal(at(`a (${path}:13:150)`), `  11 | line 11\n  12 | line 12\n> 13 | ${'x'.repeat(120)}`, 'a long line is cut')
  t.equal(at(`a (${path}:99:1)`), undefined, 'the file was changed meanwhile')
  t.equal(at('a (/nowhere.ts:1:1)'), undefined)
})

await t.test('the task log limits and truncates its titles, and reports tasks without one', t => {
  let written = ''
  const log = new ConsoleTaskLog({
    stderr: { write: text => void (written += text) },
    hasColours: true,
    log: 'text',
    logger: { warn() {}, error() {} },
    errorText: String,
    crashed() {}
  })
  const commit = (more: Partial<Commit>) =>
    log.committed({
      key: { tenant: '', principal: 'p', contextId: 'c' },
      expected: 0,
      atMs: 0,
      snapshot: '',
      tasks: [],
      log: [],
      journal: [],
      sends: [],
      webhooks: [],
      ...more
    })
  for (let i = 0; i <= 10_000; i += 1)
    commit({ log: [{ message: userMessage(i === 1 ? 'x'.repeat(61) : ''), taskId: `t${i}`, generation: 0 }] })
  for (const taskId of ['t0', 't1', 't2'])
    commit({ atMs: 1500, tasks: [{ taskId, state: 'TASK_STATE_COMPLETED', generation: 2 }] })
  commit({ tasks: [{ taskId: 't3', state: 'TASK_STATE_INPUT_REQUIRED', generation: 2 }] })
  const state = '\u001b[32mcompleted\u001b[39m'
  t.equal(
    written,
    `${state} (task t0)\n${state} after 1.5 s: ${'x'.repeat(60)}… (task t1)\n${state} after 1.5 s (task t2)\n`
  )
  t.end()
})
