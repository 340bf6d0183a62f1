import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { connect } from '../../../../adapters/client/connect.ts'
import { failed, rejected } from '../../../../runtime/index.ts'
import type { Runtime } from '../../../../runtime/runtime-options.ts'
import { type Clock, systemClock } from '../../../../runtime/ports/clock.ts'
import { cuttingProxy } from '../../../fixtures/network/cutting-proxy.ts'
import { collect, deferred, open, reaches, say, until } from '../../../fixtures/runtime/runtime-helpers.ts'
import { runCommand, type Surroundings } from '../../../fixtures/cli/run-command.ts'
import { failure, httpAgent, result, stream } from '../../../fixtures/peers/scripted-http.ts'
import { scripted } from '../../../fixtures/peers/scripted-agent.ts'
import { obedient, serve } from '../../../fixtures/servers/served-agent.ts'
import { storyteller } from '../../../fixtures/servers/storyteller.ts'

/** Runs `taskchart watch` in this process. */
function watch(url: string, args: readonly string[], surroundings?: Surroundings) {
  return runCommand(['watch', url, ...args], surroundings)
}

/** Opens a task whose work has said all that it says by itself. */
async function told(runtime: Runtime): Promise<string> {
  const { id } = await open(runtime)
  await until(async () => (await runtime.getTask({ id })).status.message !== undefined)
  return id
}

/** Calls `then` once, when a text that was written matches. */
function when(pattern: RegExp, then: () => void): (text: string) => void {
  let isDone = false
  return written => {
    if (isDone || !pattern.test(written)) return
    isDone = true
    then()
  }
}

/** The words of the line to paste that follows `title`, as a shell would give them. */
function pasted(written: string, title: string): string[] {
  const [, line = ''] = new RegExp(`${title}:\\n {2}npx taskchart (.*)\\n`).exec(written) ?? []
  return Array.from(line.matchAll(/(?:"[^"]*"|[^\s"])+/g), ([word]) => word.replaceAll('"', ''))
}

await t.test('a task of another client', async t => {
  await t.test('is shown in its current state, with its events and then its results', async t => {
    const { work, goOn } = storyteller()
    const { url, runtime } = await serve(t, { work })
    const id = await told(runtime)
    const { code, stdout, stderr } = await watch(url, [id], { heard: when(/^working/, goOn) })
    t.equal(code, 0)
    t.equal(stdout, 'Once upon a time.\n')
    t.match(
      stderr,
      new RegExp(
        `^working: Thinking\\. \\(task ${id}\\)\nartifact story \\(10 bytes\\)\ncompleted\n\nContinue with:\n  npx taskchart send ${url} "…" --context-id \\S+ --reference ${id}\n$`
      )
    )
  })

  await t.test('has its artifacts saved, and no file is overwritten', async t => {
    const { work, goOn } = storyteller()
    const { url, runtime } = await serve(t, { work })
    const cwd = t.testdir({ 'story.txt': 'mine' })
    const { stdout, stderr } = await watch(url, [await told(runtime), '--out', '.'], {
      cwd,
      heard: when(/^working/, goOn)
    })
    t.equal(stdout, 'Once upon a time.\nsaved story-2.txt\n')
    t.equal(readFileSync(join(cwd, 'story.txt'), 'utf8'), 'mine')
    t.equal(readFileSync(join(cwd, 'story-2.txt'), 'utf8'), 'Once upon a time.')
    t.match(stderr, / --out \.\n$/)
  })

  await t.test('is written as one line of JSON for each event with --json', async t => {
    const { work, goOn } = storyteller()
    const { url, runtime } = await serve(t, { work })
    const { code, stdout } = await watch(url, [await told(runtime), '--json'], { printed: when(/^/, goOn) })
    t.equal(code, 0)
    const events = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as Record<string, object>)
    t.strictSame(
      events.map(event => Object.keys(event)[0]),
      ['task', 'artifactUpdate', 'statusUpdate']
    )
    t.match(events[0], { task: { artifacts: [{ parts: [{ text: 'Once ' }, { text: 'upon ' }] }] } })
  })

  await t.test('can be watched by any number of clients', async t => {
    const { work, goOn } = storyteller()
    const { url, runtime } = await serve(t, { work })
    const id = await told(runtime)
    let watchers = 0
    const joined = () => {
      watchers += 1
      if (watchers === 3) goOn()
    }
    const ended = await Promise.all([1, 2, 3].map(() => watch(url, [id], { heard: when(/^working/, joined) })))
    t.strictSame(
      ended.map(({ code, stdout }) => [code, stdout]),
      Array.from({ length: 3 }, () => [0, 'Once upon a time.\n'])
    )
  })
})

