import t, { type Test } from 'tap'
import { connect } from '../../../adapters/client/connect.ts'
import { delegate, remoteAgent } from '../../../adapters/delegation/index.ts'
import type { DelegateOptions } from '../../../adapters/delegation/delegate.ts'
import type { RemoteOptions } from '../../../adapters/delegation/pooled-client.ts'
import { newsIn } from '../../../adapters/delegation/remote-record.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import { textOf } from '../../../runtime/authoring/words.ts'
import type { RuntimeOptions } from '../../../runtime/runtime-options.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { passingChart } from '../../fixtures/servers/desks.ts'
import { officialAgent } from '../../fixtures/servers/official-agent.ts'
import {
  brief,
  collect,
  deferred,
  open,
  reaches,
  rest,
  say,
  start,
  taskIn,
  until,
  userMessage,
  withGenerations,
  type Started
} from '../../fixtures/runtime/runtime-helpers.ts'
import {
  body,
  cut,
  failure,
  httpAgent,
  result,
  stream,
  type Answer,
  type Asked,
  type HttpAgent
} from '../../fixtures/peers/scripted-http.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

/** Starts an agent that has another do what it is asked, and tells what that makes. */
function deskFor(
  t: Test,
  url: string,
  {
    options = {},
    about = {},
    ...more
  }: { options?: RemoteOptions; about?: DelegateOptions } & Partial<RuntimeOptions> = {}
): Started {
  const agent = remoteAgent(url, { random: () => 0, ...options })
  return start(
    t,
    {
      cancelGraceMs: 5000,
      work: async work => {
        const { artifacts, message } = await delegate(work, agent, work.message, about)
        return { artifact: artifacts.map(textOf).join() || textOf(message ?? { parts: [] }) }
      }
    },
    more
  )
}

/** Lives of one desk, one after the other on one store. */
function livesOf(t: Test, url: string, more: Parameters<typeof deskFor>[2] = {}): () => Started {
  const store = { ...memoryStore(), close: async () => {} }
  const clock = new TestClock()
  return () => ({ ...deskFor(t, url, { store, clock, ...more }), clock })
}

/** A store that has read a journal once, and gives it when the test lets it. */
function heldJournal(inner: Store, held: number): { store: Store; isHeld: () => boolean; pass: () => void } {
  const gate = deferred()
  let readings = 0
  const readJournal: Store['readJournal'] = async (...place) => {
    const rows = await inner.readJournal(...place)
    readings += 1
    if (readings === held) await gate.promise
    return rows
  }
  return { store: { ...inner, readJournal }, isHeld: () => readings >= held, pass: () => gate.resolve() }
}

async function journalOf({ store }: Started, taskId: string): Promise<string> {
  return JSON.stringify(await store.readJournal({ tenant: '', principal: 'anonymous' }, taskId))
}

async function told({ runtime }: Started, taskId: string): Promise<string[]> {
  const events = await collect(
    runtime.subscribeToTask({ id: taskId }, { ...withGenerations, conditions: { afterGeneration: 0 } })
  )
  return events.map(brief)
}

