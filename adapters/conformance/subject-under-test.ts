import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { SendMessageConfiguration, SendMessageRequest } from '../../machines/protocol/requests.ts'
import { ObservedTask } from './observed-task.ts'
import { stateIn } from './listening.ts'
import type { BindingTest } from './binding-test.ts'
import { Unanswered } from './unanswered.ts'

/** What a test talks of: nothing yet, then the task or the message that a message was answered with. */
export class SubjectUnderTest {
  readonly course = new ObservedTask()
  readonly trial: BindingTest
  /** What its opening message says. */
  readonly text: string
  /** The messages that were sent for it. */
  readonly sent: Message[] = []
  /** As it was seen last. */
  task: Task = NO_TASK
  /** Whether it was to be canceled: then its end says nothing of its work. */
  isCanceled = false
  /** As it was read first after its end. */
  atEnd: Task | undefined

  readonly #openedMs: number

  constructor(trial: BindingTest, text: string) {
    this.trial = trial
    this.#openedMs = trial.options.clock.now()
    this.text = text
  }

  /** Sees the task that an answer held; gives it. What is no task ends the move. */
  see(found: unknown): Task {
    const state = stateIn({ task: found })
    if (!isObject(found) || typeof found.id !== 'string' || state === undefined || state === 'reply') throw new Unanswered('no task')
    const { clock } = this.trial.options
    const wasOver = this.course.isOver
    const wrong = this.course.see(state)
    this.trial.check(wasOver ? 80 : 54, wrong === undefined, 'a state that may follow', wrong)
    const task = found as unknown as Task
    this.task = task
    this.trial.learn(task)
    if (this.isStopped && !this.isCanceled && this.sent.length === 1) this.trial.noteStop(this.text, clock.now() - this.#openedMs, this.course.isOver)
    return task
  }

  /** Reads the task, as it is now. */
  async read(ids: readonly number[] = [65], more: { readonly historyLength?: number } = {}): Promise<Task> {
    const task = this.see(await this.trial.result(ids, 'GetTask', { id: this.id, ...more }))
    if (this.course.isOver) this.atEnd ??= task
    return task
  }

  /** Reads the task until something holds for it, or for as long as an answer may take. */
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

  /** A message to it, or its opening; remembered. */
  says(text: string, more: Partial<Message> = {}, configuration?: SendMessageConfiguration): SendMessageRequest {
    const message: Message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more }
    this.sent.push(message)
    return { message, ...(configuration && { configuration }) }
  }
}

/** Before any was seen. */
const NO_TASK: Task = { id: '', status: { state: 'TASK_STATE_SUBMITTED' } }

/** How long a task is left alone before it is read again. */
const PAUSE_MS = 100
