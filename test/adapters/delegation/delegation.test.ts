import t, { type Test } from 'tap'
import { assign, emit, sendTo } from 'xstate'
import { z } from 'zod'
import { delegate, remoteAgent, type RemoteAgent, type RemoteEvent } from '../../../adapters/delegation/index.ts'
import type { RemoteOptions } from '../../../adapters/delegation/pooled-client.ts'
import { serve, type Served } from '../../../adapters/serve/serve.ts'
import { QUESTION } from '../../../machines/protocol/uris.ts'
import type { AgentDefinition } from '../../../runtime/agent/define-agent.ts'
import { authRequired, inputRequired } from '../../../runtime/authoring/questions.ts'
import { setupWork } from '../../../runtime/authoring/setup-work.ts'
import { artifact, failed, progress, rejected, reply, text, textOf } from '../../../runtime/authoring/words.ts'
import type { WorkArguments } from '../../../runtime/authoring/work-arguments.ts'
import type { RuntimeOptions } from '../../../runtime/runtime-options.ts'
import type { WorkFunction } from '../../../runtime/work/function-work.ts'
import {
  brief,
  collect,
  deferred,
  open,
  reaches,
  refusal,
  say,
  start,
  stateName,
  taskIn,
  type Started,
  until,
  withGenerations
} from '../../fixtures/runtime/runtime-helpers.ts'
import { failure, httpAgent, result, stream } from '../../fixtures/peers/scripted-http.ts'

type Definition = Omit<AgentDefinition, 'card'> & Partial<AgentDefinition>

interface Server extends Started {
  readonly served: Served
  readonly url: string
}

/** Serves an agent over every binding at one address. */
async function serving(t: Test, definition: Definition, options: Partial<RuntimeOptions> = {}): Promise<Server> {
  const started = start(t, { cancelGraceMs: 5000, ...definition }, options)
  const served = await serve(started.runtime, { port: 0 })
  t.teardown(() => served.close())
  return { ...started, served, url: served.url }
}

/** All that was told of a task, shortly. */
async function told({ runtime }: Started, taskId: string): Promise<string[]> {
  const events = await collect(
    runtime.subscribeToTask({ id: taskId }, { ...withGenerations, conditions: { afterGeneration: 0 } })
  )
  return events.map(brief)
}

/** Work that talks: it tells progress, asks, and hands over an artifact in two chunks. */
const talking: Definition = {
  work: async function* ({ message }) {
    yield progress(`looking for ${textOf(message)}`)
    const answer = textOf(yield* inputRequired('Which day?'))
    yield artifact({ artifactId: 'room', name: 'room.txt', parts: [text('a room ')] })
    yield artifact({ artifactId: 'room', parts: [text(`on ${answer}`)] }, { append: true, lastChunk: true })
    return { message: 'Sleep well!' }
  }
}

for (const binding of ['WEBSOCKET', 'JSONRPC', 'HTTP+JSON']) {
  await t.test(`delegation works over ${binding}`, async t => {
    await t.test('a function delegates its whole task: progress, questions and artifacts become its own', async t => {
      const hotel = await serving(t, talking)
      const agent = remoteAgent(hotel.url, { bindings: [binding] })
      const desk = start(t, {
        work: async work => {
          const { artifacts, message, task } = await delegate(work, agent, work.message)
          return { artifact: `${artifacts.map(textOf).join()} of ${task?.status.state}`, ...(message && { message }) }
        }
      })
      const asked = taskIn(await desk.runtime.sendMessage(say('two')))
      t.match(asked.status, { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: 'Which day?' }] } })
      await desk.runtime.sendMessage(say('Monday', { taskId: asked.id }))
      t.strictSame(await told(desk, asked.id), [
        'submitted',
        'working',
        'working: looking for two',
        'input-required: Which day?',
        'working',
        'artifact: a room ',
        'artifact: on Monday',
        'artifact: a room \non Monday of TASK_STATE_COMPLETED',
        'completed: Sleep well!'
      ])
      const { artifacts = [] } = await desk.runtime.getTask({ id: asked.id })
      t.match(artifacts[0], { name: 'room.txt', parts: [{ text: 'a room ' }, { text: 'on Monday' }] })
      t.not(artifacts[0]?.artifactId, 'room')
      t.strictSame(desk.log, [])
    })
  })
}

