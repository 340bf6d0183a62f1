import type { Testing } from '../../inspector/test-result.ts'
import { CommandRun } from './command-run.ts'

/** Runs `taskchart test` of a module for the page of `taskchart dev`. */
export class TestRun {
  readonly #command: CommandRun

  /** `module`: the path of the agent's module. */
  constructor(module: string) {
    this.#command = new CommandRun(['test', module, '--tap'])
  }

  /** Starts it, unless it runs. Tells its progress with each test, and its end. */
  start(told: (progress: Testing) => void): void {
    let [done, total, failed] = [0, 0, 0]
    const tell = (more: Pick<Testing, 'isRunning' | 'error'>) => told({ type: 'testing', done, total, failed, ...more })
    const line = (text: string) => {
      const plan = /^1\.\.(\d+)$/.exec(text)
      const point = /^(not )?ok \d/.exec(text)
      if (plan) total = Number(plan[1])
      if (point) done += 1
      if (point?.[1]) failed += 1
      if (plan ?? point) tell({ isRunning: true })
    }
    const ended = (errors: string) =>
      tell({ isRunning: false, ...(total === 0 && { error: errors || 'The tests did not start.' }) })
    if (this.#command.start(line, ended)) tell({ isRunning: true })
  }

  /** Ends it. May be called twice. */
  stop(): void {
    this.#command.stop()
  }
}
