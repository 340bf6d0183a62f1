import * as grpcJs from '@grpc/grpc-js'
import t from 'tap'
import type { WireCaller, WireParameters, WireRefusal } from '../../adapters/conformance/callers/caller.ts'
import type { AgentCard } from '../../machines/protocol/card.ts'
import { ERROR_INFO } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'

import { byName } from '../conformance/column.ts'
import { largeGenerations } from '../fixtures/protocol/bad-input.ts'
import { refusalIn } from '../fixtures/protocol/grpc-next.ts'
import { echo, steeredWork } from '../fixtures/runtime/agents.ts'
import { refusal, say, start, until } from '../fixtures/runtime/runtime-helpers.ts'
import { ASKING, DOORS, serveNext, taskOf } from '../fixtures/servers/next-version.ts'

const MEMBER_ERROR = 'must be a whole number from 0 to 9223372036854775807, as text above 9007199254740991'

/** What was refused: its code, the fields with what is wrong, and the metadata of its ErrorInfo. */
async function refused(
  call: Promise<unknown>
): Promise<{ code: unknown; fields: readonly unknown[]; text: string; info: unknown }> {
  const error = (await call.then(
    () => undefined,
    (error: unknown) => error
  )) as WireRefusal | undefined
  const info = error?.details.find(detail => detail['@type'] === ERROR_INFO)?.['metadata']
  return { code: error?.code, fields: error?.fields ?? [], text: String(error?.message), info }
}

await t.test('a task and each of its events have their generation over every binding', async t => {
  const { open } = await serveNext(t)
  for (const door of DOORS) {
    const caller = open(door)
    const task = taskOf((await caller.call('SendMessage', say('a boat'))).result)
    const read = (await caller.call('GetTask', { id: task.id })).result as Task
    t.match(task.generation, /^[1-9]\d*$/, door)
    t.equal(read.generation, task.generation, door)
    const { tasks } = (await caller.call('ListTasks', {})).result as { tasks: Task[] }
    t.equal(tasks[0]?.generation, task.generation, door)
    const stream = caller.stream('SendStreamingMessage', say('a boat'))
    const generations: number[] = []
    for (let event = await stream.next(); event; event = await stream.next()) {
      const [content] = Object.values(event) as { generation?: string }[]
      generations.push(Number(content?.generation))
    }
    t.ok(generations.length > 2, door)
    t.strictSame(
      generations,
      generations.toSorted((one, other) => one - other),
      `${door}: they rise`
    )
    t.equal(new Set(generations).size, generations.length, `${door}: each is there once`)
  }
})

await t.test('in 1.0 nothing has a generation, also beside 1.1', async t => {
  const { open } = await serveNext(t)
  for (const door of ['JSON-RPC', 'REST', 'WebSocket', 'gRPC'] as const) {
    const caller = open(door, { version: '1.0' })
    const { result } = await caller.call('SendMessage', say('a boat'))
    const id = taskOf(result).id
    const all = [result, (await caller.call('GetTask', { id })).result, (await caller.call('ListTasks', {})).result]
    t.notMatch(JSON.stringify(all), /generation|timeline/i, door)
  }
})

await t.test('a read with currentGeneration waits until the task has passed it', async t => {
  const { work, run } = steeredWork()
  const { open } = await serveNext(t, { work })
  let runs = 0
  for (const door of DOORS) {
    for (const version of ['1.0', '1.1']) {
      const caller = open(door, { version })
      const { result } = await caller.call('SendMessage', say('go', {}, { returnImmediately: true }))
      const { id } = taskOf(result)
      const current = await until(async () => {
        const task = (await open(door).call('GetTask', { id })).result as Task
        return task.status.state === 'TASK_STATE_WORKING' && task
      })
      const early = (await caller.call('GetTask', { id, currentGeneration: '0' })).result as Task
      t.equal(early.status.state, 'TASK_STATE_WORKING', `${door} ${version}: 0 does not wait`)
      const later = caller.call('GetTask', { id, currentGeneration: current.generation })
      ;(await run((runs += 1) - 1)).resolve({})
      const after = (await later).result as Task
      t.equal(after.status.state, 'TASK_STATE_COMPLETED', `${door} ${version}`)
      t.equal(after.generation ?? '0', version === '1.1' ? String(Number(current.generation) + 1) : '0')
    }
  }
})

