import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal, type TaskState } from '../../../machines/protocol/states.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { stateOf } from '../../client/requests.ts'
import { delay } from '../../client/retries/request-retry.ts'
import { isUnsupported } from '../../client/state/followed-task.ts'
import { readOptions, readOutput, readPositionals } from '../arguments.ts'
import { EXIT_CODES, type Command, type Io } from '../command.ts'
import { readPlaceOfAgent, withinTimeout } from './agent-connection.ts'
import { followTask, isActive, FOLLOW_HELP, FOLLOW_OPTIONS } from './follow.ts'

/** `taskchart watch`: shows the events of a task until it ends, and saves its results. */
export const watchCommand: Command = {
  usage: ['taskchart watch URL TASK [--out DIR] [--exit-status] [-o json] [OPTION]…'],
  hasOutputForms: true,
  details: `URL is the agent's ws: URL, the http: URL of its card, its host, or a file with its card; TASK is the task's id. Progress is written to stderr and
results to stdout. A task that waits for input stays watched, so that another client can answer it. A task that has
ended is shown at once. With -o json, the one document is the task, also when it waits.

${FOLLOW_HELP}
${EXIT_CODES}`,
  run
}

async function run(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readOptions(args, FOLLOW_OPTIONS)
  const { place, rest } = readPlaceOfAgent(values, positionals, io.env)
  const [id] = readPositionals(rest, ['TASK'])
  const form = readOutput(values)
  const isForPeople = form !== 'json'
  return withinTimeout(values.timeout, io, io =>
    followTask(
      {
        ...place,
        out: values.out,
        form,
        stream: client => watchEvents(id, client, io, place.pollIntervalMs),
        goesOnIn: state => isForPeople && isInterrupted(state),
        stopsIn: state => !isForPeople && isInterrupted(state),
        hasExitStatus: values['exit-status'] ?? false,
        documentOf: result => ('task' in result ? result.task : result)
      },
      io
    )
  )
}

/** The task, then its events. A task that has ended is read once. Without a stream, the task is read until it ends. */
export async function* watchEvents(
  id: string,
  client: AgentClient,
  { signal, clock }: Pick<Io, 'signal' | 'clock'>,
  pollIntervalMs = 2000
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
    await delay(pollIntervalMs, clock, signal)
    signal.throwIfAborted()
    const before = JSON.stringify(task)
    task = await read()
    if (JSON.stringify(task) !== before) yield { task }
  }
}
