import { getEventListeners } from 'node:events'
import { readdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { lineInput } from '../../../../adapters/cli/process/streams.ts'
import { type FormUser, askAnswer, formFieldsOf, readValue } from '../../../../adapters/cli/talk/form.ts'
import { contextFolder, ContextMemory } from '../../../../adapters/cli/talk/last-context.ts'
import type { LineInput } from '../../../../adapters/cli/command.ts'
import {
  accepted,
  artifact,
  authRequired,
  data,
  declined,
  file,
  inputRequired,
  negotiation,
  offer,
  reply,
  text,
  textOf
} from '../../../../runtime/index.ts'
import { QUESTION } from '../../../../machines/protocol/uris.ts'
import { runCommand, type Surroundings } from '../../../fixtures/cli/run-command.ts'
import { until } from '../../../fixtures/runtime/runtime-helpers.ts'
import { body, httpAgent } from '../../../fixtures/peers/scripted-http.ts'
import { scripted } from '../../../fixtures/peers/scripted-agent.ts'
import { serve } from '../../../fixtures/servers/served-agent.ts'

const never = new AbortController().signal

/** A user who types these lines. */
function typing(lines: readonly string[], isTerminal = false): LineInput {
  const left = [...lines]
  return { isTerminal, ask: async () => left.shift() }
}

/** Chats with an agent in this process; each test has a state folder of its own. */
function chatter(t: Test, url: string) {
  const cwd = t.testdir()
  const env = { XDG_STATE_HOME: join(cwd, 'state') }
  const chats = join(cwd, 'state/taskchart/chats')
  const remembered = () =>
    JSON.parse(readFileSync(join(chats, readdirSync(chats)[0] ?? ''), 'utf8')) as { contextId: string; taskId?: string }
  const chat = (lines: readonly string[], { args = [], ...given }: { args?: string[] } & Surroundings = {}) =>
    runCommand(['chat', url, ...args], { cwd, env, input: typing(lines), ...given })
  return { chat, cwd, remembered }
}

const order = z.object({
  size: z.enum(['small', 'large']),
  count: z.number().int().min(1).default(1),
  note: z.string().optional(),
  fast: z.boolean().meta({ description: 'by bike' })
})

await t.test('a chat with work that asks', async t => {
  const { url, runtime } = await serve(t, {
    work: async function* ({ message }) {
      const wanted = yield* inputRequired('What?', { schema: order })
      yield* inputRequired('Sure?')
      const name = yield* inputRequired('Whose?', { schema: z.string().min(2) })
      const tip = yield* inputRequired('A tip?', { schema: z.number().max(9) })
      return {
        artifacts: [
          {
            name: 'order.json',
            parts: [data(JSON.parse(JSON.stringify({ ...wanted, name, tip, first: textOf(message) })))]
          },
          { name: 'pic', parts: [file(Buffer.from([1]), { mediaType: 'image/png' })] }
        ]
      }
    }
  })

  await t.test('asks field by field, uses defaults, repeats invalid fields, and saves the artifacts', async t => {
    const { chat, cwd, remembered } = chatter(t, url)
    const { code, stdout, stderr } = await chat(
      ['', '//hi', '', 'larg', 'large', '0', '', '', 'yes', 'sure', 'Ann', '12', '2'],
      { args: ['--out', 'out'] }
    )
    t.equal(code, 0, stderr)
    t.match(stdout, /\}\nsaved out\/order\.json\nsaved out\/pic\.png \(image\/png, 1 byte\)\n$/)
    t.strictSame(JSON.parse(readFileSync(join(cwd, 'out/order.json'), 'utf8')), {
      size: 'large',
      count: 1,
      fast: true,
      name: 'Ann',
      tip: 2,
      first: '/hi'
    })
    t.match(
      stderr,
      `input-required: What?
size: one of small, large
This field is required.
That is not one of small, large.
count: a whole number from 1 (default 1)
That is not a whole number from 1.
note: text (optional)
fast (by bike): true or false
`
    )
    t.match(stderr, 'expects: {"type":"string","minLength":2}\n')
    t.match(stderr, 'expects: a number to 9\nThat is not a number to 9.\n')
    t.match(stderr, new RegExp(`\nContinue with:\n  npx taskchart chat ${url} --out out\n$`))
    t.strictSame(Object.keys(remembered()), ['contextId'], 'an ended task is not remembered')
  })

  await t.test('that ends at a question says so, and the next chat asks it again', async t => {
    const { chat, remembered } = chatter(t, url)
    const first = await chat(['hi', 'small', '', '', 'no'], { args: ['--exit-status'] })
    const { contextId, taskId = '' } = remembered()
    t.equal(first.code, 11)
    t.match(first.stderr, `Task ${taskId} waits for an answer. Give it with:\n  npx taskchart chat ${url}\n`)
    const second = await chat(['yes', 'Bob', '3'])
    t.equal(second.code, 0)
    t.match(
      second.stderr,
      new RegExp(`^The last context goes on\\. /new begins another\\.\ninput-required: Sure\\? \\(task ${taskId}\\)\n`)
    )
    t.match(second.stdout, /"name": "Bob"/)
    t.equal(remembered().contextId, contextId)
    const { history = [] } = await runtime.getTask({ id: taskId })
    const places = history.map(({ metadata }) =>
      history.findIndex(({ messageId }) => messageId === metadata?.[QUESTION])
    )
    t.strictSame(
      places,
      history.map(({ role }, i) => (role === 'ROLE_USER' && i > 0 ? i - 1 : -1)),
      'each answer names the question before it'
    )
    await chat(['hi'], { args: ['--new'] })
    t.not(remembered().contextId, contextId)
  })

  await t.test('continues after an answer that the agent refuses, and cancels on /cancel', async t => {
    const { chat } = chatter(t, url)
    const lines = ['hi', 'small', '', '', 'no', 'yes', 'x', '/cancel', '/cancel']
    const { code, stderr } = await chat(lines, { args: ['--exit-status'] })
    t.equal(code, 10)
    t.match(
      stderr,
      /taskchart: The answer is not valid: message\.parts[^\n]*\nexpects: [^\n]*\ncanceled[^\n]*\nThere is no task to cancel\.\n/
    )
  })

  await t.test('forgets a task that no longer exists', async t => {
    const { chat, remembered } = chatter(t, url)
    await chat(['hi'])
    const other = await serve(t, { work: () => ({ artifact: 'done' }) })
    await new ContextMemory(join(t.testdirName, 'state/taskchart/chats'), other.url).write(remembered())
    t.match(
      await runCommand(['chat', other.url], {
        env: { XDG_STATE_HOME: join(t.testdirName, 'state') },
        input: typing(['hi'])
      }),
      { code: 0, stdout: 'done\n' }
    )
  })
})