await t.test('a message with ifGenerationMatch is refused if the task has another generation', async t => {
  const { open } = await serveNext(t, ASKING)
  for (const door of DOORS) {
    for (const version of ['1.0', '1.1']) {
      const caller = open(door, { version })
      const { id } = taskOf((await caller.call('SendMessage', say('go'))).result)
      const { generation = '' } = (await open(door).call('GetTask', { id })).result as Task
      const answer = (ifGenerationMatch: string) =>
        caller.call('SendMessage', say('red', { taskId: id }, { ifGenerationMatch }))
      for (const other of ['0', '99']) {
        const error = await refused(answer(other))
        t.equal(error.code, 'TaskGenerationMismatch', `${door} ${version}: ${other}`)
        t.match(
          error.info,
          { taskId: id, expectedGeneration: other, currentGeneration: generation },
          `${door} ${version}: ${other}`
        )
      }
      t.equal(taskOf((await answer(generation)).result).status.state, 'TASK_STATE_COMPLETED', `${door} ${version}`)
      // A message that opens a task has nothing to match.
      const opened = await caller.call('SendMessage', say('go', {}, { ifGenerationMatch: '7' }))
      t.equal(taskOf(opened.result).status.state, 'TASK_STATE_INPUT_REQUIRED', `${door} ${version}`)
    }
  }
})

await t.test('a message with ifGenerationMatch that is sent again gets its first answer', async t => {
  const { open, runtime } = await serveNext(t, ASKING)
  for (const door of DOORS) {
    const caller = open(door)
    const { id, generation = '' } = taskOf((await caller.call('SendMessage', say('go'))).result)
    const answer = say('red', { taskId: id }, { ifGenerationMatch: generation })
    const first = taskOf((await caller.call('SendMessage', answer)).result)
    const again = taskOf((await caller.call('SendMessage', answer)).result)
    t.strictSame([again.id, again.generation], [first.id, first.generation], door)
    const opening = say('go', {}, { ifGenerationMatch: '1' })
    const [one, other] = [await caller.call('SendMessage', opening), await caller.call('SendMessage', opening)]
    t.equal(taskOf(one.result).id, taskOf(other.result).id, door)
    const plain = say('go')
    const [a, b] = [await caller.call('SendMessage', plain), await caller.call('SendMessage', plain)]
    t.not(taskOf(a.result).id, taskOf(b.result).id, `${door}: without a condition it is another message`)
  }
  t.equal((await runtime.listTasks({})).totalSize, DOORS.length * 4)
})

await t.test('a generation that is negative or no int64 is refused, and so is a negative length', async t => {
  const { open, runtime } = await serveNext(t)
  const { id } = taskOf(await runtime.sendMessage(say('a boat')))
  for (const door of DOORS) {
    const caller = open(door)
    // gRPC has no other whole numbers.
    const values = door === 'gRPC' ? ['-1', '-9223372036854775808'] : ['-1', '9223372036854775808', '1.5', 'x', '']
    for (const value of values) {
      t.match(
        await refused(caller.call('GetTask', { id, currentGeneration: value })),
        { code: 'InvalidParams', fields: ['currentGeneration'], text: MEMBER_ERROR },
        `${door}: ${value}`
      )
      t.match(
        await refused(caller.call('SendMessage', say('x', { taskId: id }, { ifGenerationMatch: value }))),
        { code: 'InvalidParams', fields: ['configuration.ifGenerationMatch'], text: MEMBER_ERROR },
        `${door}: ${value}`
      )
    }
    const negative = { timelineLength: -1 }
    for (const [field, call] of [
      ['timelineLength', caller.call('GetTask', { id, ...negative })],
      ['timelineLength', caller.call('ListTasks', negative)],
      ['configuration.timelineLength', caller.call('SendMessage', say('x', {}, negative))]
    ] as const)
      t.match(await refused(call), { code: 'InvalidParams', fields: [field] }, door)
  }
})

/** The same condition as a member of the request. */
function asMember(caller: WireCaller, taskId: string, ifGenerationMatch: string) {
  const answer = say('red', { taskId }, { ifGenerationMatch })
  return ['configuration.ifGenerationMatch', () => caller.call('SendMessage', answer)] as const
}

