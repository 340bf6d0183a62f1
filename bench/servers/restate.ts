import { spawn, spawnSync } from 'node:child_process'
import { createServer } from 'node:http2'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { unusedPort } from '../../test/fixtures/network/unused-port.ts'
import { NO_TELEMETRY } from '../engine-packages.ts'
import { WORK_STEPS } from '../errands.ts'
import { report } from './control.ts'

/** The part of Restate's SDK that is used. */
interface Restate {
  workflow(definition: { readonly name: string; readonly handlers: object }): object
  createEndpointHandler(options: { readonly services: readonly object[] }): Parameters<typeof createServer>[1]
}

interface Context {
  run(name: string, run: () => Promise<string>): Promise<string>
}

/** The folder with the packages of Restate. */
const { engine } = JSON.parse(process.argv[2] ?? '') as { readonly engine: string }
// The SDK needs this function of Node 22, and writes a line for each workflow otherwise.
if (!('withResolvers' in Promise))
  Object.assign(Promise, {
    withResolvers: () => {
      const settle: { resolve?: unknown; reject?: unknown } = {}
      return { promise: new Promise((resolve, reject) => Object.assign(settle, { resolve, reject })), ...settle }
    }
  })
process.env.RESTATE_LOGGING = 'ERROR'
const load = createRequire(join(engine, 'package.json'))
const restate = load('@restatedev/restate-sdk') as Restate
const server = createRequire(load.resolve('@restatedev/restate-server/package.json')).resolve(
  `@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`
)

const work = restate.workflow({
  name: 'work',
  handlers: {
    run: async (context: Context) => {
      const begun = await context.run('begin', WORK_STEPS.begin)
      return context.run('end', () => WORK_STEPS.end(begun))
    }
  }
})

/** Starts Restate's server with a folder of its own, and gives the ports of its ingress and its administration. */
async function startServer(): Promise<{ readonly ingress: number; readonly admin: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'taskchart-bench-'))
  const ports = { ingress: await unusedPort(), admin: await unusedPort(), node: await unusedPort() }
  const [command, ...args] = [...withoutGitHub(folder), server, '--no-logo', '--base-dir', folder]
  const child = spawn(command, args, {
    stdio: 'ignore',
    env: {
      ...process.env,
      ...NO_TELEMETRY,
      RESTATE_LISTEN_MODE: 'tcp',
      RESTATE_BIND_IP: '127.0.0.1',
      RESTATE_ADVERTISED_HOST: '127.0.0.1',
      RESTATE_BIND_PORT: String(ports.node),
      RESTATE_INGRESS__BIND_PORT: String(ports.ingress),
      RESTATE_ADMIN__BIND_PORT: String(ports.admin),
      RESTATE_LOG_FILTER: 'off'
    }
  })
  child.once('exit', code => process.exit(code ?? 1))
  process.on('exit', () => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  return ports
}

/**
 * The start of a command line that cannot find GitHub, which the server asks for its latest release, and no option
 * keeps it from that. Empty where the kernel does not let this user have a hosts file of his own.
 */
function withoutGitHub(folder: string): string[] {
  const hosts = join(folder, 'hosts')
  writeFileSync(hosts, '127.0.0.1 localhost api.github.com\n')
  const command = ['unshare', '-rm', 'sh', '-c', `mount --bind ${hosts} /etc/hosts && exec "$@"`, 'sh']
  const { status } = spawnSync('unshare', [...command.slice(1), 'true'])
  return status === 0 ? command : []
}

/** Tells the server where the workflow runs, as soon as it listens. */
async function register(admin: number, uri: string): Promise<void> {
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${admin}/deployments`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ uri })
    }).catch(() => undefined)
    if (response?.ok) return
    if (response && response.status < 500) throw new Error(await response.text())
    await setTimeout(100)
  }
}

const endpoint = createServer(restate.createEndpointHandler({ services: [work] }))
await new Promise<void>(resolve => endpoint.listen(0, '127.0.0.1', resolve))
const { ingress, admin } = await startServer()
await register(admin, `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}`)
report(ingress)
