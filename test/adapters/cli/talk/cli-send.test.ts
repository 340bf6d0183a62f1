import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { z } from 'zod'
import { emit } from 'xstate'
import { expectedText } from '../../../../adapters/cli/text/format.ts'
import type { SecurityScheme } from '../../../../machines/protocol/security.ts'
import { WEBSOCKET_BINDING } from '../../../../machines/protocol/uris.ts'
import {
  accepted,
  artifact,
  data,
  failed,
  file,
  inputRequired,
  negotiation,
  offer,
  rejected,
  reply,
  setupWork,
  text
} from '../../../../runtime/index.ts'
import { officialAgent } from '../../../fixtures/servers/official-agent.ts'
import { runCommand, type Surroundings } from '../../../fixtures/cli/run-command.ts'
import { scripted } from '../../../fixtures/peers/scripted-agent.ts'
import { body, httpAgent } from '../../../fixtures/peers/scripted-http.ts'
import { obedient, serve } from '../../../fixtures/servers/served-agent.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47])

/** Runs `taskchart send` in this process. */
function send(url: string, args: readonly string[], surroundings?: Surroundings) {
  return runCommand(['send', url, ...args], surroundings)
}

/** The arguments of the line that continues the conversation, as a shell would give them. */
function lineIn(stderr: string): { url: string; args: string[] } {
  const [, url = '', rest = ''] = /npx taskchart send (\S+) "…" (.*)\n/.exec(stderr) ?? []
  return { url, args: rest.split(' ') }
}

await t.test('an agent that answers with a message', async t => {
  const answer = [
    text('hello\u001b[31m\u009b2J\u0007\r\nyou\t!\u007f'),
    data({ a: 1 }),
    file(PNG, { filename: 'a\u0007b.png' }),
    { url: 'https://a.example/x' }
  ]
  const { url } = await serve(t, { negotiate: () => reply(answer), work: () => {} })
  const cwd = t.testdir()

  await t.test('has its text printed without control characters, its files named, and nothing fetched', async t => {
    const { code, stdout, stderr } = await send(url, ['hi'])
    t.equal(code, 0)
    t.equal(
      stdout,
      'hello[31m2J\nyou\t!\n{\n  "a": 1\n}\nab.png (4 bytes), not saved: add --out DIR to save files\nmessage: https://a.example/x\n'
    )
    t.match(stderr, /^\nContinue with:\n {2}npx taskchart send ws:\S+ "…" --context-id \S+\n$/)
  })

  await t.test('continues its context by the printed line', async t => {
    const first = lineIn((await send(url, ['hi'])).stderr)
    const second = lineIn((await send(first.url, ['hi', ...first.args])).stderr)
    t.strictSame(second, first)
  })

  await t.test('has its files and data saved, not its text', async t => {
    const { stdout, stderr } = await send(url, ['hi', '--out', 'out'], { cwd })
    t.match(stdout, /saved out\/message\.json\nsaved out\/ab\.png \(4 bytes\)\n/)
    t.strictSame(readdirSync(join(cwd, 'out')).toSorted(), ['ab.png', 'message.json'])
    t.match(stderr, /--context-id \S+ --out out\n$/)
  })

  await t.test('is written as one line of JSON with --json', async t => {
    const { code, stdout } = await send(url, ['hi', '--json'])
    t.equal(code, 0)
    t.notMatch(stdout, /[\u007f-\u009f]/)
    t.strictSame(JSON.parse(stdout).message.parts, answer)
    t.equal(stdout.split('\n').length, 2)
  })
})

