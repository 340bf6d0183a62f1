import { inspect } from 'node:util'
import type { AgentInterface } from '../../../machines/protocol/card.ts'
import { AGENT_CARD_PATH } from '../../../machines/protocol/uris.ts'
import type { Agent } from '../../../runtime/index.ts'
import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Log, Logger } from '../../../runtime/ports/logger.ts'
import type { ServedRuntime } from '../../../runtime/runtime-options.ts'
import type { Store } from '../../../runtime/store/store.ts'
import type { Telemetry } from '../../../runtime/telemetry-port.ts'
import { postgresNode, SECRET_LENGTH } from '../../cluster/cluster.ts'
import type { ClusterNode } from '../../cluster/node.ts'
import { isLoopback } from '../../entry/admission.ts'
import { bindFault } from '../../entry/bind.ts'
import { withScheme } from '../../entry/interfaces.ts'
import { PORTS, type Address } from '../../entry/listen.ts'
import type { Dialect } from '../../json-rpc/dispatch.ts'
import { checkMcpInstalled } from '../../mcp/mcp-handler.ts'
import type { PortBinding } from '../../serve/port-extension.ts'
import type { MetricsOptions } from '../../serve/serve-metrics.ts'
import type { Card03Options } from '../../v03/card.ts'
import { CommandError, type Output, usageError } from '../command.ts'
import { openStore, storeKindOf } from '../stores.ts'
import { formatSendCommand } from '../text/format.ts'
import { jsonLine, oneLine, plain } from '../text/terminal.ts'

/** The variable with the secret of a cluster. */
export const SECRET_VARIABLE = 'TASKCHART_CLUSTER_SECRET'

/** The options `--db` and `--node`. */
export interface NodePlace {
  readonly db: string | undefined
  readonly node: string | undefined
}

/**
 * The store of a server, and its node if it is one of a cluster. `broken` aborts with the reason if the store fails for
 * good.
 */
export interface OpenedStore {
  readonly store: Store
  readonly broken: AbortSignal
  readonly node?: ClusterNode
}

/** Opens the store of `--db`; with `--node` as one node of the cluster that shares it. */
export async function openNode(
  { db, node: address }: NodePlace,
  cwd: string,
  logger: Logger,
  secret?: string
): Promise<OpenedStore> {
  if (address === undefined || db === undefined) return openStore(db, cwd, logger)
  const node = await postgresNode(db, { address, secret, logger })
  return { node, store: node.store, broken: new AbortController().signal }
}

/** Lets the other nodes reach a node. */
export async function listenForNodes({ node }: OpenedStore, address = ''): Promise<void> {
  await node?.open().catch((cause: unknown) => {
    const { hostname, port } = new URL(address)
    const fault = bindFault(cause, { host: hostname, port: Number(port) })
    throw new CommandError(
      `--node ${address} cannot be served: ${fault?.text ?? `${(cause as Error).message}.`} Choose another address of this machine.`,
      { cause }
    )
  })
}

/**
 * Validates `--node`. Throws a usage error for an address that is none, without a database, or without a secret where
 * others could reach it.
 */
export function checkNode({ db, node }: NodePlace, secret: string | undefined): void {
  if (node === undefined) return
  const url = URL.canParse(node) ? new URL(node) : undefined
  if (url?.protocol !== 'ws:' || url.port === '' || url.pathname !== '/' || url.username !== '')
    throw usageError(
      `--node takes the address by which other nodes reach this one, such as ws://10.0.0.7:4243, not ${JSON.stringify(node)}.`
    )
  if (db === undefined || storeKindOf(db) !== 'database')
    throw usageError('--node needs the database that all nodes share: --db postgres://HOST/DATABASE.')
  if (secret !== undefined && secret.length < SECRET_LENGTH)
    throw usageError(
      `${SECRET_VARIABLE} needs at least ${SECRET_LENGTH} characters. Make one with: openssl rand -base64 24`
    )
  if (secret === undefined && !isLoopback(url.hostname))
    throw usageError(
      `Without a secret, anyone could act as a node at ${url.host}. Set ${SECRET_VARIABLE} to the same text for all nodes: openssl rand -base64 24`
    )
}

type GrpcAddress = Address & { readonly port: number }
type Make = (runtime: ServedRuntime, options: Card03Options) => Dialect

interface Loaded {
  readonly dialect03: Make
  readonly dialect01: (runtime: ServedRuntime) => Dialect
}

/** Throws CommandError without the official SDK, an optional peer that translates 0.3 for `--legacy`. */
export async function checkLegacy(): Promise<void> {
  await import('../../legacy/v03.ts').catch(refuseLegacy)
}

