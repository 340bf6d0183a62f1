import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import { newestFor } from '../../peers/installed-packages.ts'

const require = createRequire(import.meta.url)
const PACKAGE = require.resolve('taskchart/package.json')

/** The kinds of agents that a project can begin with, with the file of the package that is its agent. Its test is in `templates/`. */
export const KINDS = {
  function: {
    about: 'its work is a function, whose return value completes the task',
    agent: 'templates/function/agent.ts'
  },
  question: { about: 'its work asks the client, and waits for the answers', agent: 'templates/question/agent.ts' },
  chart: { about: 'its work is a statechart, whose states set the status of the task', agent: 'examples/barista.ts' },
  negotiation: { about: 'it agrees on a price before it works', agent: 'templates/negotiation/agent.ts' },
  model: { about: 'a language model works, with the AI SDK', agent: 'templates/model/agent.ts' }
} as const

/** A kind of agent. */
export type AgentKind = keyof typeof KINDS

/** The files of a project, whatever its kind. */
export const FILE_NAMES = ['package.json', 'tsconfig.json', 'agent.ts', 'agent.test.ts', '.gitignore'] as const

/** Packages that the templates import, with those that `taskchart dev` and `taskchart/testing` need. */
const PACKAGES = ['taskchart', 'xstate', 'zod'] as const
const DEVELOPMENT_PACKAGES = ['@types/node', '@xstate/graph', 'elkjs', 'fast-check', 'tsx', 'typescript'] as const

const TSCONFIG = {
  compilerOptions: {
    target: 'es2023',
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    skipLibCheck: true
  },
  include: ['*.ts']
}

/** Files that git ignores: installed packages, coverage and last contexts, saved artifacts, databases and keys. */
const IGNORED = ['node_modules/', '.taskchart/', 'artifacts/', '*.db', '*.db-*', '.env']

/** Resolves with the text of each file of a project of this kind in this folder, for a Node. */
export async function projectFiles(
  kind: AgentKind,
  folder: string,
  node = process.versions.node
): Promise<Record<(typeof FILE_NAMES)[number], string>> {
  const packaged = (path: string) => readFile(new URL(path, pathToFileURL(PACKAGE)), 'utf8')
  return {
    'package.json': json(packageFile(kind, folder, node)),
    'tsconfig.json': json(TSCONFIG),
    'agent.ts': await packaged(KINDS[kind].agent),
    'agent.test.ts': await packaged(`templates/${kind}/agent.test.ts`),
    '.gitignore': `${IGNORED.join('\n')}\n`
  }
}

function packageFile(kind: AgentKind, folder: string, node: string): object {
  const { engines, packages } = kind === 'model' ? modelPackages(node) : { engines: own().engines, packages: {} }
  return {
    name: packageName(folder),
    version: '0.1.0',
    private: true,
    type: 'module',
    engines,
    scripts: {
      dev: 'taskchart dev agent.ts',
      start: 'taskchart serve agent.ts',
      test: 'node --import tsx --test agent.test.ts',
      typecheck: 'tsc'
    },
    dependencies: { ...versions(PACKAGES), ...packages },
    devDependencies: versions(DEVELOPMENT_PACKAGES)
  }
}

/** The AI SDK and a provider of models for it, in the newest tested versions that run on a Node, and the Nodes that they need. */
function modelPackages(runsOn: string): {
  readonly engines: object
  readonly packages: Readonly<Record<string, string>>
} {
  const { version, node, beside } = newestFor('ai', runsOn)
  return {
    engines: node === undefined ? own().engines : { node: `>=${node}` },
    packages: { ai: `^${version}`, '@ai-sdk/openai': `^${beside?.['@ai-sdk/openai']}` }
  }
}

/** The name of the folder in npm's alphabet. npm refuses a project that is called like one of its dependencies. */
function packageName(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._~-]+/g, '-')
    .replace(/^[._-]+|-+$/g, '')
  const isTaken = [...PACKAGES, ...DEVELOPMENT_PACKAGES, 'ai', 'node_modules', ''].some(taken => taken === name)
  return isTaken ? `${name || 'my'}-agent` : name
}

interface OwnPackage {
  readonly version: string
  readonly engines: object
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

function own(): OwnPackage {
  return require(PACKAGE) as OwnPackage
}

/** The ranges of the package itself, which its tests use. */
function versions(names: readonly string[]): Record<string, string> {
  const { version, dependencies, devDependencies } = own()
  const ranges: Readonly<Record<string, string>> = { ...devDependencies, ...dependencies, taskchart: `^${version}` }
  return Object.fromEntries(names.map(name => [name, String(ranges[name])]))
}

function json(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}
