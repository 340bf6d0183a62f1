import { useAgent } from '@copilotkit/react-core/v2'

interface Part {
  readonly text?: string
  readonly raw?: string
  readonly mediaType?: string
  readonly filename?: string
}

interface Task {
  readonly status: { readonly state: string }
  readonly artifacts?: readonly {
    readonly artifactId: string
    readonly name?: string
    readonly parts: readonly Part[]
  }[]
}

/** The state of the task and its artifacts, which are the state of the agent in AG-UI. */
export function Artifacts({ agentId }: { readonly agentId: string }) {
  const { agent } = useAgent({ agentId })
  const { task } = agent.state as { readonly task?: Task }
  if (!task) return null
  const state = task.status.state.replace('TASK_STATE_', '').replace('_', ' ').toLowerCase()
  return (
    <aside aria-label="Task">
      <p role="status">Task: {state}</p>
      {task.artifacts?.map(({ artifactId, name = 'artifact', parts }) => (
        <figure key={artifactId}>
          <figcaption>{name}</figcaption>
          {parts.map((part, i) => (
            <Shown key={i} part={part} />
          ))}
        </figure>
      ))}
    </aside>
  )
}

/** A part. What an agent sends is untrusted: text is text, and pictures are in an `<img>`. */
function Shown({ part: { text, raw, mediaType = '', filename } }: { readonly part: Part }) {
  if (raw !== undefined && mediaType.startsWith('image/')) return <img alt="" src={`data:${mediaType};base64,${raw}`} />
  return <pre>{text ?? filename ?? mediaType}</pre>
}
