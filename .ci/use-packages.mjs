// Uses the optional packages of the project that it runs in: a SQLite file, a PostgreSQL server if the machine has one, all bindings with
// signed cards, traces of a model, and a React component.
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { execFileSync, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { createRuntime, defineAgent, text } from 'taskchart'
import { modelWork } from 'taskchart/ai'
import { cardSigner, cardVerifier } from 'taskchart/auth'
import { connect } from 'taskchart/client'
import { grpc } from 'taskchart/grpc'
import { serve } from 'taskchart/http'
import { mcpHandler } from 'taskchart/mcp'
import { openTelemetry } from 'taskchart/opentelemetry'
import { useAgent, useConversation } from 'taskchart/react'
import { sqliteStore } from 'taskchart/store'

const message = words => ({ message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [text(words)] } })
const versionOf = name => JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8')).version
const agent = defineAgent({ card: { name: 'Echo' }, work: async ({ message }) => ({ artifact: { parts: message.parts } }) })

// better-sqlite3, where it is installed.
if (existsSync('node_modules/better-sqlite3')) {
  const driver = 'better-sqlite3'
  const first = createRuntime({ agent, store: sqliteStore('tasks.db', { driver }) })
  const { task } = await first.sendMessage(message('kept'))
  await first.close()
  const second = createRuntime({ agent, store: sqliteStore('tasks.db', { driver }) })
  assert.equal((await second.getTask({ id: task.id })).artifacts[0].parts[0].text, 'kept')
  await second.close()
}

// The official SDK, gRPC, protobuf and jose.
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const runtime = createRuntime({ agent, signCard: cardSigner({ key: privateKey, kid: 'k' }) })
const served = await serve(runtime, { port: 0, grpc: grpc({ port: 0 }) })
for (const binding of ['JSONRPC', 'HTTP+JSON', 'GRPC', 'WEBSOCKET']) {
  const client = await connect(served.url, { bindings: [binding], verifyCard: cardVerifier({ key: publicKey }) })
  assert.equal((await client.sendMessage(message(binding))).task.artifacts[0].parts[0].text, binding)
  await client.close()
}
await served.close()
await runtime.close()

// The Model Context Protocol.
const overMcp = createRuntime({ agent: defineAgent({ card: { name: 'Echo' }, work: async ({ message }) => ({ artifact: { parts: message.parts } }) }) })
const toolCall = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'Echo',
    arguments: { message: 'over MCP' },
    _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientInfo': { name: 'ci', version: '1' }, 'io.modelcontextprotocol/clientCapabilities': {} }
  }
}
const called = await mcpHandler(overMcp)(
  new Request('http://127.0.0.1/mcp', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'Echo' },
    body: JSON.stringify(toolCall)
  })
)
assert.equal((await called.json()).result.content[0].text, 'over MCP')
await overMcp.close()

// OpenTelemetry, with the spans of the AI SDK's own package where there is one.
const storage = new AsyncLocalStorage()
const manager = {
  active: () => storage.getStore() ?? ROOT_CONTEXT,
  with: (given, run, self, ...args) => storage.run(given, () => run.call(self, ...args)),
  bind: (given, target) => (typeof target === 'function' ? (...args) => storage.run(given, () => target(...args)) : target),
  enable: () => manager,
  disable: () => manager
}
const exporter = new InMemorySpanExporter()
context.setGlobalContextManager(manager)
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
const hasOwnSpans = existsSync('node_modules/@ai-sdk/otel')
if (hasOwnSpans) (await import('ai')).registerTelemetry(new (await import('@ai-sdk/otel')).OpenTelemetry())
const mocks = await import('ai/test')
const Model = mocks.MockLanguageModelV4 ?? mocks.MockLanguageModelV3
const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } }
const chunks = [{ type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: 'Hello.' }, { type: 'text-end', id: '1' }, { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage }]
const model = new Model({ doStream: async () => ({ stream: new ReadableStream({ start: controller => (chunks.forEach(chunk => controller.enqueue(chunk)), controller.close()) }) }) })
const traced = createRuntime({ agent: defineAgent({ card: { name: 'Model' }, work: modelWork({ model, instructions: 'Be kind.', ...(!hasOwnSpans && { experimental_telemetry: { isEnabled: true } }) }) }), telemetry: openTelemetry() })
const { task: said } = await traced.sendMessage(message('hello'))
assert.equal(said.artifacts[0].parts[0].text, 'Hello.')
assert.deepEqual(said.metadata['urn:taskchart:model:1'], { usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } })
await traced.close()
const spans = exporter.getFinishedSpans()
const own = spans.filter(({ instrumentationScope: { name } }) => name === 'taskchart')
assert.equal(own[0].instrumentationScope.version, versionOf('taskchart'))
assert.ok(spans.length > own.length, 'the AI SDK made spans')
const [work] = own.filter(({ name }) => name === 'invoke_agent Model')
for (const span of spans.filter(span => !own.includes(span))) assert.equal(span.spanContext().traceId, work.spanContext().traceId, `${span.name} is in the trace of the task`)

// React.
const Page = () => {
  const { state } = useAgent('http://127.0.0.1:9')
  const { messages } = useConversation(undefined, { on: () => () => {} })
  return createElement('p', null, `${state} ${messages.length}`)
}
assert.equal(renderToString(createElement(Page)), '<p>connecting 0</p>')

// pg, with a PostgreSQL server of its own.
writeFileSync('echo.mjs', "import { defineAgent } from 'taskchart'\nexport default defineAgent({ card: { name: 'Echo' }, work: async ({ message }) => ({ artifact: { parts: message.parts } }) })\n")
if (existsSync('/usr/lib/postgresql')) {
  // Below the ports that a system gives to connections, and another one for each process.
  const port = String(20_000 + (process.pid % 10_000))
  const nodes = spawn(process.execPath, ['node_modules/taskchart/dist/adapters/cli/bin.js', 'cluster', 'echo.mjs', '--nodes', '1', '--port', port, '--json'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise(resolve => nodes.once('exit', resolve))
  const [line] = await Promise.race([new Promise(resolve => createInterface(nodes.stdout).once('line', line => resolve([line]))), ended.then(code => assert.fail(`the cluster ended with ${code}`))])
  const client = await connect(JSON.parse(line).nodes[0].url)
  assert.equal((await client.sendMessage(message('stored'))).task.artifacts[0].parts[0].text, 'stored')
  await client.close()
  nodes.kill('SIGTERM')
  await ended
} else console.error('left out: pg, since this machine has no PostgreSQL')
execFileSync(process.execPath, ['node_modules/taskchart/dist/adapters/cli/bin.js', 'doctor'], { stdio: 'ignore' })
