import { isA2AError } from '../../../machines/protocol/errors.ts'
import { connect, type AgentClient } from '../../client/connect.ts'
import { apiKeyHeaders } from '../api-key.ts'
import { refusePassword } from '../arguments.ts'
import { CommandError, usageError, type Io } from '../command.ts'

/** How to reach an agent: its URL, the key to send, and the binding to use, unless the card chooses. */
export interface AgentPlace {
  readonly url: string
  readonly apiKey: string | undefined
  readonly binding?: string | undefined
  /** Other origins that may receive the key. */
  readonly credentialOrigins?: readonly string[] | undefined
  /** How long calls are retried. Default: as `connect` has it. */
  readonly giveUpAfterMs?: number
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
  const { url, apiKey, binding, credentialOrigins, giveUpAfterMs } = place
  refusePassword(url)
  const headers = apiKey === undefined ? {} : { headers: apiKeyHeaders(apiKey) }
  try {
    return await connect(url, { signal, ...headers, ...(credentialOrigins && { credentialOrigins }), ...(giveUpAfterMs !== undefined && { giveUpAfterMs }), ...(binding !== undefined && { bindings: [binding] }) })
  } catch (error) {
    throw error instanceof TypeError ? usageError(error.message) : aboutKey(error, place)
  }
}

/** Adds advice to errors about a missing, wrong or forbidden key. Over HTTP the first call reveals them. Other errors stay as they are. */
export function aboutKey(error: unknown, { url, apiKey }: AgentPlace): unknown {
  if (isA2AError(error) && error.code === 'Forbidden') return new CommandError(error.message.replace('in credentialOrigins', 'with --credential-origin'), { cause: error })
  if (!isA2AError(error) || error.code !== 'Unauthenticated') return error
  const message = apiKey === undefined ? 'requires a key. Give one with --api-key KEY.' : 'does not know this key. Give another with --api-key KEY.'
  return new CommandError(`The agent at ${url} ${message}`, { cause: error })
}
