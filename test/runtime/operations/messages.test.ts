import t from 'tap'
import type { Task } from '../../../machines/protocol/objects.ts'
import { A2AError, reply } from '../../../runtime/index.ts'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { systemClock } from '../../../runtime/ports/clock.ts'
import { checkInputModes, inputModesOf } from '../../../runtime/operations/send-message.ts'
import { echo, painter, steeredWork } from '../../fixtures/runtime/agents.ts'
import {
  collect,
  messageIn,
  refusal,
  rejection,
  rest,
  say,
  start,
  stateName,
  taskIn,
  textOf,
  until,
  userMessage,
  withGenerations
} from '../../fixtures/runtime/runtime-helpers.ts'

const immediately = { returnImmediately: true }
const artifactsIn = (task: Task) => task.artifacts?.map(textOf)

await t.test('the same context id of another principal or tenant is another context', async t => {
  const given: number[] = []
  const { runtime } = start(t, {
    work: ({ earlierArtifacts }) => (given.push(earlierArtifacts.length), { artifact: 'x' })
  })
  const callers = [
    { principal: 'anna' },
    { principal: 'bob' },
    { tenant: 'acme' },
    { tenant: 'acme', principal: 'anna' }
  ]
  for (const call of callers)
    t.equal(taskIn(await runtime.sendMessage(say('x', { contextId: 'c' }), call)).contextId, 'c')
  t.strictSame(given, [0, 0, 0, 0])
  await runtime.sendMessage(say('x', { contextId: 'c' }), callers[1])
  t.strictSame(given, [0, 0, 0, 0, 1])
})

await t.test('a message to an ended task is refused with UnsupportedOperation and what to send instead', async t => {
  const { runtime } = start(t, { work: echo })
  const done = taskIn(await runtime.sendMessage(say('hello')))
  for (const more of [{}, { contextId: done.contextId ?? '' }]) {
    const { code, message } = await refusal(runtime.sendMessage(say('again', { taskId: done.id, ...more })))
    t.equal(code, 'UnsupportedOperation')
    t.match(message, `referenceTaskIds ["${done.id}"]`)
    await t.rejects(collect(runtime.sendStreamingMessage(say('again', { taskId: done.id, ...more }))), {
      code: 'UnsupportedOperation'
    })
  }
  t.match(
    await refusal(runtime.sendMessage(say('x', { taskId: done.id, contextId: 'other' }))),
    { code: 'InvalidParams' },
    'another context is found first'
  )
  t.strictSame(await runtime.getTask({ id: done.id }), done)
})

await t.test('historyLength selects the newest messages, for this caller only', async t => {
  const { runtime } = start(t, { work: painter() })
  const { id } = taskIn(await runtime.sendMessage(say('a boat')))
  const done = taskIn(await runtime.sendMessage(say('red', { taskId: id }, { historyLength: 2 })))
  t.strictSame(done.history?.map(textOf), ['red', 'thank you'], 'the newest two')
  const read = async (historyLength?: number) =>
    (await runtime.getTask({ id, ...(historyLength !== undefined && { historyLength }) })).history
  t.strictSame((await read())?.map(textOf), ['a boat', 'looking', 'Which colour for a boat?', 'red', 'thank you'])
  t.strictSame((await read(1))?.map(textOf), ['thank you'])
  t.equal((await read(100))?.length, 5)
  t.equal(await read(0), undefined)
  t.equal((await read())?.length, 5, 'reading a part truncates nothing')
  await t.rejects(runtime.getTask({ id, historyLength: -1 }), { code: 'InvalidParams' })
  for (const [historyLength, kept] of [
    [0, undefined],
    [1, 1]
  ] as const) {
    const opened = taskIn(await runtime.sendMessage(say('x', {}, { ...immediately, historyLength })))
    t.equal(opened.history?.length, kept)
    const [first] = await collect(runtime.sendStreamingMessage(say('x', {}, { historyLength })))
    t.equal(taskIn(first).history?.length, kept)
  }
})

await t.test('the status message is only in the status until the next status', async t => {
  const { runtime } = start(t, { work: painter() })
  const asked = taskIn(await runtime.sendMessage(say('a boat')))
  t.notOk(asked.history?.some(({ messageId }) => messageId === asked.status.message?.messageId))
  t.match(asked.status.message, { role: 'ROLE_AGENT', taskId: asked.id, contextId: asked.contextId })
  const done = taskIn(await runtime.sendMessage(say('red', { taskId: asked.id })))
  t.ok(done.history?.some(({ messageId }) => messageId === asked.status.message?.messageId))
  t.equal(textOf(done.status.message), 'Here you are')
})

