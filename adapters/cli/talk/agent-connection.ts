import { isA2AError } from '../../../machines/protocol/errors.ts'
import { connect, type AgentClient } from '../../client/connect.ts'
import { apiKeyHeaders } from '../api-key.ts'
import { CommandError, usageError, type Io } from '../command.ts'

/** How to reach an agent: where it is, the key to show, and the binding to speak if the card is not to choose. */
export interface AgentPlace {
  readonly url: string
  readonly apiKey: string | undefined
  readonly binding?: string | undefined
  /** Origins beside that of the address which may have the key. */
  readonly credentialOrigins?: readonly string[] | undefined
}

/** Connects to an agent, uses it and closes the connection. Throws a usage error for what is no address or binding. */
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

/** Connects to an agent, for who closes the connection. Throws a usage error for what is no address or binding. */
export async function connectTo(place: AgentPlace, { signal }: Io): Promise<AgentClient> {
  const { url, apiKey, binding, credentialOrigins } = place
  const headers = apiKey === undefined ? {} : { headers: apiKeyHeaders(apiKey) }
  try {
    return await connect(url, { signal, ...headers, ...(credentialOrigins && { credentialOrigins }), ...(binding !== undefined && { bindings: [binding] }) })
  } catch (error) {
    throw error instanceof TypeError ? usageError(error.message) : aboutKey(error, place)
  }
}

/** Says what to do where a key is missing or wrong, which only the first call tells over HTTP, or may not go. Gives other errors as they are. */
export function aboutKey(error: unknown, { url, apiKey }: AgentPlace): unknown {
  if (isA2AError(error) && error.code === 'Forbidden') return new CommandError(error.message.replace('in credentialOrigins', 'with --credential-origin'), { cause: error })
  if (!isA2AError(error) || error.code !== 'Unauthenticated') return error
  const message = apiKey === undefined ? 'wants to know who you are. Give a key with --api-key KEY.' : 'does not know this key. Give another with --api-key KEY.'
  return new CommandError(`The agent at ${url} ${message}`, { cause: error })
}
