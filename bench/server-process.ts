import { fork, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Memory, Question, Told } from './servers/control.ts'

/** A server in a process of its own. */
export class ServerProcess {
  /** The path of the Node that runs every server. */
  static node = process.execPath

  readonly port: number
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  /**
   * Starts the server of a file in `servers/`, of this checkout or of another folder's, and resolves when it listens.
   * Throws Error if it ends instead.
   */
  static async start(file: string, options: unknown, folder?: string): Promise<ServerProcess> {
    const built = folder === undefined ? import.meta.url : pathToFileURL(resolve(folder, '.build-bench/bench/main.js'))
    const child = fork(new URL(`servers/${file}.js`, built), [JSON.stringify(options)], {
      execPath: ServerProcess.node,
      execArgv: ['--expose-gc'],
      env: { ...process.env, NODE_ENV: 'production' }
    })
    const { port } = await told(child)
    if (port === undefined) throw new Error(`The server ${file} told no port.`)
    return new ServerProcess(child, port)
  }

  /** CPU time of the process until now, user and system, in microseconds. */
  async cpuMicros(): Promise<number> {
    const { cpuMicros = NaN } = await this.#ask('cpu')
    return cpuMicros
  }

  /** How long its main thread was ready and waited for a processor until now, in milliseconds. Linux alone tells: else 0. */
  get waitedMs(): number {
    const { pid } = this.#child
    return threadTimes(pid, pid)[1]
  }

  /** Bytes that the process has allocated on its heap until now. */
  async allocated(): Promise<number> {
    const { allocated = NaN } = await this.#ask('allocated')
    return allocated
  }

  /** Memory of the process after a full garbage collection. */
  async memory(): Promise<Memory> {
    const { memory = { heap: NaN, rss: NaN, most: NaN } } = await this.#ask('memory')
    return memory
  }

  /** How late the event loop was, in 99 of 100 times since this was last asked, in milliseconds. */
  async delayMs(): Promise<number> {
    const { delayMs = NaN } = await this.#ask('delay')
    return delayMs
  }

  /** Ends the process. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const ended = new Promise(resolve => this.#child.once('exit', resolve))
    this.#child.kill(signal)
    await ended
  }

  #ask(question: Question): Promise<Told> {
    const answer = told(this.#child)
    this.#child.send(question)
    return answer
  }
}

/** For how long a thread ran, and for how long it waited for a processor, in milliseconds. */
export function threadTimes(
  pid: number | undefined,
  thread: number | undefined
): readonly [ranMs: number, waitedMs: number] {
  try {
    const [ran, waited] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')
    return [Number(ran) / 1e6, Number(waited) / 1e6]
  } catch {
    return [0, 0]
  }
}

/** The next thing that a process tells. */
function told(child: ChildProcess): Promise<Told> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: unknown) => {
      child.off('exit', onExit)
      resolve(message as Told)
    }
    const onExit = (code: number | null) => {
      child.off('message', onMessage)
      reject(new Error(`A server ended with code ${String(code)}.`))
    }
    child.once('message', onMessage).once('exit', onExit)
  })
}