await t.test('artifacts of a task that asks again are shown once', async t => {
  const { url } = await serve(t, {
    work: async function* () {
      yield artifact({ artifactId: 'draft', parts: [text('one')] })
      yield* inputRequired('Good?')
      return { artifact: 'two' }
    }
  })
  t.match(await chatter(t, url).chat(['hi', 'yes']), { code: 0, stdout: 'one\ntwo\n' })
})

await t.test('offers', async t => {
  const { url } = await serve(t, {
    negotiate: negotiation({
      terms: z.object({ euros: z.number(), day: z.string(), tags: z.array(z.string()) }),
      respond: ({ message, proposal }) => {
        if (textOf(message) === 'bye') return declined('Bye.')
        if (textOf(message) === 'why') return reply('Grass is long.')
        return offer(proposal ? { ...proposal, euros: 45 } : { euros: 50, day: 'friday', tags: [] }, { message: 'Hm.' })
      }
    }),
    work: ({ terms }) => ({ artifact: JSON.stringify(terms) })
  })

  await t.test('are countered field by field and accepted, also after other messages', async t => {
    const { code, stdout, stderr } = await chatter(t, url).chat([
      'mow',
      '/counter',
      'x',
      '40',
      '',
      '["lawn"]',
      'why',
      '/accept',
      '/accept'
    ])
    t.equal(code, 0, stderr)
    t.match(
      stdout,
      /^Hm\.\nOffer: euros 50, [^\n]*\nHm\.\nOffer: euros 45, day friday, tags \["lawn"\] [^\n]*\nGrass is long\.\n\{"euros":45,"day":"friday","tags":\["lawn"\]\}\n$/
    )
    t.match(
      stderr,
      /^\/accept, \/counter or \/decline it, or write a message\.\neuros: a number \(default 50\)\nThat is not a number\.\nday: text \(default "friday"\)\ntags: text, or a value as JSON \(default \[\]\)\n/
    )
    t.match(stderr, /The agent has made no offer\.\n\nContinue with:/)
  })

  await t.test('are declined', async t => {
    const { code, stderr } = await chatter(t, url).chat(['mow', '/decline', '/decline', '/counter', '/new', '/decline'])
    t.equal(code, 0)
    t.match(stderr, 'The next message begins a new context.\nThe agent has made no offer.\n')
  })

  await t.test('can be left at a field', async t => {
    t.match(
      await chatter(t, url).chat(['mow', '/counter', '/quit', 'mow'], { terminal: { columns: 80, hasColours: false } }),
      { code: 0, stdout: /^Hm\.\nOffer: [^\n]*\n$/ }
    )
  })
})

