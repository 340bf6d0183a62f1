import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { CommandError } from '../command.ts'
import type { Places } from '../serve/announcement.ts'
import type { Environment } from '../text/terminal.ts'

/** The command, as it is built, and what ends it with this process. */
const [BIN, END_WITH_PARENT] = ['../bin.js', './end-with-parent.js'].map(name => new URL(name, import.meta.url)) as [
  URL,
  URL
]

/** What a node needs. */
export interface NodeStart {
  /** Its name for people: `node 2`. */
  readonly name: string
  /** The arguments of `taskchart serve`. */
  readonly args: readonly string[]
  readonly env: Environment
  readonly cwd: string
  /** Called with each line that it writes to stderr. */
  readonly said: (line: string) => void
}

/** One node of a cluster: `taskchart serve` in a process of its own, which ends with this one. */
export class NodeProcess {
  readonly name: string
  /** Resolves with its URLs when it serves. Rejects with CommandError if it ends before. */
  readonly served: Promise<Places>
  /** Resolves when it has ended, with its exit code or signal. */
  readonly ended: Promise<string>
  readonly #child: ChildProcess

  constructor({ name, args, env, cwd, said }: NodeStart) {
    this.name = name
    const child = spawn(
      process.execPath,
      ['--import', END_WITH_PARENT.href, fileURLToPath(BIN), 'serve', ...args, '--json'],
      { cwd, env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] }
    ) as ChildProcess & { readonly stdout: Readable; readonly stderr: Readable }
    this.#child = child
    const errors = createInterface(child.stderr).on('line', said)
    // Not the event close, which does not follow a disconnect.
    const exit = new Promise<string>(resolve =>
      child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
    )
    this.ended = Promise.all([exit, once(errors, 'close')]).then(([end]) => end)
    const line = new Promise<string>(resolve => createInterface(child.stdout).once('line', resolve))
    const early = this.ended.then(end => {
      throw new CommandError(`${name} has ended before it served: ${end}.`)
    })
    this.served = Promise.race([line.then(text => JSON.parse(text) as Places), early])
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Stops it as Ctrl-C does. May be called twice. */
  async stop(): Promise<void> {
    this.#child.kill('SIGINT')
    await this.ended
  }
}