/** A chart that delegates to an agent, tells what it hears, and answers what that asks. */
function deskChart(agent: RemoteAgent, deadlineMs?: number) {
  return setupWork({
    types: { context: {} as { wish: string; made: string }, events: {} as RemoteEvent },
    actors: { hotel: agent }
  }).createMachine({
    context: ({ input }) => ({ wish: textOf(input.message), made: '' }),
    invoke: {
      id: 'hotel',
      src: 'hotel',
      input: ({ context }) => ({ message: context.wish, ...(deadlineMs !== undefined && { deadlineMs }) }),
      onDone: {
        target: '.done',
        actions: assign({
          made: ({ event }) =>
            event.output.artifacts.map(textOf).join() || textOf(event.output.message ?? { parts: [] })
        })
      },
      onError: { target: '.failed', actions: assign({ made: ({ event }) => (event.error as Error).message }) }
    },
    on: {
      'remote.status': {
        target: '.waiting',
        actions: emit(({ event }) => progress(`${event.from}: ${event.message ? textOf(event.message) : event.state}`))
      },
      'remote.artifact': {
        actions: emit(({ event }) =>
          artifact({ ...event.artifact, artifactId: 'theirs' }, { append: event.append, lastChunk: event.lastChunk })
        )
      },
      'remote.input-required': {
        target: '.asking',
        actions: assign({
          wish: ({ event }) =>
            [event.refusal ?? [], event.message ? textOf(event.message) : 'no words'].flat().join(' ')
        })
      },
      'remote.auth-required': '.authorizing'
    },
    initial: 'waiting',
    states: {
      waiting: {},
      asking: {
        tags: 'input-required',
        meta: { prompt: ({ context }) => context.wish },
        on: {
          'message.received': {
            target: 'waiting',
            actions: sendTo('hotel', ({ event }) => ({ type: 'answer', message: event.message }))
          }
        }
      },
      authorizing: { tags: 'auth-required', meta: { prompt: 'The hotel wants a login.' } },
      done: { type: 'final' },
      failed: { type: 'final', tags: 'failed', meta: { reason: ({ context }) => context.made } }
    },
    output: ({ context }) => ({ artifact: text(context.made) })
  })
}

await t.test("a chart receives another agent's events, answers its question and gets its artifacts", async t => {
  const hotel = await serving(t, talking)
  const desk = start(t, { work: deskChart(remoteAgent(hotel.url)) })
  const { id: taskId, status } = taskIn(await desk.runtime.sendMessage(say('two')))
  t.match(status, { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: 'Which day?' }] } })
  await desk.runtime.sendMessage(say('Monday', { taskId }))
  t.strictSame(await told(desk, taskId), [
    'submitted',
    'working',
    'working: hotel: TASK_STATE_SUBMITTED',
    'working: hotel: TASK_STATE_WORKING',
    'working: hotel: looking for two',
    'input-required: Which day?',
    'working',
    'working: hotel: TASK_STATE_WORKING',
    'artifact: a room ',
    'artifact: on Monday',
    'artifact: a room  on Monday'.replace('  ', ' \n'),
    'completed'
  ])
  t.strictSame(desk.log, [])
  const [theirs] = (await hotel.runtime.listTasks({})).tasks
  const { history = [] } = await hotel.runtime.getTask({ id: String(theirs?.id) })
  const question = history.find(({ parts: [part] }) => part && 'text' in part && part.text === 'Which day?')
  t.equal(history.at(-1)?.metadata?.[QUESTION], question?.messageId, 'the answer names their question')
})