/** Throws CommandError without the SDK of MCP, an optional peer, for `--mcp` or `taskchart mcp`. */
export function checkMcp(taker: string): void {
  try {
    checkMcpInstalled(taker)
  } catch (cause) {
    throw new CommandError((cause as Error).message, { cause })
  }
}

/** The older versions of A2A for `--legacy`. Throws CommandError as `checkLegacy` does. */
export async function legacyDialects(
  runtime: ServedRuntime,
  options: Card03Options = {},
  load: () => Promise<Loaded> = () => import('../../legacy/index.ts')
): Promise<Dialect[]> {
  try {
    const { dialect03, dialect01 } = await load()
    return [dialect03(runtime, options), dialect01(runtime)]
  } catch (cause) {
    return refuseLegacy(cause)
  }
}

function refuseLegacy(cause: unknown): never {
  throw new CommandError(
    '--legacy needs the official SDK, which translates A2A 0.3. Install it: npm install @a2a-js/sdk',
    { cause }
  )
}

type Load = () => Promise<{ readonly grpc: (address: GrpcAddress) => PortBinding }>

/**
 * The gRPC binding for `--grpc PORT`. Throws CommandError if the optional peer packages are missing. `open` throws
 * CommandError if the port cannot be bound.
 */
export async function grpcFor(
  address: GrpcAddress,
  load: Load = () => import('../../grpc/index.ts')
): Promise<PortBinding> {
  const { grpc } = await load().catch((cause: unknown) => {
    throw new CommandError(
      '--grpc needs the official SDK and gRPC. Install them: npm install @a2a-js/sdk @grpc/grpc-js @bufbuild/protobuf',
      { cause }
    )
  })
  const { port, host = '' } = address
  return {
    open: runtime =>
      grpc(address)
        .open(runtime)
        .catch(listenError({ host, port }, { host: '--host', port: '--grpc' }))
  }
}

const ADDRESS = /^(?:(?<host>[^:\s[\]]+|\[[^\]\s]+\]):)?(?<port>\d{1,5})$/

/** Parses `--metrics [HOST:]PORT`; without a host it is 127.0.0.1. Throws a usage error for anything else. */
export function readMetricsAddress(text: string): Required<MetricsOptions> {
  const { host = '127.0.0.1', port = '' } = ADDRESS.exec(text)?.groups ?? {}
  if (port !== '' && Number(port) <= 65_535) return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
  throw usageError(`--metrics takes PORT or HOST:PORT, such as 9464 or 0.0.0.0:9464, not ${JSON.stringify(text)}.`)
}

/** The values of `--log`. */
const FORMS: Readonly<Record<string, (output: Output, clock: Clock) => Logger>> = { text: textLog, json: jsonLog }

/** The log format for a value of `--log`. Throws a usage error for an unknown one. */
export function readLogForm(form: string): (output: Output, clock: Clock) => Logger {
  const log = Object.entries(FORMS).find(([name]) => name === form)?.[1]
  if (log) return log
  throw usageError(`--log takes text or json, not ${JSON.stringify(form)}.`)
}

/** Lines of text for people: warnings and errors only. */
function textLog(output: Output): Logger {
  const write: Log = (message, details) => output.write(`taskchart: ${plain(`${message} ${inspect(details)}`)}\n`)
  return { warn: write, error: write }
}

/** Lines of JSON for programs: `{ time, level, message, details }`. */
function jsonLog(output: Output, clock: Clock): Logger {
  const writer =
    (level: string): Log =>
    (message, details) =>
      output.write(
        jsonLine({ time: new Date(clock.now()).toISOString(), level, message, details: plainErrors(details) })
      )
  return { info: writer('info'), warn: writer('warn'), error: writer('error') }
}

/** Replaces errors by plain objects, since `JSON.stringify` drops their members. */
function plainErrors(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainErrors)
  if (typeof value !== 'object' || value === null) return value
  const { name, message, stack, cause, errors } = value as Error & { errors?: unknown }
  const members = value instanceof Error ? Object.assign({}, value, { name, message, stack, cause, errors }) : value
  return Object.fromEntries(Object.entries(members).map(([key, member]) => [key, plainErrors(member)]))
}

/** The telemetry of a served agent, and the function that flushes its last spans and metrics. */
export interface ServedTelemetry {
  readonly telemetry: Telemetry
  readonly flush: () => Promise<void>
}

/**
 * OpenTelemetry, if the agent's module or a `node --import` has registered a provider of tracers or meters. Otherwise
 * nothing is loaded.
 */
