import t, { type Test } from 'tap'
import type { AgentClient } from '../../../adapters/client/agent-client.ts'
import { connect, conversation, foldTask, watchTask } from '../../../adapters/client/connect.ts'
import { collectOddities } from '../../../adapters/client/warnings.ts'
import type { StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import { systemClock } from '../../../runtime/ports/clock.ts'
import { steeredWork } from '../../fixtures/runtime/agents.ts'
import {
  byMethod,
  failure,
  httpAgent,
  reliable,
  result,
  stream,
  type Answer,
  type HttpAgent,
  type ScriptedCard
} from '../../fixtures/peers/scripted-http.ts'
import { brief, collect, refusal, say, start, taskIn, textOf, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { serve as serveRuntime } from '../../../adapters/serve/serve.ts'
import { obedient, serve } from '../../fixtures/servers/served-agent.ts'

/** A clock without the waits of retries and polls. */
const clock = {
  ...systemClock,
  setTimeout: (run: () => void, ms: number) => systemClock.setTimeout(run, ms < 5000 ? 0 : ms)
}

type Generation = string | undefined

/** A generation as 1.1 has it: a member. `exact` has it in the metadata of the extension, too. */
const numbered = (generation: Generation, isExact = false) => ({
  ...(generation !== undefined && { generation }),
  ...(isExact && { metadata: { [RELIABILITY_EXTENSION]: { generation: Number(generation) } } })
})
const task = (generation: Generation, state = 'WORKING', more: object = {}) => ({
  id: 't',
  contextId: 'c',
  status: { state: `TASK_STATE_${state}` },
  ...numbered(generation),
  ...more
})
const status = (state: string, generation: Generation, isExact = false) => ({
  statusUpdate: {
    taskId: 't',
    contextId: 'c',
    status: { state: `TASK_STATE_${state}` },
    ...numbered(generation, isExact)
  }
})
const chunk = (text: string, generation: Generation, more: object = {}, isExact = false) => ({
  artifactUpdate: {
    taskId: 't',
    contextId: 'c',
    artifact: { artifactId: 'a', parts: [{ text }] },
    ...numbered(generation, isExact),
    ...more
  }
})

interface Scripted {
  readonly agent: HttpAgent
  readonly client: AgentClient
}

async function scripted(t: Test, answers: readonly Answer[], card: ScriptedCard = {}): Promise<Scripted> {
  const agent = await httpAgent(t, { version: '1.1', ...card })
  agent.script(...answers)
  const client = await connect(agent.url, { random: () => 0, clock })
  t.teardown(() => client.close())
  return { agent, client }
}

const foldAll = (events: readonly StreamResponse[]) => events.reduce<Task | undefined>(foldTask, undefined)
const sent = ({ asked }: HttpAgent) => asked.map(({ method }) => method)

for (const binding of ['JSONRPC', 'HTTP+JSON', 'WEBSOCKET']) {
  await t.test(`1.1 is used over ${binding} if the card offers it, else 1.0, with the same calls`, async t => {
    for (const versions of [['1.0', '1.1'], ['1.0']] as const) {
      const { work, run } = steeredWork()
      const served = await serveRuntime(start(t, { work }, { versions: [...versions] }).runtime, { port: 0 })
      t.teardown(() => served.close())
      const client = await connect(served.url, { bindings: [binding] })
      t.teardown(() => client.close())
      const isNext = versions.length > 1
      t.match(client, { binding, version: isNext ? '1.1' : '1.0' })
      const events = client.sendStreamingMessage(say('go'))
      const { id } = taskIn((await events.next()).value as StreamResponse)
      const read = await until(async () => {
        const read = await client.getTask({ id })
        return read.status.state === 'TASK_STATE_WORKING' && read
      })
      t.equal(read.generation !== undefined, isNext)
      const { generation } = (read.metadata?.[RELIABILITY_EXTENSION] ?? {}) as { generation: number }
      t.equal(read.generation ?? String(generation), String(generation))
      t.match(await refusal(client.sendMessage(say('x', { taskId: id }), { ifGenerationMatch: generation + 7 })), {
        code: 'TaskGenerationMismatch'
      })
      const poll = client.getTask({ id }, { currentGeneration: generation })
      ;(await run(0)).resolve({ artifact: 'a boat' })
      t.match(await poll, { id })
      const others = await collect(events)
      t.equal(brief(others.at(-1) as StreamResponse), 'completed')
      const whole = await client.getTask({ id })
      const folded = others.reduce<Task | undefined>(foldTask, read)
      t.strictSame(folded, whole)
      t.equal(whole.timeline?.length, isNext ? 4 : undefined)
      t.match(await refusal(client.cancelTask({ id }, { ifGenerationMatch: 0 })), { code: 'TaskGenerationMismatch' })
    }
  })
}

await t.test('in 1.1 conditions are members, whichever way they are given', async t => {
  const { agent, client } = await scripted(t, [result({ task: task('4') })])
  const message = say('x', { taskId: 't' })
  await client.sendMessage(message, { ifGenerationMatch: 3 })
  await client.sendMessage({ ...message, configuration: { historyLength: 1 } }, { ifGenerationMatch: 0 })
  await client.sendMessage({ ...message, configuration: { ifGenerationMatch: '3', timelineLength: 2 } })
  agent.script(stream([{ task: task('5', 'COMPLETED') }]))
  await collect(client.sendStreamingMessage(message, { ifGenerationMatch: 4 }))
  agent.script(result(task('5')))
  await client.getTask({ id: 't' }, { currentGeneration: 4 })
  await client.getTask({ id: 't', currentGeneration: '4', timelineLength: 0 }, { currentGeneration: 4 })
  t.strictSame(
    agent.asked.map(({ params }) => params.configuration ?? params),
    [
      { ifGenerationMatch: '3' },
      { historyLength: 1, ifGenerationMatch: '0' },
      { ifGenerationMatch: '3', timelineLength: 2 },
      { ifGenerationMatch: '4' },
      { id: 't', currentGeneration: '4' },
      { id: 't', currentGeneration: '4', timelineLength: 0 }
    ]
  )
  for (const { headers } of agent.asked) {
    t.equal(headers['a2a-version'], '1.1')
    t.notOk(headers['taskchart-if-generation-match'] ?? headers['taskchart-current-generation'])
  }
  const count = agent.asked.length
  for (const call of [
    client.getTask({ id: 't', currentGeneration: '4' }, { currentGeneration: 5 }),
    client.sendMessage({ ...message, configuration: { ifGenerationMatch: '4' } }, { ifGenerationMatch: 5 })
  ])
    t.match(await refusal(call), {
      code: 'InvalidParams',
      message: /must equal the option of the call, or be the only one/
    })
  for (const odd of [-1, 1.5, Number.NaN, 2 ** 53, 'x', '', '9223372036854775808'])
    t.match(await refusal(client.getTask({ id: 't' }, { currentGeneration: odd })), {
      code: 'InvalidParams',
      message: /currentGeneration must be a whole number from 0 to 9223372036854775807/
    })
  t.match(await refusal(client.getTask({ id: 't' }, { ifGenerationMatch: 4 })), {
    code: 'UnsupportedOperation',
    message: 'it would ignore ifGenerationMatch. Nothing was sent.'
  })
  t.equal(agent.asked.length, count)
})

await t.test('in 1.0 conditions are service parameters of the extension, whichever way they are given', async t => {
  const { agent, client } = await scripted(t, [result(task(undefined))], { version: '1.0', isReliable: true })
  await client.getTask({ id: 't', currentGeneration: '4' })
  await client.getTask({ id: 't' }, { currentGeneration: 4 })
  agent.script(result({ task: task(undefined) }))
  await client.sendMessage({
    ...say('x', { taskId: 't' }),
    configuration: { ifGenerationMatch: '4', historyLength: 1 }
  })
  t.strictSame(
    agent.asked.map(({ params, headers }) => [
      params.configuration ?? params,
      headers['taskchart-current-generation'] ?? headers['taskchart-if-generation-match']
    ]),
    [
      [{ id: 't' }, '4'],
      [{ id: 't' }, '4'],
      [{ historyLength: 1 }, '4']
    ]
  )
})

await t.test('nothing is sent with a condition that the agent would ignore', async t => {
  const { agent, client } = await scripted(t, [result(task('5'))], { version: '1.0' })
  const message = say('x', { taskId: 't' })
  const calls = (name: string) =>
    [
      [name, () => client.sendMessage(message, { ifGenerationMatch: 3 })],
      [name, () => client.sendMessage({ ...message, configuration: { ifGenerationMatch: '3' } })],
      [name, () => collect(client.sendStreamingMessage(message, { ifGenerationMatch: 3 }))],
      ['currentGeneration', () => client.getTask({ id: 't' }, { currentGeneration: 3 })],
      ['currentGeneration', () => client.getTask({ id: 't', currentGeneration: '3' })],
      [name, () => client.cancelTask({ id: 't' }, { ifGenerationMatch: 3 })]
    ] as const
  for (const [name, call] of calls('ifGenerationMatch')) {
    t.match(await refusal(call()), {
      code: 'UnsupportedOperation',
      message: `The agent at ${client.url} has no generations, so it would ignore ${name}. Nothing was sent. Call it without ${name}.`
    })
  }
  t.strictSame(agent.asked, [])
  agent.script(result(task(undefined), reliable), result(task(undefined)))
  await client.getTask({ id: 't' })
  await client.getTask({ id: 't' }, { currentGeneration: 3 })
  t.equal(agent.asked.at(-1)?.headers['taskchart-current-generation'], '3', 'an answer has shown the extension')
})

await t.test('in 1.1 the cancelation of a task has a condition only with the extension', async t => {
  const { agent, client } = await scripted(t, [result(task('5'))])
  t.equal((await refusal(client.cancelTask({ id: 't' }, { ifGenerationMatch: 3 }))).code, 'UnsupportedOperation')
  t.strictSame(agent.asked, [])
  const other = await scripted(t, [result(task('5'))], { isReliable: true })
  await other.client.cancelTask({ id: 't' }, { ifGenerationMatch: 3 })
  t.equal(other.agent.asked[0]?.headers['taskchart-if-generation-match'], '3')
})

/** What shows it, the events, and how many requests their stream takes. */
const WITHOUT: readonly (readonly [string, readonly unknown[], number])[] = [
  ['a task', [{ task: task('1') }, { task: task(undefined, 'COMPLETED') }], 2],
  ['an event', [{ task: task('1') }, status('WORKING', undefined), status('COMPLETED', undefined)], 1],
  ['an event with 0', [{ task: task('1') }, status('WORKING', '0'), status('COMPLETED', '9')], 1],
  ['two events with the same', [{ task: task('1') }, status('WORKING', '2'), status('COMPLETED', '2')], 1],
  ['the number of the task again', [{ task: task('1') }, status('WORKING', '1'), status('COMPLETED', '1')], 1]
]
for (const [what, events, requests] of WITHOUT) {
  await t.test(
    `in 1.1 ${what} shows that an agent has no generations: all events count, and no condition is sent`,
    async t => {
      const oddities = collectOddities()
      t.teardown(() => oddities.stop())
      const { agent, client } = await scripted(t, [stream(events)])
      await client.getTask({ id: 't' }, { currentGeneration: 1 }).catch(() => {})
      const count = agent.asked.length
      const read = await collect(client.sendStreamingMessage(say('x')))
      t.equal(read.length, events.length)
      t.match(foldAll(read), { status: { state: 'TASK_STATE_COMPLETED' }, generation: undefined })
      t.equal(brief(read.at(-1) as StreamResponse).replace('task:', ''), 'completed')
      t.equal((await refusal(client.getTask({ id: 't' }, { currentGeneration: 1 }))).code, 'UnsupportedOperation')
      t.equal((await refusal(client.sendMessage(say('x'), { ifGenerationMatch: 1 }))).code, 'UnsupportedOperation')
      t.equal(agent.asked.length, count + requests)
      t.match(
        oddities.take().filter(oddity => oddity.includes('no generations')),
        ['Its tasks have no generations. Its events are read in the order of their arrival.']
      )
    }
  )
}

await t.test('in 1.1 a task without a generation shows that, too, in each answer', async t => {
  for (const [method, answer] of [
    ['getTask', task(undefined)],
    ['sendMessage', { task: task('0') }],
    ['listTasks', { tasks: [task('3'), task(undefined)], nextPageToken: '', pageSize: 2, totalSize: 2 }]
  ] as const) {
    const { client } = await scripted(t, [result(answer)])
    if (method === 'getTask') await client.getTask({ id: 't' })
    else if (method === 'listTasks') await client.listTasks({})
    else await client.sendMessage(say('x'))
    t.equal((await refusal(client.getTask({ id: 't' }, { currentGeneration: 1 }))).code, 'UnsupportedOperation', method)
  }
  const { agent, client } = await scripted(t, [
    result({ message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'hi' }] } }),
    result(task('4'))
  ])
  await client.sendMessage(say('x'))
  await client.getTask({ id: 't' }, { currentGeneration: 3 })
  t.equal(agent.asked[1]?.params.currentGeneration, '3', 'a message shows nothing')
})

