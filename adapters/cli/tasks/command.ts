import { usageError, type Command, type Io } from '../command.ts'
import { cancelTask } from './cancel.ts'
import { exportTasks } from './export.ts'
import { listTasks } from './ls.ts'
import { showTask } from './show.ts'

const ACTIONS: ReadonlyMap<string, (args: readonly string[], io: Io) => Promise<number>> = new Map([
  ['ls', listTasks],
  ['show', showTask],
  ['export', exportTasks],
  ['cancel', cancelTask]
])

/** `taskchart tasks`: lists, shows, exports and cancels the tasks of a file or of an agent. */
export const tasksCommand: Command = {
  name: 'tasks',
  summary: 'list, show, export and cancel the tasks of a file or an agent',
  usage: 'taskchart tasks ls|show TASK|export [TASK…]|cancel TASK --db FILE|--url URL [OPTION]…',
  details: `
  ls              the tasks that match, latest status first
  show TASK       all data of a task
  export [TASK…]  these tasks, or all: each as a line of JSON, { tenant?, principal?, generation?, task, events?,
                  journal?, webhooks?, wakeAtMs?, deadlineAtMs? }
  cancel TASK     cancel a task, and show its state after that; only with --url

Source:
  --db FILE       the file of taskchart serve --db, also while a server uses it: the tasks of all callers, with their
                  events, the keys of their journals (never the contents), and the last update that each webhook got
  --url URL       the agent's ws: address, or the http: address of its card: your own tasks
  --api-key KEY   send this key (Authorization: Bearer KEY); with --url
  --credential-origin ORIGIN
                  send the key to this origin too, if the card names it; with --url; may be given more than once
  --tenant T      only the tasks of this tenant; with --db
  --principal P   only the tasks of this caller; with --db

Of ls:
  --state STATE   only tasks in this state: submitted, working, input-required, auth-required, completed, failed,
                  canceled or rejected
  --context ID    only tasks of this context
  --since TIME    only tasks whose status is as new: 2026-01-31T12:00:00Z, 2026-01-31, or a duration as 30m, 2h or 7d
  --limit N       at most this many; default 50
  --json          a line of JSON for each task, without its history and artifacts:
                  { tenant?, principal?, generation?, task }

Of show and cancel:
  --json          the task as one line of JSON; show adds its webhooks, if it has any and the source has them:
                  { id, host, version, generation, told, tries, dueAtMs?, failure?, end? } each

Of export:
  --out FILE      write to this new file, not to stdout; an export that is stopped leaves no file

Exit codes: 0 done, also when there are no tasks, 1 an error, or some tasks could not be exported, 2 wrong usage, 130
stopped with Ctrl-C.
`,
  run
}

async function run([name, ...args]: readonly string[], io: Io): Promise<number> {
  const action = name === undefined ? undefined : ACTIONS.get(name)
  if (action) return action(args, io)
  throw usageError(`${name === undefined ? 'Say what to do with tasks' : `Tasks have no ${JSON.stringify(name)}`}: ls, show, export or cancel.`)
}