await t.test('commands and messages', async t => {
  const { url } = await serve(t, { negotiate: () => accepted(), work: () => ({ artifact: 'done' }) })

  await t.test('that do not exist are named with the valid ones', async t => {
    const { code, stdout, stderr } = await chatter(t, url).chat(['/acept', '/xyz', '/help'], {
      input: typing(['/acept', '/xyz', '/help'], true)
    })
    t.strictSame([code, stdout], [0, ''])
    t.match(stderr, 'Each line is a message.')
    t.match(
      stderr,
      'There is no /acept. Did you mean /accept? A message that begins with / has to begin with //.\nThere is no /xyz. There are: /accept, '
    )
    t.match(stderr, /\n\/cancel {3}cancel the task that waits\n/)
    t.notMatch(stderr, 'Continue with', 'nothing was said')
  })

  await t.test('set the exit code after an error of the agent, and later messages report theirs', async t => {
    const agent = await httpAgent(t)
    agent.script(body('', {}, 401))
    const { chat, cwd } = chatter(t, agent.url)
    t.match(await chat(['hi']), {
      code: 4,
      stderr: `taskchart: The agent at ${agent.url} requires a key. Give one with --api-key KEY.\n`
    })
    await new ContextMemory(join(cwd, 'state/taskchart/chats'), agent.url).write({ contextId: 'c', taskId: 't' })
    t.match(await chat([]), {
      code: 4,
      stderr: /goes on\. \/new begins another\.\ntaskchart: The agent at [^\n]* requires a key/
    })
  })
})

await t.test('a message refers to the last task of its context only within one chat', async t => {
  const { url } = await serve(t, {
    work: ({ message }) => ({ artifact: String(message.referenceTaskIds?.length ?? 0) })
  })
  const { chat } = chatter(t, url)
  t.equal((await chat(['a', 'b'])).stdout, '0\n1\n')
  t.match(await chat(['c']), { stdout: '0\n', stderr: /^The last context goes on/ })
})

await t.test('answers without a context are shown, and nothing is remembered', async t => {
  const url = await scripted(t, {
    SendStreamingMessage: [
      { result: { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'yes' }] } } },
      { streamEnd: true }
    ]
  })
  t.strictSame(await runCommand(['chat', url], { env: {}, input: typing(['hi']) }), {
    code: 0,
    stdout: 'yes\n',
    stderr: ''
  })
})

await t.test('Ctrl-C', async t => {
  const { url, runtime } = await serve(t, {
    work: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject))
  })

  await t.test('leaves a working task and prints how to return, which shows it again', async t => {
    const { chat, remembered } = chatter(t, url)
    const stops = async (lines: string[], args: string[] = []) => {
      const stop = new AbortController()
      return chat(lines, { args, signal: stop.signal, heard: text => void (/working/.test(text) && stop.abort()) })
    }
    const first = await stops(['hi'])
    const { taskId = '' } = remembered()
    t.equal(first.code, 130)
    t.match(first.stderr, `Task ${taskId} goes on without you. Come back with:\n  npx taskchart chat ${url}\n`)
    const second = await stops([], ['--api-key', 'x'])
    t.equal(second.code, 130)
    t.match(
      second.stderr,
      `working (task ${taskId})\n\nTask ${taskId} goes on without you. Come back with:\n  npx taskchart chat ${url} --api-key …\n`
    )
    t.match(await runtime.getTask({ id: taskId }), { status: { state: 'TASK_STATE_WORKING' } })
  })

  await t.test('at the prompt ends the chat', async t => {
    const stop = new AbortController()
    const ask = async () => {
      stop.abort()
      return undefined
    }
    t.match(await chatter(t, url).chat([], { signal: stop.signal, input: { isTerminal: true, ask } }), {
      code: 130,
      stdout: ''
    })
  })
})

