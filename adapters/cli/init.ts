import { lstat, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, join, normalize, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { newestFor } from '../peers/installed-packages.ts'
import { readOptions } from './arguments.ts'
import { type Command, CommandError, EXIT, type Io, usageError } from './command.ts'
import { makeFolder, writeNew } from './files.ts'
import { isDeviceName } from './talk/artifacts.ts'
import { didYouMean } from './text/format.ts'
import { oneLine, shellWord } from './text/terminal.ts'

const require = createRequire(import.meta.url)
const PACKAGE = require.resolve('taskchart/package.json')

/**
 * The kinds of agents that a project can begin with, with the file of the package that is its agent. Its test is in
 * `templates/`.
 */
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

/**
 * The AI SDK and a provider of models for it, in the newest tested versions that run on a Node, and the Nodes that they
 * need.
 */
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
  const isReserved = [...PACKAGES, ...DEVELOPMENT_PACKAGES, 'ai', 'node_modules', ''].some(
    reserved => reserved === name
  )
  return isReserved ? `${name || 'my'}-agent` : name
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

const NAMES = Object.keys(KINDS) as AgentKind[]
const KIND_LINES = NAMES.map(name => `${name.padEnd(11)}  ${KINDS[name].about}`)

/** `taskchart init`: writes a new project. */
export const initCommand: Command = {
  usage: ['taskchart init [DIR] [--kind KIND]'],
  details: `Writes ${FILE_NAMES.slice(0, -1).join(', ')} and ${FILE_NAMES.at(-1)} into DIR (default: this folder),
which is created if needed. Nothing is overwritten: if one of these files exists, nothing is written. Installs nothing, and
prints the commands that come next. On a terminal it asks for the kind of agent. Otherwise --kind is required.

${KIND_LINES.map((line, i) => `  ${i === 0 ? '--kind KIND' : '           '}  ${line}`).join('\n')}

Exit codes: 0 written, 1 an error, 2 wrong usage, 130 stopped with Ctrl-C.
`,
  run
}

const OPTIONS = { kind: { type: 'string' } } as const

async function run(args: readonly string[], io: Io): Promise<number> {
  const {
    values: { kind: given },
    positionals: [dir = '.', ...rest]
  } = readOptions(args, OPTIONS)
  if (rest.length > 0)
    throw usageError(`${JSON.stringify(rest[0])} is one argument too many. Put quotes around a folder with spaces.`)
  if (given !== undefined && !isKind(given))
    throw usageError(`There is no --kind ${given}. ${didYouMean(given, NAMES)}`)
  checkFolder(dir)
  const folder = resolve(io.cwd, dir)
  await refuseExisting(folder, dir)
  const kind = given ?? (await askKind(io))
  const files = await projectFiles(kind, folder)
  io.signal.throwIfAborted()
  await writeFiles(folder, files)
  for (const name of FILE_NAMES) io.stdout.write(`${oneLine(join(dir, name))}\n`)
  io.stderr.write(
    `\nNext:\n\n${nextSteps(kind, dir)
      .map(line => `  ${line}\n`)
      .join('')}`
  )
  return EXIT.ok
}

function isKind(text: string): text is AgentKind {
  return Object.hasOwn(KINDS, text)
}

/** Repeats the question until the answer is a number or a name of the list; an empty one is the first. */
async function askKind({ input, stderr, signal }: Io): Promise<AgentKind> {
  if (!input.isTerminal)
    throw usageError(`There is no terminal to ask for the kind of agent. Give one: --kind ${NAMES.join('|')}.`)
  stderr.write(`Which kind of agent?\n\n${KIND_LINES.map((line, i) => `  ${i + 1}  ${line}\n`).join('')}\n`)
  for (;;) {
    const line = await input.ask('Number or name (1): ', signal)
    if (line === undefined) throw new CommandError('No kind was given, so nothing was written.')
    const answer = line.trim().toLowerCase() || '1'
    const kind = NAMES[Number(answer) - 1] ?? answer
    if (isKind(kind)) return kind
    stderr.write(`That is not one of 1 to ${NAMES.length}, ${NAMES.join(', ')}.\n`)
  }
}

/** Throws a usage error for a folder that leaves this one, or whose name is none on some system. */
function checkFolder(dir: string): void {
  if (/^\.\.(?:[\\/]|$)/.test(normalize(dir)))
    throw usageError(
      `DIR has to be in this folder, not ${JSON.stringify(dir)}. Change to the folder where the project belongs, or give an absolute path.`
    )
  const wrong = dir.split(/[\\/]/).find(name => isDeviceName(name) || /[<>:"|?*\p{C}]|[^.][. ]$/u.test(name))
  if (wrong !== undefined && !/^[a-z]:$/i.test(wrong))
    throw usageError(
      `${JSON.stringify(wrong)} cannot be the name of a folder on every system. Give another name: npx taskchart init my-agent`
    )
}

async function refuseExisting(folder: string, dir: string): Promise<void> {
  const existing: string[] = []
  for (const name of FILE_NAMES)
    if (
      await lstat(join(folder, name)).then(
        () => true,
        () => false
      )
    )
      existing.push(name)
  if (existing.length === 0) return
  const what = `${existing.join(', ')} ${existing.length === 1 ? 'exists' : 'exist'} in ${dir === '.' ? 'this folder' : dir}`
  throw new CommandError(`${what}, so nothing was written. Give a new folder: npx taskchart init my-agent`)
}

/** Writes all files, or none. */
async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  const written: string[] = []
  try {
    await makeFolder(folder)
    for (const [name, text] of Object.entries(files)) {
      await writeNew(join(folder, name), text)
      written.push(join(folder, name))
    }
  } catch (cause) {
    for (const path of written) await rm(path, { force: true })
    throw new CommandError(`The project could not be written: ${(cause as Error).message}.`, { cause })
  }
}

function nextSteps(kind: AgentKind, dir: string): string[] {
  return [
    ...(dir === '.' ? [] : [`cd ${shellWord(dir)}`]),
    'npm install',
    'npm test',
    ...(kind === 'model' ? ['export OPENAI_API_KEY=…'] : []),
    'npx taskchart dev agent.ts'
  ]
}
