import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import type { AgentClient, CallOptions } from '../../client/agent-client.ts'
import { connect } from '../../client/connect.ts'
import { hostAddress, isPlainHost } from '../../client/hosts.ts'
import { CLIENT_VERSIONS } from '../../client/open-by-card.ts'
import type { ClientCredentials } from '../../client/options.ts'
import { isUrl, readAlias, readApiKey, refusePassword } from '../arguments.ts'
import { CommandError, EXIT, usageError, type Io, type Environment } from '../command.ts'
import { readDuration } from '../text/format.ts'

/** The options that identify the caller to an agent. */
export const CALLER_OPTIONS = {
  'api-key': { type: 'string' },
  bearer: { type: 'string' },
  header: { type: 'string', multiple: true }
} as const

/** The options of access, for commands that call the agent at the URL in its card. */
export const ACCESS_OPTIONS = { ...CALLER_OPTIONS, 'credential-origin': { type: 'string', multiple: true } } as const

/** The options of access and of calls, for commands that call one agent. */
export const CALL_OPTIONS = {
  'agent-card': { type: 'string', short: 'a' },
  endpoint: { type: 'string', short: 'e' },
  ...ACCESS_OPTIONS,
  binding: { type: 'string', multiple: true },
  transport: { type: 'string', multiple: true },
  'a2a-version': { type: 'string' },
  'svc-param': { type: 'string', multiple: true },
  timeout: { type: 'string' }
} as const

export const KEY_HELP = `  --api-key KEY   send this key where the card's security scheme says, without a scheme as Authorization: Bearer KEY
  --bearer TOKEN  send this token as Authorization: Bearer TOKEN
  --header NAME:VALUE
                  send this header; repeatable
`

export const ACCESS_HELP = `${KEY_HELP}  --credential-origin ORIGIN
                  also send both to this origin, such as https://agent.example, if the card names it; repeatable
`

export const CALL_HELP = `  --agent-card REF, -a REF
                  the agent, in place of URL: its URL, its host, or a file with its card
${ACCESS_HELP}  --binding NAME  use WEBSOCKET, JSONRPC, HTTP+JSON or GRPC instead of the card's preference; repeatable, the
                  preferred one first. --transport is the same
  --a2a-version V use this version of A2A: ${CLIENT_VERSIONS.join(' or ')}. Default: the newest that the card offers
  --svc-param NAME:VALUE
                  send this service parameter: a header, or metadata of gRPC; repeatable
  --timeout TIME  the longest time of the command: 30s, 5m or 1h. Then it ends with exit code 5, and the task continues
`

/** The variables with an API key and with a token, the preferred ones first. */
const KEYS = ['TASKCHART_API_KEY', 'A2ACLI_API_KEY']
const TOKENS = ['TASKCHART_BEARER', 'A2ACLI_BEARER']

export const ENVIRONMENT_HELP = `An API key may be in ${KEYS.join(' or ')}, and a token in ${TOKENS.join(' or ')}.
They are sent only if the card has a scheme for them, or is itself refused, and not beside --api-key.
`

/** The option of commands that read a task again and again if its agent does not stream. */
export const POLL_OPTION = { 'poll-interval': { type: 'string' } } as const

/** The values of `ACCESS_OPTIONS`. */
export interface AccessValues {
  readonly 'api-key'?: string | undefined
  readonly bearer?: string | undefined
  readonly header?: readonly string[] | undefined
  readonly 'credential-origin'?: readonly string[] | undefined
}

/** The identity of the caller, as options of `connect`. */
export interface CallerAccess {
  readonly headers?: Readonly<Record<string, string>>
  readonly credentials?: ClientCredentials
  /** Other origins that may receive both. */
  readonly credentialOrigins?: readonly string[]
}

/** The values of `CALL_OPTIONS`. */
export interface CallValues extends AccessValues {
  readonly 'agent-card'?: string | undefined
  readonly endpoint?: string | undefined
  readonly binding?: readonly string[] | undefined
  readonly transport?: readonly string[] | undefined
  readonly 'a2a-version'?: string | undefined
  readonly 'svc-param'?: readonly string[] | undefined
  readonly timeout?: string | undefined
  readonly 'poll-interval'?: string | undefined
}

