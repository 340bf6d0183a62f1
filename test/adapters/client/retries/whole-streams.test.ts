import t, { type Test } from 'tap'
import type { AgentClient } from '../../../../adapters/client/agent-client.ts'
import { connect, conversation, foldTask, type StreamResponse, type Task } from '../../../../adapters/client/connect.ts'
import { systemClock } from '../../../../runtime/ports/clock.ts'
import { delegate, remoteAgent } from '../../../../adapters/delegation/index.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { grpcAgent } from '../../../fixtures/peers/scripted-grpc.ts'
import { scripted } from '../../../fixtures/peers/scripted-agent.ts'
import { RELIABILITY_EXTENSION } from '../../../../machines/protocol/uris.ts'
import {
  body,
  byMethod,
  cut,
  failure,
  httpAgent,
  result,
  stream,
  type Answer,
  type HttpAgent,
  type ScriptedCard
} from '../../../fixtures/peers/scripted-http.ts'
import {
  brief,
  collect,
  refusal,
  rejection,
  say,
  start,
  taskIn,
  until
} from '../../../fixtures/runtime/runtime-helpers.ts'
import { textOf } from '../../../../adapters/client/messages.ts'

/** A clock without the waits of retries and polls. */
const clock = {
  ...systemClock,
  setTimeout: (run: () => void, ms: number) => systemClock.setTimeout(run, ms < 5000 ? 0 : ms)
}

const place = { taskId: 't', contextId: 'c' }
const stored: Task = {
  id: 't',
  contextId: 'c',
  status: { state: 'TASK_STATE_COMPLETED' },
  artifacts: [{ artifactId: 'a', parts: [{ text: 'a ' }, { text: 'boat' }] }]
}
const working: Task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } }
const chunk = (text: string, append: boolean) => ({
  artifactUpdate: { ...place, artifact: { artifactId: 'a', parts: [{ text }] }, append }
})
const completed = { statusUpdate: { ...place, status: { state: 'TASK_STATE_COMPLETED' } } }
const EVENTS: readonly StreamResponse[] = [
  { task: working },
  chunk('a ', false),
  chunk('boat', true),
  completed as StreamResponse
]

async function agentWith(
  t: Test,
  lists: Readonly<Record<string, readonly Answer[]>>,
  card: ScriptedCard = {}
): Promise<{ agent: HttpAgent; client: AgentClient }> {
  const agent = await httpAgent(t, card)
  agent.script(byMethod(lists))
  const client = await connect(agent.url, { random: () => 0, clock })
  t.teardown(() => client.close())
  return { agent, client }
}

/** The view after all events, of which the agent hears. */
async function viewOf(agent: HttpAgent, events: AsyncIterable<StreamResponse>): Promise<Task | undefined> {
  let view: Task | undefined
  for await (const event of events) {
    view = foldTask(view, event)
    agent.heard(brief(event))
  }
  return view
}

const foldAll = (events: readonly StreamResponse[]) => events.reduce<Task | undefined>(foldTask, undefined)

const sends = ({ asked }: HttpAgent) => asked.map(({ method }) => method).filter(method => method.startsWith('Send'))

const REFUSED: readonly (readonly [string, readonly Answer[]])[] = [
  ...[-32_004, -32_001, -32_601, -32_602, -32_603].map(code => [String(code), [failure({ code })]] as const),
  ...[404, 405, 501].map(status => [`HTTP ${status}`, [body('', {}, status)]] as const),
  ['503, and then -32004', [body('', {}, 503), failure({ code: -32_004 })]],
  ['a cut, and then -32601', [cut, failure({ code: -32_601 })]]
]
const LOOKS: readonly (readonly [string, readonly Answer[]])[] = [
  ['the ended task', [result(stored)]],
  ['the working task twice', [result(working), result(working), result(stored)]],
  ['503 once', [body('', {}, 503), result(working), result(stored)]],
  ['a cut', [cut, result(stored)]]
]

