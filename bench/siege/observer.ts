import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { setTimeout as elapsed } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { Threads } from './besieged.ts'
import { say, sayAtOnce } from './documents.ts'
import { KEYS } from './keys.ts'

/** One request of the observer: its kind, when it was sent by `performance.now()`, and how long its answer took. */
export interface Wait {
  readonly what: string
  readonly sentMs: number
  readonly tookMs: number
  /**
   * For how long of it the server waited for a processor: its main thread, or its store's thread while the main thread
   * had nothing to do.
   */
  readonly descheduledMs: number
}

const HEADERS = { 'x-api-key': KEYS.observer, 'a2a-version': '1.0' }
const PATIENCE_MS = 20_000
const TICK_MS = 100
const UNSEEN: Threads = { ranMs: 0, waitedMs: 0, storeWaitedMs: 0 }

type Ask = (method: string, params: string) => Promise<string>

/**
 * The other caller. At a steady rate it opens, gets, lists and follows tasks, in turns over one WebSocket and over HTTP
 * with a new connection for each request. It also reads the stream of a task that ticks. It notes every wrong answer as
 * a failure.
 */
export class Observer {
  readonly failures: string[] = []
  /** All of its tasks that have ended. */
  readonly tasks: string[] = []
  /** Its task that ticks. */
  ticking = ''
  #waits: Wait[] = []
  #port: number
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, (text: string) => void>()
  #lastId = 0
  /** Ends the time since its last event. */
  #ticked?: () => Wait
  readonly #threads: () => Threads

