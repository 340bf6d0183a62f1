import { mkdtempSync, writeFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import type { AgentClient } from '../../adapters/client/agent-client.ts'
import { connect } from '../../adapters/client/connect.ts'
import type { StreamResponse, Task } from '../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { until } from '../fixtures/runtime/runtime-helpers.ts'
import { unusedPort } from '../fixtures/network/unused-port.ts'
import { fromGuide, replaced } from './guide.ts'
import { answers, started, statusAt, type Running } from './processes.ts'

/**
 * The proxies of docs/deployment.md, run with its configurations: `.ci/deployment`, which makes the certificate. Not in
 * `npm test`, because it waits for more than a minute, and needs nginx, Caddy and HAProxy.
 */
const PEM = resolve(process.env['AGENT_PEM'] ?? '')
const BIN = resolve('dist/adapters/cli/bin.js')

/** How long an agent is quiet: longer than the usual time limit of a proxy. */
const QUIET_MS = 65_000

/** Counts as far as its message says, every 400 ms, or is quiet. It knows callers by a key. */
const AGENT = `
import { defineAgent, progress, textOf } from '${resolve('dist/runtime/index.js')}'
import { apiKey } from '${resolve('dist/adapters/auth/index.js')}'
export const authenticate = apiKey({ header: 'authorization', keys: Object.fromEntries(Array.from({ length: 16 }, (_, i) => ['caller' + i, 'key-of-16-characters-' + i])) })
export default defineAgent({
  card: { name: 'Counter' },
  work: async function* ({ message, sleep }) {
    const text = textOf(message)
    if (text === 'quiet') {
      await sleep(${QUIET_MS})
      return { artifact: 'awake' }
    }
    for (let i = 1; i <= Number(text); i += 1) {
      yield progress(String(i))
      await sleep(400)
    }
    return { artifact: 'counted' }
  }
})
`

interface Proxy {
  readonly name: string
  readonly command: (file: string, folder: string) => readonly [string, readonly string[]]
  /** The configuration of the guide, for these ports. */
  readonly config: (agent: number, port: number, folder: string) => string
}

/** The rest of an nginx configuration, around that of a site. */
const nginx = (site: string, folder: string) => `
daemon off;
${process.getuid?.() === 0 ? 'user root;' : ''}
pid ${folder}/nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
${site}}
`

const PROXIES: readonly Proxy[] = [
  {
    name: 'nginx',
    command: (file, folder) => ['nginx', ['-p', folder, '-c', file]],
    config: (agent, port, folder) =>
      nginx(
        replaced(fromGuide('/etc/nginx/conf.d/agent.conf'), {
          'listen 443': `listen ${port}`,
          ':4242': `:${agent}`,
          '/etc/ssl/private/agent.pem': PEM,
          'agent.example': 'localhost'
        }),
        folder
      )
  },
  {
    name: 'Caddy',
    command: file => ['caddy', ['run', '--adapter', 'caddyfile', '--config', file]],
    config: (agent, port) =>
      `{\n  admin off\n  auto_https disable_redirects\n}\n${replaced(fromGuide('/etc/caddy/Caddyfile'), { 'agent.example {': `https://localhost:${port} {\n  tls ${PEM} ${PEM}`, ':4242': `:${agent}` })}`
  },
  {
    name: 'HAProxy',
    command: file => ['haproxy', ['-f', file]],
    config: (agent, port) =>
      replaced(fromGuide('/etc/haproxy/haproxy.cfg'), {
        'bind :443': `bind :${port}`,
        ':4242': `:${agent}`,
        '/etc/ssl/private/agent.pem': PEM
      })
  }
]

const say = (text: string, more: object = {}) => ({
  message: { messageId: crypto.randomUUID(), role: 'ROLE_USER' as const, parts: [{ text }], ...more }
})

/** The content of an event, and its generation. */
function told(event: StreamResponse): { text: string; generation: unknown } {
  const content = Object.values(event)[0] as Partial<Task> & { status?: Task['status']; artifact?: Task['artifacts'] }
  const { generation } = (content.metadata?.[RELIABILITY_EXTENSION] ?? {}) as { generation?: number }
  const part = content.status?.message?.parts[0]
  return { generation, text: part && 'text' in part ? part.text : (content.status?.state ?? 'artifact') }
}

class Site {
  readonly folder = mkdtempSync(join(tmpdir(), 'taskchart-proxy-'))
  readonly processes: Running[] = []
  readonly url: string

  constructor(port: number) {
    this.url = `https://localhost:${port}/`
    writeFileSync(join(this.folder, 'agent.mjs'), AGENT)
  }

  agent(port: number, db = 'tasks.db'): Running {
    const running = started(
      process.execPath,
      [
        BIN,
        'serve',
        'agent.mjs',
        '--port',
        String(port),
        '--db',
        db,
        '--hosts',
        'localhost',
        '--public-url',
        this.url,
        '--log',
        'json'
      ],
      this.folder
    )
    this.processes.push(running)
    return running
  }

  proxy({ name, command }: Pick<Proxy, 'name' | 'command'>, config: string): void {
    const file = join(this.folder, name)
    writeFileSync(file, config)
    this.processes.push(
      started(...command(file, this.folder), this.folder, {
        HOME: this.folder,
        XDG_DATA_HOME: this.folder,
        XDG_CONFIG_HOME: this.folder
      })
    )
  }

  ready(): Promise<void> {
    return answers(`${this.url}readyz`, status => status === 200, this.processes)
  }

  async close(): Promise<void> {
    await Promise.all(this.processes.map(process => process.stop()))
    rmSync(this.folder, { recursive: true, force: true })
  }
}

const keyOf = (caller: number) => ({ authorization: `Bearer key-of-16-characters-${caller}` })

async function client(t: Test, url: string, binding: string, caller = 0): Promise<AgentClient> {
  const made = await connect(url, { headers: keyOf(caller), bindings: [binding] })
  t.teardown(() => made.close())
  return made
}

const BINDINGS = ['WEBSOCKET', 'JSONRPC', 'HTTP+JSON']

t.jobs = 4

for (const proxy of PROXIES) {
  void t.test(`behind ${proxy.name}`, { buffered: true }, async t => {
    const agentPort = await unusedPort()
    const port = await unusedPort()
    const site = new Site(port)
    t.teardown(() => site.close())
    const first = site.agent(agentPort)
    site.proxy(proxy, proxy.config(agentPort, port, site.folder))
    await site.ready()

    const card = (await (await fetch(`${site.url}.well-known/agent-card.json`)).json()) as {
      supportedInterfaces: { url: string }[]
    }
    t.strictSame(
      new Set(card.supportedInterfaces.map(({ url }) => url.replace('wss:', 'https:').replace(/\/?$/, '/'))),
      new Set([site.url]),
      'the card has the public address'
    )
    t.equal(await statusAt(`${site.url}tasks`), 401)

    const quiet = (await client(t, site.url, 'HTTP+JSON')).sendMessage(say('quiet'))
    const quietStream = client(t, site.url, 'JSONRPC').then(async made => {
      let last: StreamResponse | undefined
      for await (const event of made.sendStreamingMessage(say('quiet'))) last = event
      return last
    })

    for (const binding of BINDINGS) {
      const sent = await client(t, site.url, binding)
      t.match(
        await sent.sendMessage(say('0')),
        { task: { status: { state: 'TASK_STATE_COMPLETED' } } },
        `a message over ${binding}`
      )
      const times: number[] = []
      for await (const event of sent.sendStreamingMessage(say('3')))
        if (/^\d$/.test(told(event).text)) times.push(Date.now())
      t.equal(times.length, 3)
      t.ok(
        (times[2] ?? 0) - (times[0] ?? 0) > 400,
        `events arrive when they happen over ${binding}: ${times.map(time => time - (times[0] ?? 0)).join(', ')} ms`
      )
    }

    const large = await fetch(`${site.url}message:send`, {
      method: 'POST',
      headers: { ...keyOf(0), 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify(say('x'.repeat(4.2 * 2 ** 20)))
    })
    t.match([large.status, await large.text()], [413, /TOO_LARGE/], 'a message that is too large gets the error of A2A')

    t.match(await quiet, { task: { artifacts: [{ parts: [{ text: 'awake' }] }] } }, 'a request waits for 65 seconds')
    t.match(await quietStream, { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } }, 'and so does a stream')

    // The agent restarts while clients stream.
    const streams = BINDINGS.map(async binding => {
      const streaming = await client(t, site.url, binding)
      const events: ReturnType<typeof told>[] = []
      for await (const event of streaming.sendStreamingMessage(say('8'))) {
        events.push(told(event))
        if (events.length === 4) streamed.add(binding)
      }
      return events
    })
    const streamed = new Set<string>()
    await until(() => streamed.size === BINDINGS.length)
    t.equal(await first.stop(), 0, 'the agent parks its work')
    await answers(`${site.url}readyz`, status => status >= 502 && status <= 504, site.processes)
    site.agent(agentPort)
    for (const [index, events] of (await Promise.all(streams)).entries()) {
      t.strictSame(
        events.map(({ generation }) => generation),
        // The message that opened the task is 1.
        events.map((_, i) => i + 2),
        `a stream over ${BINDINGS[index]} resumes without a gap`
      )
      t.strictSame(
        events.map(({ text }) => text).filter(text => /^\d$/.test(text)),
        ['1', '2', '3', '4', '5', '6', '7', '8']
      )
      t.equal(events.at(-1)?.text, 'TASK_STATE_COMPLETED')
    }
  })
}

void t.test('two processes behind nginx, each with its callers', { buffered: true }, async t => {
  const [one, other, port] = [await unusedPort(), await unusedPort(), await unusedPort()]
  const site = new Site(port)
  t.teardown(() => site.close())
  const config = replaced(fromGuide('/etc/nginx/conf.d/agents.conf'), {
    'listen 443': `listen ${port}`,
    ':4242': `:${one}`,
    ':4243': `:${other}`,
    '/etc/ssl/private/agent.pem': PEM,
    'agent.example': 'localhost'
  })
  const [first] = [site.agent(one, 'one.db'), site.agent(other, 'other.db')]
  site.proxy(
    { name: 'nginx', command: (file, folder) => ['nginx', ['-p', folder, '-c', file]] },
    nginx(config, site.folder)
  )
  for (const agent of [one, other])
    await answers(`http://127.0.0.1:${agent}/readyz`, status => status === 200, site.processes)
  await site.ready()
  const tasks: { readonly caller: number; readonly id: string }[] = []
  for (let caller = 0; caller < 16; caller += 1) {
    const sent = (await (await client(t, site.url, 'JSONRPC', caller)).sendMessage(say('0'))) as { task: Task }
    tasks.push({ caller, id: sent.task.id })
  }
  for (const { caller, id } of tasks) {
    for (const binding of BINDINGS)
      t.equal(
        (await (await client(t, site.url, binding, caller)).getTask({ id })).id,
        id,
        `caller ${caller} over ${binding}`
      )
  }
  await first.stop()
  const left = await Promise.all(
    tasks.map(({ caller }) =>
      fetch(`${site.url}tasks`, { headers: { ...keyOf(caller), 'a2a-version': '1.0' } }).then(({ status }) => status)
    )
  )
  t.strictSame(
    new Set(left),
    new Set([200, 502]),
    'both processes had callers, and those of a process that is down get no other'
  )
})
