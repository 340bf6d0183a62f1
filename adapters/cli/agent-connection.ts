import { isA2AError } from '../../machines/protocol/errors.ts'
import { connect, type AgentClient } from '../websocket/client.ts'
import { apiKeyHeaders } from './api-key.ts'
import { CommandError, usageError, type Io } from './command.ts'

/** Connects to an agent. Throws a usage error for what is no address, and says what to do where a key is missing or wrong. */
export async function connectTo(url: string, apiKey: string | undefined, { signal }: Io): Promise<AgentClient> {
  try {
    return await connect(url, { signal, ...(apiKey !== undefined && { headers: apiKeyHeaders(apiKey) }) })
  } catch (error) {
    if (error instanceof TypeError) throw usageError(error.message)
    if (!isA2AError(error) || error.code !== 'Unauthenticated') throw error
    const message = apiKey === undefined ? 'wants to know who you are. Give a key with --api-key KEY.' : 'does not know this key. Give another with --api-key KEY.'
    throw new CommandError(`The agent at ${url} ${message}`, { cause: error })
  }
}