await t.test('a question is asked again, with the reason, if the other agent refuses the answer', async t => {
  const hotel = await serving(t, {
    work: async ({ ask }) => ({
      artifact: await ask(inputRequired('How many?', { schema: z.string().regex(/^\d+$/, 'is no number') }))
    })
  })
  for (const work of [
    deskChart(remoteAgent(hotel.url)),
    (work: WorkArguments) => delegate(work, remoteAgent(hotel.url), 'x').then(({ artifacts }) => ({ artifacts }))
  ]) {
    const desk = start(t, { work })
    const { id: taskId } = taskIn(await desk.runtime.sendMessage(say('x')))
    await desk.runtime.sendMessage(say('some', { taskId }, { returnImmediately: true }))
    const again = await reaches(desk.runtime, taskId, 'input-required')
    t.match(textOf(again.status.message ?? { parts: [] }), /is no number.*How many\?/s)
    const done = taskIn(await desk.runtime.sendMessage(say('4', { taskId })))
    t.match(done, { status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: '4' }] }] })
  }
})

await t.test('a chain of three agents', async t => {
  /** The root and the middle delegate, the leaf works; its signal and those of the others are there to be looked at. */
  const chainOf = async (t: Test, leafWork: WorkFunction, root: Partial<Definition> = {}) => {
    const signals: AbortSignal[] = []
    const leaf = await serving(t, {
      work: work => {
        signals.push(work.signal)
        return leafWork(work)
      }
    })
    const through =
      (url: string): WorkFunction =>
      async work => {
        signals.push(work.signal)
        const { artifacts } = await delegate(work, remoteAgent(url), work.message, { artifacts: false })
        return { artifacts }
      }
    const middle = await serving(t, { work: through(leaf.url) })
    const first = await serving(t, { work: through(middle.url), ...root })
    return { leaf, middle, first, all: [leaf, middle, first], signals }
  }
  const waits: WorkFunction = ({ signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  const tasksOf = (servers: readonly Server[]) =>
    Promise.all(
      servers.map(async ({ runtime }) =>
        (await runtime.listTasks({})).tasks.map(({ status }) => stateName(status.state))
      )
    )

  await t.test('is canceled as a whole when its root is canceled', async t => {
    const { first, leaf, all, signals } = await chainOf(t, waits)
    const { id } = await open(first.runtime)
    await until(() => signals.length === 3)
    await first.runtime.cancelTask({ id })
    await until(() => signals.every(({ aborted }) => aborted))
    await until(async () => (await tasksOf(all)).flat().every(state => state === 'canceled'))
    t.strictSame(await tasksOf(all), [['canceled'], ['canceled'], ['canceled']])
    t.strictSame([first.log, leaf.log].flat(), [])
  })

  await t.test('is canceled as a whole when its root exceeds its deadline', async t => {
    const { first, all, signals } = await chainOf(t, waits, { deadlineMs: 60_000 })
    const { id } = await open(first.runtime)
    await until(() => signals.length === 3)
    first.clock.increment(60_000)
    await until(async () => (await tasksOf(all.slice(0, 2))).flat().every(state => state === 'canceled'))
    t.match((await first.runtime.getTask({ id })).status, {
      state: 'TASK_STATE_FAILED',
      message: { parts: [{ text: /within 1 minute/ }] }
    })
    t.ok(signals.every(({ aborted }) => aborted))
  })

  await t.test("passes the last agent's question to the first client, and its answer back", async t => {
    const { first, all } = await chainOf(t, async ({ ask }) => ({
      artifact: textOf(await ask(inputRequired('Which day?')))
    }))
    const { id: taskId, status } = taskIn(await first.runtime.sendMessage(say('a room')))
    t.match(status, { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: 'Which day?' }] } })
    t.strictSame(await tasksOf(all), [['input-required'], ['input-required'], ['input-required']])
    const done = taskIn(await first.runtime.sendMessage(say('Monday', { taskId })))
    t.match(done, { status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'Monday' }] }] })
  })

  await t.test("reports the last agent's failure at its root", async t => {
    const { first, middle, leaf } = await chainOf(t, async () => failed('No rooms.'))
    const { status } = taskIn(await first.runtime.sendMessage(say('a room')))
    t.strictSame(
      textOf(status.message ?? { parts: [] }),
      `The agent at ${middle.url} failed: The agent at ${leaf.url} failed: No rooms.`
    )
  })
})

