import t, { type Test } from 'tap'
import type { Terminal } from '../../../../adapters/cli/command.ts'
import { liveText, messageText } from '../../../../adapters/cli/talk/results.ts'
import { note, nothingYet } from '../../../../adapters/cli/talk/follow.ts'
import { cutToWidth } from '../../../../adapters/cli/text/format.ts'
import { counter, LiveLine, PLAIN_MS } from '../../../../adapters/cli/text/live-line.ts'
import { jsonLine, oneLine, plain, terminalOf } from '../../../../adapters/cli/text/terminal.ts'
import type { Part, StreamResponse } from '../../../../machines/protocol/objects.ts'
import type { TaskState } from '../../../../machines/protocol/states.ts'
import { reply } from '../../../../runtime/index.ts'
import { cuttingProxy } from '../../../fixtures/network/cutting-proxy.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { deferred, open, reaches, until } from '../../../fixtures/runtime/runtime-helpers.ts'
import { Screen } from '../../../fixtures/cli/screen.ts'
import { scripted } from '../../../fixtures/peers/scripted-agent.ts'
import { obedient, serve } from '../../../fixtures/servers/served-agent.ts'
import { storyteller } from '../../../fixtures/servers/storyteller.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'

const COLOURFUL: Terminal = { columns: 80, hasColours: true }
const PLAIN: Terminal = { columns: 80, hasColours: false }
const DRAWN_AFTER_MS = 100

await t.test('a stream is a terminal', async t => {
  const tty = { isTTY: true, columns: 120, hasColors: (env: object) => !('NO_COLOR' in env) }

  await t.test('with its own width and colours', async t => {
    const terminal = terminalOf(tty, { TERM: 'xterm' })
    t.match(terminal, { columns: 120, hasColours: true })
  })

  await t.test('whose width is read again each time, and is 80 if unknown', async t => {
    const resized = { ...tty, columns: 0 }
    const terminal = terminalOf(resized, {})
    t.equal(terminal?.columns, 80)
    resized.columns = 40
    t.equal(terminal?.columns, 40)
  })

  await t.test('without colours if NO_COLOR is set, or colours are unknown', async t => {
    t.match(terminalOf(tty, { NO_COLOR: '1' }), { hasColours: false })
    t.match(terminalOf({ isTTY: true }, {}), { columns: 80, hasColours: false })
  })

  await t.test('unless it is a pipe, or cannot move the cursor back', async t => {
    t.equal(terminalOf({}, {}), undefined)
    t.equal(terminalOf({ ...tty, isTTY: false }, {}), undefined)
    t.equal(terminalOf(tty, { TERM: 'dumb' }), undefined)
  })
})