await t.test(
  'a message is sent once, whatever is answered after the first event, and the view equals the stored task',
  async t => {
    for (let told = 1; told < EVENTS.length; told += 1) {
      for (const stop of ['end', 'cut'] as const) {
        for (const [refused, subscriptions] of REFUSED) {
          for (const [looked, looks] of LOOKS) {
            const { agent, client } = await agentWith(t, {
              SendStreamingMessage: [stream(EVENTS.slice(0, told), stop)],
              SubscribeToTask: subscriptions,
              GetTask: looks,
              SendMessage: [result({ task: stored })]
            })
            const view = await viewOf(agent, client.sendStreamingMessage(say('x')))
            t.strictSame(
              [view, sends(agent)],
              [stored, ['SendStreamingMessage']],
              `${told} events, ${stop}, ${refused}, ${looked}`
            )
            agent.close()
          }
        }
      }
    }
  }
)

await t.test('a view equals the stored task after every cut of its stream, with a snapshot and without', async t => {
  for (let told = 1; told <= EVENTS.length; told += 1) {
    for (let lost = told; lost < EVENTS.length; lost += 1) {
      for (const first of [[], [{ task: working }]]) {
        const { agent, client } = await agentWith(t, {
          SendStreamingMessage: [stream(EVENTS.slice(0, told), 'cut')],
          SubscribeToTask: [stream([...first, ...EVENTS.slice(lost)])],
          GetTask: [result(stored)]
        })
        const talk = conversation(client)
        t.teardown(
          talk.subscribe(() => {
            const {
              tasks: [task]
            } = talk.snapshot()
            if (task)
              agent.heard(task.artifacts ? `artifact: ${textOf(task.artifacts[0]).split('\n').at(-1)}` : 'task:working')
          })
        )
        await talk.send('x')
        const { tasks, error } = talk.snapshot()
        t.strictSame(
          [tasks, error, sends(agent)],
          [[stored], undefined, ['SendStreamingMessage']],
          `${told} events, then from ${lost}, ${first.length} snapshots`
        )
        agent.close()
      }
    }
  }
  const { agent, client } = await agentWith(t, {
    SendStreamingMessage: [stream([...EVENTS.slice(0, 2), { task: working }, completed])],
    GetTask: [result(stored), failure({ code: -32_603 })]
  })
  t.strictSame(
    await viewOf(agent, client.sendStreamingMessage(say('x'))),
    stored,
    'a snapshot without artifacts hides none'
  )
  t.match(
    await viewOf(agent, client.sendStreamingMessage(say('x'))),
    { status: stored.status },
    'a task that cannot be read is as its events say'
  )
})

await t.test('a message that an agent may have processed is not sent again', async t => {
  const { agent, client } = await agentWith(t, {
    SendStreamingMessage: [
      cut,
      stream([], 'end'),
      failure({ code: -32_603 }),
      failure({ code: -32_602 }),
      body('', {}, 500)
    ],
    SendMessage: [result({ task: stored })]
  })
  for (const code of ['Overloaded', 'Overloaded', 'InternalError', 'InvalidParams', 'InvalidAgentResponse'])
    t.match(await refusal(collect(client.sendStreamingMessage(say('x')))), { code })
  t.strictSame(sends(agent), Array(5).fill('SendStreamingMessage'))
})