await t.test('every status has the time of the runtime’s clock', async t => {
  const { runtime, clock } = start(t, { work: painter() })
  const asked = taskIn(await runtime.sendMessage(say('a boat')))
  t.equal(asked.status.timestamp, '2026-01-02T03:04:05.006Z')
  clock.increment(1500)
  t.equal(
    taskIn(await runtime.sendMessage(say('red', { taskId: asked.id }))).status.timestamp,
    '2026-01-02T03:04:06.506Z'
  )
})

await t.test(
  'the times of the statuses of a task never go back, although the clock does, also after a restart',
  async t => {
    const store = memoryStore()
    const shared = { ...store, close: async () => {} }
    let aheadMs = 0
    const clock = { ...systemClock, now: () => Date.parse('2026-01-02T03:04:05.006Z') + aheadMs }
    const { runtime } = start(t, { work: painter() }, { store: shared, clock })
    const asked = taskIn(await runtime.sendMessage(say('a boat')))
    aheadMs = -120_000
    t.equal(
      (await runtime.cancelTask({ id: taskIn(await runtime.sendMessage(say('a car'))).id })).status.timestamp,
      '2026-01-02T03:02:05.006Z',
      'others have their own'
    )
    const { runtime: next } = start(t, { work: painter() }, { store: shared, clock })
    t.equal(taskIn(await next.sendMessage(say('red', { taskId: asked.id }))).status.timestamp, asked.status.timestamp)
    const again = taskIn(await next.sendMessage(say('a tree')))
    aheadMs = -240_000
    t.equal((await next.cancelTask({ id: again.id })).status.timestamp, again.status.timestamp)
  }
)

await t.test('the first of two answers to one question is accepted, and the second refused', async t => {
  const { runtime } = start(t, { work: painter() })
  const { id } = taskIn(await runtime.sendMessage(say('a boat')))
  const answers = await Promise.allSettled([
    runtime.sendMessage(say('red', { taskId: id })),
    runtime.sendMessage(say('blue', { taskId: id }))
  ])
  t.strictSame(
    answers.map(({ status }) => status),
    ['fulfilled', 'rejected']
  )
  t.match(answers[1], { reason: { code: 'UnsupportedOperation' } })
  const task = await runtime.getTask({ id })
  t.strictSame(artifactsIn(task), ['a sketch', 'a red boat'])
  t.notOk(task.history?.some(message => textOf(message) === 'blue'))
})

await t.test('a call of another version, or of none, is refused with the supported version', async t => {
  const { runtime } = start(t, { work: echo })
  for (const version of ['', ' ', '0.3', '1.1', '2.0', 'x', `1.${'0'.repeat(99)}`]) {
    const { code, message, metadata } = await refusal(runtime.sendMessage(say('x'), { version }))
    t.strictSame({ code, metadata }, { code: 'VersionNotSupported', metadata: { supportedVersions: '1.0' } })
    t.match(message, '1.0')
    t.ok(message.length < 200)
  }
  for (const version of ['1.0', ' 1.0 ', '1.0.7']) t.ok(await runtime.sendMessage(say('x'), { version }))
  t.match(
    await refusal(runtime.sendMessage({} as never, { version: '' })),
    { code: 'VersionNotSupported' },
    'the version is checked first'
  )
})

await t.test('the tenants of address and parameters have to agree', async t => {
  const { runtime } = start(t, { work: echo })
  const { id } = taskIn(await runtime.sendMessage({ ...say('x'), tenant: 'acme' }))
  t.equal((await runtime.getTask({ id }, { tenant: 'acme' })).id, id)
  t.equal((await runtime.getTask({ id, tenant: 'acme' }, { tenant: 'acme' })).id, id)
  t.match(await rejection(runtime.getTask({ id, tenant: 'acme' }, { tenant: 'other' })), {
    code: 'InvalidParams',
    violations: [{ field: 'tenant' }]
  })
  t.match(await refusal(runtime.getTask({ id })), { code: 'TaskNotFound' })
})

await t.test('generations are shown only to clients that activated the extension', async t => {
  const { runtime } = start(t, { work: painter() })
  const asked = taskIn(await runtime.sendMessage(say('a boat'), withGenerations))
  t.strictSame(asked.metadata, { 'urn:taskchart:extension:reliability:1': { generation: 5 } })
  const { id } = asked
  t.equal((await runtime.getTask({ id })).metadata, undefined)
  t.equal((await runtime.getTask({ id }, { extensions: ['urn:other'] })).metadata, undefined)
  t.strictSame((await runtime.getTask({ id }, withGenerations)).metadata, asked.metadata)
  t.match((await runtime.cancelTask({ id }, withGenerations)).metadata, {
    'urn:taskchart:extension:reliability:1': { generation: 6 }
  })
})

