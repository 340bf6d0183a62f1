import type { Authenticate } from '../../../runtime/access/authentication.ts'
import type { Authorize } from '../../../runtime/access/authorization.ts'
import type { SignCard } from '../../../runtime/agent/signed-cards.ts'
import { guardedLogger, type Logger } from '../../../runtime/ports/logger.ts'
import type { WebhookSender } from '../../../runtime/ports/webhook-sender.ts'
import { namedHosts } from '../../../runtime/primitives/authority.ts'
import { isLoopback } from '../../entry/admission.ts'
import { isEveryAddress } from '../../entry/listen.ts'
import { webhooks } from '../../push/webhooks.ts'
import { apiKeyAuthentication, readApiKey } from '../api-key.ts'
import { readArguments } from '../arguments.ts'
import { signerFrom } from '../card/key-files.ts'
import { CommandError, usageError, type Io } from '../command.ts'
import type { AgentModule } from '../load-agent.ts'
import { readLogForm } from '../process/log.ts'

/** The options of the commands that serve an agent. */
const OPTIONS = {
  port: { type: 'string', default: '4242' },
  host: { type: 'string', default: '127.0.0.1' },
  grpc: { type: 'string' },
  'api-key': { type: 'string' },
  'public-url': { type: 'string' },
  hosts: { type: 'string', multiple: true },
  'card-key': { type: 'string' },
  'card-jku': { type: 'string' },
  legacy: { type: 'boolean', default: false },
  'no-push': { type: 'boolean', default: false },
  'allow-loopback-webhooks': { type: 'boolean', default: false },
  db: { type: 'string' },
  json: { type: 'boolean' },
  log: { type: 'string', default: 'text' }
} as const

/** What they are, for help. */
export const SERVE_OPTIONS = `  --port PORT     listen here; 0 takes a free port. Default 4242
  --host HOST     listen on this address. Default 127.0.0.1; others need authenticate or --api-key, and 0.0.0.0 and :: also --public-url
                  or --hosts
  --api-key KEY   require this key of every caller (Authorization: Bearer KEY)
  --public-url URL  the address that the card gives, for example that of a proxy in front
  --hosts NAME[:PORT]  accept requests for this host, and no others. The card gives it with PORT, or else the port of --port. May be
                  given several times
  --card-key FILE  sign the card by this private key, PEM or JWK; needs the packages @a2a-js/sdk and jose
  --card-jku URL  the address of the public key, to put in the signature
  --legacy        speak A2A 0.3 and 0.1 beside 1.0; needs the package @a2a-js/sdk
  --no-push       offer no push notifications. Without it clients may register webhooks for the updates of their tasks
  --allow-loopback-webhooks  for development: also post to receivers on this machine, over http: too. Without it only to https:
                  addresses of the public internet
  --db FILE       store tasks in this SQLite file, created if it does not exist: after a restart they continue
  --json          write one line of JSON, { name, url, http, card, page }, when it serves, and nothing else, to stdout
  --log FORM      the form of the log on stderr: text for people (the default), or json, a line of
                  { time, level, message, details } for each entry; both are without secrets
`

/** What they come to. */
export interface ServeSettings {
  /** The agent's module. */
  readonly file: string
  readonly address: { readonly port: number; readonly host: string }
  /** The port for gRPC; `undefined` for none. */
  readonly grpc: number | undefined
  readonly legacy: boolean
  readonly db: string | undefined
  readonly json: boolean
  readonly logger: Logger
  /** What of them and of the module's exports a runtime takes. Throws a usage error if they contradict each other, or would open the agent to others. */
  readonly runtimeOptions: (module: AgentModule) => RuntimeSettings
}

/** What a runtime is given of them. */
export interface RuntimeSettings {
  readonly logger: Logger
  readonly publicUrl?: string
  readonly hosts?: readonly string[]
  readonly authenticate?: Authenticate
  readonly authorize?: Authorize
  readonly signCard?: SignCard
  readonly push?: WebhookSender
}

/** Reads the arguments of a command that serves an agent. Throws a usage error for what cannot be. */
export async function readServeArguments(args: readonly string[], io: Io): Promise<ServeSettings> {
  const { values, positionals: [file] } = readArguments(args, OPTIONS, ['AGENT.ts|js'])
  const { host, port, grpc, 'api-key': key, 'public-url': publicUrl, hosts, 'card-key': cardKey, 'card-jku': jku, legacy, db, json = false, log } = values
  const { 'no-push': noPush, 'allow-loopback-webhooks': allowLoopback } = values
  if (noPush && allowLoopback) throw usageError('--no-push and --allow-loopback-webhooks exclude each other. Give one of them.')
  checkPublicUrl(publicUrl)
  checkHosts(hosts)
  const apiKey = readApiKey(key)
  if (jku !== undefined && cardKey === undefined) throw usageError('--card-jku says where the public key is of the private one that --card-key names, which is missing.')
  const signCard = cardKey === undefined ? undefined : await signerFrom(cardKey, io.cwd, { ...(jku !== undefined && { jku }) })
  const given = { ...(!noPush && { push: webhooks({ allowLoopback }) }), ...(publicUrl !== undefined && { publicUrl }), ...(hosts && { hosts }), ...(signCard && { signCard }) }
  const logger = guardedLogger(readLogForm(log)(io.stderr, io.clock))
  const runtimeOptions = ({ authenticate: own, authorize }: AgentModule): RuntimeSettings => {
    if (own && apiKey !== undefined) throw usageError(`${file} exports authenticate, which says who may call. Leave out --api-key.`)
    const authenticate = apiKey === undefined ? own : apiKeyAuthentication(apiKey)
    if (!isLoopback(host) && !authenticate) throw usageError(`Without a key anyone could use the agent on ${host}. Give --api-key KEY, or leave out --host.`)
    if (isEveryAddress(host) && publicUrl === undefined && !hosts) {
      throw usageError(`On ${host} the agent has every address of this machine. Say which one its card gives, with --public-url URL or --hosts NAME[:PORT].`)
    }
    return { logger, ...given, ...(authenticate && { authenticate }), ...(authorize && { authorize }) }
  }
  return { file, address: { port: readPort('port', port), host }, grpc: grpc === undefined ? undefined : readPort('grpc', grpc), legacy, db, json, logger, runtimeOptions }
}

/** Why nothing could be served at an address, as an error of the command. */
export function listenError({ port, host }: ServeSettings['address']): (cause: unknown) => never {
  return cause => {
    if (cause instanceof CommandError) throw cause
    const { code, message } = cause as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') throw new CommandError(`Port ${port} is in use on ${host}. Choose another with --port, or --port 0 for any.`, { cause })
    throw new CommandError(`${host} port ${port} cannot be served: ${message}. Choose others with --host and --port.`, { cause })
  }
}

function checkPublicUrl(url: string | undefined): void {
  if (url === undefined || (URL.canParse(url) && /^(?:http|ws)s?:/.test(url))) return
  throw usageError(`--public-url takes an address such as https://agent.example/, not ${JSON.stringify(url)}.`)
}

function checkHosts(hosts: readonly string[] = []): void {
  try {
    namedHosts(hosts)
  } catch (cause) {
    throw usageError(`--${(cause as TypeError).message}`)
  }
}

function readPort(option: string, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw usageError(`--${option} takes a number from 0 to 65535, not ${JSON.stringify(text)}.`)
}