await t.test(
  'an agent without streaming gets the message by SendMessage, and its task is read until it ends or asks',
  async t => {
    const asking = { ...working, status: { state: 'TASK_STATE_INPUT_REQUIRED' } }
    for (const [why, card, refusals] of [
      ['its card does not say that it streams', { card: { capabilities: {} } }, []],
      ['its card says that it does not stream', { card: { capabilities: { streaming: false } } }, []],
      ...REFUSED.filter(([name]) => /^(?:-32004|-32601|HTTP \d+)$/.test(name)).map(
        ([name, answers]) => [name, {}, answers] as const
      )
    ] as const) {
      const lists = {
        SendStreamingMessage: refusals,
        SendMessage: [
          result({ task: working }),
          result({ task: working }),
          result({ message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'hi' }] } }),
          failure({ code: -32_602 })
        ],
        GetTask: [result(working), result(working), result(stored), result(asking)]
      }
      const { agent, client } = await agentWith(t, lists, card)
      t.strictSame((await collect(client.sendStreamingMessage(say('x')))).map(brief).at(-1), 'task:completed', why)
      t.match(agent.asked.find(({ method }) => method === 'SendMessage')?.params, {
        configuration: { returnImmediately: true }
      })
      t.strictSame((await collect(client.sendStreamingMessage(say('x')))).map(brief).at(-1), 'task:input-required', why)
      t.match(await collect(client.sendStreamingMessage(say('x'))), [{ message: { messageId: 'm' } }], why)
      t.match(await refusal(collect(client.sendStreamingMessage(say('x')))), { code: 'InvalidParams' }, why)
      t.equal(sends(agent).length, refusals.length === 0 ? 4 : 8, why)
    }
    const { agent, client } = await agentWith(t, {}, { card: { capabilities: {} } })
    t.match(await refusal(collect(client.subscribeToTask({ id: 't' }))), {
      code: 'UnsupportedOperation',
      message: /does not stream/
    })
    t.strictSame(agent.asked, [])
  }
)

await t.test('a refused subscription is decided by the task', async t => {
  for (const code of [-32_001, -32_602, -32_603]) {
    const { client } = await agentWith(t, {
      SubscribeToTask: [failure({ code })],
      GetTask: [result(stored), result(working), failure({ code: -32_001 })]
    })
    t.strictSame(await collect(client.subscribeToTask({ id: 't' })), [{ task: stored }])
    t.match(
      await refusal(collect(client.subscribeToTask({ id: 't' }))),
      { code: 'UnsupportedOperation' },
      'it can be polled'
    )
    t.match(await refusal(collect(client.subscribeToTask({ id: 't' }))), {
      code: { [-32_001]: 'TaskNotFound', [-32_602]: 'InvalidParams' }[code] ?? 'InternalError'
    })
  }
})

await t.test(
  'a task of which the agent has fewer events than were read is read anew, and every caller sees its end',
  async t => {
    const at = (generation: number) => ({ [RELIABILITY_EXTENSION]: { generation } })
    const ahead = failure({
      code: -32_602,
      data: [
        {
          '@type': 'type.googleapis.com/google.rpc.BadRequest',
          fieldViolations: [{ field: 'afterGeneration', description: 'must not be ahead of the task, which is at 1' }]
        }
      ]
    })
    const before = [
      { task: { ...working, metadata: at(8) } },
      { artifactUpdate: { ...chunk('lost', false).artifactUpdate, metadata: at(9) } }
    ]
    const after = [
      { task: { ...working, metadata: at(1) } },
      { artifactUpdate: { ...chunk('a ', false).artifactUpdate, metadata: at(2) } },
      chunk('boat', true),
      { statusUpdate: { ...completed.statusUpdate, metadata: at(4) } }
    ]
    const ended = { ...stored, metadata: at(4) }
    for (const again of [[stream(after)], [failure({ code: -32_004 })]]) {
      const lists = {
        SendStreamingMessage: [stream(before)],
        SubscribeToTask: [ahead, ...again],
        GetTask: [result(ended)]
      }
      const { agent, client } = await agentWith(t, lists)
      t.match(await viewOf(agent, client.sendStreamingMessage(say('x'))), stored)
      t.strictSame(sends(agent), ['SendStreamingMessage'])
      agent.script(byMethod(lists))
      const remote = remoteAgent(agent.url, { random: () => 0, clock })
      const { runtime } = start(t, {
        work: async work => ({ artifact: (await delegate(work, remote, work.message)).artifacts.map(textOf).join('') })
      })
      t.match(taskIn(await runtime.sendMessage(say('x'))), {
        status: { state: 'TASK_STATE_COMPLETED' },
        artifacts: [{}, { parts: [{ text: 'a \nboat' }] }]
      })
    }
    const { client } = await agentWith(t, { SubscribeToTask: [ahead, stream(after, 'end'), ahead, body('', {}, 401)] })
    t.match(foldAll(await collect(client.subscribeToTask({ id: 't' }, { afterGeneration: 9 }))), stored)
    t.match(await refusal(collect(client.subscribeToTask({ id: 't' }, { afterGeneration: 9 }))), {
      code: 'Unauthenticated'
    })
  }
)