/** How to reach an agent: where it is, what identifies the caller, and how to call it, unless the card chooses. */
export interface AgentPlace {
  /** Its URL, its host, or a file with its card. */
  readonly url: string
  readonly access: CallerAccess
  /** The preferred one first. */
  readonly bindings?: readonly string[] | undefined
  readonly version?: string | undefined
  /** Service parameters of every call. */
  readonly parameters?: Readonly<Record<string, string>> | undefined
  /** How often a task of an agent that does not stream is read. Default: as `connect` has it. */
  readonly pollIntervalMs?: number
  /** How long calls are retried. Default: as `connect` has it. */
  readonly giveUpAfterMs?: number
}

/**
 * The access that options and environment give. Throws a usage error for what no header can carry, without showing it.
 */
export function readAccess(
  { 'api-key': key, bearer: token, header, 'credential-origin': credentialOrigins }: AccessValues,
  env: Environment
): CallerAccess {
  const [apiKey, bearer] = [readApiKey(key), readApiKey(token, '--bearer')]
  const credentials =
    apiKey === undefined && bearer === undefined
      ? ambientCredentials(env)
      : { ...(apiKey !== undefined && { apiKey }), ...(bearer !== undefined && { bearer }) }
  return {
    ...(header && { headers: readHeaders(header) }),
    ...(credentials && { credentials }),
    ...(credentialOrigins && { credentialOrigins })
  }
}

/** The first of these options that was given, for a command that calls no agent. */
export function callOption(values: CallValues): string | undefined {
  const names = Object.keys(CALL_OPTIONS) as (keyof typeof CALL_OPTIONS)[]
  const given = names.find(name => values[name] !== undefined)
  return given && `--${given}`
}

/**
 * The agent that `--agent-card` or else the first positional names, and the other positionals. Throws a usage error
 * without one.
 */
export function readPlaceOfAgent(
  values: CallValues,
  positionals: readonly string[],
  env: Environment
): { place: AgentPlace; rest: readonly string[] } {
  const named = readAlias({ 'agent-card': values['agent-card'], endpoint: values.endpoint }, ['agent-card', 'endpoint'])
  const [first, ...others] = positionals
  const url = named ?? first
  const interval = values['poll-interval']
  if (url === undefined) throw usageError('URL is missing.')
  const place = {
    url,
    access: readAccess(values, env),
    bindings: readAlias({ binding: values.binding, transport: values.transport }, ['binding', 'transport']),
    version: values['a2a-version'],
    parameters: values['svc-param'] && readParameters(values['svc-param']),
    ...(interval !== undefined && { pollIntervalMs: readDuration('--poll-interval', interval) })
  }
  return { place, rest: named === undefined ? others : positionals }
}

/** The service parameters in `--svc-param`. Repeated names are joined, as those of headers are. */
function readParameters(given: readonly string[]): Record<string, string> {
  const parameters = readPairs(given, '--svc-param takes NAME:VALUE, such as --svc-param "X-Team: blue".')
  if (parameters['a2a-version'] !== undefined) throw usageError('The version has an option of its own: --a2a-version.')
  return parameters
}

/**
 * Runs a command at most for the time of `--timeout`. Its calls end then, and it rejects with a CommandError that has
 * the exit code 5. Throws a usage error for a text that is not a time.
 */
export async function withinTimeout<T>(text: string | undefined, io: Io, run: (io: Io) => Promise<T>): Promise<T> {
  if (text === undefined) return run(io)
  const limit = new AbortController()
  const timer = io.clock.setTimeout(() => limit.abort(), readDuration('--timeout', text))
  const refuse = (error: unknown): never => {
    if (!limit.signal.aborted || io.signal.aborted) throw error
    throw new CommandError(`The time of --timeout ${text} has passed. A task that was opened continues.`, {
      exitCode: EXIT.timeout,
      code: 'A2ACLI_ERR_TIMEOUT',
      hint: (error as Partial<CommandError>).hint,
      cause: error
    })
  }
  return run({ ...io, signal: AbortSignal.any([io.signal, limit.signal]) })
    .catch(refuse)
    .finally(() => io.clock.clearTimeout(timer))
}

