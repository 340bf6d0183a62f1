import { register } from 'node:module'
import t from 'tap'
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
})
