import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { Message, SendMessageRequest } from '../../../machines/protocol/objects.ts'
import type { TaskState } from '../../../machines/protocol/states.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { readAlias, readOptions, readOutput } from '../arguments.ts'
import { EXIT_CODES, usageError, type Command, type Io } from '../command.ts'
import { readPlaceOfAgent, withinTimeout } from './agent-connection.ts'
import { followTask, FOLLOW_HELP, FOLLOW_OPTIONS } from './follow.ts'
import { PART_OPTIONS, PARTS_HELP, readParts } from './message-parts.ts'

/** `taskchart send`: sends a message to an agent, watches its task, and saves the results. */
export const sendCommand: Command = {
  usage: [
    'taskchart send URL "text" [--file PATH|URL]… [--data JSON|PATH|-]… [--context-id ID] [--task-id ID] [--reference ID]… [--async] [--out DIR] [-o json] [OPTION]…'
  ],
  hasOutputForms: true,
  details: `URL is the agent's ws: URL, the http: URL of its card, its host, or a file with its card. Progress is written to stderr
and results to stdout. The last line is the command that continues the context. The command ends when the task has ended,
or waits. An agent that does not stream is polled. A task that waits for authorization stays watched at a terminal.

${PARTS_HELP}
  --context-id ID, --context ID
                  send it in this context
  --task-id ID, --task ID
                  answer this task, which must be waiting for input
  --reference ID  a task that the message is about; may be given more than once
  --metadata JSON the metadata of the request: an object
  --async         do not wait for the task: print its state at once. --return-immediately and --no-wait are the same
${FOLLOW_HELP}
${EXIT_CODES}`,
  run
}

const FLAG = { type: 'boolean' } as const
const OPTIONS = {
  ...PART_OPTIONS,
  context: { type: 'string' },
  'context-id': { type: 'string' },
  task: { type: 'string' },
  'task-id': { type: 'string' },
  reference: { type: 'string', multiple: true },
  metadata: { type: 'string' },
  async: FLAG,
  'return-immediately': FLAG,
  'no-wait': FLAG,
  wait: FLAG,
  ...FOLLOW_OPTIONS
} as const

async function run(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals, tokens } = readOptions(args, OPTIONS)
  const { place, rest } = readPlaceOfAgent(values, positionals, io.env)
  const form = readOutput(values)
  const isAsync = values.async ?? values['return-immediately'] ?? values['no-wait'] ?? false
  if (isAsync && values.wait) throw usageError('--wait and --async exclude each other.')
  const named = (...names: readonly ('context' | 'context-id' | 'task' | 'task-id')[]) =>
    readAlias(Object.fromEntries(names.map(name => [name, values[name]])), names)
  const [contextId, taskId] = [named('context-id', 'context'), named('task-id', 'task')]
  const metadata = values.metadata === undefined ? undefined : readMetadata(values.metadata)
  const message: Message = {
    messageId: crypto.randomUUID(),
    role: 'ROLE_USER',
    parts: await readParts(tokens, rest, io),
    ...(contextId !== undefined && { contextId }),
    ...(taskId !== undefined && { taskId }),
    ...(values.reference && { referenceTaskIds: values.reference })
  }
  const request = { message, ...(metadata && { metadata }) }
  const isAuthorization = (state: TaskState) => state === 'TASK_STATE_AUTH_REQUIRED'
  const isForPeople = form === 'text' && io.terminal !== undefined
  return withinTimeout(values.timeout, io, io =>
    followTask(
      {
        ...place,
        out: values.out,
        form,
        isAsync,
        stream: client =>
          isAsync ? answerOf(client, request, io.signal) : client.sendStreamingMessage(request, { signal: io.signal }),
        goesOnIn: state => isForPeople && isAuthorization(state),
        stopsIn: state => !isForPeople && isAuthorization(state),
        hasExitStatus: values['exit-status'] ?? false
      },
      io
    )
  )
}

/** The agent's answer, which it gives before the task ends. */
async function* answerOf(client: AgentClient, request: SendMessageRequest, signal: AbortSignal) {
  yield await client.sendMessage({ ...request, configuration: { returnImmediately: true } }, { signal })
}

function readMetadata(text: string): Record<string, unknown> {
  try {
    const metadata: unknown = JSON.parse(text)
    if (isObject(metadata)) return metadata
  } catch {
    // It is refused as other JSON is.
  }
  throw usageError('--metadata takes an object as JSON, such as --metadata \'{"team":"blue"}\'.')
}
