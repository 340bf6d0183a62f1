import { Role, TaskState, type Artifact, type Message } from '@a2a-js/sdk'
import { AgentEvent, type AgentExecutor, type ExecutionEventBus, type RequestContext } from '@a2a-js/sdk/server'
import { ARTIFACT_TEXT, CHUNK_TEXT, errandIn, nextTurn } from '../errands.ts'

/**
 * Does the same errands as our agents, and publishes the same events: SUBMITTED, WORKING, artifacts, and an end or a
 * question.
 */
export class BenchExecutor implements AgentExecutor {
  async execute(request: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const { taskId, contextId } = request
    const status = (state: TaskState, message?: Message) => ({ state, message, timestamp: new Date().toISOString() })
    const tell = (state: TaskState, message?: Message) =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, message), metadata: undefined }))
    const make = (artifact: Artifact, append = false) =>
      bus.publish(
        AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk: false, metadata: undefined })
      )

    if (!request.task) {
      const submitted = status(TaskState.TASK_STATE_SUBMITTED)
      bus.publish(
        AgentEvent.task({ id: taskId, contextId, status: submitted, artifacts: [], history: [], metadata: undefined })
      )
    }
    tell(TaskState.TASK_STATE_WORKING)
    const errand = errandIn(textOf(request.userMessage))
    switch (errand.kind) {
      case 'ask':
        return tell(TaskState.TASK_STATE_INPUT_REQUIRED, question(taskId, contextId))
      case 'artifact':
        make(artifactOf(crypto.randomUUID(), ARTIFACT_TEXT))
        break
      case 'chunks':
        for (let made = 0; made < errand.count; made += 1) {
          make(artifactOf('text', CHUNK_TEXT), made > 0)
          await nextTurn()
        }
    }
    tell(TaskState.TASK_STATE_COMPLETED)
  }

  async cancelTask(): Promise<void> {}
}

function textOf({ parts }: Message): string {
  return parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('\n')
}

function textParts(value: string): Message['parts'] {
  return [{ content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: '' }]
}

function artifactOf(artifactId: string, value: string): Artifact {
  return { artifactId, name: '', description: '', parts: textParts(value), metadata: undefined, extensions: [] }
}

function question(taskId: string, contextId: string): Message {
  const parts = textParts('Which colour?')
  return {
    messageId: crypto.randomUUID(),
    taskId,
    contextId,
    role: Role.ROLE_AGENT,
    parts,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: []
  }
}
