import { serviceParametersOf } from '../../adapters/client/requests.ts'
import { ClientCalls } from '../../adapters/client/transports/websocket/calls.ts'
import type { ClientSocket } from '../../adapters/client/transports/websocket/client-socket.ts'
import type { ListTasksResponse, SendMessageResponse, StreamResponse, Task } from '../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import type { Conditions } from '../../runtime/access/call-context.ts'
import { randomOf } from './random.ts'
import type { Expectation, Request, Requests } from './requests.ts'
import type { ClockView } from './virtual-clock.ts'

/** What a client is made of. */
export interface ClientOptions {
  readonly name: string
  readonly principal: string
  readonly seed: number
  readonly clock: ClockView
  readonly requests: Requests
  readonly open: () => Promise<ClientSocket>
}

/** How long a client looks for a server that is gone: longer than any is, here. */
const GIVE_UP_AFTER_MS = 3_600_000

/**
 * A client of the agent: our own client's code on a connection of the simulated network, with a note of all that comes
 * back.
 */
export class Client {
  readonly principal: string
  readonly #calls: ClientCalls
  readonly #requests: Requests
  readonly #leaving = new Map<Request, AbortController>()

  constructor({ name, principal, seed, clock, requests, open }: ClientOptions) {
    this.principal = principal
    this.#requests = requests
    this.#calls = new ClientCalls(
      {
        url: `sim:${name}`,
        open,
        clock,
        random: randomOf(seed, `client ${name}`).fraction,
        giveUpAfterMs: GIVE_UP_AFTER_MS
      },
      []
    )
    this.#calls.link.start().catch(() => {})
  }

  /** Whether it is of use: the first connection may have failed, or the server may have sent it away. */
  get isOpen(): boolean {
    return this.#calls.link.state !== 'closed'
  }

  send(params: object, conditions: Conditions, expectation: Expectation): Request {
    return this.#call('SendMessage', params, conditions, expectation, (request, result) => {
      const outcome = result as SendMessageResponse
      if ('task' in outcome) this.#requests.saw(request, outcome.task)
    })
  }

  getTask(params: object, conditions: Conditions, expectation: Expectation): Request {
    return this.#call('GetTask', params, conditions, expectation, (request, result) =>
      this.#requests.saw(request, result as Task)
    )
  }

  cancel(params: object, conditions: Conditions, expectation: Expectation): Request {
    return this.#call('CancelTask', params, conditions, expectation, (request, result) =>
      this.#requests.saw(request, result as Task)
    )
  }

  list(params: object, expectation: Expectation, page: (request: Request, page: ListTasksResponse) => void): Request {
    return this.#call('ListTasks', params, {}, expectation, (request, result) => {
      const listed = result as ListTasksResponse
      for (const task of listed.tasks) this.#requests.saw(request, task)
      page(request, listed)
    })
  }

  /** Sends a message and hears what becomes of it, or hears of a task from now on. */
  stream(
    method: 'SendStreamingMessage' | 'SubscribeToTask',
    params: object,
    conditions: Conditions,
    expectation: Expectation
  ): Request {
    const request = this.#requests.begin(
      this.principal,
      `${method} ${JSON.stringify({ ...params, ...conditions })}`,
      expectation
    )
    const leaving = new AbortController()
    this.#leaving.set(request, leaving)
    void this.#read(
      request,
      this.#calls.stream({ method, params, parameters: serviceParametersOf(conditions) }, leaving.signal)
    )
    return request
  }

  /** Leaves a stream that is open; the task goes on. */
  leave(which: number): void {
    const open = [...this.#leaving.values()]
    open[which % open.length]?.abort('left')
  }

  get streams(): number {
    return this.#leaving.size
  }

  close(): Promise<void> {
    return this.#calls.link.close()
  }

  #call(
    method: OperationMethod,
    params: object,
    conditions: Conditions,
    expectation: Expectation,
    answered: (request: Request, result: unknown) => void
  ): Request {
    const request = this.#requests.begin(
      this.principal,
      `${method} ${JSON.stringify({ ...params, ...conditions })}`,
      expectation
    )
    this.#calls.call({ method, params, parameters: serviceParametersOf(conditions) }).then(
      result => (answered(request, result), this.#requests.settle(request, { result })),
      error => this.#requests.settle(request, { error })
    )
    return request
  }

  async #read(request: Request, events: AsyncGenerator<StreamResponse>): Promise<void> {
    try {
      for await (const event of events) this.#requests.heard(request, event)
      this.#requests.settle(request, { result: 'ended' })
    } catch (error) {
      this.#requests.settle(request, { error })
    } finally {
      this.#leaving.delete(request)
    }
  }
}
