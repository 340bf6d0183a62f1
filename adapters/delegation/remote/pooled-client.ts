import { connect, type AgentClient } from '../../client/connect.ts'
import { backOffOptions, type ConnectOptions } from '../../client/options.ts'
import { BackOff } from '../../client/retries/back-off.ts'
import { mayPass } from '../../client/retries/lost-errors.ts'
import { passed } from '../../client/retries/request-retry.ts'

/** How to reach another agent: as `connect` does, with a name for it. */
export interface RemoteOptions extends Omit<ConnectOptions, 'signal'> {
  /** What errors call the agent beside its address. */
  readonly name?: string
}

/** How to begin to use an agent. `isPatient`: one that is not there yet is tried again for as long as one that was lost. */
export interface Use {
  readonly isPatient: boolean
  readonly signal: AbortSignal
}

/** Another agent, and the one connection to it of all who use it at a time; it is closed when nobody does. */
export class PooledClient {
  /** What errors call it. */
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

  /** Runs something with the connection. Rejects with what `connect` does. */
  async use<T>(run: (client: AgentClient) => Promise<T>, how: Use): Promise<T> {
    this.#users += 1
    try {
      return await run(await this.#reached(how))
    } finally {
      this.#users -= 1
      if (this.#users === 0) this.#close()
    }
  }

  async #reached({ isPatient, signal }: Use): Promise<AgentClient> {
    const backOff = backOffOptions(this.#options)
    const waits = new BackOff(backOff)
    for (;;) {
      signal.throwIfAborted()
      try {
        return await (this.#client ??= this.#connect())
      } catch (error) {
        const waitMs = isPatient && mayPass(error) ? waits.next(error.retryAfterMs) : undefined
        if (waitMs === undefined || signal.aborted) throw error
        await passed(waitMs, backOff.clock, signal)
      }
    }
  }

  #connect(): Promise<AgentClient> {
    const connecting: Promise<AgentClient> = connect(this.#url, this.#options)
    const forget = () => {
      if (this.#client === connecting) this.#client = undefined
    }
    // One that could not be made, or has been given up, is made anew by who wants it next.
    connecting.then(client => client.on('closed', forget), forget)
    return connecting
  }

  #close(): void {
    const client = this.#client
    this.#client = undefined
    // Not awaited: nobody waits for a connection that nobody uses.
    client?.then(open => open.close()).catch(() => {})
  }
}