await t.test('an offer is printed in one line with terms and expiry, and saved unchanged', async t => {
  const terms = z.object({ euros: z.number(), day: z.string(), list: z.array(z.number()) })
  const { url } = await serve(
    t,
    {
      negotiate: negotiation({
        terms,
        respond: ({ message }) =>
          message.parts.some(part => 'text' in part && part.text === 'ok')
            ? accepted()
            : offer({ euros: 40, day: 'fri\nday\u0007', list: [1] }, { message: 'Hm.' }),
        offerMs: 3_600_000
      }),
      work: ({ terms }) => ({ artifact: JSON.stringify(terms) })
    },
    { clock: new TestClock() }
  )
  const clock = new TestClock()
  clock.increment(999)
  const { stdout, stderr } = await send(url, ['hi'], { clock })
  t.equal(stdout, 'Hm.\nOffer: euros 40, day fri day, list [1] (stands for 1h)\n')
  clock.increment(3_599_001)
  t.match((await send(url, ['hi'], { clock })).stdout, /\(has expired\)\n$/)
  const cwd = t.testdir()
  t.match((await send(url, ['hi', '--out', 'out'], { cwd })).stdout, 'saved out/message.json')
  t.match(JSON.parse(readFileSync(join(cwd, 'out/message.json'), 'utf8')), {
    'urn:taskchart:extension:negotiation:1': { offer: { terms: { euros: 40 } } }
  })
  const line = lineIn(stderr)
  t.match((await send(line.url, ['ok', ...line.args])).stdout, /^\{"euros":40/, 'words accept it')
})

await t.test('the task of an agent that does not stream is read until it ends', async t => {
  const { url } = await serve(t, {
    work: () => ({ artifact: 'done' }),
    negotiate: ({ message }) => (message.taskId ? rejected('No.') : accepted()),
    capabilities: { streaming: false }
  })
  const { code, stdout, stderr } = await send(url, ['go'])
  t.strictSame([code, stdout], [0, 'done\n'])
  t.match(stderr, /^(?:submitted|working|completed) \(task \S+\)\n(?:.*\n)*/)
  const { code: refused, stderr: why } = await send(url, ['go', '--task', /task (\S+)\)/.exec(stderr)?.[1] ?? ''])
  t.strictSame([refused, /takes no more messages/.test(why)], [1, true], why)
})

await t.test('an agent that answers with a task', async t => {
  const artifacts = [
    { name: 'notes', parts: [text('some words')] },
    { name: 'facts.txt', parts: [data([1])] },
    { name: 'sailboat_image.png', parts: [file(PNG, { mediaType: 'image/png' })] },
    {
      artifactId: 'plain',
      parts: [file(PNG, { mediaType: 'image/jpeg; q=1' }), { url: 'https://a.example/x', mediaType: 'text/html' }]
    }
  ]
  const { url } = await serve(t, {
    work: () => ({
      artifacts,
      message: ['Done:', file(PNG, { filename: 'proof' })].map(word => (typeof word === 'string' ? text(word) : word))
    })
  })
  const names = ['facts.txt.json', 'notes.txt', 'plain.jpg', 'sailboat_image.png']

  await t.test('has its progress on stderr and its artifacts on stdout', async t => {
    const { code, stdout, stderr } = await send(url, ['go'])
    t.equal(code, 0)
    t.equal(
      stdout,
      'some words\n[\n  1\n]\nsailboat_image.png (image/png, 4 bytes), not saved: add --out DIR to save files\n' +
        'plain (image/jpeg; q=1, 4 bytes), not saved: add --out DIR to save files\nplain (text/html): https://a.example/x\n'
    )
    t.match(
      stderr,
      /^submitted \(task \S+\)\nworking\nartifact notes\n[\s\S]*completed: Done: proof \(4 bytes\)\n\nContinue with:\n.* --context-id \S+ --reference \S+\n$/
    )
  })

  await t.test('has every part saved, in a new folder', async t => {
    const cwd = t.testdir()
    const { stdout, stderr } = await send(url, ['go', '--out', 'a/b'], { cwd })
    t.strictSame(readdirSync(join(cwd, 'a/b')).toSorted(), names)
    t.strictSame(readFileSync(join(cwd, 'a/b/sailboat_image.png')), PNG)
    t.equal(readFileSync(join(cwd, 'a/b/notes.txt'), 'utf8'), 'some words')
    t.strictSame(JSON.parse(readFileSync(join(cwd, 'a/b/facts.txt.json'), 'utf8')), [1])
    t.match(stdout, 'some words\nsaved a/b/notes.txt\n')
    t.match(stdout, 'saved a/b/sailboat_image.png (image/png, 4 bytes)\n')
    t.match(stderr, / --out a\/b\n$/)
  })

  await t.test('overwrites no file and follows no link', async t => {
    const cwd = t.testdir({ 'sailboat_image.png': 'mine', 'sailboat_image-2.png': 'mine too' })
    mkdirSync(join(cwd, 'elsewhere'))
    symlinkSync(join(cwd, 'elsewhere', 'notes.txt'), join(cwd, 'notes.txt'))
    const { stdout } = await send(url, ['go', '--out', '.'], { cwd })
    t.match(stdout, /saved sailboat_image-3\.png/)
    t.match(stdout, /saved notes-2\.txt/)
    t.equal(readFileSync(join(cwd, 'sailboat_image.png'), 'utf8'), 'mine')
    t.equal(existsSync(join(cwd, 'elsewhere', 'notes.txt')), false)
  })

  await t.test('writes one line of JSON for each event with --json, and saves files too', async t => {
    const cwd = t.testdir()
    const { code, stdout, stderr } = await send(url, ['go', '--json', '--out', 'out'], { cwd })
    t.equal(code, 0)
    const events = stdout
      .trimEnd()
      .split('\n')
      .map(line => Object.keys(JSON.parse(line))[0])
    t.strictSame(events, [
      'task',
      'statusUpdate',
      'artifactUpdate',
      'artifactUpdate',
      'artifactUpdate',
      'artifactUpdate',
      'statusUpdate'
    ])
    t.strictSame(readdirSync(join(cwd, 'out')).toSorted(), names)
    t.match(stderr, /saved out\/notes\.txt\n/)
    t.equal((await send(url, ['go', '--json'], { cwd })).code, 0)
  })

  await t.test('names the file if the folder cannot be created, and says what to do', async t => {
    const { code, stderr } = await send(url, ['go', '--out', 'file/below'], { cwd: t.testdir({ file: '' }) })
    t.equal(code, 1)
    t.match(stderr, /taskchart: file\/below\/notes\.txt could not be saved: .* Give another folder with --out\.\n$/)
  })
})

