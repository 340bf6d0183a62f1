import { stateText } from '../../../machines/protocol/states.ts'
import { readOptions, readPositionals } from '../arguments.ts'
import { type Command, EXIT, type Io, usageError } from '../command.ts'
import { ACCESS_HELP, ACCESS_OPTIONS, ENVIRONMENT_HELP, readAccess, withAgent } from '../talk/agent-connection.ts'
import { didYouMean } from '../text/format.ts'
import { jsonLine, oneLine } from '../text/terminal.ts'
import { exportTasks } from './export.ts'
import { printTasks, recordLines } from './lines.ts'
import { printPatches } from './patches.ts'
import { readPlace, SOURCE_OPTIONS, withSource } from './source.ts'

const ACTIONS: ReadonlyMap<string, (args: readonly string[], io: Io) => Promise<number>> = new Map([
  ['ls', printTasks],
  ['show', showTask],
  ['export', exportTasks],
  ['patches', printPatches],
  ['cancel', cancelTask]
])

/** `taskchart tasks`: lists, shows, exports and cancels the tasks of a file or of an agent. */
export const tasksCommand: Command = {
  usage: 'taskchart tasks ls|show|export|patches|cancel URL [TASK]… [OPTION]…, or --db FILE instead of URL',
  words: ['ls', 'show', 'export', 'patches', 'cancel'],
  details: `
  ls              matching tasks, latest status first
  show TASK       everything that is known about a task
  export [TASK…]  these tasks, or all, complete: one line of JSON each, { tenant?, principal?, generation?,
                  task, events?, journal?, webhooks?, wakeAtMs?, deadlineAtMs? }
  patches         the patches of functions and generators, and which can be retired: open tasks that run the code with
                  each, those that run it without, and those that were opened before the patch was first met and have
                  not been asked; only with --db. In a cluster, ask when every node has the code with the patch
  cancel TASK     cancel a task and print its new state; only with a URL

Where the tasks are:
  URL             the agent's ws: URL, or the http: URL of its card: your own tasks
  --db FILE|URL   the file or postgres: URL of taskchart serve --db, even while a server uses it: the tasks of all
                  callers, with their events, the keys of their journals but not the values, and the progress of their
                  webhooks
  --tenant T      only the tasks of this tenant; with --db
  --principal P   only the tasks of this caller; with --db

With a URL:
${ACCESS_HELP}
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

Of show and cancel:
  --json          the task as one line of JSON; show adds an array of its webhooks, if it has any:
                  { id, host, version, generation, told, tries, dueAtMs?, failure?, end? }

Of patches:
  --json          one line of JSON for each: { patch, with, without, unknown, canBeRetired }. "with" is a number, the
                  others are ids of tasks

Of export:
  --out FILE      write to a new file instead of stdout. The file gets this name when it is whole; stdout may have got a
                  part if the exit code is not 0
  --html          the story of one task as a page that needs no network: its chart, its sequence and its talk.
                  Secrets are left out as in logs. It needs elkjs

${ENVIRONMENT_HELP}
Exit codes: 0 done, also when there are no tasks, 1 an error, or some tasks could not be exported, 2 wrong usage, 130
stopped with Ctrl-C.
`,
  run
}

async function run([name, ...args]: readonly string[], io: Io): Promise<number> {
  const action = name === undefined ? undefined : ACTIONS.get(name)
  if (action) return action(args, io)
  throw usageError(
    name === undefined
      ? 'Say what to do with tasks: ls, show, export, patches or cancel.'
      : `Tasks have no ${JSON.stringify(name)}. ${didYouMean(name, [...ACTIONS.keys()])}`
  )
}

const SHOW_OPTIONS = { ...SOURCE_OPTIONS, json: { type: 'boolean' } } as const

/** `taskchart tasks show`: shows everything that is known about a task. */
async function showTask(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readOptions(args, SHOW_OPTIONS)
  const { place, rest } = readPlace(values, positionals)
  const [id] = readPositionals(rest, ['TASK'])
  const report = (message: string) => io.stderr.write(`taskchart: ${oneLine(message)}\n`)
  const record = await withSource(place, report, io, source => source.read(id))
  io.stdout.write(
    values.json
      ? jsonLine({ ...record.task, ...(record.webhooks && { webhooks: record.webhooks }) })
      : recordLines(record, io.clock.now())
          .map(line => `${line}\n`)
          .join('')
  )
  return EXIT.ok
}

const CANCEL_OPTIONS = { db: { type: 'string' }, ...ACCESS_OPTIONS, json: { type: 'boolean' } } as const

/** `taskchart tasks cancel`: cancels a task through its agent, and prints its new state. */
async function cancelTask(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readOptions(args, CANCEL_OPTIONS)
  const { db, json } = values
  if (db !== undefined)
    throw usageError(
      'A task cannot be canceled in a file: a server that uses it would not notice. Cancel through the server: taskchart tasks cancel URL TASK.'
    )
  const [url, id] = readPositionals(positionals, ['URL', 'TASK'])
  return withAgent({ url, access: readAccess(values, io.env) }, io, async client => {
    const task = await client.cancelTask({ id }, { signal: io.signal })
    io.stdout.write(json ? jsonLine(task) : `${stateText(task.status.state)}\n`)
    return EXIT.ok
  })
}