await t.test('invisible characters and direction marks are shown as escapes, and emoji as they are', async t => {
  const unseen = /[\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/u
  const all = Array.from({ length: 0x11_0000 }, (_, code) => String.fromCodePoint(code)).filter(character =>
    unseen.test(character)
  )
  t.ok(all.length > 4000)
  for (const shown of [plain, oneLine]) t.notMatch(all.map(character => shown(`a${character}b`)).join(''), unseen)
  t.notMatch(jsonLine(all), unseen)
  t.strictSame(JSON.parse(jsonLine(all)), all)
  t.equal(plain('a\u202eb\u2066c\u200bd\u2028e\u{e0041}'), 'a\\u202eb\\u2066c\\u200bd\\u2028e\\udb40\\udc41')
  const emoji = '\u{1f469}\u200d\u{1f4bb} \u2764\ufe0f \u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}'
  t.equal(oneLine(emoji), emoji)
})

await t.test('a counter without a terminal prints a line every ten seconds', async t => {
  const clock = new TestClock()
  let written = ''
  let done = 0
  const line = counter({
    output: { write: text => void (written += text) },
    terminal: undefined,
    clock,
    text: () => `${done} of 9`
  })
  clock.increment(PLAIN_MS - 1)
  t.equal(written, '')
  done = 4
  clock.increment(PLAIN_MS + 1)
  line.erase()
  line.end()
  clock.increment(PLAIN_MS)
  t.equal(written, '4 of 9\n4 of 9\n')
})

await t.test('a line is truncated to a width', async t => {
  const cases: [string, number, string][] = [
    ['', 5, ''],
    ['hello', 5, 'hello'],
    ['hello!', 5, 'hel…'],
    ['日本', 4, '日本'],
    ['日本語', 5, '日…'],
    ['a日本語', 6, 'a日…'],
    ['👩‍👩‍👧 and so on', 4, '👩…'],
    ['Grüße', 5, 'Grüße'],
    ['long', 2, '…'],
    ['long', 1, '…'],
    ['x', 0, '…']
  ]
  for (const [line, columns, wanted] of cases) t.equal(cutToWidth(line, columns), wanted, `${line} to ${columns}`)
})

await t.test('a live line', async t => {
  /** A live line that says what the test says, on a screen. */
  function start(terminal = PLAIN) {
    const clock = new TestClock()
    const screen = new Screen()
    const says = { text: '' }
    const written: string[] = []
    const output = { write: (text: string) => (written.push(text), screen.write(text)) }
    const line = new LiveLine({ output, terminal, clock, text: elapsedMs => says.text.replace('$', String(elapsedMs)) })
    return { clock, screen, says, written, line }
  }

  await t.test('is drawn in place on changes, at most ten times a second', async t => {
    const { clock, screen, says, written } = start()
    says.text = 'one, long'
    t.strictSame(written, [])
    clock.increment(DRAWN_AFTER_MS)
    t.strictSame(screen.lines, ['one, long'])
    for (const text of ['a', 'b', 'two']) says.text = text
    clock.increment(10 * DRAWN_AFTER_MS)
    t.strictSame(screen.lines, ['two'])
    t.equal(written.length, 2)
  })

  await t.test('has its elapsed time', async t => {
    const { clock, screen, says } = start()
    says.text = '$'
    clock.increment(12 * DRAWN_AFTER_MS)
    t.equal(screen.last, '1200')
  })

  await t.test('stays below printed lines, and prints a mentioned text itself', async t => {
    const { clock, screen, says, line } = start()
    says.text = 'live'
    clock.increment(DRAWN_AFTER_MS)
    line.print('told')
    line.mention()
    t.strictSame(screen.lines, ['told', ''])
    clock.increment(DRAWN_AFTER_MS)
    t.strictSame(screen.lines, ['told', 'live'])
  })

  await t.test('disappears without a timer at its end, which may be repeated; later lines stay', async t => {
    const { clock, screen, says, line } = start()
    says.text = 'live'
    clock.increment(DRAWN_AFTER_MS)
    line.end()
    line.end()
    line.print('told')
    t.strictSame(screen.lines, ['told', ''])
    t.equal(clock.pending, 0)
  })

  await t.test('that was never drawn writes no byte', async t => {
    const { written, line } = start()
    line.end()
    t.strictSame(written, [])
  })

  await t.test('is dim with colours, and plain without', async t => {
    for (const [terminal, wanted] of [
      [COLOURFUL, '\r\u001b[2mlive\u001b[22m\u001b[K'],
      [PLAIN, '\rlive\u001b[K']
    ] as const) {
      const { clock, says, written } = start(terminal)
      says.text = 'live'
      clock.increment(DRAWN_AFTER_MS)
      t.strictSame(written, [wanted])
    }
  })

  await t.test('leaves the last column free, also when the terminal becomes narrower', async t => {
    const terminal = { columns: 6, hasColours: false }
    const { clock, screen, says } = start(terminal)
    says.text = 'abcdef'
    clock.increment(DRAWN_AFTER_MS)
    t.strictSame(screen.lines, ['abc…'])
    terminal.columns = 5
    clock.increment(DRAWN_AFTER_MS)
    t.strictSame(screen.lines, ['ab…'])
  })
})

/** Runs a command on a terminal whose screen and clock the test has. */
function onTerminal(
  t: Test,
  argv: readonly string[],
  { terminal = COLOURFUL, signal = new AbortController().signal } = {}
) {
  const clock = new TestClock()
  const screen = new Screen()
  const write = (text: string) => screen.write(text)
  const ended = runCommand(argv, { terminal, clock, signal, printed: write, heard: write }).then(ended => {
    t.equal(clock.pending, 0, 'no timer is left')
    return ended
  })
  /** Waits until the live line says something, drawn again and again meanwhile. */
  const live = (pattern: RegExp) =>
    until(() => {
      clock.increment(DRAWN_AFTER_MS)
      return pattern.test(screen.last ?? '')
    }, String(pattern))
  return { screen, live, ended }
}

await t.test('on a terminal', async t => {
  await t.test('the latest progress is a live line, and the state lines stay', async t => {
    const { work, goOn } = storyteller({ thought: 'Thinking\u001b[2J\r\nabout it.' })
    const { url } = await serve(t, { work })
    const { screen, live, ended } = onTerminal(t, ['send', url, 'go'])
    await live(/^working \(\d+:\d\d\): Thinking\[2J about it\.$/)
    t.match(screen.lines.slice(0, -1), [/^submitted \(task/, 'working', 'artifact story'])
    goOn()
    const { code, stderr } = await ended
    t.equal(code, 0)
    t.match(screen.lines, [
      /^submitted/,
      'working',
      'artifact story',
      'completed',
      'Once upon a time.',
      '',
      'Continue with:',
      /npx/,
      ''
    ])
    t.match(stderr, '\u001b[2m')
  })

  await t.test('streamed chunks are counted, and a waiting task stays visible', async t => {
    const { work } = storyteller({ thinksFirst: true })
    const told = await serve(t, { work })
    const stop = new AbortController()
    const { live, ended } = onTerminal(t, ['send', told.url, 'go'], { signal: stop.signal })
    await live(/^working \(\d+:\d\d\): 2 chunks, 10 bytes of story$/)
    stop.abort()
    await ended

    const asking = await serve(t, { work: obedient })
    const { id } = await open(asking.runtime, 'ask')
    await reaches(asking.runtime, id, 'input-required')
    const watching = onTerminal(t, ['watch', asking.url, id, '--exit-status'])
    await watching.live(/^input-required \(\d+:\d\d\): And then\?$/)
    t.match(watching.screen.lines.slice(0, -1), [
      /^input-required: And then\? \(task/,
      '',
      'Answer with:',
      /npx taskchart send/
    ])
    await asking.runtime.cancelTask({ id })
    t.match(await watching.ended, { code: 10 })
  })

  await t.test('a user who stops sees only the line to continue watching', async t => {
    const { work } = storyteller()
    const { url } = await serve(t, { work })
    const stop = new AbortController()
    const { screen, live, ended } = onTerminal(t, ['send', url, 'go'], { signal: stop.signal })
    await live(/Thinking/)
    stop.abort()
    t.equal((await ended).code, 130)
    t.match(screen.lines, [
      /^submitted/,
      'working',
      'artifact story',
      '',
      /goes on without you\. Watch it with:$/,
      /npx taskchart watch/,
      ''
    ])
  })

  await t.test('a silent agent is waited for, and nothing of that remains', async t => {
    const answered = deferred<ReturnType<typeof reply>>()
    const { url } = await serve(t, { negotiate: () => answered.promise, work: () => {} })
    const { screen, live, ended } = onTerminal(t, ['send', url, 'hi'], { terminal: PLAIN })
    await live(/^waiting for the agent \(0:01\)$/)
    answered.resolve(reply('hello'))
    const { stderr } = await ended
    t.match(screen.lines, ['hello', '', 'Continue with:', /npx/, ''])
    t.notMatch(stderr, '\u001b[2m')
  })

  await t.test('a lost connection leaves a line, and the live line shows it until it returns', async t => {
    const { work, goOn } = storyteller()
    const { url } = await serve(t, { work })
    const proxy = await cuttingProxy(Number(new URL(url).port))
    t.teardown(() => proxy.close())
    const { screen, live, ended } = onTerminal(t, ['send', `ws://127.0.0.1:${proxy.port}/`, 'go'])
    await live(/Thinking/)
    proxy.cutAll()
    await until(() => screen.lines.includes('The connection is lost. Reconnecting.'))
    await live(/^working .*Thinking/)
    goOn()
    t.equal((await ended).code, 0)
    t.match(screen.lines, [
      /^submitted/,
      'working',
      'artifact story',
      'The connection is lost. Reconnecting.',
      'The connection is restored.',
      'completed',
      'Once upon a time.',
      '',
      /^Continue with/,
      /npx/,
      ''
    ])
  })

  await t.test('--json is for programs, without a live line', async t => {
    const { work, goOn } = storyteller()
    const { url, runtime } = await serve(t, { work })
    const { id } = await open(runtime)
    const { screen, ended } = onTerminal(t, ['watch', url, id, '--json'])
    await until(() => screen.lines.some(line => line.startsWith('working: Thinking.')))
    goOn()
    const { code, stderr } = await ended
    t.equal(code, 0)
    t.notMatch(stderr, '\u001b')
  })

  await t.test('a failing stream leaves no live line before the error', async t => {
    const working = { task: { id: 't1', contextId: 'c1', status: { state: 'TASK_STATE_WORKING' } } }
    const url = await scripted(t, {
      SubscribeToTask: [{ result: working }, { error: { code: -32603, message: 'Out of paint.' } }],
      GetTask: [{ error: { code: -32603, message: 'Out of paint.' } }]
    })
    const { screen, ended } = onTerminal(t, ['watch', url, 't1'])
    t.equal((await ended).code, 1)
    t.match(screen.lines, ['working (task t1)', '', /^Task t1 goes on/, /npx/, 'taskchart: Out of paint.', ''])
  })
})

await t.test("an agent's message is shown as text, with files named and data only otherwise", t => {
  const shown = (...parts: Part[]) => messageText({ messageId: 'm', role: 'ROLE_AGENT', parts })
  t.equal(
    shown({ text: 'Which one?' }, { data: { name: 'a' } }, { raw: 'AAAA', filename: 'b.png' }),
    'Which one? b.png (3 bytes)'
  )
  t.equal(shown({ data: { pages: 2 } }, { data: 2, filename: 'two.json' }), '{"pages":2} two.json')
  t.end()
})

await t.test('the live text has these parts', async t => {
  const status = (state: TaskState, words?: string) => ({
    state,
    ...(words !== undefined && { message: { messageId: 'm', role: 'ROLE_AGENT' as const, parts: [{ text: words }] } })
  })
  const at = { taskId: 't1', contextId: 'c1' }
  const task = (...parts: Part[][]): StreamResponse => ({
    task: {
      id: 't1',
      contextId: 'c1',
      status: status('TASK_STATE_WORKING', 'Hm.'),
      artifacts: parts.map((parts, i) => ({ artifactId: `a${i}`, parts }))
    }
  })
  const update = (state: TaskState, words?: string): StreamResponse => ({
    statusUpdate: { ...at, status: status(state, words) }
  })
  const chunk = (parts: Part[], append = true, name?: string): StreamResponse => ({
    artifactUpdate: { ...at, artifact: { artifactId: 'a0', parts, ...(name !== undefined && { name }) }, append }
  })
  const raw = { raw: 'iVBORw==' }

  const cases: [string, StreamResponse[], number, string][] = [
    ['has the elapsed time', [], 3_723_000, 'waiting for the agent (1:02:03)'],
    ['has the text of the status', [task()], 59_999, 'working (0:59): Hm.'],
    [
      'counts later chunks after the initial parts',
      [task([{ text: 'é' }, raw]), chunk([{ text: 'x' }])],
      0,
      'working (0:00): 3 chunks, 7 bytes of a0'
    ],
    [
      'counts data, and not the contents of a url',
      [task(), chunk([{ data: [1, 2] }, { url: 'https://a.example/x' }], false)],
      0,
      'working (0:00): 5 bytes of a0'
    ],
    [
      'keeps the name of the first chunk',
      [chunk([raw], false, 'boat\n.png'), chunk([raw])],
      0,
      'waiting for the agent (0:00): 2 chunks, 8 bytes of boat .png'
    ],
    ['counts a chunk without a previous one', [task(), chunk([raw])], 0, 'working (0:00): 2 chunks, 4 bytes of a0'],
    [
      'restarts with an artifact that restarts',
      [task(), chunk([raw]), chunk([raw], false)],
      0,
      'working (0:00): 4 bytes of a0'
    ],
    [
      'keeps the text while the state does not change',
      [task(), update('TASK_STATE_WORKING')],
      0,
      'working (0:00): Hm.'
    ],
    ['drops the text when the state changes', [task(), update('TASK_STATE_INPUT_REQUIRED')], 0, 'input-required (0:00)']
  ]
  for (const [what, events, elapsedMs, wanted] of cases) {
    await t.test(what, async t => {
      const watched = nothingYet()
      for (const event of events) note(watched, event)
      t.equal(liveText(watched, elapsedMs), wanted)
    })
  }
})
