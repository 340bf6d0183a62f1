import type { ErrorCode } from '../../machines/protocol/errors.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import { MOVES } from './moves.ts'
import type { MoveName, Moves } from './protocol.machine.ts'
import { SubjectUnderTest } from './subject-under-test.ts'
import type { BindingTest } from './binding-test.ts'
import { ignoreBound, ignoreUnanswered } from './unanswered.ts'

/** The moves that open a task; all else is tried once in each state. */
const OPENINGS: readonly MoveName[] = ['stream', 'sendAtOnce', 'send']

/** What is tried once, in whatever state it may be. */
const ONCE: readonly MoveName[] = ['list', 'keepWebhooks']

/** How often a way of opening a task is taken for what is left to try where it has led. */
const MOST_TRIES = 6

/** A way of opening a task: what is said, how, and what there was to try in the states that it has led to. */
interface Opening {
  readonly text: string
  readonly move: MoveName
  readonly led: Map<string, Moves>
  tries: number
}

/**
 * Tries everything that the chart says may be tried in the states that are met. What a server does is not known before: so each way of
 * opening a task is taken, and taken again as long as there is something left to try where it has led. Ends at the bounds of the trial.
 */
export class Exploration {
  readonly #trial: BindingTest
  readonly #told: (what: string) => void
  /** States with moves that were made there. */
  readonly #covered = new Set<string>()
  readonly #openings: readonly Opening[]

  /** `told` hears what is tried. */
  constructor(trial: BindingTest, told: (what: string) => void) {
    this.#trial = trial
    this.#told = told
    this.#openings = trial.options.texts.flatMap(text => OPENINGS.map(move => ({ text, move, led: new Map<string, Moves>(), tries: 0 })))
  }

  async run(): Promise<void> {
    await this.#tryAll().catch(ignoreBound)
  }

  /** Cancels the tasks that it leaves running. */
  async cleanUp(): Promise<void> {
    for (const { id, status: { state } } of this.#trial.tasks.values()) {
      if (!isTerminal(state)) await this.#trial.ask([], 'CancelTask', { id }).catch(() => {})
    }
  }

  async #tryAll(): Promise<void> {
    await this.#probe()
    for (let opening = this.#next(); opening; opening = this.#next()) {
      opening.tries += 1
      await this.#talk(new SubjectUnderTest(this.#trial, opening.text), opening)
    }
  }

  /** The moves for which no task is needed. */
  async #probe(): Promise<void> {
    const subject = new SubjectUnderTest(this.#trial, String(this.#trial.options.texts[0]))
    for (const name of namesIn(subject.course.moves)) if (!OPENINGS.includes(name)) await this.#make(subject, name)
  }

  /** Opens a task, and tries what is left to try, wherever it goes. */
  async #talk(subject: SubjectUnderTest, { move, led }: Opening): Promise<void> {
    const { course } = subject
    await this.#make(subject, move)
    while (course.state !== 'unopened') {
      led.set(course.state, course.moves)
      const name = this.#leftIn(course.state, course.moves)
      if (name === undefined) return
      // A task that works may have gone on.
      if (!subject.isStopped && course.state !== 'replied') await subject.read().catch(ignoreUnanswered)
      if (name in course.moves) await this.#make(subject, name)
    }
  }

  async #make(subject: SubjectUnderTest, name: MoveName): Promise<void> {
    const { state, moves } = subject.course
    this.#covered.add(keyOf(state, name))
    this.#told(`${state}: ${name}`)
    // A move that need not be refused does not look at what is wanted.
    await MOVES[name](subject, moves[name] as ErrorCode).catch(ignoreUnanswered)
  }

  /** The next way to open a task: one that was not taken yet, else one that leads where something is left to try. */
  #next(): Opening | undefined {
    const leads = ({ led, tries }: Opening) => tries < MOST_TRIES && [...led].some(([state, moves]) => this.#leftIn(state, moves) !== undefined)
    return this.#openings.find(({ tries }) => tries === 0) ?? this.#openings.toSorted((a, b) => a.tries - b.tries).find(leads)
  }

  #leftIn(state: string, moves: Moves): MoveName | undefined {
    return namesIn(moves).find(name => !this.#covered.has(keyOf(state, name)))
  }
}

function namesIn(moves: Moves): MoveName[] {
  return Object.keys(moves) as MoveName[]
}

function keyOf(state: string, name: MoveName): string {
  return ONCE.includes(name) ? name : `${state} ${name}`
}