await t.test('a condition beyond what a double holds is compared exactly or refused, and changes nothing', async t => {
  const { open, runtime } = await serveNext(t, ASKING)
  const before = taskOf(await runtime.sendMessage(say('go')))
  const { id } = before
  const ended = taskOf(await runtime.sendMessage(say('go')))
  await runtime.cancelTask({ id: ended.id })
  for (const door of DOORS) {
    for (const version of ['1.0', '1.1']) {
      const caller = open(door, { version })
      for (const { text, isGeneration } of largeGenerations) {
        const what = `${door} ${version}: ${text}`
        const given = (name: string): WireParameters => ({
          extensions: [RELIABILITY_EXTENSION],
          parameters: { [`taskchart-${name}`]: text }
        })
        const answer = say('red', { taskId: id })
        const refusals: readonly (readonly [field: string, call: () => Promise<unknown>])[] = [
          ['ifGenerationMatch', () => caller.call('SendMessage', answer, given('if-generation-match'))],
          ['ifGenerationMatch', () => caller.call('CancelTask', { id }, given('if-generation-match'))],
          // gRPC has no other whole numbers.
          ...(isGeneration || door !== 'gRPC' ? [asMember(caller, id, text)] : [])
        ]
        for (const [field, call] of refusals)
          t.match(
            await refused(call()),
            isGeneration
              ? { code: 'TaskGenerationMismatch', info: { expectedGeneration: text, currentGeneration: '4' } }
              : { code: 'InvalidParams', fields: [field], text: MEMBER_ERROR },
            `${what} as ${field}`
          )
        t.match(
          await refused(caller.stream('SubscribeToTask', { id }, given('after-generation')).next()),
          {
            code: 'InvalidParams',
            fields: ['afterGeneration'],
            text: isGeneration ? 'must not be ahead of the task, which is at 4' : MEMBER_ERROR
          },
          `${what} as a cursor`
        )
        const read = caller.call('GetTask', { id: ended.id }, given('current-generation'))
        if (isGeneration) {
          for (const { result } of [
            await read,
            await caller.call('GetTask', { id: ended.id, currentGeneration: text })
          ])
            t.match(result, { id: ended.id, status: { state: 'TASK_STATE_CANCELED' } }, `${what} as seen`)
        } else {
          t.match(
            await refused(read),
            { code: 'InvalidParams', fields: ['currentGeneration'], text: MEMBER_ERROR },
            what
          )
        }
      }
    }
  }
  t.strictSame(await runtime.getTask({ id }), before)
})

await t.test('a generation as a JSON number that a double does not hold is refused', async t => {
  const { open, runtime } = await serveNext(t, ASKING)
  const { id } = taskOf(await runtime.sendMessage(say('go')))
  const { raw } = open('WebSocket')
  const answer = say('red', { taskId: id }, { ifGenerationMatch: 0 as never })
  const frame = JSON.stringify({ jsonrpc: '2.0', id: 'n', method: 'SendMessage', params: answer })
  t.match(await raw?.(frame.replace('"ifGenerationMatch":0', '"ifGenerationMatch":9007199254740993')), {
    error: { code: -32602, message: `Invalid parameters: configuration.ifGenerationMatch ${MEMBER_ERROR}` }
  })
  t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_INPUT_REQUIRED')
})

await t.test('a condition as a member and as a service parameter has to be the same', async t => {
  const { open } = await serveNext(t, ASKING)
  for (const door of DOORS) {
    const caller = open(door)
    const { id, generation = '' } = taskOf((await caller.call('SendMessage', say('go'))).result)
    const also = (name: string, value: string): WireParameters => ({
      extensions: [RELIABILITY_EXTENSION],
      parameters: { [name]: value }
    })
    const answer = say('red', { taskId: id }, { ifGenerationMatch: generation })
    t.match(
      await refused(caller.call('SendMessage', answer, also('taskchart-if-generation-match', '99'))),
      {
        code: 'InvalidParams',
        fields: ['configuration.ifGenerationMatch'],
        text: 'must equal the service parameter taskchart-if-generation-match, or be the only one'
      },
      door
    )
    t.match(
      await refused(caller.call('GetTask', { id, currentGeneration: '0' }, also('taskchart-current-generation', '1'))),
      {
        code: 'InvalidParams',
        fields: ['currentGeneration'],
        text: 'must equal the service parameter taskchart-current-generation, or be the only one'
      },
      door
    )
    const read = await caller.call('GetTask', { id, currentGeneration: '0' }, also('taskchart-current-generation', '0'))
    t.equal((read.result as Task).generation, generation, door)
    const same = await caller.call('SendMessage', answer, also('taskchart-if-generation-match', generation))
    t.equal(taskOf(same.result).status.state, 'TASK_STATE_COMPLETED', door)
  }
})

