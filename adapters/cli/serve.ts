import { AGENT_CARD_PATH } from '../../machines/protocol/uris.ts'
import type { Agent } from '../../runtime/agent.ts'
import type { Authenticate } from '../../runtime/authentication.ts'
import type { Authorize } from '../../runtime/authorize.ts'
import { guardedLogger } from '../../runtime/guarded-logger.ts'
import type { Logger } from '../../runtime/logger.ts'
import { createRuntime, type Runtime } from '../../runtime/runtime.ts'
import type { SignCard } from '../../runtime/signed-cards.ts'
import type { WebhookSender } from '../../runtime/webhook-sender.ts'
import { isLoopback } from '../http/entry.ts'
import { withScheme } from '../http/interfaces.ts'
import { serve as serveRuntime, type Served } from '../http/serve.ts'
import { webhooks } from '../push/webhooks.ts'
import { apiKeyAuthentication, readApiKey } from './api-key.ts'
import { readArguments } from './arguments.ts'
import { CommandError, EXIT, usageError, type Command, type Io } from './command.ts'
import { legacyDialects } from './dialects.ts'
import { signerFrom } from './key-files.ts'
import { loadAgent } from './load-agent.ts'
import { readLogForm } from './log.ts'
import { openStore } from './open-store.ts'
import { park } from './parking.ts'
import { sendLine } from './paste-lines.ts'
import { registeredTelemetry } from './telemetry.ts'
import { jsonLine, oneLine } from './terminal-text.ts'
import { surviveRejections } from './unhandled-rejections.ts'
import { tuneCollection } from './tuning.ts'

/** `taskchart serve`: serves the agent of a module until it is told to stop. */
export const serveCommand: Command = {
  name: 'serve',
  summary: 'serve an agent over WebSocket and HTTP',
  usage: 'taskchart serve AGENT.ts|js [--port 4242] [--host 127.0.0.1] [--api-key KEY] [--db FILE] [--json] [--log text|json]',
  details: `The module's default export is the agent, made with defineAgent. If it exports authenticate too, that tells who
calls, and authorize tells who may. Tasks live in the memory of the process, or in the file that --db names. Ctrl-C or
SIGTERM stops it within 10 seconds: clients are told, and works that clean up may finish that. A second one stops it at
once. Where a tracer provider of OpenTelemetry is registered (NODE_OPTIONS='--import ./otel.js'), it is traced.

  --port PORT     listen here; 0 takes a free port. Default 4242
  --host HOST     bind this address. Default 127.0.0.1; others need authenticate or --api-key
  --api-key KEY   let in only who knows this key (Authorization: Bearer KEY)
  --public-url URL  the address that the card gives, where others reach the agent: behind a proxy, say
  --card-key FILE  sign the card by this private key, PEM or JWK; needs the packages @a2a-js/sdk and jose
  --card-jku URL  where the public key is, as the signature says
  --legacy        speak A2A 0.3 and 0.1 beside 1.0; needs the package @a2a-js/sdk
  --no-push       offer no push notifications. Otherwise clients may have the updates of their tasks posted to webhooks
  --allow-loopback-webhooks  also post to receivers on this machine, by http: too: for development. Otherwise only to https:
                  addresses of the public internet
  --db FILE       keep tasks in this SQLite file, made if it is not there: after a restart they go on
  --json          write one line of JSON, { name, url, http, card, page }, when it serves, and nothing else, to stdout
  --log FORM      how the log on stderr is written: text for people (the default), or json, a line of
                  { time, level, message, details } each; secrets are left out of both

Exit codes: 0 stopped, 1 an error, 2 wrong usage, 130 or 143 stopped at once by a second Ctrl-C or SIGTERM.
`,
  run
}

const OPTIONS = {
  port: { type: 'string', default: '4242' },
  host: { type: 'string', default: '127.0.0.1' },
  'api-key': { type: 'string' },
  'public-url': { type: 'string' },
  'card-key': { type: 'string' },
  'card-jku': { type: 'string' },
  legacy: { type: 'boolean', default: false },
  'no-push': { type: 'boolean', default: false },
  'allow-loopback-webhooks': { type: 'boolean', default: false },
  db: { type: 'string' },
  json: { type: 'boolean' },
  log: { type: 'string', default: 'text' }
} as const