await t.test('earlier artifacts of the context reach the work, newest first', async t => {
  const given: (string | undefined)[][] = []
  const { runtime } = start(t, {
    work: ({ message, earlierArtifacts }) => {
      given.push(earlierArtifacts.map(({ artifact }) => textOf(artifact)))
      return { artifacts: [`${textOf(message)} 1`, `${textOf(message)} 2`] }
    }
  })
  for (const text of ['a', 'b', 'c']) await runtime.sendMessage(say(text, { contextId: 'c' }))
  await runtime.sendMessage(say('elsewhere'))
  t.strictSame(given, [[], ['a 2', 'a 1'], ['b 2', 'b 1', 'a 2', 'a 1'], []])
})

await t.test(
  "referenced tasks reach the work with their artifacts, and others' tasks are omitted silently",
  async t => {
    const given: unknown[] = []
    const { runtime } = start(t, {
      work: ({ message, referenceTasks, earlierArtifacts }) => {
        given.push([
          referenceTasks.map(({ id }) => id),
          earlierArtifacts.map(({ taskId, artifact }) => [taskId, textOf(artifact)])
        ])
        return { artifact: textOf(message) ?? '' }
      }
    })
    const send = async (text: string, more = {}, principal = 'anna') =>
      taskIn(await runtime.sendMessage(say(text, more), { principal })).id
    const own = await send('own', { contextId: 'c' })
    await send('newer', { contextId: 'c' })
    const elsewhere = await send('elsewhere')
    const foreign = await send('foreign', { contextId: 'c' }, 'bob')
    given.length = 0
    await send('x', { contextId: 'c', referenceTaskIds: [own, foreign, 'unknown', elsewhere] })
    t.strictSame(given.pop(), [
      [own, elsewhere],
      [
        [own, 'own'],
        [elsewhere, 'elsewhere']
      ]
    ])
    await send('x', { contextId: 'd', referenceTaskIds: [foreign] })
    t.strictSame(given.pop(), [[], []], 'foreign ids alone give nothing')
    await send('x', { referenceTaskIds: [own] })
    t.strictSame(given.pop(), [[own], [[own, 'own']]], 'also with the first task of a new context')
  }
)

await t.test('referenced artifacts reach the work, and those of other callers do not', async t => {
  const given: (string | undefined)[][] = []
  const { runtime } = start(t, {
    work: ({ earlierArtifacts }) => {
      given.push(earlierArtifacts.map(({ artifact }) => textOf(artifact)))
      return {
        artifacts: [
          { artifactId: 'a', parts: [{ text: 'A' }] },
          { artifactId: 'b', parts: [{ text: 'B' }] }
        ]
      }
    }
  })
  const { id: taskId } = taskIn(await runtime.sendMessage(say('x', { contextId: 'c' })))
  const { id: foreign } = taskIn(await runtime.sendMessage(say('x'), { principal: 'bob' }))
  const send = (metadata: Record<string, unknown>) =>
    runtime.sendMessage(say('', { contextId: 'c', parts: [{ text: 'x', metadata }] }))
  given.length = 0
  await send({ artifactId: 'b', taskId })
  await send({
    referenceArtifacts: [
      { artifactId: 'a', taskId },
      { artifactId: 'nothing', taskId },
      { artifactId: 'a', taskId: foreign }
    ]
  })
  await send({ artifactId: 'a', taskId: foreign })
  await runtime.sendMessage(say('', { parts: [{ text: 'x', metadata: { artifactId: 'b', taskId } }] }))
  t.strictSame(given, [['B'], ['A'], [], ['B']], 'also with the first task of a new context')
})

await t.test('an agent that only answers opens no task', async t => {
  const { runtime } = start(t, { negotiate: ({ message }) => reply(`You said ${textOf(message)}`) })
  const answer = messageIn(await runtime.sendMessage(say('hello', { contextId: 'c' })))
  t.match(answer, { role: 'ROLE_AGENT', contextId: 'c', parts: [{ text: 'You said hello' }] })
  t.equal(answer.taskId, undefined)
})

