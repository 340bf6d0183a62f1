import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

/** A host of MCP, without a model: it calls the tool of mcp.ts, and answers the form as its user would. */
const [agent = 'http://127.0.0.1:4242/'] = process.argv.slice(2)
const host = new Client(
  { name: 'host', version: '1.0.0' },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: 'auto' } }
)
const answers = [{ size: 'huge' }, { size: 'large', colour: 'blue' }]
host.setRequestHandler('elicitation/create', ({ params }) => {
  const content = answers.shift() ?? {}
  console.log(`question: ${params.message.replaceAll('\n', ' ')}`)
  if ('requestedSchema' in params) console.log(`form: ${Object.keys(params.requestedSchema.properties).join(', ')}`)
  console.log(`answer: ${JSON.stringify(content)}`)
  return { action: 'accept', content }
})
await host.connect(new StreamableHTTPClientTransport(new URL('mcp', agent)))
const { tools } = await host.listTools()
console.log(`tools: ${tools.map(({ name }) => name).join(', ')}`)
const { content } = await host.callTool({ name: 'shirt', arguments: { message: 'a shirt' } })
for (const block of content)
  if (block.type === 'text') console.log(block.text.replace(/(taskId|contextId): .*/g, '$1: …'))
await host.close()