await t.test('the chunks of an artifact are joined where their parts continue', async t => {
  const story = { artifactId: 'story', name: 'story' }
  const one = file(PNG, { filename: 'one.png' })
  const work = setupWork({}).createMachine({
    initial: 'telling',
    states: {
      telling: {
        entry: [
          emit(artifact({ ...story, parts: [text('Once '), text('upon ')] })),
          emit(artifact({ ...story, parts: [text('a time.'), one] }, { append: true })),
          emit(
            artifact(
              { ...story, parts: [one, file(PNG), file(PNG), { text: 'End.', filename: 'end.txt' }] },
              { append: true }
            )
          )
        ],
        always: 'told'
      },
      told: { type: 'final' }
    }
  })
  const { url } = await serve(t, { work })
  const cwd = t.testdir()
  const { stdout, stderr } = await send(url, ['go', '--out', 'out'], { cwd })
  t.match(stdout, /^Once upon a time\.\nsaved/)
  t.strictSame(readdirSync(join(cwd, 'out')).toSorted(), ['end.txt', 'one.png', 'story', 'story-2', 'story.txt'])
  t.strictSame(readFileSync(join(cwd, 'out/one.png')), Buffer.concat([PNG, PNG]))
  t.equal(stderr.match(/artifact story/g)?.length, 1)
})

await t.test('sizes are printed in readable units', async t => {
  const sizes = [0, 1, 999, 1000, 45_123, 999_949, 999_950, 2_000_000]
  const { url } = await serve(t, { negotiate: () => reply(sizes.map(size => file(new Uint8Array(size)))) })
  const { stdout } = await send(url, ['hi'])
  const written = Array.from(stdout.matchAll(/\((.*)\)/g), ([, size]) => size)
  t.strictSame(written, ['0 bytes', '1 byte', '999 bytes', '1.0 kB', '45.1 kB', '999.9 kB', '1.0 MB', '2.0 MB'])
})

