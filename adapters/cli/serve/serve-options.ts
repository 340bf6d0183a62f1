import { NATIVE_VERSIONS, type NativeVersion, PROTOCOL_VERSION } from '../../../machines/protocol/versions.ts'
import type { Authenticate, Authorize } from '../../../runtime/access/authentication.ts'
import type { SignCard } from '../../../runtime/index.ts'
import { guardedLogger, type Logger } from '../../../runtime/ports/logger.ts'
import type { WebhookSender } from '../../../runtime/ports/webhook-sender.ts'
import { namedHosts, namedOrigins } from '../../../runtime/primitives/authority.ts'
import type { LocalModules } from '../../../runtime/work-port.ts'
import { isLoopback } from '../../entry/admission.ts'
import { isEveryAddress } from '../../entry/listen.ts'
import { webhooks } from '../../push/webhooks.ts'
import type { MetricsOptions } from '../../serve/serve-metrics.ts'
import type { Card03Options } from '../../v03/card.ts'
import { apiKeyAuthentication, readArguments, readOwnApiKey } from '../arguments.ts'
import { usageError, type Io } from '../command.ts'
import { signerFrom } from '../key-files.ts'
import type { AgentModule } from '../load-agent.ts'
import { checkNode, readLogForm, readMetricsAddress, SECRET_VARIABLE } from './parts.ts'

const OPTIONS = {
  port: { type: 'string' },
  host: { type: 'string', default: '127.0.0.1' },
  grpc: { type: 'string' },
  metrics: { type: 'string' },
  'api-key': { type: 'string' },
  'public-url': { type: 'string' },
  hosts: { type: 'string', multiple: true },
  origin: { type: 'string', multiple: true },
  'card-key': { type: 'string' },
  'card-jku': { type: 'string' },
  versions: { type: 'string' },
  mcp: { type: 'boolean', default: false },
  agui: { type: 'boolean', default: false },
  legacy: { type: 'boolean', default: false },
  'legacy-websocket': { type: 'boolean', default: false },
  'no-push': { type: 'boolean', default: false },
  'allow-loopback-webhooks': { type: 'boolean', default: false },
  'observe-properties': { type: 'boolean', default: false },
  db: { type: 'string', multiple: true },
  node: { type: 'string' },
  inspect: { type: 'boolean', default: false },
  json: { type: 'boolean' },
  log: { type: 'string', default: 'text' }
} as const

/** The help text of OPTIONS. */
export const SERVE_OPTIONS = `  --port PORT     listen here; 0 takes any free port. Default 4242; dev takes the next free port if 4242 is in use
  --host HOST     listen on this address. Default 127.0.0.1; others need authenticate or --api-key, and 0.0.0.0 and :: also --public-url
                  or --hosts
  --api-key KEY   require this key of at least 16 characters (Authorization: Bearer KEY)
  --public-url URL  the URL in the card, under which clients reach the agent, for example through a proxy
  --hosts NAME[:PORT]  accept requests for this host only. The card contains it with PORT, or else with the port of --port. May be
                  given several times
  --origin ORIGIN  pages of this origin may call the agent: https://app.example, or loopback for all pages of this machine. May be given
                  several times
  --card-key FILE  sign the card with this private key, PEM or JWK; needs the packages @a2a-js/sdk and jose
  --card-jku URL  the URL of the public key, written into the signature
  --versions LIST  the versions of A2A: 1.0 (the default), or 1.0,1.1. 1.1 is a draft: what it adds may change
  --mcp           also speak the Model Context Protocol at /mcp; needs the package @modelcontextprotocol/server. --json gives the URL as mcp
  --agui          also speak AG-UI at /ag-ui, for front ends such as CopilotKit; dev always does. --json gives the URL as agui
  --legacy        also speak A2A 0.3 and 0.1; needs the package @a2a-js/sdk
  --legacy-websocket  with --legacy: list WebSocket in cards of A2A 0.3 too, which does not define it
  --no-push       offer no push notifications. By default, task updates are posted to the webhooks that clients register
  --allow-loopback-webhooks  for development: also post to receivers on this machine, including http:. By default, only to https:
                  URLs of the public internet
  --observe-properties  count and log tasks that violate a rule of A2A or a property of the agent (docs/prove.md#in-production)
  --db FILE|URL   store tasks in this SQLite file, created if needed, or in the PostgreSQL database of a postgres: URL (needs the
                  package pg), so that they survive a restart
  --json          when it serves, write one line of JSON, { name, url, http, card, page, pid }, and nothing else, to stdout
  --log FORM      the form of the log on stderr: text for people (the default), or json, one line of
                  { time, level, message, details } per entry; secrets are left out of both
`
/** The parsed options of a command that serves an agent. */
export interface ServeSettings {
  /** The path of the agent's module. */
  readonly file: string
  /** Without a port if none was given. */
  readonly address: { readonly port: number | undefined; readonly host: string }
  /** The gRPC port; `undefined` for none. */
  readonly grpc: number | undefined
  /** Whether the Model Context Protocol is spoken. */
  readonly mcp: boolean
  /** Whether AG-UI is spoken. */
  readonly agui: boolean
  /** Where metrics are served; `undefined` for nowhere. */
  readonly metrics: Required<MetricsOptions> | undefined
  /** The cards of A2A 0.3; `undefined` if older versions are not served. */
  readonly legacy: Card03Options | undefined
  readonly db: string | undefined
  /** The address by which other nodes reach this one; `undefined` for a server on its own. */
  readonly node: string | undefined
  /** Whether the inspector is served. */
  readonly inspect: boolean
  readonly json: boolean
  readonly logger: Logger
  /** The form of the log. */
  readonly log: string
  /**
   * The runtime's settings for a module. Throws a usage error if options and exports conflict, or would expose the
   * agent.
   */
  readonly runtimeOptions: (module: AgentModule) => RuntimeSettings
}

