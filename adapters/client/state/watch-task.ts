import type { SendMessageResponse, Task } from '../../../machines/protocol/objects.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import type { AgentClient } from '../connect.ts'
import { nameQuestion } from '../messages.ts'
import { followedTask, type Followable, type WatchOptions } from './followed-task.ts'
import { partsOf, questionOf, type Content, type OpenQuestion } from './questions.ts'
import { Changing, type Watched } from './watched.ts'

/** A task as it stands. */
export interface TaskView {
  /** `undefined` until it has arrived. */
  readonly task: Task | undefined
  readonly question: OpenQuestion | undefined
  /** The error that ended watching; `undefined` if there was none. */
  readonly error: unknown
}

/** A task that is watched until `close`. */
export interface WatchedTask extends Watched<TaskView> {
  /** Starts watching. Returns a function that stops it; both may be called again. */
  readonly open: () => () => void
  /** Answers its question. Rejects with the agent's error, such as InvalidParams for an answer that does not match the schema. */
  readonly answer: (content: Content) => Promise<void>
  /** Cancels it. Rejects with TaskNotCancelable if it has ended. */
  readonly cancel: () => Promise<void>
}

type TaskAgent = Followable & Pick<AgentClient, 'sendMessage' | 'cancelTask'>

/** Watches a task until it ends: by its stream, or by polls if the agent does not stream. Nothing is sent before `open`. */
export function watchTask(agent: TaskAgent, taskId: string, options: WatchOptions = {}): WatchedTask {
  const view = new Changing<TaskView>({ task: undefined, question: undefined, error: undefined })
  const arrived = (task: Task) => view.change({ task, question: questionOf(task), error: undefined })
  const followed = () => followedTask(agent, taskId, { ...options, known: view.snapshot().task })
  /** Passes on the task that a call answers with. */
  const arriveBy = async (call: () => Promise<SendMessageResponse>) => {
    const task = followed()
    const release = task.hold()
    try {
      task.arrive(await call())
    } finally {
      release()
    }
  }
  return {
    snapshot: view.snapshot,
    subscribe: view.subscribe,
    open: () => {
      const task = followed()
      if (task.task) arrived(task.task)
      return task.follow({ arrived, failed: error => view.change({ error }) })
    },
    answer: content =>
      arriveBy(() => {
        const message: Message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', taskId, parts: partsOf(content) }
        return agent.sendMessage({
          message: nameQuestion(message, view.snapshot().question?.message),
          configuration: { returnImmediately: true }
        })
      }),
    cancel: () => arriveBy(async () => ({ task: await agent.cancelTask({ id: taskId }) }))
  }
}