await t.test('aborting the wait for a resent message does not affect its task', async t => {
  const { work, run } = steeredWork()
  const { runtime } = start(t, { work })
  const request = say('x')
  const { id } = taskIn(await runtime.sendMessage({ ...request, configuration: immediately }, withGenerations))
  const { resolve } = await run()
  const leaving = new AbortController()
  const waiting = rejection(runtime.sendMessage(request, { ...withGenerations, signal: leaving.signal }))
  await rest()
  leaving.abort(new Error('left'))
  t.match(await waiting, { message: 'left' })
  const staying = runtime.sendMessage(request, { ...withGenerations, signal: new AbortController().signal })
  await rest()
  resolve({ artifact: 'done' })
  t.strictSame([taskIn(await staying).id, taskIn(await staying).status.state], [id, 'TASK_STATE_COMPLETED'])
})

await t.test('a call with an aborted signal rejects, and its message still counts', async t => {
  const { work, run } = steeredWork()
  const { runtime } = start(t, { work })
  t.match(await rejection(runtime.sendMessage(say('x'), { signal: AbortSignal.abort(new Error('gone')) })), {
    message: 'gone'
  })
  t.ok((await run()).given.taskId)
})

await t.test("the card has the served capabilities beside the author's fields", async t => {
  const { runtime } = start(t, {
    card: { name: 'Painter', description: 'Paints', iconUrl: 'https://example.com/i' },
    work: echo
  })
  const served = { url: 'ws://127.0.0.1:1/', protocolBinding: 'urn:x', protocolVersion: '1.0' }
  t.match(runtime.agentCard([served]), {
    name: 'Painter',
    description: 'Paints',
    version: '1.0.0',
    iconUrl: 'https://example.com/i',
    skills: [],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    supportedInterfaces: [served],
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extendedAgentCard: false,
      extensions: [{ uri: 'urn:taskchart:extension:reliability:1' }]
    }
  })
})

await t.test("the settings have the servers' limits, and only the given options", async t => {
  const { runtime } = start(t, { work: echo })
  t.strictSame(Object.keys(runtime.settings).toSorted(), [
    'capabilities',
    'clock',
    'counters',
    'endedTasksMs',
    'extensions',
    'hasTenants',
    'jsonLimits',
    'largeAnswers',
    'limits',
    'logger',
    'negotiates',
    'opensTasks',
    'ownerOf',
    'rejected',
    'scheduler',
    'unfinished',
    'versions'
  ])
  t.equal(runtime.settings.limits.bufferedEvents, 64)
  const given = {
    authenticate: () => undefined,
    origins: ['https://example.com'],
    hosts: ['example.com'],
    publicUrl: '',
    limits: { advanced: { jsonDepth: 3 } }
  }
  const { settings } = start(t, { work: echo }, given).runtime
  t.match(settings, {
    ...given,
    hosts: new Map([['example.com', undefined]]),
    limits: { jsonDepth: 3, bufferedEvents: 64 }
  })
})

await t.test('a runtime needs only an agent', async t => {
  const { createRuntime, defineAgent } = await import('../../../runtime/index.ts')
  const runtime = createRuntime({ agent: defineAgent({ card: { name: 'A' }, work: echo }) })
  t.teardown(() => runtime.close())
  const task = taskIn(await runtime.sendMessage(say('hi')))
  t.match(task.id, /^[0-9A-Za-z]{22}$/)
  t.equal(stateName(task.status.state), 'completed')
  t.ok(isA2AError(new A2AError('TaskNotFound')))
  await until(() => true)
})

await t.test('input modes are compared without case and parameters, with the agent’s wildcards', async t => {
  const skill = (inputModes?: string[]) => ({
    id: 's',
    name: 's',
    description: '',
    tags: [],
    ...(inputModes && { inputModes })
  })
  const modes = inputModesOf({
    defaultInputModes: ['Text/Plain; charset=utf-8'],
    skills: [skill(), skill(['image/*'])]
  })
  t.strictSame([...modes], ['text/plain', 'image/*'])
  const check =
    (mediaType: string | undefined, of = modes) =>
    () =>
      checkInputModes({ ...userMessage(''), parts: [{ text: '', ...(mediaType !== undefined && { mediaType }) }] }, of)
  for (const taken of [undefined, 'text/plain', 'IMAGE/PNG ; q=1', 'image/svg+xml']) t.doesNotThrow(check(taken))
  for (const refused of ['text/html', '', 'imagery/png']) t.throws(check(refused), { code: 'ContentTypeNotSupported' })
  t.doesNotThrow(check('anything/else', new Set(['*/*'])))
})