/** The settings of a runtime that come from the options and the module. */
export interface RuntimeSettings {
  readonly logger: Logger
  /** Reads the local modules of the agent. */
  readonly localModules?: () => LocalModules
  readonly publicUrl?: string
  readonly hosts?: readonly string[]
  readonly origins?: readonly string[]
  readonly authenticate?: Authenticate
  readonly authorize?: Authorize
  readonly signCard?: SignCard
  readonly push?: WebhookSender
  readonly observeProperties?: boolean
  readonly versions?: readonly NativeVersion[]
}

/**
 * Parses the arguments of a command that serves an agent. Throws a usage error for invalid ones. `allowed` are origins
 * besides `--origin`.
 */
export async function readServeArguments(
  args: readonly string[],
  io: Io,
  allowed: readonly string[] = []
): Promise<ServeSettings> {
  const {
    values,
    positionals: [file]
  } = readArguments(args, OPTIONS, ['AGENT.ts|js'])
  const {
    host,
    port,
    grpc,
    metrics,
    'api-key': key,
    'public-url': publicUrl,
    hosts,
    origin = [],
    'card-key': cardKey,
    'card-jku': jku,
    versions,
    mcp,
    agui,
    legacy: speaksOlder,
    'legacy-websocket': webSocketInCards,
    db: [db, secondDb] = [],
    node,
    inspect,
    json = false,
    log
  } = values
  const {
    'no-push': noPush,
    'allow-loopback-webhooks': allowLoopback,
    'observe-properties': observeProperties
  } = values
  if (noPush && allowLoopback)
    throw usageError('--no-push and --allow-loopback-webhooks exclude each other. Give one of them.')
  if (webSocketInCards && !speaksOlder)
    throw usageError('--legacy-websocket needs --legacy, which serves A2A 0.3 with its cards.')
  if (secondDb !== undefined)
    throw usageError(
      '--db was given twice. An agent has one database: docs/cluster.md#beyond-one-primary says how far that one goes.'
    )
  checkNode({ db, node }, io.env[SECRET_VARIABLE])
  checkPublicUrl(publicUrl)
  checkNames(() => namedHosts(hosts ?? []))
  checkNames(() => namedOrigins(origin))
  const origins = [...allowed, ...origin]
  const apiKey = readOwnApiKey(key)
  if (jku !== undefined && cardKey === undefined)
    throw usageError('--card-jku needs --card-key FILE: the private key whose public key is at that URL.')
  const signCard =
    cardKey === undefined ? undefined : await signerFrom(cardKey, io.cwd, { ...(jku !== undefined && { jku }) })
  const given = {
    ...(!noPush && { push: webhooks({ allowLoopback }) }),
    ...(publicUrl !== undefined && { publicUrl }),
    ...(hosts && { hosts }),
    ...(origins.length > 0 && { origins }),
    ...(signCard && { signCard }),
    ...(observeProperties && { observeProperties }),
    ...(versions !== undefined && { versions: readVersions(versions) })
  }
  const logger = guardedLogger(readLogForm(log)(io.stderr, io.clock))
  const runtimeOptions = ({ localModules, authenticate: own, authorize }: AgentModule): RuntimeSettings => {
    if (own && apiKey !== undefined)
      throw usageError(`${file} exports authenticate, which already identifies callers. Leave out --api-key.`)
    const authenticate = apiKey === undefined ? own : apiKeyAuthentication(apiKey)
    if (!isLoopback(host) && !authenticate)
      throw usageError(`Without a key, anyone could use the agent on ${host}. Give --api-key KEY, or leave out --host.`)
    if (isEveryAddress(host) && publicUrl === undefined && !hosts) {
      throw usageError(
        `On ${host} the agent listens on every address of this machine. Choose the one for its card with --public-url URL or --hosts NAME[:PORT].`
      )
    }
    return { logger, localModules, ...given, ...(authenticate && { authenticate }), ...(authorize && { authorize }) }
  }
  return {
    file,
    address: { port: port === undefined ? undefined : readPort('port', port), host },
    grpc: grpc === undefined ? undefined : readPort('grpc', grpc),
    metrics: metrics === undefined ? undefined : readMetricsAddress(metrics),
    mcp,
    agui,
    legacy: speaksOlder ? { webSocketInCards } : undefined,
    db,
    node,
    inspect,
    json,
    logger,
    log,
    runtimeOptions
  }
}

function checkPublicUrl(url: string | undefined): void {
  if (url === undefined || (URL.canParse(url) && /^(?:http|ws)s?:/.test(url))) return
  throw usageError(`--public-url takes an address such as https://agent.example/, not ${JSON.stringify(url)}.`)
}

function checkNames(check: () => unknown): void {
  try {
    check()
  } catch (cause) {
    throw usageError(`--${(cause as TypeError).message.replace(/^origins/, 'origin')}`)
  }
}

/** Parses `--versions 1.0,1.1`. Throws a usage error for a version that is not known, and without 1.0. */
function readVersions(text: string): NativeVersion[] {
  const names = text.split(',').map(name => name.trim())
  const versions = NATIVE_VERSIONS.filter(version => names.includes(version))
  if (versions.includes(PROTOCOL_VERSION) && versions.length === names.length) return versions
  throw usageError(`--versions takes 1.0 or 1.0,1.1, not ${JSON.stringify(text)}. For A2A 0.3 and 0.1 give --legacy.`)
}

function readPort(option: string, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw usageError(`--${option} takes a number from 0 to 65535, not ${JSON.stringify(text)}.`)
}
