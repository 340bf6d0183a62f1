import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal, type TaskState } from '../../../machines/protocol/states.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { stateOf } from '../../client/requests.ts'
import { delay } from '../../client/retries/request-retry.ts'
import { isUnsupported } from '../../client/state/followed-task.ts'
import { readArguments } from '../arguments.ts'
import { EXIT_CODES, type Command, type Io } from '../command.ts'
import { readAccess } from './agent-connection.ts'
import { followTask, isActive, FOLLOW_HELP, FOLLOW_OPTIONS } from './follow.ts'

/** `taskchart watch`: shows the events of a task until it ends, and saves its results. */
export const watchCommand: Command = {
  usage:
    'taskchart watch URL TASK [--out DIR] [--api-key KEY] [--header NAME:VALUE]… [--credential-origin ORIGIN]… [--binding NAME] [--json]',
  details: `URL is the agent's ws: URL, or the http: URL of its card; TASK is the task's id. Progress is written to stderr and
results to stdout. A task that waits for input stays watched, so that another client can answer it. A task that has
ended is shown at once.

${FOLLOW_HELP}
${EXIT_CODES}`,
  run
}

async function run(args: readonly string[], io: Io): Promise<number> {
  const {
    values,
    positionals: [url, id]
  } = readArguments(args, FOLLOW_OPTIONS, ['URL', 'TASK'])
  const { out, binding, json = false } = values
  const stream = (client: AgentClient) => watchEvents(id, client, io)
  return followTask(
    { url, access: readAccess(values, io.env), binding, out, json, stream, goesOnIn: isInterrupted },
    io
  )
}

/** The task, then its events. A task that has ended is read once. Without a stream, the task is read until it ends. */
export async function* watchEvents(
  id: string,
  client: AgentClient,
  { signal, clock }: Pick<Io, 'signal' | 'clock'>
): AsyncGenerator<StreamResponse, void, undefined> {
  let state: TaskState | undefined
  try {
    for await (const event of client.subscribeToTask({ id }, { signal })) {
      state = stateOf(event) ?? state
      yield event
    }
  } catch (error) {
    if (!isUnsupported(error)) throw error
    state = undefined
  }
  if (state !== undefined && !isActive(state)) return
  const read = async () => client.getTask({ id, historyLength: 0 }, { signal })
  let task = await read()
  yield { task }
  while (!isTerminal(task.status.state)) {
    await delay(LOOK_MS, clock, signal)
    signal.throwIfAborted()
    const before = JSON.stringify(task)
    task = await read()
    if (JSON.stringify(task) !== before) yield { task }
  }
}

/** How often a task without a stream is read. */
const LOOK_MS = 2000
