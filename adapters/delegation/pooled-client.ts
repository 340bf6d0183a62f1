import type { AgentClient } from '../client/agent-client.ts'
import { connect } from '../client/connect.ts'
import { backOffOptions, type ConnectOptions } from '../client/options.ts'
import { mayPass } from '../client/retries/lost-errors.ts'
import { delay } from '../client/retries/request-retry.ts'
import { BackOff } from '../client/retries/transport-state.ts'

/** The options of `connect`, and a name for the agent. */
export interface RemoteOptions extends Omit<ConnectOptions, 'signal'> {
  /** The name of the agent in errors, in addition to its URL. */
  readonly name?: string
}

/** How to use a connection. `isPatient`: connecting is retried like a lost connection. */
export interface ConnectionUse {
  readonly isPatient: boolean
  readonly signal: AbortSignal
}

/** Another agent, and a connection that all its users share. It is closed when there are none. */
export class PooledClient {
  /** Its description in errors. */
  readonly title: string
  readonly name: string
  readonly #url: string
  readonly #options: ConnectOptions
  #users = 0
  #client: Promise<AgentClient> | undefined

  constructor(url: string, { name, ...options }: RemoteOptions) {
    const { host, pathname, protocol } = new URL(url)
    const place = `${protocol}//${host}${pathname}`
    this.#url = url
    this.#options = options
    this.name = name ?? place
    this.title = name === undefined ? `The agent at ${place}` : `The agent at ${place} (${name})`
  }

  /** Runs a function with the connection. Rejects as `connect` does. */
  async use<T>(run: (client: AgentClient) => Promise<T>, how: ConnectionUse): Promise<T> {
    this.#users += 1
    try {
      return await run(await this.#reached(how))
    } finally {
      this.#users -= 1
      if (this.#users === 0) this.#close()
    }
  }

  async #reached({ isPatient, signal }: ConnectionUse): Promise<AgentClient> {
    const backOff = backOffOptions(this.#options)
    const waits = new BackOff(backOff)
    for (;;) {
      signal.throwIfAborted()
      try {
        return await (this.#client ??= this.#connect())
      } catch (error) {
        const waitMs = isPatient && mayPass(error) ? waits.next(error.retryAfterMs) : undefined
        if (waitMs === undefined || signal.aborted) throw error
        await delay(waitMs, backOff.clock, signal)
      }
    }
  }

  #connect(): Promise<AgentClient> {
    const connecting: Promise<AgentClient> = connect(this.#url, this.#options)
    const forget = () => {
      if (this.#client === connecting) this.#client = undefined
    }
    // After a failure, or at the end of a connection, the next user connects again.
    connecting.then(client => client.on('closed', forget), forget)
    return connecting
  }

  #close(): void {
    const client = this.#client
    this.#client = undefined
    // Not awaited: nothing depends on an unused connection.
    client?.then(open => open.close()).catch(() => {})
  }
}