await t.test('a watched task follows an agent that never changes its generation', async t => {
  const working = task('1')
  const done = task('1', 'COMPLETED')
  const { client } = await scripted(t, [
    byMethod({
      SubscribeToTask: [failure({ code: -32_004 })],
      GetTask: [result(working), result(working), result(done)]
    })
  ])
  const watched = watchTask(client, 't', { clock })
  t.teardown(watched.open())
  await until(() => watched.snapshot().task?.status.state === 'TASK_STATE_COMPLETED')
})

await t.test('a skipped generation is looked after with GetTask, if it may be more than a message', async t => {
  const events = [{ task: task('1') }, status('WORKING', '2'), chunk('boat', '4'), status('COMPLETED', '5')]
  const artifacts = [{ artifactId: 'a', parts: [{ text: 'boat' }] }]
  const whole = task('4', 'WORKING', {
    artifacts,
    history: [{ messageId: 'm', role: 'ROLE_USER', parts: [{ text: '' }] }]
  })

  await t.test('the task is read in place of the event, and what it includes is not told again', async t => {
    const { agent, client } = await scripted(t, [
      byMethod({
        SendStreamingMessage: [stream(events)],
        GetTask: [result({ ...whole, generation: '5', status: { state: 'TASK_STATE_COMPLETED' } })]
      })
    ])
    const read = await collect(client.sendStreamingMessage(say('x')))
    t.strictSame(read.map(brief), ['task:working', 'working', 'task:completed'])
    t.match(foldAll(read), { artifacts, history: [{ messageId: 'm' }] })
    t.strictSame(sent(agent), ['SendStreamingMessage', 'GetTask'])
  })

  await t.test('the stream goes on after it', async t => {
    const { agent, client } = await scripted(t, [
      byMethod({ SendStreamingMessage: [stream(events)], GetTask: [result(whole)] })
    ])
    const read = await collect(client.sendStreamingMessage(say('x')))
    t.strictSame(read.map(brief), ['task:working', 'working', 'task:working', 'completed'])
    t.strictSame(sent(agent), ['SendStreamingMessage', 'GetTask'])
  })

  for (const [what, answer] of [
    ['cannot be read', failure({ code: -32_603 })],
    ['is older', result(task('3'))],
    ['has no generation', result(task(undefined))]
  ] as const) {
    await t.test(`the event stays if the task ${what}`, async t => {
      const { client } = await scripted(t, [byMethod({ SendStreamingMessage: [stream(events)], GetTask: [answer] })])
      t.strictSame((await collect(client.sendStreamingMessage(say('x')))).map(brief), [
        'task:working',
        'working',
        'artifact: boat',
        'completed'
      ])
    })
  }

  await t.test('with the reliability extension it was a message, and nothing is read', async t => {
    const exact = [status('WORKING', '2', true), chunk('boat', '4', {}, true), status('COMPLETED', '5', true)]
    const { agent, client } = await scripted(t, [stream(exact)], { isReliable: true })
    t.equal((await collect(client.sendStreamingMessage(say('x')))).length, 3)
    t.strictSame(sent(agent), ['SendStreamingMessage'])
  })
})

