import { stat } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Authenticate, Authorize } from '../../runtime/access/authentication.ts'
import { defineAgent, type Agent, type AgentDefinition } from '../../runtime/index.ts'
import type { LocalModules } from '../../runtime/work-port.ts'
import { INSTALL_TOOLS } from '../drawing/layout.ts'
import { checkPackages } from '../peers/installed-packages.ts'
import { loadWithModules } from '../testing/diff/local-modules.ts'
import type { Cases } from '../testing/plan/cases.ts'
import { isUrl } from './arguments.ts'
import { CommandError, type Io } from './command.ts'
import { whenAborted } from './process/process-events.ts'
import { thrownText } from './text/terminal.ts'

export interface AgentModule {
  readonly agent: Agent
  /** The absolute path of its file. */
  readonly path: string
  /** Gives its local modules as they were loaded. Throws CommandError if they are not known. */
  readonly localModules: () => LocalModules
  readonly authenticate?: Authenticate
  readonly authorize?: Authorize
  /** The inputs of its tests. */
  readonly cases?: Cases
}

/** Loads modules, with or without tsx. */
export interface ModuleReader {
  /** Whether Node itself reads TypeScript, as from 22.18. */
  readonly stripsTypes: boolean
  /** Loads tsx, an optional peer that reads TypeScript on older Nodes. */
  readonly loadTsx: () => Promise<{
    readonly tsImport: (specifier: string, parentUrl: string) => Promise<unknown>
    readonly register: () => unknown
  }>
  /** Loads a module that Node itself can read. */
  readonly load: (href: string) => Promise<unknown>
}

/** The module reader of this Node. */
export const nodeReader: ModuleReader = {
  stripsTypes: Boolean((process.features as { typescript?: unknown }).typescript),
  loadTsx: () => {
    checkPackages(['tsx'])
    return import('tsx/esm/api')
  },
  load: href => import(href)
}

/**
 * Loads an agent's module: its default export, made with `defineAgent`, and the optional exports `authenticate`,
 * `authorize` and `cases`. Throws CommandError with advice if the file is missing, does not load, or exports no agent.
 */
export async function loadAgent(file: string, cwd: string, reader: ModuleReader = nodeReader): Promise<AgentModule> {
  const path = resolve(cwd, file)
  await checkModule(file, path)
  const { loaded, localModules } = await loadWithModules(path, () => importModule(path, file, reader))
  const { default: exported, authenticate, authorize, cases } = loaded
  if (exported === undefined)
    throw new CommandError(
      `${file} has no default export. Write: export default defineAgent({ card: { name: '…' }, work: … })`
    )
  const agent = agentOf(exported, file)
  const functions = {
    ...functionIn(file, 'authenticate', authenticate, 'identifies the caller: ({ headers }) => ({ id })'),
    ...functionIn(
      file,
      'authorize',
      authorize,
      'allows or refuses an operation: ({ operation, principal, claims }) => true'
    )
  }
  if (cases !== undefined && !isObject(cases))
    throw new CommandError(
      `The export cases of ${file} has to be an object, as taskchart/testing describes it: { messages: { 'a colour': 'red' } }.`
    )
  return {
    agent,
    path,
    localModules: knownModules(file, localModules),
    ...functions,
    ...(cases !== undefined && { cases })
  }
}

/** Loads an agent as `loadAgent` does. Throws once the user stops the command, since a module may never load. */
export async function loadUnlessStopped(
  file: string,
  { cwd, signal }: Pick<Io, 'cwd' | 'signal'>
): Promise<AgentModule> {
  const loaded = await Promise.race([loadAgent(file, cwd), whenAborted(signal)])
  if (!loaded) throw signal.reason
  return loaded
}

/** The local modules of a file, with advice where they are not known. */
function knownModules(file: string, localModules: () => LocalModules): () => LocalModules {
  return () => {
    try {
      return localModules()
    } catch (cause) {
      throw new CommandError(`The local modules of ${file} are not known: ${(cause as Error).message}.`, { cause })
    }
  }
}

