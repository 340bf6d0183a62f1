import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { unusedPort } from '../fixtures/network/unused-port.ts'
import { fromGuide, replaced } from './guide.ts'
import { answers, started } from './processes.ts'

/**
 * The steps of the Dockerfile of docs/deployment.md in an empty folder, with the packed package: `.ci/deployment`.
 * Docker is not needed.
 */
const KNOWN = ['FROM', 'ENV', 'WORKDIR', 'COPY', 'RUN', 'USER', 'VOLUME', 'EXPOSE', 'HEALTHCHECK', 'CMD']

const AGENT = `import { defineAgent } from 'taskchart'
import { apiKey } from 'taskchart/auth'

export const authenticate = apiKey({ keys: { anna: process.env['ANNAS_KEY'] ?? '' } })
export default defineAgent({ card: { name: 'Contained' }, work: async () => ({ artifact: 'done' }) })
`

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const skip =
  major < 22 || (major === 22 && minor < 18) ? 'the image has Node 24, which runs TypeScript and has SQLite' : false

await t.test('the steps of the Dockerfile make a folder that serves the agent', { skip }, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'taskchart-image-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const port = await unusedPort()
  const npm = (args: readonly string[], cwd: string) =>
    execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim()
  const tarball = npm(['pack', '--silent', '--pack-destination', folder], process.cwd()).split('\n').at(-1)
  const project = join(folder, 'project')
  mkdirSync(project)
  writeFileSync(
    join(project, 'package.json'),
    JSON.stringify({
      name: 'agent',
      version: '1.0.0',
      type: 'module',
      dependencies: { taskchart: `file:../${tarball}`, xstate: '^5.33.3' },
      devDependencies: {}
    })
  )
  writeFileSync(join(project, 'agent.ts'), AGENT)
  npm(['install', '--package-lock-only', '--silent', '--no-audit', '--no-fund'], project)

  const image = replaced(fromGuide('Dockerfile'), {
    '/data': `${folder}/data`,
    '/app': `${folder}/app`,
    ':4242': `:${port}`,
    '"serve", "agent.ts"': `"serve", "agent.ts", "--port", "${port}"`,
    'chown node': `chown ${process.getuid?.()}`
  })
  const env: NodeJS.ProcessEnv = { ANNAS_KEY: 'annas-long-secret' }
  let cwd = folder
  const last: Record<string, string[]> = {}
  for (const line of image.trimEnd().split('\n')) {
    const [, step = '', rest = ''] = /^(\w+) (.*)$/.exec(line) ?? []
    if (!KNOWN.includes(step)) throw new Error(`a step that this test does not know: ${line}`)
    if (step === 'ENV') Object.assign(env, Object.fromEntries([rest.split('=')]))
    if (step === 'WORKDIR') mkdirSync((cwd = rest))
    if (step === 'COPY') for (const file of rest.split(' ').slice(0, -1)) cpSync(join(project, file), join(cwd, file))
    if (step === 'RUN')
      execFileSync('sh', ['-ec', rest], {
        cwd,
        env: { ...process.env, ...env },
        stdio: ['ignore', 'ignore', 'inherit']
      })
    if (step === 'HEALTHCHECK' || step === 'CMD') last[step] = JSON.parse(rest.slice(rest.indexOf('['))) as string[]
  }
  const [command = '', ...args] = last['CMD'] ?? []
  const [check = '', ...checkArgs] = last['HEALTHCHECK'] ?? []
  const served = started(join(cwd, command), args, cwd, env)
  t.teardown(() => served.stop())
  await answers(`http://127.0.0.1:${port}/readyz`, status => status === 200, [served])
  execFileSync(check, checkArgs, { cwd })
  const ask = (headers: Record<string, string>) => fetch(`http://127.0.0.1:${port}/tasks`, { headers })
  t.equal((await ask({})).status, 421, 'only the named host is served')
  t.ok(existsSync(join(folder, 'data', 'tasks.db')))
  t.equal(await served.stop(), 0)
  t.throws(() => execFileSync(check, checkArgs, { cwd }), 'a server that has stopped is not healthy')
})