await t.test('a stream is resumed with a cursor only if the extension gave it', async t => {
  for (const isExact of [true, false]) {
    const { agent, client } = await scripted(t, [
      byMethod({
        SendStreamingMessage: [stream([status('WORKING', '2', isExact)], 'cut')],
        SubscribeToTask: [stream([{ task: task('2') }, status('COMPLETED', '3', isExact)])],
        GetTask: [result(task('3', 'COMPLETED'))]
      })
    ])
    const read: string[] = []
    for await (const event of client.sendStreamingMessage(say('x'))) {
      read.push(brief(event))
      agent.heard(brief(event))
    }
    t.equal(agent.asked[1]?.headers['taskchart-after-generation'], isExact ? '2' : undefined)
    t.equal(agent.asked[1]?.headers['last-event-id'], isExact ? '2' : undefined)
    t.strictSame(read, ['working', isExact ? 'completed' : 'task:completed'])
  }
})

await t.test('a stream goes on if the agent answers its cursor with a task', async t => {
  const opening = [status('WORKING', '2', true), chunk('a ', '3', {}, true)]
  for (const [what, version, events, briefs, isLast] of [
    ['a newer one', '1.1', [task('5'), status('COMPLETED', '6', true)], ['task:working', 'completed'], true],
    ['the same', '1.1', [task('3'), status('COMPLETED', '4', true)], ['completed'], true],
    [
      'one without a generation',
      '1.0',
      [task(undefined), status('COMPLETED', undefined)],
      ['task:working', 'task:completed'],
      false
    ],
    [
      'an older one, of a backup',
      '1.1',
      [task('1'), status('WORKING', '2'), status('COMPLETED', '3')],
      ['task:working', 'working', 'task:completed'],
      false
    ]
  ] as const) {
    const [snapshot, ...others] = events
    const { agent, client } = await scripted(
      t,
      [
        byMethod({
          SendStreamingMessage: [stream(opening, 'cut')],
          SubscribeToTask: [stream([{ task: snapshot }, ...others])],
          GetTask: [result(task('6', 'COMPLETED'))]
        })
      ],
      { version, isReliable: true }
    )
    let view: Task | undefined
    const read: string[] = []
    for await (const event of client.sendStreamingMessage(say('x'))) {
      view = foldTask(view, event)
      read.push(brief(event))
      agent.heard(brief(event))
    }
    t.strictSame(read.slice(2), briefs, what)
    t.equal(view?.status.state, 'TASK_STATE_COMPLETED', what)
    t.equal(agent.asked[1]?.headers['last-event-id'], '3', what)
    t.equal(sent(agent).includes('GetTask'), !isLast, what)
  }
})

