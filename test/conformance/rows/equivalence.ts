import { WireRefusal } from '../../../adapters/conformance/callers/caller.ts'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import { OPERATIONS, type OperationMethod, type OperationName } from '../../../machines/protocol/operations.ts'
import { brief, say } from '../../fixtures/runtime/runtime-helpers.ts'
import type { Binding } from '../binding.ts'
import { jsonRpc } from '../bindings/json-rpc.ts'
import { rest } from '../bindings/rest.ts'
import { webSocket } from '../bindings/websocket.ts'
import { clientOf, read, refusalOf, type Client } from '../client.ts'
import { byName, type Column, type Runtime, type Test } from '../column.ts'
import { except, row, type Row } from '../row.ts'

/** What shares an address with each other. */
const BY_HTTP: readonly Binding[] = [webSocket, jsonRpc, rest]

/** §10.9: all bindings are the same agent. */
export const equivalence: readonly Row[] = [
  row(128, 'M', '5.1', 'All operations are there, with the answers that they have in process', async (t, column) => {
    const { client, runtime, binding } = column
    const { id } = await client.task('ask')
    for (const [method, params] of Object.entries(requests(id))) {
      if (method === 'ListTasks' && binding.version === '0.3') continue
      const [there, here] = [
        await outcome(client, method as OperationMethod, params),
        await inProcess(runtime, method as OperationMethod, params)
      ]
      t.equal(there, here, method)
    }
  }),
  row(
    129,
    'M',
    '5.1',
    'A task that was opened here is read, followed and canceled on every other binding',
    async (t, column) => {
      const { client } = column
      for (const other of await others(t, column)) {
        const opened = await client.opened('wait', 'working')
        t.same(await other.get(opened.id), await client.get(opened.id))
        const streams = [client.subscribe(opened.id), other.subscribe(opened.id)]
        for (const stream of streams) await stream.next()
        t.same(await other.cancel(opened.id), await client.get(opened.id))
        t.same(await Promise.all(streams.map(async stream => (await read(stream)).map(brief).at(-1))), [
          'canceled',
          'canceled'
        ])
      }
    }
  ),
  row(
    130,
    'M',
    '5.1',
    'What is refused on one binding is refused on the others, with the same error',
    async (t, column) => {
      const { client, runtime } = column
      const { id } = await client.task('x')
      const bad: readonly (readonly [OperationMethod, object])[] = [
        ['GetTask', { id: 'made-up' }],
        ['GetTask', { id, historyLength: -1 }],
        ['CancelTask', { id }],
        ['SendMessage', say('x', { taskId: id })],
        ['SendMessage', say('x', { parts: [] })],
        ['SendStreamingMessage', say('x', { contextId: 'x'.repeat(200) })]
      ]
      for (const [method, params] of bad)
        t.equal(await outcome(client, method, params), await inProcess(runtime, method, params), JSON.stringify(params))
    }
  ),
  row(
    131,
    'M',
    '5.1',
    'Credentials that are good on one binding are good on the others, for the same tasks',
    async (t, column) => {
      const { serve, binding } = column
      const { address, open } = await serve(t, { authenticate: byName })
      const { id } = await (await open({ credentials: 'ann' })).task('x')
      for (const other of BY_HTTP) {
        const ann = clientOf(await other.open(t, address, { credentials: 'ann' }), [])
        t.equal((await ann.get(id)).id, id, `${binding.name} and ${other.name}`)
        const nobody = Promise.resolve(other.open(t, address, { credentials: 'nobody' })).then(caller =>
          clientOf(caller, []).get(id)
        )
        t.match(String(await nobody.catch((error: unknown) => error)), /401|credentials/i)
      }
    },
    except(
      ['gRPC'],
      "over the official gRPC server the app's userBuilder identifies the caller and decides about access"
    )
  )
]

/** One good request for each operation. */
function requests(id: string): Readonly<Record<OperationMethod, object>> {
  const place = { taskId: id, id: 'p' }
  return {
    SendMessage: say('x'),
    SendStreamingMessage: say('x'),
    GetTask: { id },
    ListTasks: { contextId: 'nothing' },
    SubscribeToTask: { id },
    CreateTaskPushNotificationConfig: { taskId: id, url: 'https://example.com/' },
    GetTaskPushNotificationConfig: place,
    ListTaskPushNotificationConfigs: { taskId: id },
    DeleteTaskPushNotificationConfig: place,
    GetExtendedAgentCard: {},
    CancelTask: { id }
  }
}

/** What comes of a request, shortly: the members of the answer, or the error's reason. */
async function outcome(client: Client, method: OperationMethod, params: object): Promise<string> {
  if (OPERATIONS[method].streaming) {
    const stream = client.caller.stream(method, params)
    const first = stream.next().finally(() => stream.leave())
    return first.then(
      event => Object.keys(event ?? {}).join(),
      async error => String((await refusalOf(Promise.reject(error as Error))).reason)
    )
  }
  return client.call(method, params).then(
    ({ result }) => shape(result),
    (error: unknown) => (error instanceof WireRefusal ? String(error.reason) : String(error))
  )
}

async function inProcess(runtime: Runtime, method: OperationMethod, params: object): Promise<string> {
  const { name, streaming } = OPERATIONS[method]
  const operation = (
    runtime as unknown as Record<OperationName, (params: object) => Promise<unknown> & AsyncGenerator<object>>
  )[name]
  try {
    if (!streaming) return shape(await operation(params))
    for await (const event of operation(params)) return Object.keys(event).join()
    return 'nothing'
  } catch (error) {
    return isA2AError(error) ? String(error.details[0]?.reason) : String(error)
  }
}

function shape(result: unknown): string {
  return Object.keys(result as object)
    .toSorted()
    .join()
}

/** Clients of the bindings that reach the same agent: over HTTP, or in process where the address is another. */
async function others(t: Test, { binding, address, runtime }: Column): Promise<Client[]> {
  if (binding.name !== 'gRPC')
    return Promise.all(BY_HTTP.map(async other => clientOf(await other.open(t, address), [])))
  const calls = runtime as unknown as Record<OperationName, (params: object) => Promise<unknown>>
  return [
    clientOf(
      {
        call: async (method, params) => ({ result: await calls[OPERATIONS[method].name](params), extensions: '' }),
        stream: (_, params) => {
          const events = runtime.subscribeToTask(params as { id: string })
          return { next: async () => (await events.next()).value ?? undefined, leave: () => {} }
        },
        close: () => {}
      },
      []
    )
  ]
}
