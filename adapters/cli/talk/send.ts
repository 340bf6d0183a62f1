import type { Message } from '../../../machines/protocol/objects.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { readArguments } from '../arguments.ts'
import { EXIT_CODES, type Command, type Io } from '../command.ts'
import { readAccess } from './agent-connection.ts'
import { followTask, FOLLOW_HELP, FOLLOW_OPTIONS } from './follow.ts'

/** `taskchart send`: sends a message to an agent, watches its task, and saves the results. */
export const sendCommand: Command = {
  usage:
    'taskchart send URL "text" [--context ID] [--task ID] [--reference ID]… [--out DIR] [--api-key KEY] [--header NAME:VALUE]… [--credential-origin ORIGIN]… [--binding NAME] [--json]',
  details: `URL is the agent's ws: URL, or the http: URL of its card. Progress is written to stderr and results to stdout. The
last line is the command that continues the context.

  --context ID    send it in this context
  --task ID       answer this task, which must be waiting for input
  --reference ID  a task that the message is about; may be given more than once
${FOLLOW_HELP}
${EXIT_CODES}`,
  run
}

const OPTIONS = {
  context: { type: 'string' },
  task: { type: 'string' },
  reference: { type: 'string', multiple: true },
  ...FOLLOW_OPTIONS
} as const

async function run(args: readonly string[], io: Io): Promise<number> {
  const {
    values,
    positionals: [url, text]
  } = readArguments(args, OPTIONS, ['URL', '"text"'])
  const { context, task, reference, out, binding, json = false } = values
  const message: Message = {
    messageId: crypto.randomUUID(),
    role: 'ROLE_USER',
    parts: [{ text }],
    ...(context !== undefined && { contextId: context }),
    ...(task !== undefined && { taskId: task }),
    ...(reference && { referenceTaskIds: reference })
  }
  const stream = (client: AgentClient) => client.sendStreamingMessage({ message }, { signal: io.signal })
  return followTask(
    {
      url,
      access: readAccess(values, io.env),
      binding,
      out,
      json,
      stream,
      goesOnIn: state => state === 'TASK_STATE_AUTH_REQUIRED'
    },
    io
  )
}