await t.test('a wait between two looks ends with another call, an abort, or the connection', async t => {
  let waits = 0
  const still = {
    ...systemClock,
    setTimeout: (run: () => void, ms: number) => systemClock.setTimeout(run, ms < 5000 ? ((waits += 1), 1e8) : ms)
  }
  const agent = await httpAgent(t, { card: { capabilities: {} } })
  agent.script(
    byMethod({
      SendMessage: [result({ task: working })],
      GetTask: [result(working), result(stored), result(working)],
      CancelTask: [result(stored)]
    })
  )
  const client = await connect(agent.url, { clock: still })
  const stop = new AbortController()
  const ends = [
    [() => client.cancelTask({ id: 't' }), {}, undefined],
    [async () => stop.abort(new Error('enough')), { signal: stop.signal }, { message: 'enough' }],
    [() => client.close(), {}, { message: /closed by this client/ }]
  ] as const
  for (const [i, [end, options, wanted]] of ends.entries()) {
    const read = refusalOf(client.sendStreamingMessage(say('x'), options))
    await until(() => waits === i + 1)
    await end()
    t.match(await read, wanted)
  }
})

async function refusalOf(events: AsyncIterable<StreamResponse>): Promise<unknown> {
  return collect(events).then(
    () => undefined,
    (error: unknown) => error
  )
}

const interim = { message: { messageId: 'i', role: 'ROLE_AGENT', parts: [{ text: 'interim' }] } }

await t.test('a message in the stream of a task is news of the task, for every caller', async t => {
  for (const events of [
    [EVENTS[0], interim, ...EVENTS.slice(1)],
    [EVENTS[1], interim, ...EVENTS.slice(2)]
  ]) {
    const lists = { SendStreamingMessage: [stream(events)], GetTask: [result(stored)] }
    const { agent, client } = await agentWith(t, lists)
    t.match((await collect(client.sendStreamingMessage(say('x')))).map(brief), [/./, 'working: interim', /./, /./])
    agent.script(byMethod(lists))
    t.match(await runCommand(['send', agent.url, 'x']), { code: 0, stdout: 'a boat\n', stderr: /working: interim/ })
    agent.script(byMethod(lists))
    const remote = remoteAgent(agent.url, { random: () => 0 })
    const { runtime } = start(t, {
      work: async work => ({ artifact: (await delegate(work, remote, work.message)).artifacts.map(textOf).join('') })
    })
    t.match(taskIn(await runtime.sendMessage(say('x'))), {
      status: { state: 'TASK_STATE_COMPLETED' },
      artifacts: [{}, { parts: [{ text: 'a \nboat' }] }]
    })
  }
  const { agent, client } = await agentWith(t, {
    SendStreamingMessage: [stream([EVENTS[0], interim], 'cut')],
    SubscribeToTask: [stream(EVENTS)],
    GetTask: [result(stored)]
  })
  const talk = conversation(client)
  t.teardown(
    talk.subscribe(
      () =>
        void (
          talk.snapshot().messages.some(({ messageId }) => messageId === 'i') &&
          agent.heard(brief(interim as StreamResponse))
        )
    )
  )
  await talk.send('x')
  t.strictSame(talk.snapshot().tasks, [stored], 'a stream that is cut after it is not complete')
})

