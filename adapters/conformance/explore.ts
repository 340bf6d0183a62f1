import type { ErrorCode } from '../../machines/protocol/errors.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { BindingTest } from './binding-test.ts'
import { ignoreBound, ignoreUnanswered } from './callers/caller.ts'
import { checkListTasks } from './moves/list.ts'
import { answer, cancel, followLiveTask } from './moves/live.ts'
import { replyAgain, send, sendAtOnce, stream } from './moves/opening.ts'
import {
  cancelAgain,
  keepWebhooks,
  sendToEndedTask,
  streamToEndedTask,
  nameAnotherContext,
  readTwice,
  readAtLast,
  checkHistory,
  subscribe
} from './moves/over.ts'
import {
  askForExtendedCard,
  askForUnknownTasks,
  listBadly,
  nameExtensions,
  nameVersions,
  sendBadEnvelopes,
  sendBadRequests,
  showNoCredentials,
  useWhatIsNotOffered
} from './moves/unopened.ts'
import type { MoveName, Moves } from './protocol.machine.ts'
import { SubjectUnderTest } from './subject-under-test.ts'

/** The moves that open a task; every other move is made once in each state. */
const OPENINGS: readonly MoveName[] = ['stream', 'sendAtOnce', 'send']

/** Moves that are made once in all. */
const ONCE: readonly MoveName[] = ['list', 'keepWebhooks']

/** The maximum number of times that an opening is repeated to reach remaining moves. */
const MOST_TRIES = 6

/** A way to open a task: its text, its move, and the moves of the states that it has reached. */
interface Opening {
  readonly text: string
  readonly move: MoveName
  readonly led: Map<string, Moves>
  tries: number
}

/**
 * Makes all moves of the chart in the states that the server reaches. Its behaviour is unknown: so each opening is
 * made, and repeated as long as moves remain in the states that it has reached. Ends at the bounds of the trial.
 */
export class Exploration {
  readonly #trial: BindingTest
  readonly #onMove: (what: string) => void
  /** States with moves that were made there. */
  readonly #covered = new Set<string>()
  readonly #openings: readonly Opening[]

  /** `onMove` gets each move. */
  constructor(trial: BindingTest, onMove: (what: string) => void) {
    this.#trial = trial
    this.#onMove = onMove
    this.#openings = trial.options.texts.flatMap(text =>
      OPENINGS.map(move => ({ text, move, led: new Map<string, Moves>(), tries: 0 }))
    )
  }

  async run(): Promise<void> {
    await this.#tryAll().catch(ignoreBound)
  }

  /** Cancels the tasks that still run. */
  async cleanUp(): Promise<void> {
    for (const {
      id,
      status: { state }
    } of this.#trial.tasks.values()) {
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

  /** Makes the moves that need no task. */
  async #probe(): Promise<void> {
    const subject = new SubjectUnderTest(this.#trial, String(this.#trial.options.texts[0]))
    for (const name of namesIn(subject.course.moves)) if (!OPENINGS.includes(name)) await this.#make(subject, name)
  }

  /** Opens a task, and makes the remaining moves in each state that it reaches. */
  async #talk(subject: SubjectUnderTest, { move, led }: Opening): Promise<void> {
    const { course } = subject
    await this.#make(subject, move)
    while (course.state !== 'unopened') {
      led.set(course.state, course.moves)
      const name = this.#leftIn(course.state, course.moves)
      if (name === undefined) return
      // A running task may have changed its state.
      if (!subject.isStopped && course.state !== 'replied') await subject.read().catch(ignoreUnanswered)
      if (name in course.moves) await this.#make(subject, name)
    }
  }

  async #make(subject: SubjectUnderTest, name: MoveName): Promise<void> {
    const { state, moves } = subject.course
    this.#covered.add(keyOf(state, name))
    this.#onMove(`${state}: ${name}`)
    // A move without an expected refusal ignores `wanted`.
    await MOVES[name](subject, moves[name] as ErrorCode).catch(ignoreUnanswered)
  }

  /** The next opening: one that was not made yet, else one that has reached a state with remaining moves. */
  #next(): Opening | undefined {
    const leads = ({ led, tries }: Opening) =>
      tries < MOST_TRIES && [...led].some(([state, moves]) => this.#leftIn(state, moves) !== undefined)
    return (
      this.#openings.find(({ tries }) => tries === 0) ??
      this.#openings.toSorted((a, b) => a.tries - b.tries).find(leads)
    )
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

/** Makes a move with a subject, and records the findings. `wanted`: the error that the chart expects. */
type Move = (subject: SubjectUnderTest, wanted: ErrorCode) => Promise<void>

/** The implementation of each move in the chart. */
export const MOVES: Readonly<Record<MoveName, Move>> = {
  askForUnknownTasks,
  useWhatIsNotOffered,
  sendBadRequests,
  sendBadEnvelopes,
  nameVersions,
  nameExtensions,
  askForExtendedCard,
  showNoCredentials,
  listBadly,
  stream,
  sendAtOnce,
  send,
  replyAgain,
  read: readTwice,
  readHistory: checkHistory,
  nameAnotherContext,
  follow: followLiveTask,
  answer,
  cancelAgain,
  message: sendToEndedTask,
  messageByStream: streamToEndedTask,
  subscribe,
  list: checkListTasks,
  keepWebhooks,
  readAtLast,
  cancel: (subject, wanted) => (subject.course.isOver ? cancelOver(subject, wanted) : cancel(subject))
}

async function cancelOver({ trial, id }: SubjectUnderTest, wanted: ErrorCode): Promise<void> {
  await trial.refused(77, wanted, 'CancelTask', { id })
}