/** Throws CommandError for a path that cannot be a module. */
async function checkModule(file: string, path: string): Promise<void> {
  const wanted = 'Give the path of a module whose default export is an agent'
  if (isUrl(file))
    throw new CommandError(
      `${file} is an address. ${wanted}. To talk to the agent at that address: npx taskchart chat ${file}`
    )
  const found = await stat(path).catch(() => undefined)
  if (!found) throw new CommandError(`There is no file ${path}. ${wanted}.`)
  if (found.isDirectory()) throw new CommandError(`${file} is a folder. ${wanted}, such as ${join(file, 'agent.ts')}.`)
  if (!found.isFile()) throw new CommandError(`${file} is no file that can be read twice. ${wanted}.`)
  const ending = extname(path)
  if (ending !== '' && !/^\.[cm]?[jt]sx?$/.test(ending))
    throw new CommandError(
      `${file} is not a module: its name ends with ${ending}. ${wanted}, in JavaScript or TypeScript, such as agent.ts.`
    )
}

function functionIn(
  file: string,
  name: 'authenticate' | 'authorize',
  exported: unknown,
  what: string
): Pick<AgentModule, 'authenticate' | 'authorize'> {
  if (exported === undefined) return {}
  if (typeof exported === 'function') return { [name]: exported }
  throw new CommandError(`The export ${name} of ${file} has to be a function that ${what}.`)
}

async function importModule(path: string, file: string, reader: ModuleReader): Promise<Record<string, unknown>> {
  const { href } = pathToFileURL(path)
  // Node strips types, but does not read JSX.
  const needsTsx = path.endsWith('.tsx') || (/\.[cm]?ts$/.test(path) && !reader.stripsTypes)
  const load = needsTsx ? await tsxImport(file, reader) : reader.load
  try {
    return esModule(await load(href))
  } catch (cause) {
    throw new CommandError(`${file} could not be loaded: ${thrownText(cause)}`, { details: placesIn(cause), cause })
  }
}

async function tsxImport(file: string, { loadTsx }: ModuleReader): Promise<(specifier: string) => Promise<unknown>> {
  try {
    const { tsImport } = await loadTsx()
    return specifier => tsImport(specifier, import.meta.url)
  } catch (cause) {
    const message = `${file} is TypeScript, which Node ${process.versions.node} reads only with tsx. ${INSTALL_TOOLS}`
    throw new CommandError(message, { cause })
  }
}

/** The exports of a module that was compiled to CommonJS are inside its default export. */
function esModule(module: unknown): Record<string, unknown> {
  const exports = module as Record<string, unknown>
  const inner = exports['default']
  return isObject(inner) && 'default' in inner ? inner : exports
}

/** The stack frames of a load error that are in the author's code. */
function placesIn(error: unknown): string {
  const text = String(Object(error).stack).replaceAll(/\?taskchart-load=\d+/g, '')
  const lines = text.split('\n')
  // The stack of a syntax error begins with its place and source line.
  /* c8 ignore next -- depends on the version of Node */
  if (/^(?:file:|\/).*:\d+\n/.test(text)) return lines.slice(0, 3).join('\n')
  return lines
    .filter(line => /^\s+at .*file:/.test(line) && !/node_modules|load-agent|local-modules/.test(line))
    .join('\n')
}

function agentOf(exported: unknown, file: string): Agent {
  const notAgent = `The default export of ${file} is not an agent`
  if (!isObject(exported) || !isObject(exported['card']))
    throw new CommandError(`${notAgent}. Make it with defineAgent({ card: { name: '…' }, work: … }).`)
  try {
    return defineAgent(exported as unknown as AgentDefinition)
  } catch (cause) {
    throw new CommandError(`${notAgent}: ${(cause as TypeError).message}`, { cause })
  }
}
