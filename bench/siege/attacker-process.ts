import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { AttackOptions } from './attack.ts'
import type { AttackerTold } from './attacker.ts'
import type { Wait } from './observer.ts'
import type { Told } from './tally.ts'

/** An attack of one connection, from when until when. */
interface Begun {
  readonly name: string
  readonly fromMs: number
  toMs: number
}

/** The attacker in a process of its own. */
export class AttackerProcess {
  readonly #child: ChildProcess
  readonly #begun: Begun[] = []
  readonly #current = new Map<number, Begun>()
  readonly #exited: Promise<unknown>
  #told: readonly Told[] | undefined

  private constructor(options: AttackOptions) {
    this.#child = fork(new URL('attacker.js', import.meta.url), [JSON.stringify(options)], { execArgv: [] })
    this.#child.on('message', told => this.#take(told as AttackerTold))
    this.#exited = once(this.#child, 'exit')
  }

  /** Resolves when the attack has begun. Throws Error if the process ends instead. */
  static async start(options: AttackOptions): Promise<AttackerProcess> {
    const attacker = new AttackerProcess(options)
    await attacker.#next()
    return attacker
  }

  /** Ends the attack. Gives what became of each kind; throws Error if the process has ended before. */
  async stop(): Promise<readonly Told[]> {
    if (this.#child.connected) this.#child.send('stop')
    while (this.#told === undefined) await this.#next()
    await this.kill()
    return this.#told
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  /** The attacks that began or were under way while a request waited. */
  during({ sentMs, tookMs }: Wait): string[] {
    return [
      ...new Set(
        this.#begun.filter(({ fromMs, toMs }) => fromMs < sentMs + tookMs && toMs > sentMs).map(({ name }) => name)
      )
    ]
  }

  async #next(): Promise<void> {
    const exited = this.#exited.then(() => {
      throw new Error(`The attacker's process ended with ${String(this.#child.exitCode ?? this.#child.signalCode)}.`)
    })
    await Promise.race([once(this.#child, 'message'), exited])
  }

  #take(told: AttackerTold): void {
    if ('told' in told) {
      this.#told = told.told
      return
    }
    const nowMs = performance.now()
    const before = this.#current.get(told.connection)
    if (before) before.toMs = nowMs
    const begun = { name: told.name, fromMs: nowMs, toMs: Infinity }
    this.#current.set(told.connection, begun)
    this.#begun.push(begun)
  }
}