await t.test('a task that waits for an authorization continues in the same stream', async t => {
  const { url, runtime } = await serve(t, {
    work: async ({ ask }) => ({ artifact: JSON.stringify(await ask(authRequired('Log in.', { schema: z.string() }))) })
  })
  const { chat, remembered } = chatter(t, url)
  const authorize = (text: string) => {
    if (/authorized it/.test(text)) void runtime.authorized(remembered().taskId ?? '', 'granted', {})
  }
  t.match(await chat(['hi'], { heard: authorize }), {
    code: 0,
    stdout: /granted/,
    stderr: /auth-required: Log in\.\nThe task goes on when you have authorized it\.\nworking/
  })
})

await t.test('the memory of contexts', async t => {
  await t.test('is a file of the state folder for each URL, which only its owner can read', async t => {
    t.equal(contextFolder({ XDG_STATE_HOME: '/s', HOME: '/h' }), '/s/taskchart/chats')
    t.equal(contextFolder({ XDG_STATE_HOME: 'relative', HOME: '/h' }), '/h/.local/state/taskchart/chats')
    t.equal(contextFolder({ USERPROFILE: '/u' }), '/u/.local/state/taskchart/chats')
    t.equal(contextFolder({}), undefined)
    const folder = join(t.testdir(), 'a/b')
    const memory = new ContextMemory(folder, 'ws://a/?token=secret')
    t.equal(await memory.read(), undefined)
    await memory.write({ contextId: 'c', taskId: 't' })
    t.strictSame(await memory.read(), { contextId: 'c', taskId: 't' })
    const [name = ''] = readdirSync(folder)
    const file = join(folder, name)
    t.strictSame([statSync(folder).mode & 0o777, statSync(file).mode & 0o777], [0o700, 0o600])
    t.notMatch(`${name} ${readFileSync(file, 'utf8')}`, 'secret', 'a URL may contain one')
    for (const damaged of ['', '{', 'null', '{"contextId":1}', '{"contextId":"c","taskId":1}']) {
      writeFileSync(file, damaged)
      t.equal(await memory.read(), undefined, damaged)
    }
  })

  await t.test('has a hundred URLs, and loses none if chats write at the same time', async t => {
    const folder = t.testdir()
    const memories = Array.from({ length: 100 }, (_, i) => new ContextMemory(folder, `ws://${i}`))
    await Promise.all(memories.map((memory, i) => memory.write({ contextId: `c${i}` })))
    t.strictSame(
      await Promise.all(memories.map(memory => memory.read())),
      memories.map((_, i) => ({ contextId: `c${i}` }))
    )
    const [oldest = ''] = readdirSync(folder)
    utimesSync(join(folder, oldest), 0, 0)
    symlinkSync('nowhere', join(folder, 'gone'))
    await new ContextMemory(folder, 'ws://new').write({ contextId: 'd' })
    t.equal(readdirSync(folder).length, 100)
    t.notOk(
      ['gone', oldest].some(name => readdirSync(folder).includes(name)),
      'the oldest is removed'
    )
  })

  await t.test('that cannot be written is reported once, and the chat continues', async t => {
    const { url } = await serve(t, { work: () => ({ artifact: 'done' }) })
    const cwd = t.testdir({ taken: '' })
    const { code, stderr } = await runCommand(['chat', url], {
      env: { XDG_STATE_HOME: join(cwd, 'taken') },
      input: typing(['hi'])
    })
    t.equal(code, 0)
    t.match(stderr, /This chat will not be remembered: /)
    t.equal(await new ContextMemory(undefined, url).write({ contextId: 'c' }), undefined)
  })
})