await t.test('external file names are made safe', async t => {
  const long = 'é'.repeat(300)
  const cases: [string, string][] = [
    ['../../x.png', 'x.png'],
    ['..\\..\\y.png', 'y.png'],
    ['/etc/passwd', 'passwd.png'],
    ['C:\\boot.ini', 'boot.ini'],
    ['..', 'artifact.png'],
    ['.hidden', 'hidden.png'],
    ['dir/', 'dir.png'],
    ['a\u0000b\u001b[2J\u009b\u202egnp.exe', 'ab[2Jgnp.exe'],
    ['what?<is>"this"|*.png', 'what__is__this___.png'],
    ['con', '_con.png'],
    ['LPT1.txt', '_LPT1.txt'],
    ['aux .txt', '_aux .txt'],
    ['Nul . .tar.gz', '_Nul . .tar.gz'],
    ['CONIN$', '_CONIN$.png'],
    ['conout$.log', '_conout$.log'],
    ['COM¹', '_COM¹.png'],
    ['lpt³ .txt', '_lpt³ .txt'],
    ['com10.txt', 'com10.txt'],
    ['aux-1.txt', 'aux-1.txt'],
    ['console.txt', 'console.txt'],
    ['tail. . ', 'tail.png'],
    [`${long}.gif`, `${'é'.repeat(98)}.gif`],
    [`x.${long}`, 'x']
  ]
  for (const [given, wanted] of cases) {
    await t.test(`${JSON.stringify(given.slice(0, 30))} is saved as ${wanted.slice(0, 30)}`, async t => {
      const { url } = await serve(t, {
        work: () => ({ artifact: { name: 'unused', parts: [file(PNG, { filename: given, mediaType: 'image/png' })] } })
      })
      const cwd = t.testdir()
      await send(url, ['go', '--out', 'deep/down'], { cwd })
      t.strictSame(readdirSync(join(cwd, 'deep/down')), [wanted])
    })
  }
})

await t.test(
  'a task that asks ends the command, with 11 as --exit-status, and the printed line answers it',
  async t => {
    let ids = 0
    const { url } = await serve(t, { work: obedient }, { ids: () => `-id ${(ids += 1)}` })
    const first = await send(url, ['ask', '--exit-status'])
    t.equal(first.code, 11)
    t.match(
      first.stderr,
      /\ninput-required: And then\?\n\nAnswer with:\n {2}npx taskchart send ws:\S+ "…" --context-id="-id \d+" --task-id="-id \d+"\n$/
    )
    const [context = '', task = ''] = Array.from(first.stderr.matchAll(/"(-id \d+)"/g), ([, id]) => id)
    const second = await send(url, ['red', `--context=${context}`, `--task=${task}`])
    t.match(second, { code: 0, stdout: 'red\n', stderr: /completed/ })
    const third = await send(url, ['blue', `--task=${task}`])
    t.equal(third.code, 1)
    t.match(third.stderr, /^taskchart: Task -id \d+ is completed and takes no more messages\./)
    t.equal((await send(url, ['go', `--context=${context}`, `--reference=${task}`])).code, 0)
  }
)

await t.test('ids that start with a dash or look like shell commands are safe to paste', async t => {
  const contextId = '-x'
  const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'hi' }] }
  const dashed = await scripted(t, {
    SendStreamingMessage: [{ result: { message: { ...message, contextId } } }, { streamEnd: true }]
  })
  t.match((await send(dashed, ['hi'])).stderr, / --context-id=-x\n$/)
  const hostile = await scripted(t, {
    SendStreamingMessage: [{ result: { message: { ...message, contextId: "$(rm -rf ~)'`" } } }, { streamEnd: true }]
  })
  t.match((await send(hostile, ['hi'])).stderr, ` --context-id '$(rm -rf ~)'\\''\`'\n`)
})

await t.test('a task that does not succeed ends the command with its reason, and with 10 as --exit-status', async t => {
  for (const [state, end] of Object.entries({ failed, rejected })) {
    const { url } = await serve(t, { work: () => end('No paint left.') })
    const ended = { stdout: /^$/, stderr: new RegExp(`${state}: No paint left\\.\n`) }
    t.match(await send(url, ['go']), { code: 0, ...ended })
    t.match(await send(url, ['go', '--exit-status']), { code: 10, ...ended })
  }
  const { url, runtime } = await serve(t, { work: obedient })
  const cancel = (line: string) => {
    const id = /\(task (.*)\)/.exec(line)?.[1]
    if (id !== undefined) runtime.cancelTask({ id }).catch(error => t.fail(error))
  }
  t.match(await send(url, ['wait', '--exit-status'], { heard: cancel }), { code: 10, stderr: /canceled/ })
})

await t.test('a user who stops watching sees how to continue, and the task continues', async t => {
  const { url, runtime } = await serve(t, { work: obedient })
  const stop = new AbortController()
  const { code, stderr } = await send(url, ['wait'], {
    signal: stop.signal,
    heard: line => line.startsWith('working') && stop.abort()
  })
  t.equal(code, 130)
  const [, id = ''] =
    /Task (\S+) goes on without you\. Watch it with:\n {2}npx taskchart watch ws:\S+ \1\n$/.exec(stderr) ?? []
  t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_WORKING')
})