await t.test('a task waits for an authorization while the other agent waits for it', async t => {
  const bank = await serving(t, {
    work: async ({ ask }) => {
      const given = await ask(authRequired('Please log in at the bank.'))
      return { artifact: 'message' in given ? `said ${textOf(given.message)}` : 'paid' }
    }
  })
  for (const work of [
    deskChart(remoteAgent(bank.url)),
    (work: WorkArguments) => delegate(work, remoteAgent(bank.url), 'x').then(({ artifacts }) => ({ artifacts }))
  ]) {
    const desk = start(t, { work })
    const { id: taskId } = await open(desk.runtime)
    await reaches(desk.runtime, taskId, 'auth-required')
    const {
      tasks: [theirs]
    } = await bank.runtime.listTasks({ status: 'TASK_STATE_AUTH_REQUIRED' })
    await bank.runtime.authorized(theirs?.id ?? '', {})
    t.match(await reaches(desk.runtime, taskId, 'completed'), { artifacts: [{ parts: [{ text: 'paid' }] }] })
  }

  await t.test('the client may send a message instead, and cannot authorize locally', async t => {
    const desk = start(t, {
      work: async work => ({
        artifacts: (await delegate(work, remoteAgent(bank.url, { name: 'the bank' }), 'x')).artifacts
      })
    })
    const { id: taskId, status } = taskIn(await desk.runtime.sendMessage(say('x')))
    t.match(status, { state: 'TASK_STATE_AUTH_REQUIRED', message: { parts: [{ text: 'Please log in at the bank.' }] } })
    t.match(await refusal(desk.runtime.authorized(taskId, { login: 'mine' })), {
      code: 'InvalidParams',
      message: /data cannot be passed on: authorize it with The agent at .* \(the bank\) itself/
    })
    await desk.runtime.sendMessage(say('no', { taskId }, { returnImmediately: true }))
    t.match(await reaches(desk.runtime, taskId, 'completed'), { artifacts: [{ parts: [{ text: 'said no' }] }] })
  })
})

await t.test('delegations to several agents at once', async t => {
  const asking = (question: string): Definition => ({
    work: async ({ ask }) => ({ artifact: textOf(await ask(inputRequired(question))) })
  })

  await t.test('ask one after the other, and each receives its own answer', async t => {
    const servers = await Promise.all(['A?', 'B?', 'C?'].map(question => serving(t, asking(question))))
    const desk = start(t, {
      work: async work => {
        const results = await Promise.all(
          servers.map(({ url }) => delegate(work, remoteAgent(url), 'x', { artifacts: false }))
        )
        return { artifact: results.map(({ artifacts }) => artifacts.map(textOf).join()).join(' ') }
      }
    })
    const { id: taskId } = await open(desk.runtime)
    for (let answers = 0; answers < 3; answers += 1) {
      const { status } = await reaches(desk.runtime, taskId, 'input-required')
      await desk.runtime.sendMessage(
        say(textOf(status.message ?? { parts: [] }).toLowerCase(), { taskId }, { returnImmediately: true })
      )
    }
    t.match(await reaches(desk.runtime, taskId, 'completed'), { artifacts: [{ parts: [{ text: 'a? b? c?' }] }] })
  })

  await t.test('withdraw their questions when the agents continue without an answer, also queued ones', async t => {
    const patient = (question: string): Definition => ({
      work: async ({ ask }) => ({
        artifact: await ask(inputRequired(question, { deadlineMs: 60_000 })).then(
          textOf,
          () => `${question} Never mind.`
        )
      })
    })
    const [a, b, c] = [
      await serving(t, patient('A?')),
      await serving(t, patient('B?')),
      await serving(t, patient('C?'))
    ]
    const begun: string[] = []
    const desk = start(t, {
      work: async work => {
        const ask = async ({ url }: Server, name: string) => {
          const { artifacts } = await delegate(work, remoteAgent(url), name, { artifacts: false })
          begun.push(name)
          return artifacts.map(textOf).join()
        }
        return { artifact: (await Promise.all([ask(a, 'a'), ask(b, 'b'), ask(c, 'c')])).join(' ') }
      }
    })
    const { id: taskId } = await open(desk.runtime)
    const waiting = async ({ runtime }: Server) =>
      (await runtime.listTasks({ status: 'TASK_STATE_INPUT_REQUIRED' })).totalSize === 1
    await until(async () => (await waiting(a)) && (await waiting(b)) && (await waiting(c)))
    const { status } = await reaches(desk.runtime, taskId, 'input-required')
    const shown = textOf(status.message ?? { parts: [] })
    const [first, second, third] = [
      [a, 'A?'],
      [b, 'B?'],
      [c, 'C?']
    ].toSorted(([, one], [, other]) => Number(other === shown) - Number(one === shown)) as [
      [Server, string],
      [Server, string],
      [Server, string]
    ]
    await until(
      async () =>
        (await desk.store.readJournal({ tenant: '', principal: 'anonymous' }, taskId)).filter(({ value }) =>
          JSON.stringify(value).includes('remote.input-required')
        ).length === 3
    )
    second[0].clock.increment(60_000)
    await until(() => begun.length === 1)
    t.equal(
      textOf((await desk.runtime.getTask({ id: taskId })).status.message ?? { parts: [] }),
      shown,
      'the open question stays'
    )
    first[0].clock.increment(60_000)
    const next = await until(async () => {
      const task = await desk.runtime.getTask({ id: taskId })
      return textOf(task.status.message ?? { parts: [] }) === third[1] && task
    })
    t.equal(next.status.state, 'TASK_STATE_INPUT_REQUIRED')
    await desk.runtime.sendMessage(say('yes', { taskId }, { returnImmediately: true }))
    t.match(await reaches(desk.runtime, taskId, 'completed'), { artifacts: [{ parts: [{ text: /yes/ }] }] })
  })
})

