import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import type { SoakedOptions, SoakedSizes, SoakedTold } from './server.ts'

/** The sizes of a server at the end of its life, in bytes and numbers. */
export interface Sizes extends SoakedSizes {
  readonly file: number
  readonly log: number
}

/** A server whose process is killed again and again, and comes back at the same address with the same file. */
export class Soaked {
  readonly #options: SoakedOptions
  readonly #node: string
  #child: ChildProcess | undefined
  #metrics = ''
  /** When it was killed and when it served again, by `performance.now()`; `Infinity` while it does not. */
  readonly gaps: { readonly killedMs: number; servedMs: number }[] = []
  /** Why it ended, if it did so by itself. */
  ended: string | undefined

  private constructor(options: SoakedOptions, node: string) {
    this.#options = options
    this.#node = node
  }

  static async start(options: SoakedOptions, node = process.execPath): Promise<Soaked> {
    const soaked = new Soaked(options, node)
    await soaked.#spawn()
    return soaked
  }

  get url(): string {
    return `http://127.0.0.1:${this.#options.port}/`
  }

  /** Its sizes right after a garbage collection. */
  async sizes(): Promise<Sizes> {
    const child = this.#child as ChildProcess
    child.send('sizes')
    const [sizes] = (await once(child, 'message')) as [SoakedSizes]
    return { ...sizes, file: sizeOf(this.#options.file), log: sizeOf(`${this.#options.file}-wal`) }
  }

  /** The text of its metrics. */
  async metrics(): Promise<string> {
    return (await fetch(this.#metrics)).text()
  }

  /** Kills its process and starts the next one. Resolves when that serves. */
  async kill(): Promise<void> {
    const gap = { killedMs: performance.now(), servedMs: Infinity }
    this.gaps.push(gap)
    await this.end()
    await this.#spawn()
    gap.servedMs = performance.now()
  }

  /** Kills its process for good. */
  async end(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  async #spawn(): Promise<void> {
    const child = fork(new URL('server.js', import.meta.url), [JSON.stringify(this.#options)], {
      execPath: this.#node,
      execArgv: [],
      env: { PATH: process.env.PATH, NODE_ENV: 'production' }
    })
    this.#child = child
    child.once('exit', (code, signal) => {
      if (this.#child === child) this.ended = `The server ended by itself, with ${String(signal ?? code)}.`
    })
    const [told] = (await once(child, 'message')) as [SoakedTold]
    if ('metrics' in told) this.#metrics = told.metrics
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}
