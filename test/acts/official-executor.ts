import { TaskState, type Part, type Task } from '@a2a-js/sdk'
import type { AgentExecutor, ExecutionEventBus, RequestContext } from '@a2a-js/sdk/server'
import { deferred } from '../fixtures/runtime/runtime-helpers.ts'
import { partOf, said, textOf } from '../fixtures/servers/official-agent.ts'

/** The behaviours of ACTS, as an executor of the official SDK. */
export class ActsExecutor implements AgentExecutor {
  #held = deferred()
  readonly #canceled = new Map<string, { readonly contextId: string; readonly stop: () => void }>()

  goOn(): void {
    this.#held.resolve()
  }

  execute = async ({ taskId, contextId, userMessage, task }: RequestContext, bus: ExecutionEventBus): Promise<void> => {
    const behaviour = textOf(task?.history[0] ?? userMessage).split(' ')[0] ?? ''
    if (behaviour === 'tck-message-response') {
      bus.publish({ kind: 'message', data: said('Hello to you.', contextId, '') })
      return bus.finished()
    }
    if (behaviour === 'tck-long-running') this.#held = deferred()
    const canceled = deferred()
    this.#canceled.set(taskId, { contextId, stop: canceled.resolve })
    const status = (state: TaskState, words?: string) => ({
      state,
      timestamp: new Date().toISOString(),
      message: words === undefined ? undefined : said(words, contextId, taskId)
    })
    const tell = (state: TaskState, words?: string) =>
      bus.publish({
        kind: 'statusUpdate',
        data: { taskId, contextId, status: status(state, words), metadata: undefined }
      })
    const opened: Task = {
      id: taskId,
      contextId,
      status: status(TaskState.TASK_STATE_SUBMITTED),
      artifacts: [],
      history: [userMessage],
      metadata: undefined
    }
    bus.publish({ kind: 'task', data: task ?? opened })
    tell(TaskState.TASK_STATE_WORKING)
    const give = (parts: readonly Part[]) => {
      for (const [i, part] of parts.entries())
        bus.publish({
          kind: 'artifactUpdate',
          data: {
            taskId,
            contextId,
            artifact: {
              artifactId: 'result',
              name: 'result',
              description: '',
              parts: [part],
              metadata: undefined,
              extensions: []
            },
            append: i > 0,
            lastChunk: i === parts.length - 1,
            metadata: undefined
          }
        })
    }
    const end = (state: TaskState, words?: string) => {
      tell(state, words)
      bus.finished()
    }
    if (behaviour === 'tck-long-running') await this.#held.promise
    if (behaviour === 'tck-cancel') {
      await canceled.promise
      return
    }
    if (behaviour === 'tck-multi-turn' && !textOf(userMessage).startsWith('done'))
      return end(TaskState.TASK_STATE_INPUT_REQUIRED, 'And then?')
    if (behaviour === 'tck-auth-required') return end(TaskState.TASK_STATE_AUTH_REQUIRED, 'Please authorize this.')
    if (behaviour === 'tck-task-failure') return end(TaskState.TASK_STATE_FAILED, 'It did not work.')
    give(PARTS[behaviour] ?? [partOf('Done.')])
    end(TaskState.TASK_STATE_COMPLETED)
  }

  cancelTask = async (taskId: string, bus: ExecutionEventBus): Promise<void> => {
    const { contextId = '', stop } = this.#canceled.get(taskId) ?? {}
    stop?.()
    const status = { state: TaskState.TASK_STATE_CANCELED, timestamp: new Date().toISOString(), message: undefined }
    bus.publish({ kind: 'statusUpdate', data: { taskId, contextId, status, metadata: undefined } })
    bus.finished()
  }
}

const about = { metadata: undefined, filename: '', mediaType: '' }
const PARTS: Readonly<Record<string, readonly Part[]>> = {
  'tck-stream-chunked': ['one', 'two', 'three'].map(partOf),
  'tck-artifact-data': [{ ...about, content: { $case: 'data', value: { answer: 42 } } }],
  'tck-artifact-file': [
    { ...about, content: { $case: 'raw', value: Buffer.from('hello') }, filename: 'hello.txt', mediaType: 'text/plain' }
  ],
  'tck-artifact-file-url': [
    { ...about, content: { $case: 'url', value: 'https://example.com/hello.txt' }, filename: 'hello.txt' }
  ]
}
