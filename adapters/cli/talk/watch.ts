import { isA2AError } from '../../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal } from '../../../machines/protocol/states.ts'
import type { AgentClient } from '../../client/connect.ts'
import { readArguments } from '../arguments.ts'
import { EXIT_CODES, type Command, type Io } from '../command.ts'
import { readAccess } from './agent-connection.ts'
import { follow, FOLLOW_HELP, FOLLOW_OPTIONS } from './follow.ts'

/** `taskchart watch`: shows the events of a task until it ends, and saves its results. */
export const watchCommand: Command = {
  usage: 'taskchart watch URL TASK [--out DIR] [--api-key KEY] [--header NAME:VALUE]… [--credential-origin ORIGIN]… [--binding NAME] [--json]',
  details: `URL is the agent's ws: URL, or the http: URL of its card; TASK is the task's id. Progress is written to stderr and
results to stdout. A task that waits for input stays watched, so that another client can answer it. A task that has
ended is shown at once.

${FOLLOW_HELP}
${EXIT_CODES}`,
  run
}

async function run(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals: [url, id] } = readArguments(args, FOLLOW_OPTIONS, ['URL', 'TASK'])
  const { out, binding, json = false } = values
  const stream = (client: AgentClient) => eventsOf(id, client, io.signal)
  return follow({ url, access: readAccess(values, io.env), binding, out, json, stream, goesOnIn: isInterrupted }, io)
}

/** The task, then its events. A task that has ended, even during a lost connection, is read once. */
export async function* eventsOf(id: string, client: AgentClient, signal: AbortSignal): AsyncGenerator<StreamResponse, void, undefined> {
  try {
    yield* client.subscribeToTask({ id }, { signal })
  } catch (error) {
    if (!isA2AError(error) || error.code !== 'UnsupportedOperation') throw error
    const task = await client.getTask({ id, historyLength: 0 }, { signal })
    if (!isTerminal(task.status.state)) throw error
    yield { task }
  }
}