function ambientCredentials(env: Environment): ClientCredentials | undefined {
  const [apiKey, bearer] = [variableOf(env, KEYS), variableOf(env, TOKENS)]
  if (apiKey === undefined && bearer === undefined) return undefined
  return { ...(apiKey !== undefined && { apiKey }), ...(bearer !== undefined && { bearer }), onlyIfAsked: true }
}

/** The value of the first variable that is set and not empty. */
function variableOf(env: Environment, names: readonly string[]): string | undefined {
  const name = names.find(name => (env[name] ?? '') !== '')
  return name === undefined ? undefined : readApiKey(env[name], name)
}

function readHeaders(given: readonly string[]): Record<string, string> {
  return readPairs(given, '--header takes NAME:VALUE, such as --header "X-Team: blue".')
}

/** Pairs of a name and a value that a header can carry. Throws a usage error for others, without showing them. */
function readPairs(given: readonly string[], advice: string): Record<string, string> {
  const headers = new Headers()
  for (const text of given) {
    const [, name = '', value = ''] = /^([^:]+):(.*)$/s.exec(text) ?? []
    try {
      headers.append(name.trim(), value)
    } catch {
      throw usageError(advice)
    }
  }
  return Object.fromEntries(headers)
}

/** Connects to an agent, calls `use`, and closes the connection. Throws a usage error for an invalid URL or binding. */
export async function withAgent<T>(place: AgentPlace, io: Io, use: (client: AgentClient) => Promise<T>): Promise<T> {
  const client = await connectTo(place, io)
  try {
    return await use(client).catch(error => {
      throw aboutKey(error, place)
    })
  } finally {
    await client.close()
  }
}

/** Connects to an agent. The caller closes the connection. Throws a usage error for an invalid URL or binding. */
export async function connectTo(place: AgentPlace, { signal, cwd }: Pick<Io, 'signal' | 'cwd'>): Promise<AgentClient> {
  const { access, bindings, version, giveUpAfterMs, pollIntervalMs, parameters } = place
  const { url, card } = await findAgent(place.url, cwd)
  try {
    const client = await connect(url, {
      signal,
      ...access,
      ...(card && { card }),
      ...(giveUpAfterMs !== undefined && { giveUpAfterMs }),
      ...(pollIntervalMs !== undefined && { pollIntervalMs }),
      ...(bindings && { bindings }),
      ...(version !== undefined && { versions: [version] })
    })
    return parameters ? withParameters(client, parameters) : client
  } catch (error) {
    throw cardFailure(error, place)
  }
}

/** The error of a command that reads a card: a usage error for an invalid URL, and advice about keys. */
export function cardFailure(error: unknown, place: Pick<AgentPlace, 'url' | 'access'>): unknown {
  if (error instanceof TypeError) return usageError(error.message)
  if (!isA2AError(error) || error.code !== 'InvalidAgentResponse') return aboutKey(error, place)
  return new CommandError(error.message, { code: 'A2ACLI_ERR_CARD_INVALID', cause: error })
}

/** A client that sends these service parameters with each call. */
function withParameters(client: AgentClient, serviceParameters: Readonly<Record<string, string>>): AgentClient {
  const sending =
    <Params, Result>(call: (params: Params, options?: CallOptions) => Result) =>
    (params: Params, options?: CallOptions) =>
      call(params, { ...options, serviceParameters })
  return Object.assign(Object.create(client) as AgentClient, {
    sendMessage: sending(client.sendMessage),
    sendStreamingMessage: sending(client.sendStreamingMessage),
    getTask: sending(client.getTask),
    listTasks: sending(client.listTasks),
    cancelTask: sending(client.cancelTask),
    subscribeToTask: sending(client.subscribeToTask)
  })
}