await t.test('a failed delegation', async t => {
  const ends = { fail: failed('No rooms.'), reject: rejected('Not for you.') }
  const hotel = await serving(t, {
    work: async ({ message, signal }) => {
      const words = textOf(message)
      if (words === 'wait')
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      if (words === 'fail' || words === 'reject') return ends[words]
      if (words === 'crash') throw new TypeError('a secret')
      return {}
    }
  })
  const name = `The agent at ${hotel.url}`
  const works = (deadlineMs?: number): [string, Definition][] => [
    ['chart', { work: deskChart(remoteAgent(hotel.url), deadlineMs) }],
    [
      'function',
      {
        work: async work => ({
          artifacts: (
            await delegate(work, remoteAgent(hotel.url), work.message, {
              ...(deadlineMs !== undefined && { deadlineMs })
            })
          ).artifacts
        })
      }
    ]
  ]
  const reasonOf = async ({ runtime }: Started, words: string) => {
    const { status } = taskIn(await runtime.sendMessage(say(words)))
    return [stateName(status.state), textOf(status.message ?? { parts: [] })]
  }

  for (const [kind, definition] of works()) {
    await t.test(`a ${kind} fails with the reason of the other agent`, async t => {
      const desk = start(t, definition)
      t.strictSame(await reasonOf(desk, 'fail'), ['failed', `${name} failed: No rooms.`])
      t.strictSame(await reasonOf(desk, 'reject'), ['failed', `${name} rejected the task: Not for you.`])
      t.strictSame(await reasonOf(desk, 'crash'), ['failed', `${name} failed: The work ended with an error.`])
    })

    await t.test(`a ${kind} fails when the other agent cancels its task`, async t => {
      const desk = start(t, definition)
      const { id } = await open(desk.runtime, 'wait')
      const theirs = await until(async () => (await hotel.runtime.listTasks({ status: 'TASK_STATE_WORKING' })).tasks[0])
      await hotel.runtime.cancelTask({ id: theirs.id })
      t.equal(
        textOf((await reaches(desk.runtime, id, 'failed')).status.message ?? { parts: [] }),
        `${name} canceled the task.`
      )
    })
  }

  for (const [kind, definition] of works(60_000)) {
    await t.test(`a ${kind} fails with DeadlineExceeded after its time limit, and cancels the remote task`, async t => {
      const desk = start(t, definition)
      const { id } = await open(desk.runtime, 'wait')
      const theirs = await until(async () => (await hotel.runtime.listTasks({ status: 'TASK_STATE_WORKING' })).tasks[0])
      desk.clock.increment(59_999)
      t.equal((await hotel.runtime.getTask({ id: theirs.id })).status.state, 'TASK_STATE_WORKING')
      desk.clock.increment(1)
      t.equal(
        textOf((await reaches(desk.runtime, id, 'failed')).status.message ?? { parts: [] }),
        `${name} was not done within 60000 ms.`
      )
      await reaches(hotel.runtime, theirs.id, 'canceled')
    })
  }

  await t.test('names an agent that is unreachable, refuses, or sends invalid data', async t => {
    const scripted = await httpAgent(t)
    const card = { name: 'the scripted one' }
    const said = async (url: string, options: RemoteOptions = {}) => {
      const { log, runtime } = start(t, {
        work: async work => ({ artifacts: (await delegate(work, remoteAgent(url, options), 'x')).artifacts })
      })
      return [
        textOf(taskIn(await runtime.sendMessage(say('x'))).status.message ?? { parts: [] }),
        log.map(({ message }) => message)
      ]
    }
    scripted.script(failure({ code: -32602, message: 'Not like this.' }))
    t.strictSame(await said(scripted.url, card), [
      `The agent at ${scripted.url}/ (the scripted one) refused: Not like this.`,
      ['the work of a task failed']
    ])
    scripted.script(failure({ code: -31429, message: 'Later.' }))
    t.match(await said(scripted.url), [/is over its limits: Later\./])
    scripted.script(stream([{ task: { id: 7 } }]), result({}))
    t.match(await said(scripted.url), [/sent an invalid answer: .*result\.task\.id/])
    const task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } }
    scripted.script(stream([{ task }, { task: { ...task, id: 'u' } }]), result(task))
    t.match(await said(scripted.url), [/sent an invalid answer: It sent an event of task u in place of t\./])
    await until(() => scripted.asked.at(-1)?.method === 'CancelTask')
    scripted.close()
    t.match(await said(scripted.url), [/could not be reached: Nobody answers at/])
  })

  await t.test('fails at once for an invalid message, and says what to write', async t => {
    const agent = remoteAgent(hotel.url)
    const desk = (work: WorkFunction) => start(t, { work })
    const invalid = desk(async work => ({ artifacts: (await delegate(work, agent, { parts: [] })).artifacts }))
    t.match(await reasonOf(invalid, 'x'), ['failed', /message\.parts/])
    const late = desk(async work => ({ artifacts: (await delegate(work, agent, 'x', { deadlineMs: -1 })).artifacts }))
    await reasonOf(late, 'x')
    t.match(late.log.at(-1)?.details, { error: { message: /A wait is a number of milliseconds/ } })
    const none = desk(async work => ({ artifacts: (await delegate(work, {} as RemoteAgent, 'x')).artifacts }))
    await reasonOf(none, 'x')
    t.match(none.log[0]?.details, { error: { message: /made by remoteAgent/ } })
    t.throws(() => remoteAgent(hotel.url, { bindings: ['SOAP'] }), {
      name: 'TypeError',
      message: /SOAP.*is not a binding/
    })
    const headers = () => {
      throw new TypeError('no key')
    }
    const keyless = desk(async work => ({
      artifacts: (await delegate(work, remoteAgent(hotel.url, { headers, bindings: ['JSONRPC'] }), 'x')).artifacts
    }))
    t.strictSame(await reasonOf(keyless, 'x'), ['failed', 'The work ended with an error.'])
    t.match(keyless.log.at(-1)?.details, { error: { message: 'no key' } })
    for (const url of ['hotel', 'ftp://hotel'])
      t.throws(() => remoteAgent(url), { name: 'TypeError', message: /is not the address of an agent/ })
  })
})

