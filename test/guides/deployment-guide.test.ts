import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { SECRET_VARIABLE } from '../../adapters/cli/serve/parts.ts'
import type { Served } from '../../adapters/websocket/attach.ts'
import { fromGuide } from '../deployment/guide.ts'
import { AGENT_MODULE, openGuide } from '../fixtures/guides/compiled-guide.ts'
import { runCommand } from '../fixtures/cli/run-command.ts'

const guide = await openGuide(t, 'deployment', {
  change: block => block.replace(/port: (?:4242|9464)/g, 'port: 0'),
  files: { 'agent.ts': AGENT_MODULE }
})

await t.test('the guide has every configuration, with options of serve and the health check paths', async t => {
  for (const path of [
    'Dockerfile',
    '/etc/systemd/system/agent.service',
    '/etc/nginx/conf.d/agent.conf',
    '/etc/nginx/conf.d/agents.conf',
    '/etc/caddy/Caddyfile',
    '/etc/haproxy/haproxy.cfg',
    'agent.yaml'
  ]) {
    t.ok(fromGuide(path), path)
  }
  const { stdout } = await runCommand(['help', 'serve'])
  const [own, ofServe] = [fromGuide('Dockerfile'), fromGuide('/etc/systemd/system/agent.service')].map(text => [
    ...new Set(text.match(/(?<=serve.*)--[a-z-]+/g))
  ])
  t.ok(own?.length === 5 && ofServe?.length === 5)
  for (const option of [...(own ?? []), ...(ofServe ?? [])]) t.match(stdout, `  ${option} `, option)
  t.strictSame(new Set(fromGuide('agent.yaml').match(/(?<=path: )\/\w+/g)), new Set(['/healthz', '/readyz']))
  t.throws(() => fromGuide('nowhere'))
})

interface Container {
  readonly command: readonly string[]
  readonly args?: readonly string[]
  readonly ports?: readonly { readonly containerPort: number }[]
  readonly readinessProbe?: { readonly httpGet: { readonly path: string; readonly port: string } }
  readonly livenessProbe?: { readonly httpGet: { readonly path: string; readonly port: string } }
}

/** The options of a command line with their values. */
function optionsIn(words: readonly string[]): Map<string, string> {
  return new Map(
    words.flatMap((word, i) =>
      word.startsWith('--') ? [[word, (words[i + 1] ?? '').replaceAll('"', '')] as const] : []
    )
  )
}

await t.test('the files for a cluster have options of serve, and the ports and secrets that they name', async t => {
  const page = readFileSync('docs/cluster.md', 'utf8')
  const { stdout } = await runCommand(['help', 'serve'])
  const [kubernetes = '', compose = ''] = Array.from(page.matchAll(/(?<=```yaml\n)[^`]*/g), ([text]) => text)
  const [secret, deployment, service] = parseAllDocuments(kubernetes).map(document => {
    t.strictSame([...document.errors, ...document.warnings], [])
    return document.toJS() as Record<string, unknown>
  })
  t.strictSame(
    [secret, deployment, service].map(one => one?.['kind']),
    ['Secret', 'Deployment', 'Service']
  )
  const {
    spec: {
      template: {
        spec: {
          containers: [container]
        }
      }
    }
  } = deployment as unknown as { spec: { template: { spec: { containers: [Container] } } } }
  const {
    services: { agent, postgres, balancer }
  } = parse(compose) as {
    services: Record<
      'agent' | 'postgres' | 'balancer',
      Container & { environment: Record<string, string>; command: string }
    >
  }
  const composed = agent.command[2]?.split(' ') ?? []
  for (const words of [[...container.command, ...(container.args ?? [])], composed]) {
    const given = optionsIn(words)
    t.strictSame([...given.keys()].toSorted(), [
      '--api-key',
      '--db',
      '--host',
      '--log',
      '--node',
      '--port',
      '--public-url'
    ])
    for (const option of given.keys()) t.match(stdout, `  ${option} `, option)
    t.match(words.join(' '), /npx taskchart serve agent\.js /)
    t.strictSame(
      [given.get('--port'), /--node .*?:(\d+)/.exec(words.join(' '))?.[1], given.get('--db')],
      ['4242', '4243', 'postgres://agent@postgres/agent']
    )
  }
  for (const option of page.match(/(?<= serve .*)--[a-z-]+/g) ?? []) t.match(stdout, `  ${option} `, option)
  const secrets = Object.keys((secret as { stringData: object }).stringData)
  t.strictSame(secrets, ['PGPASSWORD', SECRET_VARIABLE, 'API_KEY'])
  t.strictSame(Object.keys(agent.environment), secrets)
  t.match(stdout, SECRET_VARIABLE)
  t.strictSame(
    container.ports?.map(({ containerPort }) => containerPort),
    [4242, 4243]
  )
  t.strictSame(
    [container.readinessProbe, container.livenessProbe].map(probe => probe?.httpGet),
    [
      { path: '/readyz', port: 'agent' },
      { path: '/healthz', port: 'agent' }
    ]
  )
  t.match(service, { spec: { ports: [{ targetPort: 'agent' }] } })
  t.match(compose, '/readyz')
  t.strictSame([postgres.environment['POSTGRES_USER'], postgres.environment['POSTGRES_DB']], ['agent', 'agent'])
  t.match(balancer.command, '--to agent:4242')
})

await t.test('a program serves its metrics as the guide shows', async t => {
  const { served } = await guide.load<{ served: Served }>('block-0.ts')
  t.teardown(() => served.close())
  t.match(await (await fetch(String(served.metricsUrl))).text(), 'taskchart_connections{transport="http"} 0')
})