/** Whether an argument names an agent: a URL, a host, or a file with a card. */
export function isAgentPlace(text: string): boolean {
  return isUrl(text) || BARE_HOST.test(text) || text.endsWith('.json')
}

/** A host without a scheme: `localhost:4242`, `agent.example`. */
const BARE_HOST = /^(?:localhost|[\w-]+(?:\.[\w-]+)+|[\w-]+(?=:\d)|\[[\da-f:]+\])(?::\d{1,5})?(?=\/|$)/i

/**
 * The URL of an agent, and its card if a file has it. A host of this machine is called without TLS, any other with it.
 * Throws CommandError for a file that is missing or has no card.
 */
export async function findAgent(place: string, cwd: string): Promise<{ readonly url: string; readonly card?: object }> {
  refusePassword(place)
  if (isUrl(place)) return { url: place }
  const text = await readFile(resolve(cwd, place), 'utf8').catch(() => undefined)
  if (text !== undefined) return cardInFile(text, place)
  const [host = ''] = BARE_HOST.exec(place) ?? []
  const isFile = place.endsWith('.json') && (host === '' || host === place)
  if (isFile)
    throw new CommandError(`There is no file ${place}.`, {
      exitCode: EXIT.unreachable,
      code: 'A2ACLI_ERR_CARD_NOT_FOUND'
    })
  if (host === '') return { url: place }
  return { url: `${isPlainHost(host.replace(/:\d+$/, '')) ? 'http' : 'https'}://${place}` }
}

/** The card in a file, and the URL of the host of its first interface, which the file may lead to. */
function cardInFile(text: string, place: string): { url: string; card: object } {
  try {
    const card: unknown = JSON.parse(text)
    if (isObject(card)) {
      const { supportedInterfaces: [first] = [card] } = card as { readonly supportedInterfaces?: readonly unknown[] }
      if (isObject(first) && typeof first.url === 'string') return { url: hostAddress(first.url), card }
    }
  } catch {
    // The file is refused as other JSON is.
  }
  throw new CommandError(`${place} has no agent card that names the URL of an interface.`, {
    code: 'A2ACLI_ERR_CARD_INVALID'
  })
}

/** An error text of `connect` with the option of the command. */
export function inOptions(text: string): string {
  return text.replace('in credentialOrigins', 'with --credential-origin')
}

/**
 * Adds advice to errors about a missing, wrong or forbidden key. Over HTTP the first call reveals them. Other errors
 * are unchanged.
 */
export function aboutKey(
  error: unknown,
  { url, access: { credentials } }: Pick<AgentPlace, 'url' | 'access'>
): unknown {
  if (isA2AError(error) && error.code === 'Forbidden')
    return new CommandError(inOptions(error.message), { cause: error })
  if (!isA2AError(error) || error.code !== 'Unauthenticated') return error
  const [, sent] = /were sent in (.+?)\.(?: |$)/.exec(error.message) ?? []
  const [what, hint] = sent === undefined ? missingText(credentials) : refusedText(sent, credentials)
  return new CommandError(`The agent at ${url} ${what} ${hint}`, {
    code: sent === undefined ? 'A2ACLI_ERR_CREDENTIALS_MISSING' : 'A2ACLI_ERR_AUTH_FAILED',
    hint,
    cause: error
  })
}

type TextAndHint = readonly [text: string, hint: string]

function missingText(credentials: ClientCredentials | undefined): TextAndHint {
  const unsent = credentials
    ? ' That of the environment was not sent: the card has no scheme for it, or names another origin.'
    : ''
  return ['requires a key.', `Give one with --api-key KEY.${unsent}`]
}

function refusedText(sent: string, credentials: ClientCredentials | undefined): TextAndHint {
  if (credentials && !credentials.onlyIfAsked)
    return [`refused the key, which was sent in ${sent}.`, 'Give another with --api-key KEY.']
  return [
    `refused the credentials, which were sent in ${sent}.`,
    'Give others with --api-key KEY or --header NAME:VALUE.'
  ]
}
