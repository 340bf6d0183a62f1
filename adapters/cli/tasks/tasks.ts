import { isPause, stateText } from '../../../machines/protocol/states.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { stateOf } from '../../client/requests.ts'
import { OUTPUT_OPTIONS, readOptions, readOutput, readPositionals } from '../arguments.ts'
import { type Command, EXIT, type Io, usageError } from '../command.ts'
import {
  CALL_HELP,
  CALL_OPTIONS,
  POLL_OPTION,
  ENVIRONMENT_HELP,
  readPlaceOfAgent,
  withAgent,
  withinTimeout
} from '../talk/agent-connection.ts'
import { watchCommand, watchEvents } from '../talk/watch.ts'
import { didYouMean } from '../text/format.ts'
import { jsonLine, oneLine } from '../text/terminal.ts'
import { exportTasks } from './export.ts'
import { printTasks, recordLines } from './lines.ts'
import { tryMigrations } from './migrate.ts'
import { printPatches } from './patches.ts'
import { type CompleteTask, readPlace, SOURCE_OPTIONS, withSource } from './source.ts'

type Action = (args: readonly string[], io: Io) => Promise<number>

/** The actions in the help. */
const ACTIONS: ReadonlyMap<string, Action> = new Map<string, Action>([
  ['ls', (args, io) => printTasks(args, io)],
  ['show', showTask],
  ['export', exportTasks],
  ['patches', printPatches],
  ['migrate', tryMigrations],
  ['cancel', cancelTask]
])

/** Their names in a2a-cli. JSON is as A2A has it, without what taskchart adds. */
const SECOND_NAMES: ReadonlyMap<string, Action> = new Map<string, Action>([
  ['list', (args, io) => printTasks(args, io, true)],
  ['get', getTask],
  ['subscribe', (args, io) => watchCommand.run(args, io)]
])

/** `taskchart tasks`: lists, shows, exports and cancels the tasks of a file or of an agent. */
export const tasksCommand: Command = {
  usage: [
    'taskchart tasks ls URL|--db FILE|URL [OPTION]…',
    'taskchart tasks show URL|--db FILE|URL TASK [OPTION]…',
    'taskchart tasks export URL|--db FILE|URL [TASK]… [OPTION]…',
    'taskchart tasks patches --db FILE|URL [OPTION]…',
    'taskchart tasks migrate AGENT.ts|js --db FILE|URL --dry-run [OPTION]…',
    'taskchart tasks cancel URL TASK [OPTION]…'
  ],
  words: [...ACTIONS.keys()],
  hasOutputForms: true,
  details: `
  ls              matching tasks, latest status first
  show TASK       everything that is known about a task
  export [TASK…]  these tasks, or all, complete: one line of JSON each, { tenant?, principal?, generation?,
                  task, events?, journal?, webhooks?, wakeAtMs?, deadlineAtMs? }
  patches         the patches of functions and generators, and which can be retired: open tasks that run the code with
                  each, those that run it without, and those that were opened before the patch was first met and have
                  not been asked; only with --db. In a cluster, ask when every node has the code with the patch
  migrate AGENT.ts|js --dry-run
                  what an agent would make of every open task: the states before and after renamed, migrate and earlier,
                  the verdict of taskchart diff --db, and the properties of the agent that the result violates. No step
                  and no actor is started, but a function that has changed runs with its journal, and other code of it
                  too. Nothing is written; only with --db
  cancel TASK     cancel a task and print its new state; only with a URL

Where the tasks are:
  URL             the agent's ws: URL, or the http: URL of its card: your own tasks
  --db FILE|URL   the file or postgres: URL of taskchart serve --db, even while a server uses it: the tasks of all
                  callers, with their events, the keys of their journals but not the values, and the progress of their
                  webhooks
  --tenant T      only the tasks of this tenant; with --db
  --principal P   only the tasks of this caller; with --db

With a URL:
${CALL_HELP}
Of ls:
  --state STATE   only tasks in this state: submitted, working, input-required, auth-required, completed, failed,
                  canceled or rejected
  --context ID    only tasks of this context
  --since TIME    only tasks whose status changed since: 2026-01-31T12:00:00Z, 2026-01-31, or 30m, 2h or 7d ago
  --version V     only open tasks that this version of the agent opened, and so those that its entry in earlier still
                  serves; with --db
  --limit N       at most so many; default 50
  --json          one line of JSON for each task, without its history and artifacts:
                  { tenant?, principal?, generation?, task }
  --output json, -o json
                  one document: A2A's ListTasksResponse

Of show and cancel:
  --json          the task as one line of JSON; show adds an array of its webhooks:
                  { id, host, version, generation, told, tries, dueAtMs?, failure?, end? }
  --output json, -o json
                  one document: the task as A2A has it

Of patches:
  --json          one line of JSON for each: { patch, with, without, unknown, canBeRetired }. "with" is a number, the
                  others are ids of tasks
  --output json, -o json
                  one document: an array of these

Of migrate:
  --dry-run       has to be there: servers migrate tasks when they load them
  --sample N      at most so many tasks, spread evenly over all that are open
  --json          one line of JSON for each: { tenant, principal, contextId, taskId, state, from?, to, before?, after?,
                  verdict, reasons, violated }. "from" and "to" are versions, "before" and "after"
                  { state, context, actors }
  --output json, -o json
                  one document: an array of these

Of export:
  --history DIR   write a file for each open task into this folder, which taskchart test --histories replays: its log,
                  journal, snapshot and definition; with --db. --state, --context, --since and --version choose tasks as
                  those of ls do, --limit N the newest
  --redact        replace texts and numbers in them by others of the same length: of messages, artifacts, results of
                  steps, charts, and of the owner
  --out FILE      write to a new file instead of stdout. The file gets this name when it is whole; stdout may have got a
                  part if the exit code is not 0
  --html          the story of one task as a page that needs no network: the messages beside the lit chart, with a
                  slider, and its artifacts. Secrets are left out as in logs. It needs elkjs
  --svg           one task as a moving drawing of at most 40 seconds, for a README or a ticket: its chart with the lit
                  state, and what client and agent say. Secrets are left out as in logs. It needs elkjs
  --agent FILE    with --html or --svg: draw the chart of the work of this agent. Its code is loaded but does not run:
                  what the stored events do not make certain is not lit. Without it, the chart of an open task in
                  --db is that with which the task is stored

${ENVIRONMENT_HELP}
Exit codes: 0 done, also when there are no tasks, 1 an error, or some tasks could not be exported, 2 wrong usage, 3 the
agent was not reached, 4 credentials are missing, or were refused, 5 the time of --timeout has passed, 10 some tasks
cannot be migrated, 11 some go on otherwise, or it cannot be said, 130 stopped with Ctrl-C.
`,
  run
}

