import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../../../runtime/ports/clock.ts'
import { onReceived } from '../../../runtime/primitives/event-loop.ts'
import type { Proving, TestProgress } from '../../inspector/test-result.ts'
import type { Proof } from '../../testing/proof/prove.ts'
import { shownProof } from '../test/prove.ts'

/** Runs `taskchart test` of a module for the page of `taskchart dev`. */
export class TestRun {
  readonly #command: CommandRun

  /** `module`: the path of the agent's module. */
  constructor(module: string) {
    this.#command = new CommandRun(['test', module, '--tap'])
  }

  /** Starts it, unless it runs. Reports its progress with each test, and its end. */
  start(report: (progress: TestProgress) => void): void {
    let [done, total, failed] = [0, 0, 0]
    const reportTests = (more: Pick<TestProgress, 'isRunning' | 'error'>) =>
      report({ type: 'testing', done, total, failed, ...more })
    const line = (text: string) => {
      const plan = /^1\.\.(\d+)$/.exec(text)
      const point = /^(not )?ok \d/.exec(text)
      if (plan) total = Number(plan[1])
      if (point) done += 1
      if (point?.[1]) failed += 1
      if (plan ?? point) reportTests({ isRunning: true })
    }
    const ended = (errors: string) =>
      reportTests({ isRunning: false, ...(total === 0 && { error: errors || 'The tests did not start.' }) })
    if (this.#command.start(line, ended)) reportTests({ isRunning: true })
  }

  /** Ends it. May be called twice. */
  stop(): void {
    this.#command.stop()
  }
}

/** How the line of a proof begins. The author's module may print other lines. */
const PROOF = '{"verdicts":['

/** Runs `taskchart prove` of a module for the page of `taskchart dev`. */
export class ProofRun {
  readonly #file: string
  readonly #clock: Clock
  readonly #command: CommandRun

  /** `module`: the path of the agent's module; `file`: its name in commands. */
  constructor(module: string, file: string, clock: Clock) {
    this.#file = file
    this.#clock = clock
    this.#command = new CommandRun(['prove', module, '--json'])
  }

  /** Starts it, unless it runs. Reports its start, and then the proof or the error. */
  start(report: (progress: Proving) => void): void {
    let proof: Proof | undefined
    const line = (text: string) => {
      if (text.startsWith(PROOF)) proof = JSON.parse(text) as Proof
    }
    const ended = (errors: string) =>
      report({
        type: 'proving',
        isRunning: false,
        ...(proof
          ? { proof: shownProof(proof, this.#file, this.#clock.now()) }
          : { error: errors || 'The proof did not start.' })
      })
    if (this.#command.start(line, ended)) report({ type: 'proving', isRunning: true })
  }

  /** Ends it. May be called twice. */
  stop(): void {
    this.#command.stop()
  }
}

/** The command, as it is built. */
const BIN = fileURLToPath(new URL('../bin.js', import.meta.url))

/** The maximum length of a reported error. */
const LONGEST_ERROR = 2000

/**
 * Runs a command of taskchart for the page of `taskchart dev`: in a process of its own, which loads the module as it is
 * saved.
 */
class CommandRun {
  readonly #args: readonly string[]
  #child: ChildProcess | undefined

  constructor(args: readonly string[]) {
    this.#args = args
  }

  /**
   * Starts it, unless it runs. Gives each line of its output, and at its end the end of its errors. Returns whether it
   * has started.
   */
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