await t.test('every caller sends its message once to an agent that loses the stream', async t => {
  const agent = await httpAgent(t)
  const lists = {
    SendStreamingMessage: [stream([EVENTS[0]])],
    SubscribeToTask: [failure({ code: -32_004 })],
    GetTask: [result(working), result(stored)],
    SendMessage: [result({ task: stored })]
  }
  agent.script(byMethod(lists))
  t.match(await runCommand(['send', agent.url, 'x'], { clock }), { code: 0, stdout: 'a boat\n' })
  t.strictSame(sends(agent), ['SendStreamingMessage'])
  agent.script(byMethod(lists))
  const remote = remoteAgent(agent.url, { random: () => 0, clock })
  const { runtime } = start(t, {
    work: async work => ({ artifact: (await delegate(work, remote, work.message)).artifacts.map(textOf).join('') })
  })
  t.match(taskIn(await runtime.sendMessage(say('x'))), { status: { state: 'TASK_STATE_COMPLETED' } })
  t.strictSame(sends(agent), Array(2).fill('SendStreamingMessage'))
})

await t.test('so it is over WebSocket and gRPC', async t => {
  const url = await scripted(t, {
    SendStreamingMessage: [{ result: EVENTS[0] }, { streamEnd: true }],
    GetTask: [{ result: stored }]
  })
  const socket = await connect(url, { clock })
  t.teardown(() => socket.close())
  t.strictSame((await collect(socket.sendStreamingMessage(say('x')))).map(brief), ['task:working', 'task:completed'])
  const { port, asked, script } = await grpcAgent(t)
  const card = await httpAgent(t, { binding: 'GRPC', address: `grpc://127.0.0.1:${port}` })
  const client = await connect(card.url, { random: () => 0, clock, credentialOrigins: [`http://127.0.0.1:${port}`] })
  t.teardown(() => client.close())
  script({ events: [EVENTS[0] ?? {}] }, { error: { code: 12, details: 'No.' } }, { task: working }, { task: stored })
  t.strictSame((await collect(client.sendStreamingMessage(say('x')))).map(brief), [
    'task:working',
    'task:working',
    'task:completed'
  ])
  t.strictSame(
    asked.map(({ method }) => method),
    ['SendStreamingMessage', 'SubscribeToTask', 'GetTask', 'GetTask']
  )
})

await t.test(
  'extensions and service parameters of a call are in each of its requests, conditions only in the first',
  async t => {
    const lists = {
      SendStreamingMessage: [stream(EVENTS.slice(0, 2), 'end')],
      SubscribeToTask: [failure({ code: -32004, message: 'No.' })],
      GetTask: [result(working), result(stored)]
    }
    const { agent, client } = await agentWith(t, lists, { isReliable: true })
    const options = {
      extensions: ['urn:x'],
      serviceParameters: { 'X-Team': 'blue', 'A2A-Extensions': 'urn:y' },
      ifGenerationMatch: 4
    }
    t.match(await viewOf(agent, client.sendStreamingMessage(say('boat'), options)), stored)
    t.strictSame(
      agent.asked.map(({ method }) => method),
      ['SendStreamingMessage', 'SubscribeToTask', 'GetTask', 'GetTask']
    )
    for (const { method, headers } of agent.asked) {
      t.match(headers, { 'x-team': 'blue', 'a2a-extensions': `${RELIABILITY_EXTENSION},urn:x,urn:y` }, method)
      t.equal(headers['taskchart-if-generation-match'], method === 'SendStreamingMessage' ? '4' : undefined, method)
    }
    agent.asked.length = 0
    await client.getTask({ id: 't' }, { extensions: ['urn:x'] })
    t.match(agent.asked[0]?.headers, { 'a2a-extensions': `${RELIABILITY_EXTENSION},urn:x` })
    const other = { headers: {} } as never
    t.match(await rejection(client.getTask({ id: 't' }, other)), {
      name: 'TypeError',
      message: 'A call has no headers.'
    })
  }
)
