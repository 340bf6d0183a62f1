import { readFileSync } from 'node:fs'
import t from 'tap'
import { SECRET_VARIABLE } from '../adapters/cli/serve/open-node.ts'
import type { ServedMetrics } from '../adapters/metrics/serve-metrics.ts'
import type { Served } from '../adapters/websocket/attach.ts'
import { fromGuide } from './deployment/guide.ts'
import { AGENT_MODULE, openGuide } from './fixtures/compiled-guide.ts'
import { runCommand } from './fixtures/run-command.ts'

const guide = await openGuide(t, 'deployment', { change: block => block.replace(/port: (?:4242|9464)/g, 'port: 0'), files: { 'agent.ts': AGENT_MODULE } })

await t.test('the guide has every configuration, with options of serve and the health check paths', async t => {
  for (const path of ['Dockerfile', '/etc/systemd/system/agent.service', '/etc/nginx/conf.d/agent.conf', '/etc/nginx/conf.d/agents.conf', '/etc/caddy/Caddyfile', '/etc/haproxy/haproxy.cfg', 'agent.yaml']) {
    t.ok(fromGuide(path), path)
  }
  const { stdout } = await runCommand(['help', 'serve'])
  const [own, ofServe] = [fromGuide('Dockerfile'), fromGuide('/etc/systemd/system/agent.service')].map(text => [...new Set(text.match(/(?<=serve.*)--[a-z-]+/g))])
  t.ok(own?.length === 5 && ofServe?.length === 5)
  for (const option of [...(own ?? []), ...(ofServe ?? [])]) t.match(stdout, `  ${option} `, option)
  t.strictSame(new Set(fromGuide('agent.yaml').match(/(?<=path: )\/\w+/g)), new Set(['/healthz', '/readyz']))
  t.throws(() => fromGuide('nowhere'))
})

await t.test('the manifest of a cluster has options of serve, and the ports that they name', async t => {
  const page = readFileSync('docs/cluster.md', 'utf8')
  const { stdout } = await runCommand(['help', 'serve'])
  const [manifest = ''] = /(?<=```yaml\n)[^`]*/.exec(page) ?? []
  const given = [...new Set(manifest.match(/--[a-z][a-z-]+/g))]
  t.strictSame(given.toSorted(), ['--api-key', '--db', '--host', '--log', '--node', '--port', '--public-url'])
  for (const option of [...given, ...(page.match(/(?<= serve .*)--[a-z-]+/g) ?? [])]) t.match(stdout, `  ${option} `, option)
  t.strictSame(manifest.match(/(?<=containerPort: )\d+/g), [/--port, "(\d+)"/.exec(manifest)?.[1], /--node, "ws:[^"]*:(\d+)"/.exec(manifest)?.[1]])
  for (const name of ['PGPASSWORD', SECRET_VARIABLE]) t.match(manifest, `  ${name}: `)
  t.match(stdout, SECRET_VARIABLE)
  t.strictSame(new Set(manifest.match(/(?<=path: )\/\w+/g)), new Set(['/healthz', '/readyz']))
})

await t.test('a program serves its metrics as the guide shows', async t => {
  const { served, metrics } = await guide.load<{ served: Served; metrics: ServedMetrics }>('block-0.ts')
  t.teardown(() => Promise.all([served.close(), metrics.close()]))
  t.match(await (await fetch(metrics.url)).text(), 'taskchart_connections{transport="http"} 0')
})
