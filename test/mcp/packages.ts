import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serve } from '../../adapters/serve/serve.ts'
import type { Test } from 'tap'
import { createRuntime, type Agent } from '../../runtime/index.ts'
import { recordingLogger } from '../fixtures/runtime/runtime-helpers.ts'

/** The packages of these tests, which are none of the clone's own. */
const PACKAGES = join('test', 'mcp', 'node_modules')
/** The oldest Node that runs them. */
const OLDEST = [22, 19] as const

/** A Node that runs the packages: this one, or else the one that is installed beside them. */
const NODE: string | undefined = (() => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return process.execPath
  const installed = join(PACKAGES, `node-${process.platform}-${process.arch}`, 'bin', 'node')
  return existsSync(installed) ? installed : undefined
})()

/** The programs of the packages: the conformance suite of MCP, and its inspector. */
const PROGRAMS = { conformance: 'conformance', inspector: 'mcp-inspector' } as const

/** Why the tests that need these packages are left out; `false` if they are installed. */
export const NO_MCP_PACKAGES: string | false =
  NODE !== undefined && Object.keys(PROGRAMS).every(name => existsSync(manifestOf(name)))
    ? false
    : 'no packages, or no Node 22.19: npm ci --prefix test/mcp --ignore-scripts'

function manifestOf(name: string): string {
  return join(PACKAGES, '@modelcontextprotocol', name, 'package.json')
}

/** The end of a program. */
export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program of the packages to its end. */
export async function runProgram(name: keyof typeof PROGRAMS, ...args: readonly string[]): Promise<Ended> {
  const manifest = manifestOf(name)
  const { bin } = JSON.parse(readFileSync(manifest, 'utf8')) as { readonly bin: Readonly<Record<string, string>> }
  const program = join(manifest, '..', bin[PROGRAMS[name]] ?? '')
  const home = mkdtempSync(join(tmpdir(), 'taskchart-mcp-'))
  const options = { env: { PATH: process.env['PATH'], HOME: home }, maxBuffer: 2 ** 26 }
  const ended = await new Promise<Ended>(resolve => {
    execFile(String(NODE), [program, ...args], options, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr })
    })
  })
  rmSync(home, { recursive: true })
  return ended
}

/** Serves an agent over MCP, and gives its address. */
export async function servedAgent(t: Test, agent: Agent): Promise<string> {
  const runtime = createRuntime({ agent, logger: recordingLogger().logger })
  const { close, mcpUrl } = await serve(runtime, { port: 0, mcp: true })
  t.teardown(async () => {
    await close()
    await runtime.close()
  })
  return String(mcpUrl)
}