await t.test('fails if the agent answers only with a message', async t => {
  const chatty = await serving(t, { negotiate: async () => reply('Hello!') })
  t.match(taskIn(await start(t, { work: deskChart(remoteAgent(chatty.url)) }).runtime.sendMessage(say('x'))), {
    artifacts: [{ parts: [{ text: 'Hello!' }] }]
  })
  const desk = start(t, {
    work: async work => {
      const { message, task, contextId } = await delegate(work, remoteAgent(chatty.url), 'x', { contextId: 'talk' })
      return { artifact: `${textOf(message ?? { parts: [] })} ${task === undefined} ${contextId}` }
    }
  })
  t.match(taskIn(await desk.runtime.sendMessage(say('x'))), { artifacts: [{ parts: [{ text: 'Hello! true talk' }] }] })
})

await t.test("a function's delegation survives a crash of the function; a chart's does not", async t => {
  const hotel = await serving(t, {
    work: async ({ ask }) => ({ artifact: textOf(await ask(inputRequired('Which day?'))) })
  })
  const crash = deferred()
  let runs = 0
  const desk = start(t, {
    restart: 'transient',
    work: async work => {
      runs += 1
      const booking = delegate(work, remoteAgent(hotel.url), 'x')
      if (runs === 1) await crash.promise
      return { artifacts: (await booking).artifacts }
    }
  })
  const { id: taskId } = await open(desk.runtime)
  await reaches(desk.runtime, taskId, 'input-required')
  crash.reject(new TypeError('by chance'))
  await until(() => runs === 2)
  await reaches(desk.runtime, taskId, 'input-required')
  t.match(taskIn(await desk.runtime.sendMessage(say('Monday', { taskId }))), {
    status: { state: 'TASK_STATE_COMPLETED' },
    artifacts: [{ parts: [{ text: 'Monday' }] }]
  })
  t.strictSame(
    (await hotel.runtime.listTasks({})).tasks.map(({ status }) => status.state),
    ['TASK_STATE_COMPLETED']
  )
})