await t.test('the fold of events of 1.1 keeps the generation, the timeline and those of artifacts', async t => {
  const folded = foldAll([
    status('SUBMITTED', '2'),
    chunk('a ', '3'),
    chunk('red ', '5', { append: true }),
    status('WORKING', '6')
  ] as StreamResponse[])
  t.strictSame(folded, {
    id: 't',
    contextId: 'c',
    status: { state: 'TASK_STATE_WORKING' },
    timeline: [
      { status: { state: 'TASK_STATE_SUBMITTED' }, generation: '2' },
      { status: { state: 'TASK_STATE_WORKING' }, generation: '6' }
    ],
    generation: '6',
    artifacts: [{ artifactId: 'a', parts: [{ text: 'a ' }, { text: 'red ' }], startGeneration: '3' }]
  })
  const last = chunk('boat', '7', { append: true, lastChunk: true }) as StreamResponse
  t.match(foldTask(folded, last), { generation: '7', artifacts: [{ startGeneration: '3', endGeneration: '7' }] })
  const replaced = chunk('ship', '8', {
    artifact: { artifactId: 'a', parts: [{ text: 'ship' }], startGeneration: '8', endGeneration: '8' }
  }) as StreamResponse
  t.match(foldTask(folded, replaced), {
    artifacts: [{ parts: [{ text: 'ship' }], startGeneration: '3', endGeneration: '8' }]
  })
  t.equal(foldTask(folded, status('FAILED', '6') as StreamResponse), folded)
  t.strictSame(foldTask(folded, status('FAILED', undefined) as StreamResponse)?.timeline?.at(-1), {
    status: { state: 'TASK_STATE_FAILED' }
  })
  const { timeline = [] } = folded ?? {}
  const longer = { ...task('6'), timeline: [{ generation: '1' }, ...timeline] } as Task
  t.equal(foldTask(folded, { task: longer }), longer, 'a task with more entries replaces it')
  t.equal(foldTask(longer, { task: longer }), longer)
  t.notOk('timeline' in (foldTask(task('6') as Task, status('FAILED', '7') as StreamResponse) ?? {}))
})

