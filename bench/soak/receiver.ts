import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A receiver of webhooks. It notes, for each task, the generations that were posted. */
export class Receiver {
  readonly #server: Server
  readonly #posted = new Map<string, Posted>()

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<Receiver> {
    const server = createServer((request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString('latin1')))
      request.on('end', () => {
        receiver.#take(String(request.headers['taskchart-delivery-id']), body)
        response.end()
      })
    })
    const receiver = new Receiver(server)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return receiver
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`
  }

  /**
   * The generations that were posted of a task, in order, once its end was. A delivery may be repeated: then only the
   * last one.
   */
  async generationsOf(taskId: string): Promise<readonly number[]> {
    const { generations, isOver } = this.#of(taskId)
    await isOver
    this.#posted.delete(taskId)
    return generations
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  #take(delivery: string, body: string): void {
    const [taskId = '', , generation] = delivery.split('/')
    const { generations, over } = this.#of(taskId)
    if (generations.at(-1) !== Number(generation)) generations.push(Number(generation))
    if (body.includes('"TASK_STATE_COMPLETED"')) over()
  }

  #of(taskId: string): Posted {
    const known = this.#posted.get(taskId)
    if (known) return known
    const posted = newPosted()
    this.#posted.set(taskId, posted)
    return posted
  }
}

interface Posted {
  readonly generations: number[]
  readonly isOver: Promise<void>
  readonly over: () => void
}

function newPosted(): Posted {
  let over = () => {}
  const isOver = new Promise<void>(resolve => (over = resolve))
  return { generations: [], isOver, over }
}
