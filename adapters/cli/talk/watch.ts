import { isA2AError } from '../../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal } from '../../../machines/protocol/states.ts'
import type { AgentClient } from '../../client/connect.ts'
import { readApiKey } from '../api-key.ts'
import { readArguments } from '../arguments.ts'
import { EXIT_CODES, type Command, type Io } from '../command.ts'
import { follow, FOLLOW_HELP, FOLLOW_OPTIONS } from './follow.ts'

/** `taskchart watch`: shows what happens to a task until it ends, and hands over its results. */
export const watchCommand: Command = {
  name: 'watch',
  summary: 'watch a task until it ends, save its artifacts',
  usage: 'taskchart watch URL TASK [--out DIR] [--api-key KEY] [--credential-origin ORIGIN]… [--binding NAME] [--json]',
  details: `URL is the agent's ws: address, or the http: address of its card; TASK is the task's id. Progress is written to
stderr, results to stdout. A task that waits for input is watched until another client answers. A task that has ended is
shown in its final state.

${FOLLOW_HELP}
${EXIT_CODES}`,
  run
}

async function run(args: readonly string[], io: Io): Promise<number> {
  const { values: { out, 'api-key': key, 'credential-origin': credentialOrigins, binding, json = false }, positionals: [url, id] } = readArguments(args, FOLLOW_OPTIONS, ['URL', 'TASK'])
  const stream = (client: AgentClient) => eventsOf(id, client, io.signal)
  return follow({ url, apiKey: readApiKey(key), credentialOrigins, binding, out, json, stream, goesOnIn: isInterrupted }, io)
}

/** A task as it is, then all that happens to it. One that has ended, also while the connection was lost, comes as it is. */
async function* eventsOf(id: string, client: AgentClient, signal: AbortSignal): AsyncGenerator<StreamResponse, void, undefined> {
  try {
    yield* client.subscribeToTask({ id }, { signal })
  } catch (error) {
    if (!isA2AError(error) || error.code !== 'UnsupportedOperation') throw error
    const task = await client.getTask({ id, historyLength: 0 }, { signal })
    if (!isTerminal(task.status.state)) throw error
    yield { task }
  }
}
