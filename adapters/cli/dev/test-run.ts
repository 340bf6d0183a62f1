import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Testing } from '../../inspector/test-result.ts'

/** The command, as it is built. */
const BIN = fileURLToPath(new URL('../bin.js', import.meta.url))

/** The longest error that is told. */
const LONGEST_ERROR = 2000

/** Runs `taskchart test` of a module for the page of `taskchart dev`: in a process of its own, which loads the module as it is saved. */
export class TestRun {
  readonly #module: string
  #child: ChildProcess | undefined

  /** `module`: the path of the agent's module. */
  constructor(module: string) {
    this.#module = module
  }

  /** Starts it, unless it runs. Tells its progress with each test, and its end. */
  start(told: (progress: Testing) => void): void {
    if (this.#child) return
    const child = spawn(process.execPath, [BIN, 'test', this.#module, '--tap'], { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    let [done, total, failed] = [0, 0, 0]
    let errors = ''
    const tell = (more: Pick<Testing, 'isRunning' | 'error'>) => told({ type: 'testing', done, total, failed, ...more })
    tell({ isRunning: true })
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors = `${errors}${text}`.slice(-LONGEST_ERROR)))
    createInterface(child.stdout).on('line', line => {
      const plan = /^1\.\.(\d+)$/.exec(line)
      const point = /^(not )?ok \d/.exec(line)
      if (plan) total = Number(plan[1])
      if (point) done += 1
      if (point?.[1]) failed += 1
      if (plan ?? point) tell({ isRunning: true })
    })
    child.on('close', () => {
      this.#child = undefined
      tell({ isRunning: false, ...(total === 0 && { error: errors.trim() || 'The tests did not start.' }) })
    })
  }

  /** Ends it. May be called twice. */
  stop(): void {
    this.#child?.kill()
  }
}