await t.test('an agent that requires a key', async t => {
  const { url } = await serve(
    t,
    { negotiate: () => reply('hi') },
    { authenticate: ({ headers }) => (headers['authorization'] === 'Bearer secret' ? { id: 'me' } : undefined) }
  )

  await t.test('is reported without one, with what to do', async t => {
    t.match(await send(url, ['hi']), {
      code: 4,
      stderr: /^taskchart: The agent at ws:\S+ requires a key\. Give one with --api-key KEY\.\n$/
    })
  })

  await t.test('is reported with a wrong one, which is not printed', async t => {
    const { code, stderr } = await send(url, ['hi', '--api-key', 'wrong-key'])
    t.equal(code, 4)
    t.match(stderr, /refused the key, which was sent in authorization\. Give another with --api-key KEY\.\n$/)
    t.notMatch(stderr, 'wrong-key')
  })

  await t.test('answers with the right one, and the line to continue has a placeholder for it', async t => {
    const { code, stderr } = await send(url, ['hi', '--api-key', 'secret'])
    t.equal(code, 0)
    t.match(stderr, / --api-key …\n$/)
    t.notMatch(stderr, 'secret')
  })

  await t.test('receives it at an origin of its card only if an option names that', async t => {
    const card = {
      name: 'A',
      description: '',
      version: '1',
      capabilities: {},
      defaultInputModes: [],
      defaultOutputModes: [],
      skills: [],
      supportedInterfaces: [{ url, protocolBinding: WEBSOCKET_BINDING, protocolVersion: '1.0' }]
    }
    const server = createServer((_, response) => response.end(JSON.stringify(card))).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const place = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const origin = url.replace('ws:', 'http:').replace(/\/$/, '')
    t.match(await send(place, ['hi', '--api-key', 'secret']), {
      code: 4,
      stderr: `, or name ${origin} with --credential-origin.`
    })
    const { code, stderr } = await send(place, [
      'hi',
      '--api-key',
      'secret',
      '--credential-origin',
      origin,
      '--credential-origin',
      'https://a.example'
    ])
    t.equal(code, 0)
    t.match(stderr, `--credential-origin ${origin} --credential-origin https://a.example --api-key …\n`)
    t.match(await send(place, ['hi', '--credential-origin', 'a.example']), {
      code: 2,
      stderr: /credentialOrigins has "a\.example", which is not an origin/
    })
    t.match(await runCommand(['watch', place, 'nope', '--api-key', 'secret', '--credential-origin', origin]), {
      code: 1,
      stderr: 'Task nope was not found.'
    })
    t.match(await runCommand(['tasks', 'ls', place, '--api-key', 'secret', '--credential-origin', origin]), { code: 0 })
    t.match(
      await runCommand(['tasks', 'cancel', place, 'nope', '--api-key', 'secret', '--credential-origin', origin]),
      { code: 1, stderr: 'Task nope was not found.' }
    )
    t.match(await runCommand(['tasks', 'ls', '--db', 'a.db', '--credential-origin', origin]), {
      code: 2,
      stderr: /--credential-origin is for a URL/
    })
  })
})

await t.test('an error is reported in one line with its exit code', async t => {
  await t.test('for an unreachable agent', async t => {
    t.strictSame(await send('ws://127.0.0.1:1/', ['hi']), {
      code: 3,
      stdout: '',
      stderr: 'taskchart: Nobody answers at ws://127.0.0.1:1/. Is the agent running?\n'
    })
  })

  await t.test('for an unknown task', async t => {
    const { url } = await serve(t, { work: () => {} })
    t.strictSame(await send(url, ['hi', '--task', 'nope']), {
      code: 1,
      stdout: '',
      stderr: 'taskchart: Task nope was not found.\n'
    })
  })

  const submitted = { id: 't1', contextId: 'c1', status: { state: 'TASK_STATE_SUBMITTED' } }
  const cases: [string, Record<string, object[]>, RegExp][] = [
    [
      'the answer is not A2A',
      { SendStreamingMessage: [{ result: { task: { id: 1, status: {} } } }, { streamEnd: true }] },
      /The agent's answer is not A2A 1\.0: result\.task\./
    ],
    [
      'the stream ends with nothing',
      { SendStreamingMessage: [{ streamEnd: true }] },
      /The agent ended the stream without a result/
    ],
    [
      'the stream ends before the task, which cannot be read',
      {
        SendStreamingMessage: [{ result: { task: submitted } }, { streamEnd: true }],
        GetTask: [{ error: { code: -32603, message: 'Broken.' } }]
      },
      /Task t1 goes on without you\.[\s\S]*Broken\./
    ]
  ]
  for (const [what, answers, message] of cases) {
    await t.test(what, async t => {
      const { code, stderr } = await send(await scripted(t, answers), ['hi'])
      t.equal(code, 1)
      t.match(stderr, message)
    })
  }
})