for (const binding of ['JSONRPC', 'HTTP+JSON', 'GRPC'] as const) {
  await t.test(`delegation calls an agent of the official SDK, by ${binding}`, async t => {
    const official = await officialAgent(t, [binding])

    await t.test('completes a task, and receives its artifact in chunks', async t => {
      const desk = deskFor(t, official.url)
      const { id } = taskIn(await desk.runtime.sendMessage(say('boat')))
      t.strictSame(await told(desk, id), [
        'submitted',
        'working',
        'artifact: boat',
        'artifact: !',
        'artifact: boat\n!',
        'completed'
      ])
    })

    await t.test('receives a message', async t => {
      t.match(taskIn(await deskFor(t, official.url).runtime.sendMessage(say('hi'))), {
        artifacts: [{ parts: [{ text: 'hi yourself' }] }]
      })
    })

    await t.test('receives a question, and delivers the answer', async t => {
      const desk = deskFor(t, official.url)
      const { id: taskId, status } = taskIn(await desk.runtime.sendMessage(say('ask')))
      t.match(status, { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: 'What?' }] } })
      await desk.runtime.sendMessage(say('that', { taskId }, { returnImmediately: true }))
      await reaches(desk.runtime, taskId, 'completed')
      t.match(
        (await told(desk, taskId)).join(),
        /^submitted,working,input-required: What\?,.*artifact: that.*!,artifact: that\n!,completed$/s
      )
    })

    await t.test('cancels the remote task with the local one', async t => {
      const desk = deskFor(t, official.url)
      const { id } = await open(desk.runtime, 'wait')
      await until(async () => (await journalOf(desk, id)).includes('WORKING'))
      await desk.runtime.cancelTask({ id })
      await desk.runtime.close()
      t.strictSame(desk.log, [])
      const client = await connect(official.url)
      t.teardown(() => client.close())
      t.equal((await client.listTasks({ status: 'TASK_STATE_CANCELED' })).totalSize, 1)
    })

    await t.test('resumes after a restart, with the updates sent meanwhile', async t => {
      const lives = livesOf(t, official.url)
      const before = lives()
      const { id } = await open(before.runtime, 'wait')
      await until(async () => (await journalOf(before, id)).includes('WORKING'))
      await before.runtime.close()
      official.goOn()
      const client = await connect(official.url)
      t.teardown(() => client.close())
      await until(async () =>
        (await client.listTasks({ status: 'TASK_STATE_COMPLETED' })).tasks.some(task =>
          task.history?.some(message => textOf(message) === 'wait')
        )
      )
      const after = lives()
      await reaches(after.runtime, id, 'completed')
      t.strictSame(await told(after, id), [
        'submitted',
        'working',
        'artifact: wait\n!'.replace('\n', ' '),
        'artifact: wait\n!',
        'completed'
      ])
    })
  })
}

const task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } as const
const completed = { ...task, status: { state: 'TASK_STATE_COMPLETED' } } as const
const asking = (words: string) =>
  ({
    ...task,
    status: {
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { messageId: words, role: 'ROLE_AGENT', parts: [{ text: words }] }
    }
  }) as const
const statusUpdate = ({ status }: { status: object }) => ({ statusUpdate: { taskId: 't', contextId: 'c', status } })
const having = (...parts: string[]) => ({ artifacts: [{ artifactId: 'a', parts: parts.map(text => ({ text })) }] })
const unsupported = failure({ code: -32004, message: 'Not here.' })

/** Answers by method: each list in its order, its last again and again. */
function byMethod(answers: Record<string, Answer[]>): Answer {
  return (asked, response) => {
    const list = answers[asked.method] ?? []
    const answer = list.length > 1 ? list.shift() : list[0]
    ;(answer ?? unsupported)(asked, response)
  }
}

function methods({ asked }: HttpAgent): string[] {
  return asked.map(({ method }) => method)
}

function messageOf({ params }: Asked): { messageId: string; contextId?: string; taskId?: string } {
  return params.message as { messageId: string; contextId?: string; taskId?: string }
}