await t.test('a form', async t => {
  t.equal(formFieldsOf({ type: 'object', properties: {} }), undefined)
  t.equal(
    formFieldsOf({ type: 'object', properties: Object.fromEntries(Array.from({ length: 51 }, (_, i) => [i, {}])) }),
    undefined
  )
  t.match(formFieldsOf({ type: 'object', properties: { a: 1 } }), [{ name: 'a', schema: {}, isRequired: false }])
  t.equal(formFieldsOf({ type: 'string' }), undefined)
  const cases: [string, object, unknown][] = [
    ['2', { enum: [1, 2] }, 2],
    ['b', { enum: ['a'] }, undefined],
    ['2', { anyOf: [{ const: 1 }, { const: 2 }] }, 2],
    ['yes', { const: 'yes' }, 'yes'],
    ['no', { const: 'yes' }, undefined],
    ['x', { type: 'string' }, 'x'],
    ['1.5', { type: 'number' }, 1.5],
    ['1.5', { type: 'integer' }, undefined],
    ['', { type: 'number' }, undefined],
    ['1', { type: 'number', exclusiveMinimum: 1 }, undefined],
    ['1', { type: 'number', exclusiveMaximum: true, maximum: 1 }, 1],
    ['NO', { type: 'boolean' }, false],
    ['maybe', { type: 'boolean' }, undefined],
    ['[1]', { type: 'array' }, [1]],
    ['x', { type: 'array' }, undefined],
    ['["a"]', { type: 'array', items: { type: 'string' } }, ['a']],
    ['{"a":1}', { type: 'object', properties: { a: { type: 'number' } } }, { a: 1 }],
    ['{', {}, '{']
  ]
  for (const [text, schema, value] of cases)
    t.strictSame(readValue(text, schema as Record<string, unknown>), value, `${text} ${JSON.stringify(schema)}`)
  const asked = (lines: string[]): FormUser => ({ ask: async () => lines.shift() ?? '', print: () => {}, columns: 80 })
  t.strictSame(await askAnswer({ type: 'array' }, asked(['[2]'])), { data: [2] })
  t.strictSame(await askAnswer({ type: 'string' }, asked(['x'])), { text: 'x' })
})

await t.test('lines', async t => {
  await t.test('of a pipe are read one by one, up to its end or a signal', async t => {
    const pipe = new PassThrough()
    const input = lineInput(pipe, new PassThrough(), () => {})
    pipe.write('one\r\ntwo\n')
    t.strictSame([input.isTerminal, await input.ask('> ', never), await input.ask('> ', never)], [false, 'one', 'two'])
    const lasting = new AbortController()
    pipe.write('a\n'.repeat(20))
    for (let line = 0; line < 20; line += 1) t.equal(await input.ask('> ', lasting.signal), 'a')
    t.ok(getEventListeners(lasting.signal, 'abort').length <= 1, 'no line leaves a listener')
    const stop = new AbortController()
    const waiting = input.ask('> ', stop.signal)
    stop.abort()
    t.strictSame([await waiting, await input.ask('> ', stop.signal)], [undefined, undefined])
    const ended = lineInput(new PassThrough().end(), new PassThrough(), () => {})
    t.equal(await ended.ask('> ', never), undefined)
  })

  await t.test('of a terminal have a prompt and a history, and Ctrl-C is passed on', async t => {
    const keys = Object.assign(new PassThrough(), { isTTY: true })
    const shown = new PassThrough().setEncoding('utf8')
    let interrupts = 0
    const input = lineInput(keys, shown, () => (interrupts += 1))
    keys.write('first\r')
    t.strictSame([input.isTerminal, await input.ask('you> ', never)], [true, 'first'])
    t.match(shown.read(), /you> /)
    const again = input.ask('> ', never)
    keys.write('\u001b[A\r')
    t.equal(await again, 'first', 'the arrow up brings the line before')
    const stop = new AbortController()
    const waiting = input.ask('> ', stop.signal)
    keys.write('\u0003')
    await until(() => interrupts === 1)
    stop.abort()
    t.strictSame([await waiting, await input.ask('> ', stop.signal)], [undefined, undefined])
  })

  await t.test('of a terminal that are pasted together are all read, with what follows them', async t => {
    const keys = Object.assign(new PassThrough(), { isTTY: true })
    const shown = new PassThrough().setEncoding('utf8')
    let interrupts = 0
    const input = lineInput(keys, shown, () => (interrupts += 1))
    const ask = () => input.ask('> ', never)
    keys.write('one\rtwo, ä\r\nthree\n\nfi\u001b[D\u001b[C')
    t.strictSame([await ask(), await ask(), await ask(), await ask()], ['one', 'two, ä', 'three', ''])
    const fifth = ask()
    keys.write('ve\r')
    t.equal(await fifth, 'five')
    t.match(
      String(shown.read()).replaceAll(new RegExp(String.raw`\u001b\[\d*[A-Z]`, 'g'), ''),
      /> one\r\n.*> two, ä\r\n.*> three\r\n.*> \r\n.*> five\r\n$/s,
      'each stands behind its prompt'
    )
    keys.write('six\r\u0003')
    t.equal(await ask(), 'six')
    void ask()
    t.equal(interrupts, 1)
    t.equal(keys.listenerCount('keypress'), 2, 'of the open reader alone')
  })
})