await t.test('for a lost connection', async t => {
  const { url, close } = await serve(t, { work: obedient })
  const stop = new AbortController()
  const heard = (line: string) => {
    if (line.startsWith('working')) close().catch(error => t.fail(error))
    if (line.startsWith('The connection is lost')) stop.abort()
  }
  t.match(await send(url, ['wait'], { signal: stop.signal, heard }), {
    code: 130,
    stderr: /The connection is lost\. Reconnecting\.\n/
  })
})

await t.test("a question's schema is shown in one line, as wide as the terminal", async t => {
  const { url } = await serve(t, {
    work: async function* () {
      yield* inputRequired('How much?', { schema: z.coerce.number().min(50) })
    }
  })
  t.match((await send(url, ['x'])).stderr, /\ninput-required: How much\?\nexpects: a number from 50\n\nAnswer with:\n/)
  const long = await serve(t, {
    work: async function* () {
      yield* inputRequired('Which?', { schema: z.enum(Array.from({ length: 100 }, (_, i) => `n${i}`)) })
    }
  })
  const line = (stderr: string) => /expects: [^\r\n]*…/.exec(stderr)?.[0]
  t.equal(line((await send(long.url, ['x'])).stderr)?.length, 79, 'dots may be wide')
  t.equal(
    line((await send(long.url, ['x'], { terminal: { columns: 40, hasColours: false } })).stderr),
    'expects: one of n0, n1, n2, n3, n4, n5…'
  )
})

await t.test('a simple schema is shown in words, and any other as JSON', async t => {
  const endless: unknown[] = []
  endless.push(endless)
  const safe = Number.MAX_SAFE_INTEGER
  const cases: [schema: Record<string, unknown>, text: string][] = [
    [{ type: 'number' }, 'a number'],
    [{ type: 'number', minimum: 1, maximum: 2.5 }, 'a number from 1 to 2.5'],
    [{ type: 'integer', minimum: -safe, maximum: safe }, 'a whole number'],
    [{ type: 'integer', exclusiveMinimum: 0, exclusiveMaximum: 9 }, 'a whole number above 0 below 9'],
    [{ type: 'number', minimum: '\u001b[31m' }, 'a number'],
    [{ type: 'boolean' }, 'true or false'],
    [{ $schema: 'x', type: 'string' }, 'text'],
    [{ type: 'string', format: 'date', pattern: '^x$' }, 'a date, as in 2027-05-01'],
    [{ type: 'string', format: 'constructor' }, '{"type":"string","format":"constructor"}'],
    [{ enum: ['a\u001b[2J', 1, null, ['b']] }, 'one of a[2J, 1, null, ["b"]'],
    [{ enum: [] }, 'one of'],
    [{ type: 'object', properties: { a: {} } }, '{"type":"object","properties":{"a":{}}}'],
    [{}, '{}'],
    [{ type: ['string', 'null'] }, '{"type":["string","null"]}'],
    [{ title: '\u009b2J\n\u007f' }, '{"title":"2J\\n"}'],
    [{ items: endless }, 'a value whose schema is nested too deep to show'],
    [{ type: 'string', minLength: 3 }, '{"type":"string","minLength":3}']
  ]
  for (const [schema, text] of cases) t.equal(expectedText(schema, 80), text)
  t.equal(expectedText({ type: 'string', format: 'date' }, 10), 'a date, …')
})

const BINDINGS = ['JSONRPC', 'HTTP+JSON', 'GRPC'] as const

