import { fork, type ChildProcess } from 'node:child_process'
import { on, once } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { threadTimes } from '../server-process.ts'
import type { Sample } from './sampler.ts'

/** The highest samples of a server, in bytes and milliseconds. */
export interface Peaks {
  readonly heap: number
  readonly rss: number
  readonly file: number
  readonly log: number
  readonly blockedMs: number
}

/**
 * The times of the server's threads since their start, in milliseconds. A thread waits while it is ready and other
 * threads have all processors.
 */
export interface Threads {
  readonly ranMs: number
  readonly waitedMs: number
  readonly storeWaitedMs: number
}

const NONE: Peaks = { heap: 0, rss: 0, file: 0, log: 0, blockedMs: 0 }

/** `taskchart serve --db FILE` in a process of its own, with samples of its memory and files. */
export class Besieged {
  readonly port: number
  readonly file: string
  /** How long it took from the start of the process until the port was told. */
  readonly startMs: number
  readonly #child: ChildProcess
  #peaks = NONE
  #cpuMs = 0
  #log = ''
  readonly #ended = new AbortController()
  #watch: NodeJS.Timeout
  #store: number | undefined

  private constructor(child: ChildProcess, file: string, port: number, startMs: number) {
    this.#child = child
    this.file = file
    this.port = port
    this.startMs = startMs
    child
      .on('message', message => this.#take(message as Sample))
      .once('exit', (code, signal) => {
        this.#ended.abort(signal ?? `code ${code}`)
      })
    child.stderr
      ?.setEncoding('utf8')
      .on('data', (text: string) => void (this.#log = (this.#log + text).slice(-LONGEST_LOG)))
    child.stdout?.resume()
    this.#watch = setInterval(() => this.#look(), 100)
  }

  /**
   * Serves the agent of this folder on a free port with a database file, by this Node. Throws Error if it ends instead.
   */
  static async start(file: string, node = process.execPath): Promise<Besieged> {
    const beganMs = performance.now()
    const path = (name: string) => fileURLToPath(new URL(name, import.meta.url))
    const options = ['serve', path('agent.js'), '--db', file, '--port', '0', '--json', '--log', 'json', '--legacy']
    const child = fork(path('../../adapters/cli/bin.js'), options, {
      execPath: node,
      execArgv: ['--import', new URL('sampler.js', import.meta.url).href],
      env: { ...process.env, NODE_ENV: 'production' },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc']
    })
    let said = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => void (said += text))
    let places = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => void (places += text))
    while (!places.includes('\n')) {
      const [code] = (await Promise.race([
        once(child.stdout as NodeJS.ReadableStream, 'data'),
        once(child, 'exit')
      ])) as [unknown]
      if (typeof code !== 'string') throw new Error(`The server did not start on ${file}: ${said}`)
    }
    const { url } = JSON.parse(places) as { url: string }
    return new Besieged(child, file, Number(new URL(url).port), performance.now() - beganMs)
  }

  /** Aborts when its process ends; the reason is its signal or code. */
  get ended(): AbortSignal {
    return this.#ended.signal
  }

  /** CPU time of its process until the last sample, in milliseconds. */
  get cpuMs(): number {
    return this.#cpuMs
  }

  /** The end of its log. */
  get log(): string {
    return this.#log
  }

  /** The highest samples since the last call. */
  takePeaks(): Peaks {
    this.#look()
    const peaks = this.#peaks
    this.#peaks = NONE
    return peaks
  }

  /**
   * Its threads until now. All is 0 where the system does not tell: only Linux does, and the store's thread has a name
   * from Node 24 on.
   */
  readonly threads = (): Threads => {
    const { pid } = this.#child
    const [ranMs, waitedMs] = threadTimes(pid, pid)
    this.#store ??= threadNamed(pid, 'taskchart store')
    return { ranMs, waitedMs, storeWaitedMs: threadTimes(pid, this.#store)[1] }
  }

  /** Has its process free what nothing refers to any more. Resolves with the sizes right after it. */
  async collectGarbage(): Promise<Peaks> {
    if (!this.#ended.signal.aborted) {
      this.#child.send('collect garbage')
      for await (const [sample] of on(this.#child, 'message', { close: ['exit'] })) {
        if (!(sample as Sample).isCollected) continue
        this.#peaks = NONE
        this.#take(sample as Sample)
        break
      }
    }
    return this.takePeaks()
  }

  async kill(): Promise<void> {
    clearInterval(this.#watch)
    if (this.#ended.signal.aborted) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }

  #take({ heap, rss, blockedMs, cpuMs }: Sample): void {
    this.#cpuMs = cpuMs
    this.#peaks = highest(this.#peaks, { ...NONE, heap, rss, blockedMs })
  }

  #look(): void {
    this.#peaks = highest(this.#peaks, { ...NONE, file: sizeOf(this.file), log: sizeOf(`${this.file}-wal`) })
  }
}

const LONGEST_LOG = 1_000_000

function highest(one: Peaks, other: Peaks): Peaks {
  const most = (name: keyof Peaks) => Math.max(one[name], other[name])
  return { heap: most('heap'), rss: most('rss'), file: most('file'), log: most('log'), blockedMs: most('blockedMs') }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

function threadNamed(pid: number | undefined, name: string): number | undefined {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .map(Number)
      .find(thread => readFileSync(`/proc/${pid}/task/${thread}/comm`, 'latin1') === `${name}\n`)
  } catch {
    return undefined
  }
}