async function run([name = '', ...args]: readonly string[], io: Io): Promise<number> {
  const action = ACTIONS.get(name) ?? SECOND_NAMES.get(name)
  if (action) return action(args, io)
  throw usageError(
    name === ''
      ? 'Say what to do with tasks: ls, show, export, patches, migrate or cancel.'
      : `Tasks have no ${JSON.stringify(name)}. ${didYouMean(name, [...ACTIONS.keys()])}`
  )
}

const SHOW_OPTIONS = { ...SOURCE_OPTIONS, ...OUTPUT_OPTIONS } as const

/** `taskchart tasks show`: shows everything that is known about a task. */
async function showTask(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readOptions(args, SHOW_OPTIONS)
  const { place, rest } = readPlace(values, positionals, io.env)
  const [id] = readPositionals(rest, ['TASK'])
  const form = readOutput(values)
  const report = (message: string) => io.stderr.write(`taskchart: ${oneLine(message)}\n`)
  const record = await withSource(place, report, io, source => source.read(id))
  const { task, webhooks } = record
  if (form === 'text') printRecord(record, io)
  else io.stdout.write(jsonLine(form === 'lines' && webhooks ? { ...task, webhooks } : task))
  return EXIT.ok
}

function printRecord(record: CompleteTask, { stdout, clock }: Io): void {
  for (const line of recordLines(record, clock.now())) stdout.write(`${line}\n`)
}

const GET_OPTIONS = {
  ...CALL_OPTIONS,
  ...POLL_OPTION,
  ...OUTPUT_OPTIONS,
  history: { type: 'string' },
  wait: { type: 'boolean' }
} as const

/** `taskchart task get`: shows a task of an agent, also once it has ended or waits. */
async function getTask(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readOptions(args, GET_OPTIONS)
  const { place, rest } = readPlaceOfAgent(values, positionals, io.env)
  const [id] = readPositionals(rest, ['TASK'])
  const form = readOutput(values)
  const { history } = values
  if (history !== undefined && !/^\d{1,9}$/.test(history))
    throw usageError(`--history takes a number from 0 on, not ${JSON.stringify(history)}.`)
  return withinTimeout(values.timeout, io, io =>
    withAgent(place, io, async client => {
      if (values.wait) await untilPause(id, client, io, place.pollIntervalMs)
      const task = await client.getTask(
        { id, ...(history !== undefined && { historyLength: Number(history) }) },
        { signal: io.signal }
      )
      if (form === 'text') printRecord({ task }, io)
      else io.stdout.write(jsonLine(task))
      return EXIT.ok
    })
  )
}

/** Resolves once a task has ended or waits. */
async function untilPause(id: string, client: AgentClient, io: Io, pollIntervalMs: number | undefined): Promise<void> {
  for await (const event of watchEvents(id, client, io, pollIntervalMs)) {
    const state = stateOf(event)
    if (state && isPause(state)) break
  }
}

const CANCEL_OPTIONS = { db: { type: 'string' }, ...CALL_OPTIONS, ...OUTPUT_OPTIONS } as const

/** `taskchart tasks cancel`: cancels a task through its agent, and prints its new state. */
async function cancelTask(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readOptions(args, CANCEL_OPTIONS)
  if (values.db !== undefined)
    throw usageError(
      'A task cannot be canceled in a file: a server that uses it would not notice. Cancel through the server: taskchart tasks cancel URL TASK.'
    )
  const { place, rest } = readPlaceOfAgent(values, positionals, io.env)
  const [id] = readPositionals(rest, ['TASK'])
  const form = readOutput(values)
  return withinTimeout(values.timeout, io, io =>
    withAgent(place, io, async client => {
      const task = await client.cancelTask({ id }, { signal: io.signal })
      io.stdout.write(form === 'text' ? `${stateText(task.status.state)}\n` : jsonLine(task))
      return EXIT.ok
    })
  )
}