for (const binding of BINDINGS) {
  await t.test(`the commands work with an agent of the official SDK by ${binding}`, async t => {
    const { url } = await officialAgent(t, [binding])
    const sent = await runCommand(['send', url, 'boat', '--out', t.testdir()])
    t.match(sent, { code: 0, stdout: 'boat!\n' })
    const id = /--reference (\S+)/.exec(sent.stderr)?.[1] ?? ''
    t.match(await runCommand(['watch', url, id]), { code: 0, stdout: 'boat!\n' })
    t.match(await runCommand(['card', url]), {
      code: 0,
      stdout: new RegExp(`A2A 1\\.0, ${binding.replace('+', '\\+')}`)
    })
    t.match(await runCommand(['tasks', 'ls', url, '--json']), { code: 0, stdout: new RegExp(`"id":"${id}"`) })
    t.match(await runCommand(['tasks', 'show', url, id]), { code: 0, stdout: /boat/ })
    t.match(await runCommand(['tasks', 'cancel', url, 'nobody']), { code: 1, stderr: /not found/i })
  })
}

await t.test('--binding selects an interface of the card, and is repeated in hints', async t => {
  const { url, headers } = await officialAgent(t, ['GRPC', 'JSONRPC'])
  const over = async (...args: readonly string[]) => {
    headers.length = 0
    const ended = await runCommand(args)
    return { ...ended, isHttp: headers.some(({ accept }) => String(accept).startsWith('text/event-stream')) }
  }
  t.match(await over('send', url, 'hi'), { code: 0, isHttp: false })
  const asked = await over('send', url, 'ask', '--binding', 'jsonrpc', '--exit-status')
  t.match(asked, { code: 11, isHttp: true, stderr: /taskchart send .* --binding jsonrpc/ })
  const id = /--task-id (\S+)/.exec(asked.stderr)?.[1] ?? ''
  t.match(await over('send', url, 'that', '--task', id, '--binding', 'JSONRPC'), { code: 0, isHttp: true })
  t.match(await over('watch', url, id, '--binding', 'JSONRPC'), { code: 0, isHttp: true, stderr: /--binding JSONRPC/ })
  t.match(await over('send', url, 'hi', '--binding', 'SOAP'), { code: 2, stderr: /"SOAP" is not a binding/ })
  t.match(await over('send', url, 'hi', '--binding', 'WEBSOCKET'), { code: 1, stderr: /offers no WEBSOCKET/ })
})

await t.test('a missing or wrong key is reported with what to do, also on a call', async t => {
  const agent = await httpAgent(t)
  agent.script(body('', {}, 401))
  for (const args of [
    ['send', agent.url, 'hi'],
    ['tasks', 'ls', agent.url],
    ['tasks', 'show', agent.url, 't'],
    ['tasks', 'export', agent.url],
    ['tasks', 'cancel', agent.url, 't']
  ]) {
    t.match(
      await runCommand(args),
      { code: 4, stderr: `taskchart: The agent at ${agent.url} requires a key. Give one with --api-key KEY.\n` },
      args.join(' ')
    )
    t.match(await runCommand([...args, '--api-key', 'secret']), {
      code: 4,
      stderr: /refused the key, which was sent in authorization/
    })
  }
})

await t.test('headers of the command are sent, and hints have placeholders for them', async t => {
  const { url } = await serve(
    t,
    { negotiate: () => reply('hi') },
    {
      authenticate: ({ headers }) =>
        headers['x-team'] === 'blue, red' && headers['x-b'] === 'a:b' ? { id: 'me' } : undefined
    }
  )
  const given = ['--header', 'X-Team: blue', '--header', 'x-team:red', '--header', 'X-B: a:b']
  const { code, stderr } = await send(url, ['hi', ...given])
  t.equal(code, 0)
  t.match(stderr, / --header "x-b: …" --header "x-team: …"\n$/)
  t.notMatch(stderr, 'blue')
  t.match(await runCommand(['tasks', 'ls', url, ...given]), { code: 0 })
  t.match(await send(url, ['hi', '--header', 'X-Team: green']), {
    code: 4,
    stderr: `taskchart: The agent at ${url} refused the credentials, which were sent in x-team. Give others with --api-key KEY or --header NAME:VALUE.\n`
  })
  for (const wrong of ['secret', ':secret', 'a b: secret', 'x: sec\nret', 'x: säcrét☃']) {
    const ended = await send(url, ['hi', '--header', wrong])
    t.match(ended, { code: 2, stderr: /--header takes NAME:VALUE, such as --header "X-Team: blue"\./ }, wrong)
    t.notMatch(ended.stderr, /sec|ret/)
  }
})

