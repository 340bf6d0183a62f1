import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Message, SendMessageConfiguration, SendMessageRequest, Task } from '../../machines/protocol/objects.ts'
import { type BindingTest, ObservedTask, stateIn } from './binding-test.ts'
import { Unanswered } from './callers/caller.ts'

/** The subject of a test: at first nothing, then the task or message in the answer. */
export class SubjectUnderTest {
  readonly course = new ObservedTask()
  readonly trial: BindingTest
  /** The text of its opening message. */
  readonly text: string
  /** The messages sent to it. */
  readonly sent: Message[] = []
  /** Its newest version. */
  task: Task = NO_TASK
  /** Whether it was canceled. Its end is then no result of its work. */
  isCanceled = false
  /** The first version after its end. */
  atEnd: Task | undefined

  readonly #openedMs: number

  constructor(trial: BindingTest, text: string) {
    this.trial = trial
    this.#openedMs = trial.options.clock.now()
    this.text = text
  }

  /** Records and returns the task in an answer. Anything but a task ends the move. */
  see(found: unknown): Task {
    const state = stateIn({ task: found })
    if (!isObject(found) || typeof found.id !== 'string' || state === undefined || state === 'reply')
      throw new Unanswered('no task')
    const { clock } = this.trial.options
    const wasOver = this.course.isOver
    const wrong = this.course.see(state)
    this.trial.check(wasOver ? 80 : 54, wrong === undefined, 'a state that may follow', wrong)
    const task = found as unknown as Task
    this.task = task
    this.trial.learn(task)
    if (this.isStopped && !this.isCanceled && this.sent.length === 1)
      this.trial.noteStop(this.text, clock.now() - this.#openedMs, this.course.isOver)
    return task
  }

  /** Reads the task. */
  async read(ids: readonly number[] = [65], more: { readonly historyLength?: number } = {}): Promise<Task> {
    const task = this.see(await this.trial.result(ids, 'GetTask', { id: this.id, ...more }))
    if (this.course.isOver) this.atEnd ??= task
    return task
  }

  /** Reads the task until a condition holds, within the time limit of an answer. */
  async readUntil(holds: () => boolean): Promise<boolean> {
    const { clock, bounds } = this.trial.options
    const end = clock.now() + bounds.answerMs
    while (!holds() && clock.now() < end) {
      await this.trial.pause(PAUSE_MS)
      await this.read()
    }
    return holds()
  }

  get id(): string {
    return this.task.id
  }

  /** Whether it waits for its client, or has ended. */
  get isStopped(): boolean {
    return this.course.isOver || this.course.state === 'inputRequired' || this.course.state === 'authRequired'
  }

  /** Makes and records a message to it, or the opening message. */
  says(text: string, more: Partial<Message> = {}, configuration?: SendMessageConfiguration): SendMessageRequest {
    const message: Message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more }
    this.sent.push(message)
    return { message, ...(configuration && { configuration }) }
  }
}

/** A placeholder before the first task. */
const NO_TASK: Task = { id: '', status: { state: 'TASK_STATE_SUBMITTED' } }

/** The interval between reads of a task. */
const PAUSE_MS = 100