  private constructor(port: number, socket: WebSocket, threads: () => Threads) {
    this.#port = port
    this.#threads = threads
    this.#socket = socket
    socket.on('message', (data: Buffer) => this.#take(data.toString('utf8'))).on('error', () => {})
    socket.once('close', (code: number) => {
      this.#fail(`Its WebSocket was closed with ${code}`)
      for (const take of this.#waiting.values()) take('its connection was closed')
    })
  }

  /** `threads`: the server's threads until now. */
  static async connect(port: number, threads = () => UNSEEN): Promise<Observer> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: HEADERS, perMessageDeflate: false })
    await once(socket, 'open')
    const observer = new Observer(port, socket, threads)
    await observer.#tick()
    observer.tasks.push(taskIn(await observer.#overSocket('SendMessage', say('hello'))))
    return observer
  }

  /** Sends each kind of request `aSecond` times a second, for a time or until the signal aborts. */
  async observe(aSecond: number, forMs: number, end?: AbortSignal): Promise<Wait[]> {
    this.#waits = []
    this.#ticked = this.#timed('an event', TICK_MS)
    const asked: Promise<unknown>[] = []
    const beganMs = performance.now()
    const isOver = () => performance.now() - beganMs >= forMs || end?.aborted === true
    for (let turn = 0; !isOver(); turn += 1) {
      asked.push(...this.#turn(turn))
      // At a steady rate, however late a turn was.
      await elapsed(Math.max(0, beganMs + ((turn + 1) * 1000) / aSecond - performance.now()))
    }
    await Promise.all(asked)
    return this.#waits
  }

  /** Checks that a server, after a restart, has all of its tasks as they were. */
  async lookBack(port: number): Promise<void> {
    this.#port = port
    for (const id of this.tasks) {
      const answer = await this.#overHttp('GetTask', `{"id":"${id}"}`).catch(String)
      if (!answer.includes('"TASK_STATE_COMPLETED"') || !answer.includes('"done"'))
        this.#fail(`Its task ${id} is lost: ${start(answer)}`)
    }
    const answer = await this.#overHttp('GetTask', `{"id":"${this.ticking}"}`).catch(String)
    if (!/"TASK_STATE_(?:WORKING|SUBMITTED)"/.test(answer))
      this.#fail(`Its task that goes on does not: ${start(answer)}`)
    const listed = await this.#overHttp('ListTasks', '{"pageSize":1}').catch(String)
    const total = Number(/"totalSize":(\d+)/.exec(listed)?.[1])
    if (total !== this.tasks.length + 1) this.#fail(`It has opened ${this.tasks.length + 1} tasks, and has ${total}`)
  }

  close(): void {
    this.#socket.removeAllListeners('close').terminate()
  }

  /** Opens a task that has an event every 100 ms, and follows its stream. */
  async #tick(): Promise<void> {
    this.#lastId += 1
    const first = new Promise<string>(resolve =>
      this.#waiting.set(this.#lastId, text => {
        if (this.#ticked) this.#waits.push(this.#ticked())
        this.#ticked = this.#timed('an event', TICK_MS)
        if (!text.includes('"result"')) this.#fail(`Its stream has ended: ${start(text)}`)
        resolve(text)
      })
    )
    this.#socket.send(
      `{"jsonrpc":"2.0","id":${this.#lastId},"method":"SendStreamingMessage","params":${sayAtOnce(`tick 9000 ${TICK_MS}`)}}`
    )
    this.ticking = taskIn(await first)
  }

  #turn(turn: number): Promise<unknown>[] {
    const [way, ask]: [string, Ask] =
      turn % 2 === 0
        ? ['WebSocket', (...given) => this.#overSocket(...given)]
        : ['HTTP', (...given) => this.#overHttp(...given)]
    const known = this.tasks[(turn * 7) % this.tasks.length] ?? ''
    const timed = async (method: string, params: string, isGood: (answer: string) => boolean) => {
      const ended = this.#timed(`${method}, ${way}`)
      const answer = await Promise.race([
        ask(method, params).catch(String),
        elapsed(PATIENCE_MS, `no answer in ${PATIENCE_MS} ms`, { ref: false })
      ])
      this.#waits.push(ended())
      if (!isGood(answer)) this.#fail(`${method} over ${way} was answered with ${start(answer)}`)
      return answer
    }
    return [
      timed(
        'SendMessage',
        say('hello'),
        answer => answer.includes('"TASK_STATE_COMPLETED"') && answer.includes('"done"')
      ).then(answer => answer.includes('"task"') && this.tasks.push(taskIn(answer))),
      timed(
        'GetTask',
        `{"id":"${known}"}`,
        answer => answer.includes(`"${known}"`) && answer.includes('"TASK_STATE_COMPLETED"')
      ),
      timed('ListTasks', '{"pageSize":10}', answer => answer.includes('"totalSize"') && answer.includes('"hello"')),
      timed('SubscribeToTask', `{"id":"${this.ticking}"}`, answer => answer.includes(`"${this.ticking}"`))
    ]
  }

  /** Begins a wait; the function that it gives ends it. `dueMs` of it are no wait. */
  #timed(what: string, dueMs = 0): () => Wait {
    const [sentMs, before] = [performance.now(), this.#threads()]
    return () => {
      const [elapsedMs, now] = [performance.now() - sentMs, this.#threads()]
      const waitedMs = now.waitedMs - before.waitedMs
      const idleMs = Math.max(0, elapsedMs - (now.ranMs - before.ranMs) - waitedMs)
      const tookMs = Math.max(0, elapsedMs - dueMs)
      return {
        what,
        sentMs,
        tookMs,
        descheduledMs: Math.min(tookMs, waitedMs + Math.min(idleMs, now.storeWaitedMs - before.storeWaitedMs))
      }
    }
  }

  #overSocket(method: string, params: string): Promise<string> {
    this.#lastId += 1
    const id = this.#lastId
    return new Promise(resolve => {
      this.#waiting.set(id, text => {
        this.#waiting.delete(id)
        if (method === 'SubscribeToTask')
          this.#socket.send(`{"jsonrpc":"2.0","method":"cancelStream","params":{"id":${id}}}`)
        resolve(text)
      })
      this.#socket.send(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`)
    })
  }

  /** The answer's text; of a stream the first event. */
  async #overHttp(method: string, params: string): Promise<string> {
    const isStream = method === 'SubscribeToTask'
    const asked = request({
      port: this.#port,
      host: '127.0.0.1',
      method: 'POST',
      path: '/',
      agent: false,
      headers: { ...HEADERS, 'content-type': 'application/json' }
    })
    asked.end(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`)
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) {
      text += chunk as string
      if (isStream && /^data: .*\n\n/m.test(text)) break
    }
    asked.destroy()
    return text
  }

  #take(text: string): void {
    this.#waiting.get(Number(/^\{"jsonrpc":"2\.0","id":(\d+),/.exec(text)?.[1]))?.(text)
  }

  #fail(what: string): void {
    if (this.failures.length < MOST_FAILURES) this.failures.push(what)
  }
}

const MOST_FAILURES = 20

function taskIn(answer: string): string {
  const id = /"task":\{"id":"([^"]+)"/.exec(answer)?.[1]
  if (id === undefined) throw new Error(`This should be a task: ${start(answer)}`)
  return id
}

function start(text: string): string {
  return text.slice(0, 300)
}
