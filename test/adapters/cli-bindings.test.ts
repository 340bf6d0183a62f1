import t from 'tap'
import { body, httpAgent } from '../fixtures/scripted-http.ts'
import { officialAgent } from '../fixtures/official-agent.ts'
import { runCommand } from '../fixtures/run-command.ts'

const BINDINGS = ['JSONRPC', 'HTTP+JSON', 'GRPC'] as const

for (const binding of BINDINGS) {
  await t.test(`the commands work with an agent of the official SDK by ${binding}`, async t => {
    const { url } = await officialAgent(t, [binding])
    const sent = await runCommand(['send', url, 'boat', '--out', t.testdir()])
    t.match(sent, { code: 0, stdout: 'boat!\n' })
    const id = /--reference (\S+)/.exec(sent.stderr)?.[1] ?? ''
    t.match(await runCommand(['watch', url, id]), { code: 0, stdout: 'boat!\n' })
    t.match(await runCommand(['card', url]), { code: 0, stdout: new RegExp(`A2A 1\\.0, ${binding.replace('+', '\\+')}`) })
    t.match(await runCommand(['tasks', 'ls', '--url', url, '--json']), { code: 0, stdout: new RegExp(`"id":"${id}"`) })
    t.match(await runCommand(['tasks', 'show', id, '--url', url]), { code: 0, stdout: /boat/ })
    t.match(await runCommand(['tasks', 'cancel', 'nobody', '--url', url]), { code: 1, stderr: /not found/i })
  })
}

await t.test('--binding says which interface of the card is taken, and comes back in hints', async t => {
  const { url, headers } = await officialAgent(t, ['GRPC', 'JSONRPC'])
  const over = async (...args: readonly string[]) => {
    headers.length = 0
    const ended = await runCommand(args)
    return { ...ended, isHttp: headers.some(({ accept }) => String(accept).startsWith('text/event-stream')) }
  }
  t.match(await over('send', url, 'hi'), { code: 0, isHttp: false })
  const asked = await over('send', url, 'ask', '--binding', 'jsonrpc')
  t.match(asked, { code: 4, isHttp: true, stderr: /taskchart send .* --binding jsonrpc/ })
  const id = /--task (\S+)/.exec(asked.stderr)?.[1] ?? ''
  t.match(await over('send', url, 'that', '--task', id, '--binding', 'JSONRPC'), { code: 0, isHttp: true })
  t.match(await over('watch', url, id, '--binding', 'JSONRPC'), { code: 0, isHttp: true, stderr: /--binding JSONRPC/ })
  t.match(await over('send', url, 'hi', '--binding', 'SOAP'), { code: 2, stderr: /"SOAP" is not a binding/ })
  t.match(await over('send', url, 'hi', '--binding', 'WEBSOCKET'), { code: 1, stderr: /offers no WEBSOCKET/ })
})

await t.test('a key that is missing or wrong is told of with what to do, also where only a call tells', async t => {
  const agent = await httpAgent(t)
  agent.script(body('', {}, 401))
  for (const args of [['send', agent.url, 'hi'], ['tasks', 'ls', '--url', agent.url], ['tasks', 'show', 't', '--url', agent.url], ['tasks', 'export', '--url', agent.url], ['tasks', 'cancel', 't', '--url', agent.url]]) {
    t.match(await runCommand(args), { code: 1, stderr: `taskchart: The agent at ${agent.url} requires a key. Give one with --api-key KEY.\n` }, args.join(' '))
    t.match(await runCommand([...args, '--api-key', 'secret']), { code: 1, stderr: /does not know this key/ })
  }
})
