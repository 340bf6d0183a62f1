import { connect } from '../../../adapters/client/connect.ts'
import { exchange } from '../../../adapters/conformance/callers/exchange.ts'
import { RELIABILITY_EXTENSION, WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import { say, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket } from '../../fixtures/servers/served-agent.ts'
import { except, failing, newer, only, row, type Row } from '../row.ts'
import { CARD, pretend } from './pretended-agent.ts'
import { NO_TENANT } from './reasons.ts'

const OURS = only(['WebSocket'], 'about the client of taskchart, which is tested over WebSocket')

/** §10.7: versions, extensions and tenants. */
export const versions: readonly Row[] = [
  row(104, 'M', '3.6.2', 'An A2A-Version that is not served: VersionNotSupported', async (t, { client }) => {
    for (const version of ['9.9', 'new']) {
      const { reason } = await client.refusal('GetTask', { id: 'none' }, { version })
      t.equal(reason, 'VERSION_NOT_SUPPORTED', version)
    }
  }),
  row(105, 'M', '3.6.2', 'No version, or an empty one, means 0.3', async (t, { client, binding }) => {
    if (binding.version === '0.3') t.match(await client.task('x'), { status: { state: 'TASK_STATE_COMPLETED' } })
    else t.equal((await client.refusal('GetTask', { id: 'none' }, { version: '' })).reason, 'VERSION_NOT_SUPPORTED')
  }),
  row(
    106,
    'M',
    '3.6.2',
    'A request is served as the version that it names has it, or not at all',
    async (t, { client, binding }) => {
      const { version } = binding
      t.ok(taskIn((await client.call('SendMessage', say('x'), { version })).result as never))
      const { reason } = await client.refusal('SendMessage', say('x'), { version: version === '0.3' ? '1.0' : '0.3' })
      const expected =
        version === '1.0'
          ? 'VERSION_NOT_SUPPORTED'
          : binding.name === '0.3 REST'
            ? 'INVALID_PARAMS'
            : 'METHOD_NOT_FOUND'
      t.equal(reason, expected)
    }
  ),
  failing(
    row(107, 'M/S', '3.6', 'Patch numbers do not count, and are not told', async (t, { client, runtime, binding }) => {
      t.ok(taskIn((await client.call('SendMessage', say('x'), { version: `${binding.version}.7` })).result as never))
      const { supportedInterfaces } = runtime.agentCard(CARD.supportedInterfaces)
      for (const { protocolVersion } of supportedInterfaces) t.match(protocolVersion, /^\d+\.\d+$/)
    }),
    ['gRPC'],
    'the official gRPC server compares versions as they are written'
  ),
  row(
    108,
    'M',
    '3.6.1',
    'The client names its version with every request; servers take it from the query too',
    async (t, { address, binding }) => {
      const query = '?A2A-Version=1.0'
      if (binding.name === 'REST') t.match((await exchange(`${address}/tasks${query}`, {})).json, { tasks: [] })
      else if (binding.name === 'JSON-RPC') {
        const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ListTasks' })
        t.match(
          (
            await exchange(`${address}/${query}`, {
              method: 'POST',
              body,
              headers: { 'content-type': 'application/json' }
            })
          ).json,
          { result: { tasks: [] } }
        )
      } else {
        const socket = await JsonSocket.open(t, `${address.replace('http', 'ws')}/${query}`, { headers: {} })
        t.match(await socket.call('ListTasks', {}), { result: { tasks: [] } })
        const agent = await pretend(t)
        const client = await connect(agent.url)
        t.teardown(() => client.close())
        await client.getTask({ id: 'a' })
        await client.getTask({ id: 'b' })
        for (const frame of agent.frames) t.match(frame, { 'a2a-service-parameters': { 'a2a-version': '1.0' } })
      }
    },
    except(['gRPC'], 'gRPC has metadata, and no query'),
    newer('0.3 has no A2A-Version')
  ),
  row(
    109,
    'M',
    '3.2.6',
    'Names of service parameters are the same in any case, their values are not',
    async (t, { client }) => {
      const shouted = { version: '', parameters: { 'A2A-VERSION': '1.0', 'A2A-Extensions': RELIABILITY_EXTENSION } }
      t.match((await client.call('SendMessage', say('x'), shouted)).extensions, RELIABILITY_EXTENSION)
      t.equal(
        (await client.call('SendMessage', say('x'), { extensions: [RELIABILITY_EXTENSION.toUpperCase()] })).extensions,
        ''
      )
      const { id } = await client.task('ask')
      for (const generation of ['x', '3.0', '-1']) {
        const parameters = { 'Taskchart-If-Generation-MATCH': generation }
        t.equal(
          (await client.refusal('CancelTask', { id }, { extensions: [RELIABILITY_EXTENSION], parameters })).reason,
          'INVALID_PARAMS',
          generation
        )
      }
      await client.cancel(id)
    },
    newer('0.3 has no service parameters')
  ),
  row(
    110,
    'M',
    '3.3.4',
    'Every request without a required extension is refused: ExtensionSupportRequired',
    async (t, { serve, binding }) => {
      const uri = 'urn:example:required'
      const client = await (await serve(t, {}, { extensions: [{ uri, required: true }] })).open()
      t.equal((await client.refusal('SendMessage', say('x'))).reason, 'EXTENSION_SUPPORT_REQUIRED')
      t.equal((await client.refusal('GetTask', { id: 'none' })).reason, 'EXTENSION_SUPPORT_REQUIRED')
      const { result, extensions } = await client.call('SendMessage', say('x'), { extensions: [uri] })
      t.ok(taskIn(result as never), binding.name)
      t.equal(extensions, uri)
    }
  ),
  row(
    111,
    'M/S',
    '4.6.3',
    'An unknown extension is ignored, and another version of a known one is unknown',
    async (t, { client }) => {
      for (const extension of ['urn:nobody:knows', RELIABILITY_EXTENSION.replace(/1$/, '2')]) {
        const { result, extensions } = await client.call('SendMessage', say('x'), { extensions: [extension] })
        t.notOk(taskIn(result as never).metadata)
        t.equal(extensions, '')
      }
    }
  ),
  row(112, 'S', '4.6', 'Extensions that are active are named in the answer', async (t, { client }) => {
    const { result, extensions } = await client.call('SendMessage', say('x'), {
      extensions: ['urn:nobody:knows', RELIABILITY_EXTENSION]
    })
    t.equal(extensions, RELIABILITY_EXTENSION)
    t.match(taskIn(result as never).metadata, { [RELIABILITY_EXTENSION]: { generation: Number } })
  }),
  row(
    113,
    'M',
    '8.3.2',
    'The client sends the tenant of the interface exactly, and none where there is none',
    async t => {
      for (const tenant of [undefined, 'Acme/ 1']) {
        const agent = await pretend(t, tenant)
        const client = await connect(agent.cardUrl)
        t.teardown(() => client.close())
        await client.getTask({ id: 'a' })
        t.equal((agent.frames.at(-1) as { params: { tenant?: string } }).params.tenant, tenant)
      }
    },
    OURS
  ),
  row(
    114,
    'D',
    '8.3.2, 13.1',
    'Resources of one tenant are invisible to others',
    async (t, { client }) => {
      const { result } = await client.call('SendMessage', { ...say('ask', { contextId: 'shared' }), tenant: 'north' })
      const { id } = taskIn(result as never)
      for (const tenant of [{}, { tenant: 'south' }]) {
        t.equal((await client.refusal('GetTask', { id, ...tenant })).reason, 'TASK_NOT_FOUND')
        t.equal((await client.refusal('CancelTask', { id, ...tenant })).reason, 'TASK_NOT_FOUND')
        t.equal(
          (await client.refusal('SendMessage', { ...say('blue', { taskId: id }), ...tenant })).reason,
          'TASK_NOT_FOUND'
        )
        t.equal((await client.list({ contextId: 'shared', ...tenant })).totalSize, 0)
      }
      t.equal((await client.list({ contextId: 'shared', tenant: 'north' })).totalSize, 1)
    },
    NO_TENANT
  ),
  row(
    115,
    'M',
    '3.6.3',
    'The client speaks one version, and does not fall back to another silently',
    async t => {
      const agent = await pretend(t, undefined, [
        { url: 'ws://127.0.0.1:9/', protocolBinding: WEBSOCKET_BINDING, protocolVersion: '0.3' }
      ])
      await t.rejects(connect(agent.cardUrl), { code: 'UnsupportedOperation', message: /1\.0/ })
      t.same(agent.frames, [])
    },
    OURS
  )
]
