import { SpanKind } from '@opentelemetry/api'
import t from 'tap'
import { httpHandler } from '../../../adapters/http/handler.ts'
import { serveHost } from '../../../adapters/mcp/stdio.ts'
import { openTelemetry } from '../../../adapters/opentelemetry/open-telemetry.ts'
import type { ServedRuntime } from '../../../runtime/runtime-options.ts'
import { openedTask, questionIn, TASKS, type Declared } from '../../fixtures/peers/mcp-peer.ts'
import { inSpan, registerTraces, spanNamed, treeOf } from '../../fixtures/peers/traces.ts'
import { until } from '../../fixtures/runtime/runtime-helpers.ts'
import { servedMcp, sized } from '../../fixtures/servers/mcp-agent.ts'

const telemetry = openTelemetry()
const traces = registerTraces()

t.beforeEach(() => traces.reset())

const TRACEPARENT = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`

/** The values of a metric that are not 0, by their attribute. */
async function countsOf({ metrics }: ServedRuntime, name: string): Promise<Record<string, number>> {
  const { values = [] } = (await metrics.read()).find(metric => metric.name === `taskchart.${name}`) ?? {}
  const counted = values.filter(({ value }) => value > 0)
  return Object.fromEntries(counted.map(({ value, attributes }) => [String(Object.values(attributes)[0]), value]))
}

await t.test('a call over MCP is a span with its operations below, and the work is in its trace', async t => {
  const { peer } = servedMcp(t, { work: () => inSpan('makes', async () => ({ artifact: 'a coffee' })) }, { telemetry })
  await peer.rpc('tools/list')
  const taskId = openedTask(await inSpan('test', () => peer.call('coffee')))
  await peer.rpc('tasks/get', { taskId })
  await peer.call('nothing')
  const spans = await traces.ended()
  t.strictSame(treeOf(spans), [
    'server tools/list',
    'internal test',
    '  server tools/call coffee',
    '    server SendMessage',
    '      internal invoke_agent Barista',
    '        internal makes',
    'server tasks/get',
    '  server GetTask',
    'server tools/call'
  ])
  t.notMatch(JSON.stringify(spans.map(({ attributes }) => attributes)), /a coffee|nothing/, 'no content is in them')
})

await t.test('spans of calls over MCP have method, tool, binding and task, and how they ended', async t => {
  const { peer, as } = servedMcp(t, { work: sized }, { telemetry })
  const taskId = openedTask(await peer.call('coffee'))
  const { key } = questionIn(await peer.rpc('tasks/get', { taskId }))
  await peer.rpc('tasks/update', {
    taskId,
    inputResponses: { [key]: { action: 'accept', content: { size: 'small' } } }
  })
  await peer.rpc('tasks/cancel', { taskId })
  const spans = await traces.ended()
  const called = { 'a2a.binding': 'MCP', 'mcp.method.name': 'tools/call', 'gen_ai.tool.name': 'coffee' }
  t.strictSame(spanNamed(spans, 'tools/call coffee').attributes, { ...called, 'a2a.task.id': taskId })
  const read = { 'a2a.binding': 'MCP', 'mcp.method.name': 'tasks/get', 'a2a.task.id': taskId }
  t.strictSame(spanNamed(spans, 'tasks/get').attributes, read)
  t.match(spanNamed(spans, 'CancelTask', SpanKind.SERVER).attributes, {
    'rpc.method': 'CancelTask',
    'a2a.binding': 'MCP',
    'a2a.task.id': taskId
  })
  traces.reset()
  await as({ tasks: true }).rpc('tasks/get', { taskId: 'unknown' })
  t.match(spanNamed(await traces.ended(), 'tasks/get').attributes, { 'error.type': 'TaskNotFound' })
  traces.reset()
  await as({}).rpc('tasks/get', { taskId })
  t.match(spanNamed(await traces.ended(), 'tasks/get').attributes, { 'error.type': /MissingRequired/ })
})

await t.test('a call over MCP belongs to the trace of its request, over HTTP and over stdio', async t => {
  const { as, runtime } = servedMcp(t, { work: sized }, { telemetry })
  const parentOf = async () => {
    const { parentSpanContext: parent } = spanNamed(await traces.ended(), 'tasks/get')
    traces.reset()
    return parent && [parent.traceId, parent.spanId]
  }
  const meta = { traceparent: TRACEPARENT, baggage: 1 }
  const request = async (declared: Declared) => {
    await as({ tasks: true, ...declared }).rpc('tasks/get', { taskId: 'x' })
    return parentOf()
  }
  const named = ['1'.repeat(32), '2'.repeat(16)]
  t.strictSame(await request({ meta }), named, 'in _meta')
  t.strictSame(await request({ headers: { traceparent: TRACEPARENT } }), named, 'in its headers')
  t.equal(await request({}), undefined)
  const params = {
    taskId: 'x',
    _meta: {
      ...meta,
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'host', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': { extensions: { [TASKS]: {} } }
    }
  }
  const written: string[] = []
  async function* lines() {
    yield JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params })
    await until(() => written.length === 1)
  }
  await serveHost(runtime, { lines: lines(), write: line => void written.push(line) }, {})
  t.strictSame(await parentOf(), named, 'over stdio')
})

await t.test('calls over MCP are counted by method, beside the operations that they run', async t => {
  const { peer, as, runtime } = servedMcp(t, { work: sized }, { telemetry })
  const taskId = openedTask(await peer.call('coffee'))
  await peer.rpc('tools/list')
  await peer.rpc('tasks/get', { taskId })
  await peer.rpc('tasks/get', { taskId: 'unknown' })
  await peer.rpc('tasks/cancel', { taskId })
  await as({}).rpc('tasks/update', { taskId, inputResponses: {} })
  await peer.rpc('resources/read', { uri: 'taskchart://tasks/x/artifacts/y' })
  await peer.rpc('unknown/method')
  t.strictSame(await countsOf(runtime, 'mcp.calls'), {
    'tools/list': 1,
    'tools/call': 1,
    'tasks/get': 2,
    'tasks/update': 1,
    'tasks/cancel': 1,
    'resources/read': 1
  })
  t.strictSame(await countsOf(runtime, 'mcp.call.errors'), { 'tasks/get': 1, 'tasks/update': 1, 'resources/read': 1 })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: taskId } })
  const headers = { 'Content-Type': 'application/json', 'A2A-Version': '1.0' }
  await httpHandler(runtime)(new Request('http://127.0.0.1:4242/', { method: 'POST', headers, body }))
  const { getTask } = await countsOf(runtime, 'calls')
  t.equal(getTask, 4, 'two polls, one read of a resource, and one call of A2A')
})
