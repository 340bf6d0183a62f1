import { trace } from '@opentelemetry/api'
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base'
import t from 'tap'
import { registeredTelemetry } from '../../../../adapters/cli/serve/parts.ts'
import { connect } from '../../../../adapters/client/connect.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { deferred, recordingLogger, say } from '../../../fixtures/runtime/runtime-helpers.ts'

const AGENT = `
import { trace } from '@opentelemetry/api'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'
globalThis.exported = []
const exporter = {
  export: (spans, done) => { globalThis.exported.push(...spans.map(({ name }) => name)); done({ code: 0 }) },
  forceFlush: async () => {}, shutdown: async () => {}
}
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter, { scheduledDelayMillis: 600_000 })] }))
export default { card: { name: 'Traced' }, work: () => ({}) }
`

await t.test('a module with a tracer provider is traced, and its last spans are exported', async t => {
  t.equal(await registeredTelemetry(recordingLogger().logger), undefined, 'nothing is registered yet')
  const cwd = t.testdir({ 'agent.mjs': AGENT })
  const [stop, announced] = [new AbortController(), deferred<string>()]
  const ended = runCommand(['serve', 'agent.mjs', '--port', '0', '--json'], {
    printed: announced.resolve,
    signal: stop.signal,
    cwd
  })
  const { url } = JSON.parse(await announced.promise) as { url: string }
  const client = await connect(url)
  await client.sendMessage(say('x'))
  await client.close()
  const names = (globalThis as { exported?: string[] }).exported
  t.same(names, [])
  stop.abort()
  t.match(await ended, { code: 0, stderr: '' })
  t.same(names?.toSorted(), ['SendMessage', 'invoke_agent Traced'])
})

await t.test('an agent under taskchart dev is traced too', async t => {
  const cwd = t.testdir({ 'agent.mjs': "export default { card: { name: 'Developed' }, work: () => ({}) }" })
  const [stop, announced] = [new AbortController(), deferred<string>()]
  const ended = runCommand(['dev', 'agent.mjs', '--port', '0', '--json'], {
    printed: announced.resolve,
    signal: stop.signal,
    cwd
  })
  const { url } = JSON.parse(await announced.promise) as { url: string }
  const client = await connect(url)
  await client.sendMessage(say('x'))
  await client.close()
  stop.abort()
  t.equal((await ended).code, 0)
  t.ok((globalThis as { exported?: string[] }).exported?.includes('invoke_agent Developed'))
})

await t.test('an agent that a host of MCP starts is traced too', async t => {
  const cwd = t.testdir({ 'agent.mjs': "export default { card: { name: 'Hosted' }, work: () => ({}) }" })
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'host', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {}
  }
  const params = { name: 'Hosted', arguments: { message: 'x' }, _meta }
  const answered = deferred<string>()
  const lines = [JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })]
  const ended = await runCommand(['mcp', 'agent.mjs'], {
    input: { isTerminal: false, ask: async () => lines.shift() ?? (await answered.promise, undefined) },
    printed: answered.resolve,
    cwd
  })
  t.equal(ended.code, 0)
  t.match(await answered.promise, /"result"/)
  const names = (globalThis as { exported?: string[] }).exported ?? []
  for (const name of ['tools/call Hosted', 'invoke_agent Hosted']) t.ok(names.includes(name), name)
})

await t.test('spans that cannot be exported give a line of the log', async t => {
  trace.disable()
  trace.setGlobalTracerProvider(
    Object.assign(new BasicTracerProvider(), { forceFlush: () => Promise.reject(new Error('nobody there')) })
  )
  const { logger, log } = recordingLogger()
  const traced = await registeredTelemetry(logger)
  await traced?.flush()
  t.match(log, [
    {
      level: 'error',
      message: 'the last spans and metrics could not be exported',
      details: { error: { message: 'nobody there' } }
    }
  ])
})
