import { serve } from '../../../adapters/serve/serve.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import { brief, say, start, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { obedientAgent } from '../agent.ts'
import { read } from '../client.ts'
import { byName } from '../column.ts'
import { except, nowhere, row, type Row } from '../row.ts'
import { NO_LIST } from './reasons.ts'

const APP_AUTHENTICATES = except(
  ['gRPC'],
  "over the official gRPC server the app's userBuilder identifies the caller and decides about access"
)

/** §10.10: security. */
export const security: readonly Row[] = [
  row(
    132,
    'M',
    '7.1, 13.4',
    'In production there is TLS, added by the operator; without authenticate only loopback is served',
    async t => {
      const { runtime } = start(t, obedientAgent().definition)
      await t.rejects(serve(runtime, { port: 0, host: '0.0.0.0' }), TypeError)
    },
    APP_AUTHENTICATES
  ),
  row(
    133,
    'M',
    '7.4',
    'Every request identifies its caller, every frame of a connection too',
    async (t, { serve, binding }) => {
      let asked = 0
      const expiresAtMs = Date.parse('2026-01-02T03:04:15Z')
      const { open, clock } = await serve(t, {
        authenticate: credentials => {
          asked += 1
          const known = byName(credentials)
          return known instanceof Promise || !known || clock.now() >= expiresAtMs
            ? undefined
            : { ...known, expiresAtMs }
        }
      })
      const client = await open({ credentials: 'ann' })
      const stream = client.stream('wait')
      await stream.next()
      await client.task('x')
      if (!binding.name.includes('WebSocket')) t.equal(asked, 2)
      clock.increment(15_000)
      await t.rejects(client.call('GetTask', { id: 'x' }), /credentials|closed: 4401/i)
      if (binding.name.includes('WebSocket')) await t.rejects(read(stream), /credentials/)
    },
    APP_AUTHENTICATES
  ),
  row(
    134,
    'M',
    '13.1',
    'Each operation is checked for its caller, before anything is looked up or done',
    async (t, { serve }) => {
      const { open, commits } = await serve(t, { authenticate: byName })
      const [ann, bob] = [await open({ credentials: 'ann' }), await open({ credentials: 'bob' })]
      const asked = await ann.task('ask', { contextId: 'hers' })
      const before = commits()
      const attempts: readonly (readonly [OperationMethod, object])[] = [
        ['GetTask', { id: asked.id }],
        ['CancelTask', { id: asked.id }],
        ['SubscribeToTask', { id: asked.id }],
        ['SendMessage', say('x', { taskId: asked.id })]
      ]
      for (const [method, params] of attempts)
        t.equal((await bob.refusal(method, params)).reason, 'TASK_NOT_FOUND', method)
      t.equal(commits(), before)
      t.same(await ann.get(asked.id), asked)
      const own = await bob.task('after', { contextId: 'hers', referenceTaskIds: [asked.id] })
      t.match(
        own.artifacts,
        [{ parts: [{ text: 'nothing' }] }],
        'a reference to it, in a context of the same name, shows nothing'
      )
    }
  ),
  row(
    135,
    'M',
    '13.1',
    'Results are limited to what the caller may see, even without filters',
    async (t, { serve }) => {
      const { open } = await serve(t, { authenticate: byName })
      await (await open({ credentials: 'ann' })).task('x', { contextId: 'hers' })
      const bob = await open({ credentials: 'bob' })
      for (const filter of [{}, { contextId: 'hers' }])
        t.match(await bob.list(filter), { tasks: [], totalSize: 0, nextPageToken: '' })
    },
    NO_LIST
  ),
  row(
    136,
    'S',
    '13.4',
    'What is too large, nested too deep, or of a media type that is not taken is refused',
    async (t, { serve, client, binding }) => {
      const isGrpc = binding.name === 'gRPC'
      const small = await (await serve(t, { limits: { messageBytes: 10_000 } })).open()
      // gRPC has its own limit, of 4 MiB unless the app says otherwise.
      const large = small.task('x'.repeat(isGrpc ? 5 * 2 ** 20 : 20_000)).then(
        () => 'taken',
        (error: unknown) => String(error)
      )
      t.match(
        await large,
        binding.name.includes('WebSocket') ? /closed with 1009/ : isGrpc ? /larger than max/ : /10000 bytes/
      )
      const deep: unknown = JSON.parse(`${'['.repeat(100)}${']'.repeat(100)}`)
      t.equal(
        (await client.refusal('SendMessage', say('x', { parts: [{ data: { deep } as never }] }))).reason,
        'INVALID_PARAMS'
      )
      const many = Array.from({ length: 200_001 }, () => 0)
      t.equal(
        (await client.refusal('SendMessage', say('x', { parts: [{ data: { many } as never }] }))).reason,
        'INVALID_PARAMS'
      )
      t.equal(
        (await client.refusal('SendMessage', say('x', { parts: [{ raw: 'AAAA', mediaType: 'video/mp4' }] }))).reason,
        'CONTENT_TYPE_NOT_SUPPORTED'
      )
    }
  ),
  row(137, 'S', '13.4', 'Too much at once is refused with an error that says so', async (t, { serve }) => {
    const client = await (await serve(t, { limits: { tasksPerContext: 2 } })).open()
    for (let n = 0; n < 2; n += 1) await client.task('wait', { contextId: 'busy' }, { returnImmediately: true })
    const { reason, message } = await client.refusal('SendMessage', say('x', { contextId: 'busy' }))
    t.match({ reason, message }, { reason: 'RATE_LIMITED', message: /Wait for one to end/ })
    t.equal((await client.task('x', { contextId: 'calm' })).status.state, 'TASK_STATE_COMPLETED')
  }),
  row(
    138,
    'M/S',
    '13.4',
    'The log has no credentials; it has what went wrong with them',
    async (t, { serve, binding }) => {
      const { open, log } = await serve(t, {
        authenticate: ({ headers }) => {
          if (headers.authorization === 'Bearer ann') return { id: 'ann' }
          throw new Error(`bad credentials: ${headers.authorization}`)
        }
      })
      await open({ credentials: 'hunter2secret' })
        .then(client => client.get('x'))
        .catch(() => {})
      await (await open({ credentials: 'ann' })).task('crash')
      t.ok(
        log.some(({ details }) => String(details.error).includes('token')),
        "the work's error"
      )
      if (binding.name !== 'gRPC')
        t.ok(
          log.some(({ message }) => message.includes('authenticate')),
          'that of authenticate'
        )
      const written = log
        .map(
          ({ message, details }) =>
            `${message} ${Object.values(details)
              .map(value => (value instanceof Error ? value.stack : JSON.stringify(value)))
              .join(' ')}`
        )
        .join('\n')
      t.notMatch(written, /hunter2secret|s3cret-value/)
    }
  ),
  nowhere(
    139,
    'M',
    '14.1.1',
    'Addresses of files are checked before they are fetched',
    'nothing that a message names is fetched: what work does with addresses is its own'
  ),
  row(
    140,
    'M',
    '7.6.1',
    'An authorization is asked for in a task, by its state and a message',
    async (t, { client }) => {
      t.match(await client.task('authorize'), {
        id: /.+/,
        status: {
          state: 'TASK_STATE_AUTH_REQUIRED',
          message: { role: 'ROLE_AGENT', parts: [{ text: 'Please authorize this.' }] }
        }
      })
    }
  ),
  row(
    141,
    'M',
    '7.6.1',
    'An authorization comes out of band, and the task goes on without a message',
    async (t, { client, runtime }) => {
      const { id } = await client.task('authorize')
      await runtime.authorized(id, { grant: 'g-1' })
      const done = await until(async () => {
        const task = await client.get(id)
        return task.status.state === 'TASK_STATE_COMPLETED' && task
      })
      t.match(done.artifacts, [{ parts: [{ text: 'got {"grant":"g-1"}' }] }])
    }
  ),
  row(142, 'S', '7.6.1', 'While an authorization is awaited, messages are accepted', async (t, { client }) => {
    const { id } = await client.task('authorize')
    const done = await client.task('never mind', { taskId: id })
    t.match(done, { status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'heard never mind' }] }] })
  }),
  row(
    143,
    'M',
    '7.6.4',
    'An authorization applies only to the task that asked, and a message is not one',
    async (t, { client, runtime }) => {
      const [first, second] = [
        await client.task('authorize', { contextId: 'both' }),
        await client.task('authorize', { contextId: 'both' })
      ]
      const stream = client.subscribe(first.id)
      await stream.next()
      await runtime.authorized(first.id, { key: 1 })
      t.equal((await read(stream)).map(brief).at(-1), 'completed')
      t.equal((await client.get(second.id)).status.state, 'TASK_STATE_AUTH_REQUIRED')
      const told = await client.task('{"key":1}', { taskId: second.id })
      t.match(told.artifacts, [{ parts: [{ text: 'heard {"key":1}' }] }])
    }
  )
]