await t.test('a chart that exits the delegating state cancels the remote task, and continues', async t => {
  const hotel = await serving(t, talking)
  const work = setupWork({
    actors: { hotel: remoteAgent(hotel.url) },
    types: { events: {} as RemoteEvent }
  }).createMachine({
    initial: 'booking',
    states: {
      booking: {
        invoke: { src: 'hotel', input: { message: 'x' }, onDone: 'done', onError: 'done' },
        on: { 'remote.input-required': 'asking' }
      },
      asking: { tags: 'input-required', on: { 'message.received': 'done' } },
      done: { type: 'final' }
    }
  })
  const desk = start(t, { work, cancelGraceMs: 5000 })
  const { id: taskId } = taskIn(await desk.runtime.sendMessage(say('x')))
  const theirs = await until(async () => (await hotel.runtime.listTasks({ status: 'TASK_STATE_CANCELED' })).tasks[0])
  t.ok(theirs)
  t.match(taskIn(await desk.runtime.sendMessage(say('y', { taskId }))).status, { state: 'TASK_STATE_COMPLETED' })
  t.strictSame(desk.log, [])
})

await t.test('an invalid answer fails the delegation, and cancels its task', async t => {
  const hotel = await serving(t, talking)
  const work = setupWork({
    types: { context: {} as { reason: string }, events: {} as RemoteEvent },
    actors: { hotel: remoteAgent(hotel.url) }
  }).createMachine({
    context: { reason: '' },
    invoke: {
      id: 'hotel',
      src: 'hotel',
      input: { message: 'x' },
      onError: { target: '.failed', actions: assign({ reason: ({ event }) => (event.error as Error).message }) }
    },
    on: { 'remote.input-required': { actions: sendTo('hotel', { type: 'answer', message: { parts: [] } }) } },
    initial: 'waiting',
    states: {
      waiting: {},
      failed: { type: 'final', tags: 'failed', meta: { reason: ({ context }) => context.reason } }
    }
  })
  const desk = start(t, { work })
  t.match(taskIn(await desk.runtime.sendMessage(say('x'))).status, {
    state: 'TASK_STATE_FAILED',
    message: { parts: [{ text: /message\.parts/ }] }
  })
  await until(async () => (await hotel.runtime.listTasks({ status: 'TASK_STATE_CANCELED' })).tasks[0])
})
