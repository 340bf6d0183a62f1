import { isA2AError } from '../../../machines/protocol/errors.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { connect } from '../../client/connect.ts'
import type { ClientCredentials } from '../../client/options.ts'
import { readApiKey, refusePassword } from '../arguments.ts'
import { CommandError, usageError, type Io, type Environment } from '../command.ts'

/** The options that identify the caller to an agent. */
export const CALLER_OPTIONS = { 'api-key': { type: 'string' }, header: { type: 'string', multiple: true } } as const

/** The same, for commands that call the agent at the URL in its card. */
export const ACCESS_OPTIONS = { ...CALLER_OPTIONS, 'credential-origin': { type: 'string', multiple: true } } as const

export const KEY_HELP = `  --api-key KEY   send this key where the card's security scheme says, without a scheme as Authorization: Bearer KEY
  --header NAME:VALUE
                  send this header; repeatable
`

export const ACCESS_HELP = `${KEY_HELP}  --credential-origin ORIGIN
                  also send both to this origin, such as https://agent.example, if the card names it; repeatable
`

/** The variables with an API key and with a token, the preferred ones first. */
const KEYS = ['TASKCHART_API_KEY', 'A2ACLI_API_KEY']
const TOKENS = ['TASKCHART_BEARER', 'A2ACLI_BEARER']

export const ENVIRONMENT_HELP = `An API key may be in ${KEYS.join(' or ')}, and a token in ${TOKENS.join(' or ')}.
They are sent only if the card has a scheme for them, or is itself refused, and not beside --api-key.
`

/** The values of `ACCESS_OPTIONS`. */
export interface AccessValues {
  readonly 'api-key'?: string | undefined
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

/** How to reach an agent: its URL, what identifies the caller, and the binding to use, unless the card chooses. */
export interface AgentPlace {
  readonly url: string
  readonly access: CallerAccess
  readonly binding?: string | undefined
  /** How long calls are retried. Default: as `connect` has it. */
  readonly giveUpAfterMs?: number
}

/**
 * The access that options and environment give. Throws a usage error for what no header can carry, without showing it.
 */
export function readAccess(
  { 'api-key': key, header, 'credential-origin': credentialOrigins }: AccessValues,
  env: Environment
): CallerAccess {
  const apiKey = readApiKey(key)
  const credentials = apiKey === undefined ? ambientCredentials(env) : { apiKey }
  return {
    ...(header && { headers: readHeaders(header) }),
    ...(credentials && { credentials }),
    ...(credentialOrigins && { credentialOrigins })
  }
}

/** The first of these options that was given, for a command that calls no agent. */
export function accessOption(values: AccessValues): string | undefined {
  const given = (['api-key', 'header', 'credential-origin'] as const).find(name => values[name] !== undefined)
  return given && `--${given}`
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
  const headers = new Headers()
  for (const text of given) {
    const [, name = '', value = ''] = /^([^:]+):(.*)$/s.exec(text) ?? []
    try {
      headers.append(name.trim(), value)
    } catch {
      throw usageError('--header takes NAME:VALUE, such as --header "X-Team: blue".')
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
export async function connectTo(place: AgentPlace, { signal }: Io): Promise<AgentClient> {
  const { url, access, binding, giveUpAfterMs } = place
  refusePassword(url)
  try {
    return await connect(url, {
      signal,
      ...access,
      ...(giveUpAfterMs !== undefined && { giveUpAfterMs }),
      ...(binding !== undefined && { bindings: [binding] })
    })
  } catch (error) {
    throw error instanceof TypeError ? usageError(error.message) : aboutKey(error, place)
  }
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
  return new CommandError(
    `The agent at ${url} ${sent === undefined ? missingText(credentials) : refusedText(sent, credentials)}`,
    { cause: error }
  )
}

function missingText(credentials: ClientCredentials | undefined): string {
  const unsent = credentials
    ? ' That of the environment was not sent: the card has no scheme for it, or names another origin.'
    : ''
  return `requires a key. Give one with --api-key KEY.${unsent}`
}

function refusedText(sent: string, credentials: ClientCredentials | undefined): string {
  if (credentials && !credentials.onlyIfAsked)
    return `refused the key, which was sent in ${sent}. Give another with --api-key KEY.`
  return `refused the credentials, which were sent in ${sent}. Give others with --api-key KEY or --header NAME:VALUE.`
}