export async function registeredTelemetry(logger: Logger): Promise<ServedTelemetry | undefined> {
  if (!hasProvider()) return undefined
  const [{ openTelemetry }, { flushTelemetry }] = await Promise.all([
    import('../../opentelemetry/open-telemetry.ts'),
    import('../../opentelemetry/api.ts')
  ])
  const flush = () =>
    flushTelemetry().catch((error: unknown) =>
      logger.error('the last spans and metrics could not be exported', { error })
    )
  return { telemetry: openTelemetry(), flush }
}

/** The key of the global under which every copy of the OpenTelemetry API registers providers. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/** Whether a provider of tracers or meters is registered. Does not load the API. */
export function hasProvider(place: object = globalThis): boolean {
  const registered = (place as Record<symbol, { readonly trace?: unknown; readonly metrics?: unknown } | undefined>)[
    REGISTERED
  ]
  return registered?.trace !== undefined || registered?.metrics !== undefined
}

/** The URLs of a served agent. */
export interface Places {
  readonly name: string
  /** The WebSocket URL. */
  readonly url: string
  readonly http: string
  readonly card: string
  /** The page for people. */
  readonly page: string
  /** The gRPC address, `host:port`. */
  readonly grpc?: string
  /** The id of the process that serves it. */
  readonly pid: number
  /** The URL for hosts of the Model Context Protocol, if they are served. */
  readonly mcp?: string
  /** The URL for front ends that speak AG-UI, if they are served. */
  readonly agui?: string
  /** The URL of the metrics, if they are served. */
  readonly metrics?: string
}

/** The URLs of an agent that is served at an `http:` URL with these interfaces. */
export function placesOf({ card }: Agent, http: string, interfaces: readonly AgentInterface[], page = http): Places {
  const grpc = interfaces.find(({ protocolBinding }) => protocolBinding === 'GRPC')?.url
  return {
    name: card.name,
    url: withScheme(http, 'ws'),
    http,
    card: new URL(AGENT_CARD_PATH, http).href,
    page,
    pid: process.pid,
    ...(grpc !== undefined && { grpc })
  }
}

/** The output of `serve` on a terminal: the agent's URLs, a command line to paste, and how to stop it. */
export function announcement(
  { card }: Agent,
  { url, http, card: cardUrl, page, pid, grpc, mcp, agui, metrics }: Places,
  needsKey: boolean,
  end = ''
): string {
  const text = card.skills.flatMap(({ examples = [] }) => examples)[0] ?? 'hello'
  return `${[card.name, ...(card.description === '' ? [] : [card.description])].map(oneLine).join(': ')}

  agent  ${url}
         ${http} for JSON-RPC and REST${grpc === undefined ? '' : `\n         ${grpc} for gRPC`}${mcp === undefined ? '' : `\n         ${mcp} for hosts of MCP`}${agui === undefined ? '' : `\n         ${agui} for front ends that speak AG-UI`}
  card   ${cardUrl}
  page   ${page}${metrics === undefined ? '' : `\n         ${metrics} for Prometheus`}

Talk to it from another terminal:

  ${formatSendCommand({ url: reachable(url), text, out: 'artifacts', needsKey })}
${mcp === undefined ? '' : `\nAdd it to a host, such as Claude Code:\n\n  ${formatHostCommand(card.name, reachable(mcp), needsKey)}\n`}
${end}Ctrl-C stops it. Its process id is ${pid}.
`
}

/** The line that adds an agent to a host. */
function formatHostCommand(name: string, url: string, needsKey: boolean): string {
  const word = name
    .toLowerCase()
    .replace(/[^a-z\d]+/g, '-')
    .replace(/^-+|-+$/g, '')
  return `claude mcp add --transport http ${word || 'agent'} ${url}${needsKey ? ' --header "Authorization: Bearer KEY"' : ''}`
}

/** The URL by which this machine reaches a server that listens on all addresses. */
function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}

/** Turns an error of `listen` into a CommandError that names the options to change. */
export function listenError(
  { port, host }: { readonly port: number | undefined; readonly host: string },
  options = { host: '--host', port: '--port' }
): (cause: unknown) => never {
  return cause => {
    if (cause instanceof CommandError) throw cause
    const [first, last] = port === undefined ? PORTS : [port, port]
    const fault = bindFault(cause, { host, port: first, last })
    if (!fault)
      throw new CommandError(
        `${host} port ${first} cannot be served: ${(cause as Error).message}. Choose others with ${options.host} and ${options.port}.`,
        { cause }
      )
    const option = options[fault.wrong]
    throw new CommandError(
      `${fault.text} Choose another with ${option}${fault.wrong === 'port' ? `, or ${option} 0 for any` : ''}.`,
      { cause }
    )
  }
}