await t.test('the members of 1.1 in a request of 1.0 are ignored by an agent that speaks only 1.0', async t => {
  const { open } = await serveNext(t, ASKING, { versions: ['1.0'] })
  for (const door of DOORS) {
    const caller = open(door, { version: '1.0' })
    const { id } = taskOf((await caller.call('SendMessage', say('go'))).result)
    const read = (await caller.call('GetTask', { id, currentGeneration: '99', timelineLength: 1 })).result as Task
    t.equal(read.status.state, 'TASK_STATE_INPUT_REQUIRED', door)
    const { result } = await caller.call('SendMessage', say('red', { taskId: id }, { ifGenerationMatch: '99' }))
    t.equal(taskOf(result).status.state, 'TASK_STATE_COMPLETED', door)
  }
})

await t.test('an agent that speaks only 1.0 refuses 1.1, and lists what it speaks', async t => {
  const { open } = await serveNext(t, {}, { versions: ['1.0'] })
  for (const door of DOORS) {
    const error = await refused(
      open(door, { version: door === 'WebSocket' ? '1.0' : '1.1' }).call('ListTasks', {}, { version: '1.1' })
    )
    t.match(error, { code: 'VersionNotSupported', text: /1\.0/ }, door)
    t.notMatch(error.text, / 1\.1 and/, door)
  }
})

await t.test('an agent that speaks both refuses another version, and lists both', async t => {
  const { open, origin } = await serveNext(t)
  for (const door of DOORS) {
    const caller = open(door, { version: door === 'WebSocket' ? '1.1' : '2.0' })
    t.match(
      await refused(caller.call('ListTasks', {}, { version: '2.0' })),
      { code: 'VersionNotSupported', text: /1\.1(?: and|,) 1\.0/ },
      door
    )
  }
  const answer = await fetch(`${origin}/tasks`, { headers: { 'a2a-version': '0.9' } })
  t.match(await answer.json(), { error: { details: [{ metadata: { supportedVersions: '1.1, 1.0' } }] } })
})

await t.test('the card lists the interfaces of 1.1 first, and those of 1.0 at the same URLs', async t => {
  const { at, origin, runtime } = await serveNext(
    t,
    { extendedCard: { description: 'More.' } },
    { authenticate: byName }
  )
  const listed = at.interfaces.map(({ protocolBinding, protocolVersion, url }) => ({
    protocolBinding,
    protocolVersion,
    url
  }))
  const [first, second] = [listed.slice(0, 3), listed.slice(3, 6)]
  t.strictSame(
    listed.map(({ protocolVersion }) => protocolVersion),
    ['1.1', '1.1', '1.1', '1.0', '1.0', '1.0', '1.1', '1.0']
  )
  t.strictSame(
    second,
    first.map(each => ({ ...each, protocolVersion: '1.0' }))
  )
  t.strictSame(
    listed.slice(6).map(({ protocolBinding }) => protocolBinding),
    ['GRPC', 'GRPC']
  )
  for (const headers of [{}, { 'a2a-version': '1.0' }, { 'a2a-version': '1.1' }]) {
    const card = await (await fetch(`${origin}/.well-known/agent-card.json`, { headers })).json()
    t.match(card, { supportedInterfaces: at.interfaces })
  }
  t.match(runtime.settings.versions, ['1.1', '1.0'])
})

await t.test('a tenant is named in the interfaces of both versions', async t => {
  const { origin } = await serveNext(t, {}, { tenants: { blue: {} } })
  const card = (await (await fetch(`${origin}/.well-known/agent-card.json`)).json()) as AgentCard
  t.strictSame(
    card.supportedInterfaces
      .filter(({ protocolBinding }) => protocolBinding === 'JSONRPC')
      .map(({ protocolVersion, tenant }) => [protocolVersion, tenant]),
    [
      ['1.1', 'blue'],
      ['1.0', 'blue']
    ]
  )
})