await t.test('an ended task is shown, with --exit-status with the exit code of its state', async t => {
  await t.test('completed: with its artifacts, joined as far as possible', async t => {
    const { work, goOn } = storyteller()
    const { url, runtime } = await serve(t, { work })
    const { id } = await open(runtime)
    goOn()
    await reaches(runtime, id, 'completed')
    const cwd = t.testdir()
    const { code, stdout, stderr } = await watch(url, [id, '--out', 'out'], { cwd })
    t.equal(code, 0)
    t.equal(stdout, 'Once upon a time.\nsaved out/story.txt\n')
    t.match(
      stderr,
      new RegExp(
        `^completed \\(task ${id}\\)\nartifact story \\(17 bytes\\)\n\nContinue with:\n.* --reference ${id} --out out\n$`
      )
    )
    t.strictSame(readdirSync(join(cwd, 'out')), ['story.txt'])
  })

  await t.test('with --json: as one line with the task, and nothing else', async t => {
    const { url, runtime } = await serve(t, { work: obedient })
    const { id } = await open(runtime, 'hi')
    await reaches(runtime, id, 'completed')
    const { code, stdout } = await watch(url, [id, '--json'])
    t.equal(code, 0)
    t.match(JSON.parse(stdout), {
      task: { id, status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'hi' }] }] }
    })
  })

  for (const [state, end] of Object.entries({ failed, rejected })) {
    await t.test(`${state}: with its reason`, async t => {
      const { url, runtime } = await serve(t, { work: () => end('No paint left.') })
      const { id } = await open(runtime)
      await reaches(runtime, id, state)
      t.match(await watch(url, [id, '--exit-status']), {
        code: 10,
        stdout: /^$/,
        stderr: new RegExp(`^${state}: No paint left\\. \\(task ${id}\\)\n`)
      })
    })
  }

  await t.test('canceled', async t => {
    const { url, runtime } = await serve(t, { work: obedient })
    const { id } = await open(runtime, 'wait')
    await runtime.cancelTask({ id })
    t.match(await watch(url, [id, '--exit-status']), { code: 10, stderr: /^canceled/ })
    t.match(await watch(url, [id]), { code: 0, stderr: /^canceled/ })
  })

  await t.test('whose artifacts cannot be saved: with the line to retry', async t => {
    const { url, runtime } = await serve(t, { work: obedient })
    const { id } = await open(runtime, 'hi')
    await reaches(runtime, id, 'completed')
    const { code, stderr } = await watch(url, [id, '--out', 'file/below'], { cwd: t.testdir({ file: '' }) })
    t.equal(code, 1)
    t.match(
      stderr,
      new RegExp(
        `Task ${id} has ended\\. Watch it with:\n.* watch ${url} ${id} --out file/below\ntaskchart: file/below/.* could not be saved`
      )
    )
  })
})

