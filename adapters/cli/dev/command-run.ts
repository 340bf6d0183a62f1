import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onReceived } from '../../../runtime/primitives/received.ts'

/** The command, as it is built. */
const BIN = fileURLToPath(new URL('../bin.js', import.meta.url))

/** The longest error that is told. */
const LONGEST_ERROR = 2000

/** Runs a command of taskchart for the page of `taskchart dev`: in a process of its own, which loads the module as it is saved. */
export class CommandRun {
  readonly #args: readonly string[]
  #child: ChildProcess | undefined

  constructor(args: readonly string[]) {
    this.#args = args
  }

  /** Starts it, unless it runs. Gives each line of its output, and at its end the end of its errors. Returns whether it has started. */
  start(line: (text: string) => void, ended: (errors: string) => void): boolean {
    if (this.#child) return false
    const child = spawn(process.execPath, [BIN, ...this.#args], { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    let errors = ''
    onReceived(
      child.stderr.setEncoding('utf8'),
      'data',
      (text: string) => void (errors = `${errors}${text}`.slice(-LONGEST_ERROR))
    )
    createInterface(child.stdout).on('line', line)
    child.on('close', () => {
      this.#child = undefined
      ended(errors.trim())
    })
    return true
  }

  /** Ends it. May be called twice. */
  stop(): void {
    this.#child?.kill()
  }
}