await t.test('a WebSocket may speak 1.1 from its handshake on, and each request another version', async t => {
  const { open } = await serveNext(t)
  const caller = open('WebSocket')
  const { id } = taskOf((await caller.call('SendMessage', say('x'))).result)
  t.type(((await caller.call('GetTask', { id })).result as Task).generation, 'string')
  t.equal(((await caller.call('GetTask', { id }, { version: '1.0' })).result as Task).generation, undefined)
})

await t.test('live input is refused as unsupported in 1.1, and does not exist in 1.0', async t => {
  const { origin, open, grpcAddress } = await serveNext(t)
  const post = async (path: string, version: string, body: object) => {
    const headers = { 'content-type': 'application/json', 'a2a-version': version }
    const answer = await fetch(`${origin}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: answer.status, body: await answer.json() }
  }
  const live = { jsonrpc: '2.0', id: 1, method: 'SendLiveMessage', params: {} }
  t.match(await post('/', '1.1', live), {
    status: 200,
    body: { error: { code: -32004, message: /takes no live input/ } }
  })
  t.match(await post('/', '1.0', live), { body: { error: { code: -32601 } } })
  t.match(await post('/', '1.1', { ...live, method: 'Live' }), {
    body: { error: { code: -32601, message: 'There is no method "Live" in A2A 1.1.' } }
  })
  for (const path of ['/live', '/blue/live'])
    t.match(await post(path, '1.1', {}), { body: { error: { details: [{ reason: 'UNSUPPORTED_OPERATION' }] } } }, path)
  t.match(await post('/live', '1.0', {}), { status: 404 })
  t.equal((await fetch(`${origin}/live`, { headers: { 'a2a-version': '1.1' } })).status, 404)
  const { raw } = open('WebSocket')
  t.match(await raw?.(JSON.stringify({ ...live, id: 'l' })), { error: { code: -32004 } })
  const client = new grpcJs.Client(grpcAddress, grpcJs.credentials.createInsecure())
  t.teardown(() => client.close())
  const asked = (headers: Record<string, string>) =>
    new Promise<grpcJs.ServiceError>(resolve => {
      const metadata = new grpcJs.Metadata()
      for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
      const none = () => Buffer.alloc(0)
      const call = client.makeBidiStreamRequest('/lf.a2a.v1.A2AService/SendLiveMessage', none, none, metadata)
      call.on('error', resolve)
      call.resume().write({})
    })
  t.match(refusalIn(await asked({ 'a2a-version': '1.1' })), { code: 'UnsupportedOperation' })
  for (const headers of [{ 'a2a-version': '1.0' }, {}]) {
    const { code, details } = await asked(headers)
    t.strictSame(
      [code, details],
      [grpcJs.status.UNIMPLEMENTED, 'The server does not implement the method /lf.a2a.v1.A2AService/SendLiveMessage']
    )
  }
})

await t.test('live input over gRPC needs credentials where the agent does', async t => {
  const { grpcAddress } = await serveNext(t, {}, { authenticate: byName })
  const client = new grpcJs.Client(grpcAddress, grpcJs.credentials.createInsecure())
  t.teardown(() => client.close())
  for (const [name, code] of [
    ['nobody', 'Unauthenticated'],
    ['ann', 'UnsupportedOperation']
  ] as const) {
    const metadata = new grpcJs.Metadata()
    metadata.set('a2a-version', '1.1')
    metadata.set('authorization', `Bearer ${name}`)
    const none = () => Buffer.alloc(0)
    const error = await new Promise<grpcJs.ServiceError>(resolve =>
      client
        .makeBidiStreamRequest('/lf.a2a.v1.A2AService/SendLiveMessage', none, none, metadata)
        .on('error', resolve)
        .resume()
        .write({})
    )
    t.equal(refusalIn(error).code, code)
  }
})

await t.test('a call in process has the version that it names, and 1.0 without one', async t => {
  const { runtime } = start(t, { work: echo }, { versions: ['1.1', '1.0'] })
  t.equal(taskOf(await runtime.sendMessage(say('x'))).generation, undefined)
  t.type(taskOf(await runtime.sendMessage(say('x'), { version: '1.1.0' })).generation, 'string')
  const other = start(t, { work: echo })
  t.match(await refusal(other.runtime.sendMessage(say('x'), { version: '1.1' })), { code: 'VersionNotSupported' })
})