await t.test('a task that is canceled while it is watched ends with exit code 0', async t => {
  const { url, runtime } = await serve(t, { work: obedient })
  const { id } = await open(runtime, 'wait')
  const cancel = () => void runtime.cancelTask({ id }).catch(error => t.fail(error))
  t.match(await watch(url, [id], { heard: when(/\(task/, cancel) }), {
    code: 0,
    stderr: /\ncanceled\n\nContinue with:/
  })
})

await t.test('a task that waits for input prints how to answer, and stays watched meanwhile', async t => {
  let ids = 0
  const { url, runtime } = await serve(t, { work: obedient }, { ids: () => `-id ${(ids += 1)}` })
  const { id } = await open(runtime, 'ask')
  await reaches(runtime, id, 'input-required')
  const line = deferred<string>()
  const watching = watch(url, ['--', id], {
    heard: text => text.includes('npx') && line.resolve(`Answer with:\n${text}`)
  })
  const [command = '', to = '', , ...rest] = pasted(await line.promise, 'Answer with')
  t.match(await runCommand([command, to, 'red', ...rest]), { code: 0, stdout: 'red\n' })
  const { code, stdout, stderr } = await watching
  t.equal(code, 0)
  t.equal(stdout, 'red\n')
  t.match(
    stderr,
    new RegExp(
      `^input-required: And then\\? \\(task ${id}\\)\n\nAnswer with:\n.*--task-id="${id}"\nworking\nartifact \\S+ \\S+\ncompleted\n\nContinue with:\n`
    )
  )
})

await t.test('a user who stops watching gets exit code 130 and the line to continue', async t => {
  await t.test('a task that works', async t => {
    const { work, goOn } = storyteller()
    const { url, runtime } = await serve(t, { work })
    const id = await told(runtime)
    const stop = new AbortController()
    const { code, stderr } = await watch(url, [id, '--out', 'my files'], {
      signal: stop.signal,
      heard: when(/^working/, () => stop.abort())
    })
    t.equal(code, 130)
    t.match(
      stderr,
      new RegExp(
        `\n\nTask ${id} goes on without you\\. Watch it with:\n  npx taskchart watch ${url} ${id} --out "my files"\n$`
      )
    )
    goOn()
    const again = await runCommand(pasted(stderr, 'Watch it with'), { cwd: t.testdir() })
    t.match(again, { code: 0, stdout: 'Once upon a time.\nsaved my files/story.txt\n' })
  })

  await t.test('a task that waits', async t => {
    const { url, runtime } = await serve(t, { work: obedient })
    const { id } = await open(runtime, 'ask')
    const stop = new AbortController()
    const { code, stderr } = await watch(url, [id], { signal: stop.signal, heard: when(/npx/, () => stop.abort()) })
    t.equal(code, 130)
    t.match(
      stderr,
      new RegExp(`\nTask ${id} waits for an answer\\. Watch it with:\n  npx taskchart watch ${url} ${id}\n$`)
    )
  })

  await t.test('a task whose id starts with a dash, of an agent that requires a key', async t => {
    const { url, runtime } = await serve(
      t,
      { work: obedient },
      { ids: () => '-id', authenticate: () => ({ id: 'me' }) }
    )
    const call = { principal: 'me' }
    const { id } = await open(runtime, 'wait', {}, call)
    const stop = new AbortController()
    const { stderr } = await watch(url, ['--api-key', 'secret', '--out', 'a', '--', id], {
      signal: stop.signal,
      heard: when(/\(task/, () => stop.abort())
    })
    t.match(stderr, `\n  npx taskchart watch ${url} --out a --api-key … -- -id\n`)
    t.notMatch(stderr, 'secret')
    await runtime.cancelTask({ id }, call)
    const words = pasted(stderr, 'Watch it with').map(word => (word === '…' ? 'secret' : word))
    t.match(await runCommand(words), { code: 0, stderr: /^canceled/ })
  })

  await t.test('before any event', async t => {
    const { url } = await serve(t, { work: obedient })
    t.strictSame(await watch(url, ['t1'], { signal: AbortSignal.abort() }), { code: 130, stdout: '', stderr: '' })
  })
})

await t.test('an error is reported in one line with its exit code', async t => {
  await t.test('for an unreachable agent', async t => {
    t.strictSame(await watch('ws://127.0.0.1:1/', ['t1']), {
      code: 3,
      stdout: '',
      stderr: 'taskchart: Nobody answers at ws://127.0.0.1:1/. Is the agent running?\n'
    })
  })

  await t.test('for an unknown task', async t => {
    const { url } = await serve(t, { work: obedient })
    t.strictSame(await watch(url, ['nope']), {
      code: 1,
      stdout: '',
      stderr: 'taskchart: Task nope was not found.\n'
    })
  })

  await t.test('for an invalid id', async t => {
    const { url } = await serve(t, { work: obedient })
    t.match(await watch(url, ['']), {
      code: 1,
      stdout: '',
      stderr: /^taskchart: Invalid parameters: id must be an id .*\n$/
    })
  })

  const task = (state: string) => ({ id: 't1', contextId: 'c1', status: { state } })
  const unsupported = { error: { code: -32004, message: 'I do not stream.' } }
  const cases: [string, Record<string, object[]>, RegExp][] = [
    [
      'the answer is not A2A',
      {
        SubscribeToTask: [{ result: { task: { id: 1 } } }, { streamEnd: true }],
        GetTask: [{ error: { code: -32001, message: 'Gone.' } }]
      },
      /^taskchart: The agent's answer is not A2A 1\.0: result\.task\./
    ],
    [
      'the stream ends with nothing',
      { SubscribeToTask: [{ streamEnd: true }], GetTask: [{ error: { code: -32001, message: 'Gone.' } }] },
      /^taskchart: Gone\.\n$/
    ],
    [
      'an ended task is missing when it is read',
      { SubscribeToTask: [unsupported], GetTask: [{ error: { code: -32001, message: 'Gone.' } }] },
      /^taskchart: Gone\.\n$/
    ]
  ]
  for (const [what, answers, message] of cases) {
    await t.test(what, async t => {
      const { code, stdout, stderr } = await watch(await scripted(t, answers), ['t1'])
      t.equal(code, 1)
      t.equal(stdout, '')
      t.match(stderr, message)
    })
  }

  await t.test('but a stream that ends at a waiting task gives --exit-status 11', async t => {
    const waiting = task('TASK_STATE_INPUT_REQUIRED')
    const url = await scripted(t, {
      SubscribeToTask: [{ result: { task: waiting } }, { streamEnd: true }],
      GetTask: [{ result: waiting }]
    })
    t.match(await watch(url, ['t1', '--exit-status']), {
      code: 11,
      stderr: /Answer with:\n.* --context-id c1 --task-id t1\n$/
    })
  })
})

await t.test('a task without a stream is read until it ends', async t => {
  const task = (state: string) =>
    result({
      id: 't1',
      contextId: 'c1',
      status: { state: `TASK_STATE_${state}` },
      artifacts: [{ artifactId: 'a', parts: [{ text: 'a boat' }] }]
    })
  const clock = {
    ...systemClock,
    setTimeout: (run: () => void, ms: number) => systemClock.setTimeout(run, ms < 5000 ? 0 : ms)
  }
  const begun = [
    ['its card says so', { card: { capabilities: {} } }, []],
    ['the subscription is refused', {}, [failure({ code: -32004 })]],
    ['the stream ends early', {}, [stream([], 'cut'), failure({ code: -32601 })]]
  ] as const
  for (const [why, card, answers] of begun) {
    await t.test(why, async t => {
      const agent = await httpAgent(t, card)
      agent.script(...answers, task('WORKING'), task('WORKING'), task('COMPLETED'))
      t.match(await watch(agent.url, ['t1'], { clock }), {
        code: 0,
        stdout: 'a boat\n',
        stderr: /^working \(task t1\)\n(?:artifact .*\n)*completed \(task t1\)$/m
      })
    })
  }
  const url = await scripted(t, {
    SubscribeToTask: [{ result: { task: { id: 't1', status: { state: 'TASK_STATE_WORKING' } } } }, { streamEnd: true }],
    GetTask: [{ result: { id: 't1', status: { state: 'TASK_STATE_COMPLETED' } } }]
  })
  t.match(await watch(url, ['t1'], { clock }), { code: 0 }, 'and so is that of a WebSocket that ends its stream early')
})

await t.test('--poll-interval says how often a task is read', async t => {
  const states = ['WORKING', 'WORKING', 'COMPLETED'].map(state => ({
    id: 't1',
    contextId: 'c1',
    status: { state: `TASK_STATE_${state}` }
  }))
  const looks: readonly (readonly [what: string, look: (url: string, clock: Clock) => Promise<unknown>])[] = [
    ['watch', async (url, clock) => runCommand(['watch', url, 't1', '--poll-interval', '7s'], { clock })],
    ['get', async (url, clock) => runCommand(['task', 'get', url, 't1', '--wait', '--poll-interval', '7s'], { clock })],
    [
      'a message',
      async (url, clock) => {
        const client = await connect(url, { clock, pollIntervalMs: 7000 })
        await collect(client.sendStreamingMessage(say('hi')))
        return client.close()
      }
    ]
  ]
  for (const [what, look] of looks) {
    const waits: number[] = []
    const clock = {
      ...systemClock,
      setTimeout: (run: () => void, ms: number) => systemClock.setTimeout(run, (waits.push(ms), ms === 7000 ? 0 : ms))
    }
    const agent = await httpAgent(t, { card: { capabilities: {} } })
    const [first, ...later] = states
    agent.script(result(what === 'a message' ? { task: first } : first), ...later.map(state => result(state)))
    await look(agent.url, clock)
    t.equal(waits.filter(ms => ms === 7000).length, what === 'a message' ? 1 : 2, `${what}: always after as long`)
  }
})

await t.test('a task without a context or streamed artifacts is shown without a line to continue', async t => {
  const task = { id: 't1', status: { state: 'TASK_STATE_COMPLETED' } }
  const artifacts = [{ artifactId: 'a1', parts: [{ text: 'a ' }, { text: 'boat' }] }]
  const url = await scripted(t, {
    SubscribeToTask: [{ result: { task } }, { streamEnd: true }],
    GetTask: [{ result: { ...task, artifacts } }]
  })
  t.strictSame(await watch(url, ['t1']), { code: 0, stdout: 'a boat\n', stderr: 'completed (task t1)\n' })
})

await t.test('an artifact has its size, and chunks before their task are joined', async t => {
  const task = { id: 't1', status: { state: 'TASK_STATE_COMPLETED' } }
  const parts = [{ text: 'é' }, { raw: 'iVBORw==' }, { data: [1, 2] }, { url: 'https://a.example/x' }]
  const whole = await scripted(t, {
    SubscribeToTask: [{ result: { task: { ...task, artifacts: [{ artifactId: 'a1', parts }] } } }, { streamEnd: true }],
    GetTask: [{ result: task }]
  })
  t.match(await watch(whole, ['t1']), { code: 0, stderr: 'artifact a1 (11 bytes)\n' })

  const chunk = {
    taskId: 't1',
    contextId: 'c1',
    artifact: { artifactId: 'a1', parts: [{ text: 'boat' }] },
    append: true
  }
  const told = { taskId: 't1', contextId: 'c1', status: task.status }
  const artifacts = [{ artifactId: 'a1', parts: [{ text: 'a ' }, { text: 'boat' }] }]
  const chunked = await scripted(t, {
    SubscribeToTask: [{ result: { artifactUpdate: chunk } }, { result: { statusUpdate: told } }, { streamEnd: true }],
    GetTask: [{ result: { ...task, artifacts } }]
  })
  t.match(await watch(chunked, ['t1']), { code: 0, stdout: 'a boat\n' })
})

await t.test(
  'an authorization that a task waits for is reported at once, and at a terminal send goes on, too',
  async t => {
    const status = (state: string) => ({
      result: { statusUpdate: { taskId: 't1', contextId: 'c1', status: { state } } }
    })
    const task = { id: 't1', contextId: 'c1', status: { state: 'TASK_STATE_COMPLETED' } }
    const stream = [
      { result: { task: { ...task, status: { state: 'TASK_STATE_SUBMITTED' } } } },
      status('TASK_STATE_AUTH_REQUIRED'),
      status('TASK_STATE_COMPLETED'),
      { streamEnd: true }
    ]
    const url = await scripted(t, {
      SubscribeToTask: stream,
      SendStreamingMessage: stream,
      GetTask: [{ result: task }]
    })
    for (const argv of [
      ['watch', url, 't1'],
      ['send', url, 'hi']
    ]) {
      t.match(await runCommand(argv, { terminal: { columns: 200, hasColours: false } }), {
        code: 0,
        stderr: /submitted \(task t1\)\n[^]*auth-required\n[^]*Answer with:\n.*\n[^]*completed\n\nContinue with:\n/
      })
    }
    const stopped = { code: 11, stderr: /\nauth-required\n\nAnswer with:\n.* --task-id t1\n$/ }
    t.match(await runCommand(['send', url, 'hi', '--exit-status']), stopped, 'a script is not kept waiting')
  }
)

await t.test('a following question is shown, without the line a second time', async t => {
  const asked = (words: string) => ({
    result: {
      statusUpdate: {
        taskId: 't1',
        contextId: 'c1',
        status: {
          state: 'TASK_STATE_INPUT_REQUIRED',
          message: { messageId: words, role: 'ROLE_AGENT', parts: [{ text: words }] }
        }
      }
    }
  })
  const task = { id: 't1', contextId: 'c1', status: { state: 'TASK_STATE_COMPLETED' } }
  const url = await scripted(t, {
    SubscribeToTask: [asked('One?'), asked('Two?'), { result: { task } }, { streamEnd: true }],
    GetTask: [{ result: task }]
  })
  const terminal = { columns: 80, hasColours: false }
  t.match(await runCommand(['watch', url, 't1'], { terminal }), {
    code: 0,
    stderr: /^input-required: One\?\n\nAnswer with:\n.*\ninput-required: Two\?\ncompleted \(task t1\)\n/
  })
})

await t.test('a lost connection', async t => {
  await t.test('is reported, and the stream resumes without a gap or repeat', async t => {
    const { work, goOn } = storyteller()
    const { url, runtime } = await serve(t, { work })
    const proxy = await cuttingProxy(Number(new URL(url).port))
    t.teardown(() => proxy.close())
    const id = await told(runtime)
    const cut = when(/^working/, () => proxy.cutAll())
    const back = when(/is restored/, goOn)
    const heard = (text: string) => {
      cut(text)
      back(text)
    }
    const { code, stdout, stderr } = await watch(`ws://127.0.0.1:${proxy.port}/`, [id], { heard })
    t.equal(code, 0)
    t.equal(stdout, 'Once upon a time.\n')
    t.match(
      stderr,
      /^working.*\nartifact .*\nThe connection is lost\. Reconnecting\.\nThe connection is restored\.\ncompleted\n/
    )
  })

  await t.test('to an agent that no longer has the task ends with that error', async t => {
    const { url, runtime, close } = await serve(t, { work: obedient })
    const { id } = await open(runtime, 'wait')
    const { port } = new URL(url)
    const restart = async () => {
      await close()
      await serve(t, { work: obedient }, {}, { port: Number(port) })
    }
    const heard = when(/\(task/, () => void restart().catch(error => t.fail(error)))
    const { code, stderr } = await watch(url, [id], { heard })
    t.equal(code, 1)
    t.match(stderr, new RegExp(`The connection is restored\\.\ntaskchart: Task ${id} was not found\\.\n$`))
  })

  await t.test('can be left, with the line to continue watching', async t => {
    const { url, runtime, close } = await serve(t, { work: obedient })
    const { id } = await open(runtime, 'wait')
    const stop = new AbortController()
    const gone = when(/\(task/, () => void close().catch(error => t.fail(error)))
    const heard = (text: string) => {
      gone(text)
      if (text.startsWith('The connection is lost')) stop.abort()
    }
    t.match(await watch(url, [id], { signal: stop.signal, heard }), {
      code: 130,
      stderr: new RegExp(`Task ${id} goes on without you\\.`)
    })
  })
})