await t.test('a conversation shows the messages of a timeline, and skips entries of other kinds', async t => {
  const said = (messageId: string, role: string) => ({ messageId, role, parts: [{ text: messageId }] })
  const question = { state: 'TASK_STATE_INPUT_REQUIRED', message: said('which', 'ROLE_AGENT') }
  const timeline = [
    { message: said('one', 'ROLE_USER'), generation: '1' },
    { status: { state: 'TASK_STATE_WORKING' }, generation: '2' },
    { invention: { any: 'thing' }, generation: '3' },
    { status: question, generation: '4' },
    { message: said('two', 'ROLE_USER'), generation: '5' },
    { status: { state: 'TASK_STATE_COMPLETED', message: said('done', 'ROLE_AGENT') }, generation: '6' }
  ]
  const ended = task('6', 'COMPLETED', { timeline, status: timeline[5]?.status })
  const { client } = await scripted(t, [result({ tasks: [ended], nextPageToken: '', pageSize: 1, totalSize: 1 })])
  const talk = conversation(client, 'c', { clock })
  t.teardown(talk.open())
  await until(() => talk.snapshot().tasks.length === 1)
  t.strictSame(talk.snapshot().messages.map(textOf), ['one', 'which', 'two', 'done'])
  t.strictSame(talk.snapshot().tasks[0]?.timeline?.[2], { generation: '3' })
})

await t.test('a WebSocket without a card waits for the first answer, which shows the extension', async t => {
  const { url, runtime } = await serve(t, { work: obedient })
  const { id } = taskIn(await runtime.sendMessage(say('ask')))
  const client = await connect(url)
  t.match(client, { binding: 'WEBSOCKET', version: '1.0' })
  t.match(await client.getTask({ id }, { currentGeneration: 0 }), { id })
  await client.close()
  t.match(await refusal(client.getTask({ id }, { currentGeneration: 0 })), { code: 'Overloaded' })
})