await t.test('an agent without the reliability extension', async t => {
  await t.test('receives a lost request again only if it lists no task for it', async t => {
    const agent = await httpAgent(t)
    agent.script(
      byMethod({
        SendStreamingMessage: [cut],
        ListTasks: [result({ tasks: [task] })],
        SubscribeToTask: [stream([{ task: completed }])],
        GetTask: [result({ ...completed, ...having('1') })]
      })
    )
    const desk = deskFor(t, agent.url)
    t.match(taskIn(await desk.runtime.sendMessage(say('x'))), { artifacts: [{ parts: [{ text: '1' }] }] })
    t.strictSame(methods(agent), ['SendStreamingMessage', 'ListTasks', 'SubscribeToTask', 'GetTask'])
    t.equal(agent.asked[1]?.params.contextId, messageOf(agent.asked[0] as Asked).contextId)

    for (const list of [result({ tasks: [{ ...task, history: [userMessage('x')] }, task] }), unsupported]) {
      const other = await httpAgent(t)
      other.script(
        byMethod({
          SendStreamingMessage: [
            cut,
            stream([{ message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'hi' }] } }])
          ],
          ListTasks: [list]
        })
      )
      t.match(
        taskIn(
          await deskFor(t, other.url, {
            about: { contextId: 'talk', referenceTaskIds: ['earlier'] }
          }).runtime.sendMessage(say('x'))
        ),
        { artifacts: [{ parts: [{ text: 'hi' }] }] }
      )
      t.strictSame(methods(other), ['SendStreamingMessage', 'ListTasks', 'SendStreamingMessage'])
      t.match(messageOf(other.asked[0] as Asked), { contextId: 'talk', referenceTaskIds: ['earlier'] })
      t.strictSame(messageOf(other.asked[2] as Asked), messageOf(other.asked[0] as Asked), 'the same message')
    }

    const lost = await httpAgent(t)
    lost.script(byMethod({ SendStreamingMessage: [cut], ListTasks: [failure({ code: -32603, message: 'Broken.' })] }))
    t.match(taskIn(await deskFor(t, lost.url).runtime.sendMessage(say('x'))).status, {
      message: { parts: [{ text: /refused: Broken\./ }] }
    })
    const gone = await httpAgent(t)
    gone.script(byMethod({ SendStreamingMessage: [cut], ListTasks: [result({ tasks: [] })] }))
    t.match(taskIn(await deskFor(t, gone.url).runtime.sendMessage(say('x'))).status, {
      message: { parts: [{ text: /could not be reached: .*It is unknown whether the agent received it/ }] }
    })
  })

  await t.test('without streams is polled at growing intervals, and its changes are passed on', async t => {
    const agent = await httpAgent(t)
    const gets = [
      task,
      task,
      { ...task, ...having('1') },
      { ...task, ...having('1', '2') },
      { ...task, ...having('3') },
      { ...completed, ...having('3') }
    ]
    agent.script(byMethod({ SendMessage: [result({ task })], GetTask: gets.map(one => result(one)) }))
    const clock = new TestClock()
    const desk = { ...deskFor(t, agent.url, { clock, options: { clock } }), clock }
    const { id } = await open(desk.runtime)
    const looks = () => methods(agent).filter(method => method === 'GetTask').length
    for (const [look, waitMs] of [1000, 2000, 1000, 1000, 1000].entries()) {
      await until(() => looks() === look + 1)
      await until(() => desk.clock.pending === 1)
      desk.clock.increment(waitMs - 1)
      await rest()
      t.equal(looks(), look + 1)
      desk.clock.increment(1)
    }
    await reaches(desk.runtime, id, 'completed')
    t.strictSame(await told(desk, id), [
      'submitted',
      'working',
      'artifact: 1',
      'artifact: 2',
      'artifact: 3',
      'artifact: 3',
      'completed'
    ])
  })

  const answered = async (t: Test, sends: Answer[], looked: object, then = completed) => {
    const agent = await httpAgent(t)
    agent.script(
      byMethod({
        SendStreamingMessage: [stream([{ task: asking('What?') }])],
        SendMessage: sends,
        GetTask: [result(asking('What?')), result(looked), result(then)]
      })
    )
    const desk = deskFor(t, agent.url)
    const { id: taskId } = taskIn(await desk.runtime.sendMessage(say('x')))
    await until(() => desk.clock.pending === 1)
    await desk.runtime.sendMessage(say('that', { taskId }, { returnImmediately: true }))
    const { status } = await until(async () => {
      const now = await desk.runtime.getTask({ id: taskId })
      return now.status.state !== 'TASK_STATE_WORKING' && now
    })
    return { agent, desk, taskId, status, sent: methods(agent).filter(method => method === 'SendMessage').length }
  }

  await t.test('receives a lost answer again only if it does not show it', async t => {
    const again = await answered(t, [cut, result({ task })], asking('What?'))
    t.match([again.sent, again.status.state], [2, 'TASK_STATE_COMPLETED'], 'it still waits')
    const listed = await answered(t, [cut, result({ task })], { ...asking('What?'), history: [userMessage('another')] })
    t.equal(listed.sent, 2, 'its history has other messages')
    const moved = await answered(t, [cut], task)
    t.equal(moved.sent, 1, 'it works')
    const other = await answered(t, [cut], asking('And what?'))
    t.match([other.sent, other.status.state], [1, 'TASK_STATE_COMPLETED'], 'it asks another question')
    const lost = await answered(t, [cut], asking('What?'))
    t.match([lost.sent, lost.status.message?.parts], [2, [{ text: /could not be reached/ }]])
    const broken = await answered(t, [body('?', { 'content-type': 'text/plain' })], asking('What?'))
    t.match([broken.sent, broken.status.message?.parts], [1, [{ text: /sent an invalid answer/ }]])
  })

  await t.test('drops an answer that it refuses after it has continued', async t => {
    const agent = await httpAgent(t)
    const held: Record<string, [Asked, Parameters<Answer>[1]]> = {}
    const hold: Answer = (asked, response) => (held[asked.method] = [asked, response])
    const tell = (event: object) => {
      const [asked, response] = held.SubscribeToTask as [Asked, Parameters<Answer>[1]]
      if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: event })}\n\n`)
    }
    agent.script(
      byMethod({
        SendStreamingMessage: [stream([{ task: asking('What?') }])],
        SendMessage: [hold],
        SubscribeToTask: [hold],
        GetTask: [result(completed)]
      })
    )
    const desk = deskFor(t, agent.url)
    const { id: taskId } = taskIn(await desk.runtime.sendMessage(say('x')))
    await until(() => held.SubscribeToTask)
    await desk.runtime.sendMessage(say('that', { taskId }, { returnImmediately: true }))
    const [asked, response] = await until(() => held.SendMessage)
    tell(
      statusUpdate({
        status: {
          state: 'TASK_STATE_WORKING',
          message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'I know.' }] }
        }
      })
    )
    await until(
      async () => textOf((await desk.runtime.getTask({ id: taskId })).status.message ?? { parts: [] }) === 'I know.'
    )
    unsupported(asked, response)
    await until(() => desk.log.some(({ message }) => message === 'another agent took no message'))
    tell(statusUpdate(completed))
    await reaches(desk.runtime, taskId, 'completed')
    t.strictSame((await told(desk, taskId)).slice(2), [
      'input-required: What?',
      'working',
      'working: I know.',
      'artifact: ',
      'completed'
    ])
  })

  await t.test('receives after a restart the pending answer, and no earlier one', async t => {
    for (const [looked, sends] of [
      [asking('What?'), 2],
      [task, 1]
    ] as const) {
      const agent = await httpAgent(t)
      const sent: Asked[] = []
      agent.script(
        byMethod({
          SendStreamingMessage: [stream([{ task: asking('What?') }])],
          SendMessage: [
            asked => void sent.push(asked),
            (asked, response) => (sent.push(asked), result({ task })(asked, response))
          ],
          GetTask: [result(asking('What?')), result(looked), result(completed)]
        })
      )
      const lives = livesOf(t, agent.url)
      const before = lives()
      const { id: taskId } = taskIn(await before.runtime.sendMessage(say('x')))
      await until(() => before.clock.pending === 1)
      await before.runtime.sendMessage(say('that', { taskId }, { returnImmediately: true }))
      await until(() => sent.length === 1)
      await before.runtime.close()
      const after = lives()
      await reaches(after.runtime, taskId, 'completed')
      t.equal(sent.length, sends)
      t.equal(new Set(sent.map(asked => messageOf(asked).messageId)).size, 1)
      await after.runtime.close()
      t.equal(methods(agent).filter(method => method === 'SendStreamingMessage').length, 1)
    }
  })

  await t.test('is compared after a restart with its last known state', async t => {
    const agent = await httpAgent(t)
    agent.script(
      byMethod({
        SendStreamingMessage: [stream([{ task: { ...task, ...having('1') } }])],
        GetTask: [result({ ...task, ...having('1') }), result({ ...completed, ...having('1', '2') })]
      })
    )
    const lives = livesOf(t, agent.url)
    const before = lives()
    const { id } = await open(before.runtime)
    await until(() => methods(agent).includes('GetTask'))
    await before.runtime.close()
    const after = lives()
    await reaches(after.runtime, id, 'completed')
    t.strictSame(await told(after, id), [
      'submitted',
      'working',
      'artifact: 1',
      'artifact: 2',
      'artifact: 1\n2',
      'completed'
    ])
  })

  await t.test('receives an answer that arrives before the delegation is resumed', async t => {
    const agent = await httpAgent(t)
    agent.script(
      byMethod({
        SendStreamingMessage: [stream([{ task: asking('What?') }])],
        SendMessage: [result({ task })],
        GetTask: [result(asking('What?')), result(completed)]
      })
    )
    const inner = { ...memoryStore(), close: async () => {} }
    const clock = new TestClock()
    const work = passingChart(remoteAgent(agent.url))
    const before = start(t, { work }, { store: inner, clock })
    const { id: taskId } = taskIn(await before.runtime.sendMessage(say('x')))
    await until(() => clock.pending === 1)
    await before.runtime.close()
    const { store, isHeld, pass } = heldJournal(inner, 2)
    const after = start(t, { work }, { store, clock })
    await until(isHeld)
    await after.runtime.sendMessage(say('that', { taskId }, { returnImmediately: true }))
    pass()
    await reaches(after.runtime, taskId, 'completed')
    const sent = agent.asked.filter(({ method }) => method === 'SendMessage')
    t.match(
      sent.map(({ params }) => params.message),
      [{ taskId: 't', parts: [{ text: 'that' }] }]
    )
    t.equal(sent.length, 1)
  })

  await t.test('is searched after a restart for a task requested just before it', async t => {
    const agent = await httpAgent(t)
    agent.script(
      byMethod({
        SendStreamingMessage: [() => {}],
        ListTasks: [result({ tasks: [completed] })],
        GetTask: [result({ ...completed, ...having('1') })]
      })
    )
    const lives = livesOf(t, agent.url)
    const before = lives()
    const { id: taskId } = await open(before.runtime)
    await agent.request(0)
    await before.runtime.close()
    const after = lives()
    t.match(await reaches(after.runtime, taskId, 'completed'), { artifacts: [{ parts: [{ text: '1' }] }] })
    t.strictSame(methods(agent), ['SendStreamingMessage', 'ListTasks', 'SubscribeToTask', 'GetTask', 'GetTask'])
  })

  await t.test('may ask and fail without a message', async t => {
    const agent = await httpAgent(t)
    const wordless = { ...task, status: { state: 'TASK_STATE_INPUT_REQUIRED' } }
    agent.script(
      byMethod({
        SendStreamingMessage: [stream([{ task: wordless }])],
        SendMessage: [result({ task })],
        GetTask: [result(wordless), result({ ...task, status: { state: 'TASK_STATE_FAILED' } })]
      })
    )
    const desk = deskFor(t, agent.url, { options: { name: 'the mute' } })
    const { id: taskId, status } = taskIn(await desk.runtime.sendMessage(say('x')))
    t.match(status.message?.parts, [{ text: `The agent at ${agent.url}/ (the mute) needs an answer to go on.` }])
    await until(() => desk.clock.pending === 1)
    t.match(taskIn(await desk.runtime.sendMessage(say('that', { taskId }))).status.message?.parts, [
      { text: `The agent at ${agent.url}/ (the mute) failed.` }
    ])
  })

  await t.test('has not completed a task that reads as unfinished after its last event', async t => {
    const agent = await httpAgent(t)
    agent.script(byMethod({ SendStreamingMessage: [stream([{ task: completed }])], GetTask: [result(task)] }))
    t.match(taskIn(await deskFor(t, agent.url).runtime.sendMessage(say('x'))).status.message?.parts, [
      { text: /did not complete the task\.$/ }
    ])
  })

  await t.test('fails the delegation if it sends more than 10,000 events', async t => {
    const agent = await httpAgent(t)
    const chunk = {
      artifactUpdate: {
        taskId: 't',
        contextId: 'c',
        artifact: { artifactId: 'a', parts: [{ text: '.' }] },
        append: true
      }
    }
    agent.script(
      byMethod({ SendStreamingMessage: [stream([{ task }, ...Array.from({ length: 10_000 }, () => chunk)])] })
    )
    const desk = deskFor(t, agent.url, { about: { artifacts: false } })
    t.match(taskIn(await desk.runtime.sendMessage(say('x'))).status.message, {
      parts: [{ text: /It told more than 10000 events of one task/ }]
    })
  })
})

await t.test('events with known generations are dropped when an agent repeats them', async t => {
  const agent = await httpAgent(t)
  const at = (generation: number) => ({ metadata: { [RELIABILITY_EXTENSION]: { generation } } })
  const chunk = (text: string, generation: number) => ({
    artifactUpdate: {
      taskId: 't',
      contextId: 'c',
      artifact: { artifactId: 'a', parts: [{ text }] },
      append: true,
      ...at(generation)
    }
  })
  const end = { statusUpdate: { ...statusUpdate(completed).statusUpdate, ...at(4) } }
  agent.script(
    byMethod({
      SendMessage: [result({ task: { ...task, ...at(2), ...having('1') } })],
      // It does not heed from where it is asked to go on.
      SubscribeToTask: [stream([chunk('1', 2), chunk('2', 3), end])],
      GetTask: [result({ ...completed, ...at(4), ...having('1', '2') })]
    })
  )
  const desk = deskFor(t, agent.url)
  const { id } = taskIn(await desk.runtime.sendMessage(say('x')))
  t.strictSame(await told(desk, id), [
    'submitted',
    'working',
    'artifact: 1',
    'artifact: 2',
    'artifact: 1\n2',
    'completed'
  ])
})

await t.test('canceling a task of another agent', async t => {
  const canceling = async (t: Test, cancel: Answer, first: Answer = stream([{ task }], 'open')) => {
    const agent = await httpAgent(t)
    agent.script(byMethod({ SendStreamingMessage: [first], CancelTask: [cancel] }))
    const desk = deskFor(t, agent.url)
    const { id } = await open(desk.runtime)
    return { agent, desk, id }
  }

  await t.test("waits for the task's id if it is not known yet", async t => {
    let answer = () => {}
    const { agent, desk, id } = await canceling(
      t,
      result({ ...task, status: { state: 'TASK_STATE_CANCELED' } }),
      (asked, response) => (answer = () => stream([{ task }], 'open')(asked, response))
    )
    await agent.request(0)
    await desk.runtime.cancelTask({ id })
    const closing = desk.runtime.close()
    answer()
    await closing
    t.strictSame(methods(agent), ['SendStreamingMessage', 'CancelTask'])
    t.strictSame([agent.asked[1]?.params.id, desk.log], ['t', []])
  })

  await t.test('succeeds if the task has ended, and only logs other errors', async t => {
    for (const [error, lines] of [
      [{ code: -32002, message: 'Too late.' }, 0],
      [{ code: -32603, message: 'Broken.' }, 1]
    ] as const) {
      const { desk, id } = await canceling(t, failure(error))
      await until(async () => (await journalOf(desk, id)).includes('"taskId":"t"'))
      await desk.runtime.cancelTask({ id })
      await desk.runtime.close()
      t.strictSame(
        desk.log.map(({ message }) => message),
        Array<string>(lines).fill('a task of another agent was not canceled')
      )
    }
  })

  await t.test('is given up after a time limit', async t => {
    const { agent, desk, id } = await canceling(t, () => {})
    await until(async () => (await journalOf(desk, id)).includes('"taskId":"t"'))
    await desk.runtime.cancelTask({ id })
    await agent.request(1)
    desk.clock.increment(5000)
    await desk.runtime.close()
    t.match(desk.log.at(-1), {
      message: 'a task of another agent was not canceled',
      details: { error: { message: /within 5000 ms/ } }
    })
  })

  await t.test('sends nothing if no request was sent', async t => {
    const agent = await httpAgent(t)
    const { store, isHeld, pass } = heldJournal(memoryStore(), 1)
    const desk = deskFor(t, agent.url, { store })
    const { id } = await open(desk.runtime)
    await until(isHeld)
    await desk.runtime.cancelTask({ id })
    const closing = desk.runtime.close()
    pass()
    await closing
    t.strictSame(methods(agent), [])
  })

  await t.test('comes first after a restart', async t => {
    const agent = await httpAgent(t)
    agent.script(byMethod({ SendStreamingMessage: [stream([{ task }], 'open')], CancelTask: [result(task)] }))
    const inner = { ...memoryStore(), close: async () => {} }
    const clock = new TestClock()
    const before = deskFor(t, agent.url, { store: inner, clock })
    const { id } = await open(before.runtime)
    await until(async () => (await journalOf(before, id)).includes('"taskId":"t"'))
    await before.runtime.close()
    // The journal is read to recover the task, to run its work again, and to take its delegation up.
    const { store, isHeld, pass } = heldJournal(inner, 3)
    const after = deskFor(t, agent.url, { store, clock })
    await until(isHeld)
    await after.runtime.cancelTask({ id })
    const closing = after.runtime.close()
    pass()
    await closing
    t.strictSame(methods(agent), ['SendStreamingMessage', 'CancelTask'])
  })
})

await t.test('a delegation waits after a restart for an agent that is not ready yet', async t => {
  const agent = await httpAgent(t)
  agent.script(byMethod({ SendStreamingMessage: [stream([{ task }], 'open')] }))
  const lives = livesOf(t, agent.url, { options: { giveUpAfterMs: 20 } })
  const before = lives()
  const { id } = await open(before.runtime)
  await until(async () => (await journalOf(before, id)).includes('"taskId":"t"'))
  await before.runtime.close()
  agent.close()
  const after = lives()
  t.match((await reaches(after.runtime, id, 'failed')).status.message?.parts, [{ text: /could not be reached/ }])
})

await t.test('a task at a generation that was forwarded is no news', async t => {
  const task = {
    id: 't',
    contextId: 'c',
    status: { state: 'TASK_STATE_WORKING' as const },
    metadata: { [RELIABILITY_EXTENSION]: { generation: 3 } }
  }
  t.strictSame(newsIn({ task }, { now: { generation: 3 } } as Parameters<typeof newsIn>[1]), [])
})