await t.test('a key of the environment is sent only if the card asks for one', async t => {
  const seen: unknown[] = []
  const noting = (securitySchemes: Record<string, SecurityScheme>) =>
    Object.assign(({ headers }: { headers: object }) => (seen.push(headers), { id: 'me' }), { securitySchemes })
  const keyed = await serve(
    t,
    { negotiate: () => reply('hi') },
    { authenticate: noting({ key: { apiKeySecurityScheme: { location: 'header', name: 'x-key' } } }) }
  )
  const tokened = await serve(
    t,
    { negotiate: () => reply('hi') },
    { authenticate: noting({ token: { httpAuthSecurityScheme: { scheme: 'Bearer' } } }) }
  )
  const plain = await serve(t, { negotiate: () => reply('hi') }, { authenticate: noting({}) })
  const sent = async (url: string, env: Record<string, string>, ...more: string[]) => {
    const { code, stderr } = await runCommand(['send', url, 'hi', ...more], { env })
    t.equal(code, 0)
    t.notMatch(stderr, '--api-key', 'the environment is there for the next command too')
    return seen.at(-1)
  }
  t.match(await sent(keyed.url, { TASKCHART_API_KEY: 'one', A2ACLI_API_KEY: 'two' }), {
    'x-key': 'one',
    authorization: undefined
  })
  t.match(await sent(keyed.url, { TASKCHART_API_KEY: '', A2ACLI_API_KEY: 'two', TASKCHART_BEARER: 'three' }), {
    'x-key': 'two',
    authorization: undefined
  })
  t.match(await sent(keyed.url, { TASKCHART_BEARER: 'three' }), { 'x-key': undefined, authorization: undefined })
  t.match(await sent(tokened.url, { TASKCHART_BEARER: 'three', A2ACLI_BEARER: 'four', TASKCHART_API_KEY: 'one' }), {
    authorization: 'Bearer three'
  })
  t.match(await sent(tokened.url, { A2ACLI_BEARER: 'four' }), { authorization: 'Bearer four' })
  t.match(await sent(tokened.url, { A2ACLI_BEARER: 'four' }, '--header', 'authorization:mine'), {
    authorization: 'mine'
  })
  t.match(await sent(plain.url, { TASKCHART_API_KEY: 'one', TASKCHART_BEARER: 'three' }), {
    'x-key': undefined,
    authorization: undefined
  })
  await runCommand(['send', keyed.url, 'hi', '--api-key', 'flag'], { env: { TASKCHART_API_KEY: 'one' } })
  t.match(seen.at(-1), { 'x-key': 'flag' })
  const shut = await serve(t, { negotiate: () => reply('hi') }, { authenticate: () => undefined })
  t.match(await runCommand(['send', shut.url, 'hi'], { env: { TASKCHART_API_KEY: 'one' } }), {
    code: 4,
    stderr:
      'requires a key. Give one with --api-key KEY. That of the environment was not sent: the card has no scheme for it, or names another origin.'
  })
  const wrong = await runCommand(['send', keyed.url, 'hi'], { env: { TASKCHART_API_KEY: 'two words' } })
  t.match(wrong, { code: 2, stderr: /TASKCHART_API_KEY takes printable ASCII characters without spaces\./ })
  t.notMatch(wrong.stderr, 'two')
  for (const local of [
    ['doctor'],
    ['tasks', 'ls', '--db', 'none.db'],
    ['card', 'verify', 'none.json', '--keys', 'none.json']
  ]) {
    t.notMatch(
      (await runCommand(local, { env: { TASKCHART_API_KEY: 'two words' }, cwd: t.testdir() })).stderr,
      'TASKCHART',
      local.join(' ')
    )
  }
})

await t.test('a URL with a password is refused, and the password is not shown', async t => {
  const url = 'http://anna:secret@127.0.0.1:9/'
  for (const args of [
    ['send', url, 'hi'],
    ['chat', url],
    ['watch', url, 't'],
    ['tasks', 'ls', url],
    ['card', url],
    ['doctor', url],
    ['test', url]
  ]) {
    const { code, stdout, stderr } = await runCommand(args)
    t.match(
      stderr,
      /The URL has a user or a password\. Leave it out, and give a key with --api-key KEY\./,
      args[0] ?? ''
    )
    t.equal(code, 2)
    t.notMatch(stdout + stderr, 'secret')
  }
})
