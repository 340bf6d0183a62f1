import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Proving } from '../../inspector/test-result.ts'
import type { Proof } from '../../testing/proof/prove.ts'
import { shownProof } from '../test/proof-words.ts'
import { CommandRun } from './command-run.ts'

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

  /** Starts it, unless it runs. Tells that it runs, and then the proof or the error. */
  start(told: (progress: Proving) => void): void {
    let proof: Proof | undefined
    const line = (text: string) => {
      if (text.startsWith(PROOF)) proof = JSON.parse(text) as Proof
    }
    const ended = (errors: string) =>
      told({
        type: 'proving',
        isRunning: false,
        ...(proof
          ? { proof: shownProof(proof, this.#file, this.#clock.now()) }
          : { error: errors || 'The proof did not start.' })
      })
    if (this.#command.start(line, ended)) told({ type: 'proving', isRunning: true })
  }

  /** Ends it. May be called twice. */
  stop(): void {
    this.#command.stop()
  }
}
