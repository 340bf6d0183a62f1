import { register } from 'node:module'
import t from 'tap'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { start } from '../../fixtures/runtime/runtime-helpers.ts'

register('../../fixtures/processes/without-peers.js', import.meta.url)

await t.test('without the SDK of MCP its handler says what to install', async t => {
  const { mcpHandler } = await import('../../../adapters/mcp/index.ts')
  const { checkMcp } = await import('../../../adapters/cli/serve/parts.ts')
  const { runtime } = start(t, { work: () => {} })
  t.throws(() => mcpHandler(runtime), {
    name: 'TypeError',
    message: 'mcpHandler needs the MCP SDK. Install it: npm install @modelcontextprotocol/server'
  })
  t.throws(() => checkMcp('--mcp'), { name: 'CommandError', message: /npm install @modelcontextprotocol\/server/ })
  const { agentTests } = await import('../../../adapters/testing/index.ts')
  const { default: barista } = await import('../../../examples/barista.ts')
  await t.rejects(agentTests(barista, { drivers: ['over MCP'] }), {
    name: 'TypeError',
    message: 'The driver over MCP needs the MCP SDK. Install it: npm install @modelcontextprotocol/server'
  })
  const { code, stderr } = await runCommand(['test', 'examples/barista.ts', '--driver', 'MCP'])
  t.match(
    { code, stderr },
    { code: 1, stderr: /needs the MCP SDK\. Install it: npm install @modelcontextprotocol\/server/ }
  )
})