async function run(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals: [file] } = readArguments(args, OPTIONS, ['AGENT.ts|js'])
  const { host, 'api-key': key, 'public-url': publicUrl, 'card-key': cardKey, 'card-jku': jku, legacy, db, json, log } = values
  const { 'no-push': noPush, 'allow-loopback-webhooks': allowLoopback } = values
  if (noPush && allowLoopback) throw usageError('--no-push and --allow-loopback-webhooks exclude each other. Give one of them.')
  const address = { port: readPort(values.port), host, legacy }
  checkPublicUrl(publicUrl)
  const apiKey = readApiKey(key)
  if (jku !== undefined && cardKey === undefined) throw usageError('--card-jku says where the public key is of the private one that --card-key names, which is missing.')
  const signCard = cardKey === undefined ? undefined : await signerFrom(cardKey, io.cwd, { ...(jku !== undefined && { jku }) })
  const logger = guardedLogger(readLogForm(log)(io.stderr, io.clock))
  const undo = surviveRejections(process, logger)
  try {
    const loaded = await Promise.race([loadAgent(file, io.cwd), aborted(io.signal)])
    if (!loaded) return EXIT.ok
    const { agent, authenticate: own, authorize } = loaded
    if (own && apiKey !== undefined) throw usageError(`${file} exports authenticate, which says who may call. Leave out --api-key.`)
    const authenticate = apiKey === undefined ? own : apiKeyAuthentication(apiKey)
    await serve(agent, address, { logger, db, ...(!noPush && { push: webhooks({ allowLoopback }) }), ...(publicUrl !== undefined && { publicUrl }), ...(authenticate && { authenticate }), ...(authorize && { authorize }), ...(signCard && { signCard }) }, served => {
      const places = placesOf(agent, served)
      io.stdout.write(json ? jsonLine(places) : announcement(agent, places, authenticate !== undefined))
    }, io)
  } finally {
    undo()
  }
  return EXIT.ok
}

/** Serves the agent until the signal aborts; then its work is parked. Throws if its store has stopped. */
async function serve(
  agent: Agent,
  address: Address,
  { db, ...options }: { logger: Logger; db: string | undefined; publicUrl?: string; push?: WebhookSender; authenticate?: Authenticate; authorize?: Authorize; signCard?: SignCard },
  serving: (served: Served) => void,
  { signal, clock, cwd }: Io
): Promise<void> {
  if (!isLoopback(address.host) && !options.authenticate) throw usageError(`Without a key anyone could use the agent on ${address.host}. Give --api-key KEY, or leave out --host.`)
  tuneCollection()
  const { store, broken } = openStore(db, cwd, options.logger)
  const traced = await registeredTelemetry(options.logger)
  const runtime = createRuntime({ agent, store, clock, ...options, ...(traced && { telemetry: traced.telemetry }) })
  const served = await listen(runtime, address).catch(async (error: unknown) => {
    await runtime.close()
    throw error
  })
  serving(served)
  await aborted(AbortSignal.any([signal, broken]))
  await park({ served, runtime, clock, logger: options.logger, flush: traced?.flush })
  broken.throwIfAborted()
}

/** Where to listen, and whether for A2A 0.3 and 0.1 too. */
interface Address {
  readonly port: number
  readonly host: string
  readonly legacy: boolean
}

async function listen(runtime: Runtime, { port, host, legacy }: Address): Promise<Served> {
  const dialects = legacy ? await legacyDialects(runtime) : []
  try {
    return await serveRuntime(runtime, { port, host, dialects })
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') throw new CommandError(`Port ${port} is in use on ${host}. Choose another with --port, or --port 0 for any.`, { cause })
    throw new CommandError(`${host} port ${port} cannot be served: ${message}. Choose others with --host and --port.`, { cause })
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise(resolve => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

function checkPublicUrl(url: string | undefined): void {
  if (url === undefined || (URL.canParse(url) && /^(?:http|ws)s?:/.test(url))) return
  throw usageError(`--public-url takes an address such as https://agent.example/, not ${JSON.stringify(url)}.`)
}

function readPort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw usageError(`--port takes a number from 0 to 65535, not ${JSON.stringify(text)}.`)
}

function placesOf({ card }: Agent, { url: http }: Served) {
  return { name: card.name, url: withScheme(http, 'ws'), http, card: new URL(AGENT_CARD_PATH, http).href, page: http }
}

function announcement({ card }: Agent, { url, http, card: cardUrl, page }: ReturnType<typeof placesOf>, needsKey: boolean): string {
  const text = card.skills.flatMap(({ examples = [] }) => examples)[0] ?? 'hello'
  return `${[card.name, ...(card.description === '' ? [] : [card.description])].map(oneLine).join(': ')}

  agent  ${url}
         ${http} for JSON-RPC and REST
  card   ${cardUrl}
  page   ${page}

Talk to it from another terminal:

  ${sendLine({ url: reachable(url), text, out: 'artifacts', needsKey })}

Ctrl-C stops it.
`
}

/** The address for this machine of a server that listens on all of its addresses. */
function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}
