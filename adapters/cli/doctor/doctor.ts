import { access, constants, realpath } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { countOpenVersions } from '../../../runtime/work-port.ts'
import { installedVersion, satisfies } from '../../peers/installed-packages.ts'
import { checkUse } from '../../postgres/session/server-checks.ts'
import { isUrl, readOptions, refusePassword } from '../arguments.ts'
import { type Command, EXIT, type Io, usageError } from '../command.ts'
import { loadAgent, nodeReader } from '../load-agent.ts'
import { databaseNameOf, openReader, type StoreKind, storeKindOf } from '../stores.ts'
import { ACCESS_HELP, ACCESS_OPTIONS, callOption, ENVIRONMENT_HELP, readAccess } from '../talk/agent-connection.ts'
import { oneLine, plain, type Style, styleText } from '../text/terminal.ts'
import {
  agentFinding,
  type DoctorFinding,
  installIn,
  manifest,
  nodeFinding,
  packageFindings,
  portFinding,
  USUAL_PORT
} from './checks.ts'
import { urlFindings } from './remote-agent.ts'

/** `taskchart doctor`: lists the faults of this machine or of an agent, and what mends them. */
export const doctorCommand: Command = {
  usage: [
    'taskchart doctor [URL|AGENT.ts|js] [--text "TEXT"] [--db FILE|URL] [--api-key KEY] [--header NAME:VALUE]… [--credential-origin ORIGIN]…'
  ],
  details: `Looks at Node, the packages that taskchart can use, and the usual port. With a module, at whether it can be loaded. With a URL,
at the agent's card, its clock, and calls that change nothing. What is odd about the answers is a note if taskchart's client
copes with it. Each line on stdout begins with ok, note or WRONG. Below it stands the line that mends it, if there is one.

  --text "TEXT"   also send this message to the agent, once, and say how that went
  --db FILE|URL   also at this file or database of taskchart serve --db. With a module, at what its earlier versions serve
${ACCESS_HELP}
${ENVIRONMENT_HELP}
Exit codes: 0 nothing is wrong, 1 something is, 2 wrong usage, 130 stopped with Ctrl-C.
`,
  run
}

const OPTIONS = { db: { type: 'string' }, text: { type: 'string' }, ...ACCESS_OPTIONS } as const

async function run(args: readonly string[], io: Io): Promise<number> {
  const {
    values,
    positionals: [target, ...others]
  } = readOptions(args, OPTIONS)
  if (others[0] !== undefined) throw usageError(`${JSON.stringify(others[0])} is one argument too many.`)
  const { db, text } = values
  const option = text === undefined ? callOption(values) : '--text'
  const about = manifest()
  const isRemote = target !== undefined && isUrl(target)
  if (isRemote) refusePassword(target)
  if (option !== undefined && !isRemote) throw usageError(`${option} is for a URL.`)
  const findings: DoctorFinding[] = []
  const print = (...found: readonly DoctorFinding[]) => {
    findings.push(...found)
    for (const finding of found) io.stdout.write(textOf(finding, io.colours.stdout))
  }
  print(
    nodeFinding(about, process.versions.node),
    ...packageFindings(about, installedVersion, {
      stripsTypes: nodeReader.stripsTypes,
      hasSqlite: satisfies(process.versions.node, '>=22.13'),
      node: process.versions.node
    })
  )
  if (!isRemote) print(await portFinding(USUAL_PORT))
  if (db !== undefined) print(await databaseFinding(db, io))
  if (isRemote)
    for await (const finding of urlFindings({ url: target, access: readAccess(values, io.env), text }, io))
      print(finding)
  else if (target !== undefined) {
    const found = await agentFinding(target, io)
    print(found)
    if (db !== undefined && found.status === 'ok') print(...(await earlierFindings(target, db, io)))
  }
  return findings.some(({ status }) => status === 'wrong') ? EXIT.error : EXIT.ok
}

const MARKS: Readonly<Record<DoctorFinding['status'], readonly [mark: string, style: Style]>> = {
  ok: ['ok', 'green'],
  note: ['note', 'yellow'],
  wrong: ['WRONG', 'red']
}

function textOf({ status, what, mend }: DoctorFinding, hasColours: boolean): string {
  const [mark, style] = MARKS[status]
  const lines = plain(what).split('\n').join('\n       ')
  return `${styleText(hasColours, style, mark.padEnd(5))}  ${lines}\n${mend === undefined ? '' : `       ${oneLine(mend)}\n`}`
}

/** The open tasks that each entry of the agent's `earlier` serves, and those of versions without an entry. */
async function earlierFindings(target: string, db: string, io: Io): Promise<DoctorFinding[]> {
  const { agent } = await loadAgent(target, io.cwd)
  if (!agent.earlier) return []
  const open = await openVersions(db, io.cwd)
  if (!open) return []
  const tasks = (count: number) => (count === 1 ? '1 open task' : `${count} open tasks`)
  const served = Object.keys(agent.earlier).map((version): DoctorFinding => {
    const count = open.get(version) ?? 0
    const what = `the entry of version ${version} in earlier serves ${count === 0 ? 'no open task' : tasks(count)}`
    return count === 0
      ? { status: 'note', what, mend: `Remove it, once no process runs version ${version}` }
      : { status: 'ok', what, mend: `They are: taskchart tasks ls --db ${db} --version ${version}` }
  })
  const others = [...open].filter(([version]) => version !== agent.version && agent.earlier?.[version] === undefined)
  return [
    ...served,
    ...others.map(([version, count]): DoctorFinding => ({
      status: 'note',
      what: `${tasks(count)} of ${version === '' ? 'no version' : `version ${version}`}, which has no entry in earlier`,
      mend: `What becomes of them says: taskchart diff --db ${db} ${target}`
    }))
  ]
}

/** Open tasks by version; `undefined` for a file or database that cannot be read, of which another line tells. */
async function openVersions(db: string, cwd: string): Promise<ReadonlyMap<string, number> | undefined> {
  /* c8 ignore next -- another line tells what is wrong with the file */
  const logger = { warn: () => {}, error: () => {} }
  const store = await openReader(db, cwd, logger).catch(() => undefined)
  if (!store) return undefined
  try {
    return await countOpenVersions((limit, after) => store.countVersions(limit, after))
  } finally {
    await store.close()
  }
}

/** How many of each caller's newest tasks are read. */
const SOME_TASKS = 100

/** The lines that mend a store: if it is damaged, and if it cannot be used. */
const MENDS = {
  file: [
    'Restore a backup: stop the server, move FILE, FILE-wal and FILE-shm away, and copy the backup to FILE',
    'Give the file of taskchart serve --db, or a new file in a folder that you can write to'
  ],
  database: [
    'Restore a backup of the database. taskchart db check names each damage',
    'Start the database, or correct its URL. taskchart serve --db creates its tables'
  ]
} as const satisfies Record<StoreKind, readonly [restore: string, correct: string]>

/** Whether this user may write a file, or create files in a folder. */
export async function mayWrite(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => true,
    () => false
  )
}

/**
 * Whether a server could use the file or database of a store, or create the file. `isWritable` returns whether this
 * user may write a path.
 */
export async function databaseFinding(
  db: string,
  { cwd }: Pick<Io, 'cwd'>,
  isWritable = mayWrite
): Promise<DoctorFinding> {
  const kind = storeKindOf(db)
  const [restore, correct] = MENDS[kind]
  try {
    if (kind === 'file') {
      const path = resolve(cwd, db)
      const file = await realpath(path).catch(() => undefined)
      // SQLite creates files beside it.
      for (const needed of file === undefined ? [dirname(path)] : [file, dirname(file)]) {
        if (!(await isWritable(needed)))
          return {
            status: 'wrong',
            what: `${db} cannot be used: this user cannot write ${needed}`,
            mend: `Run taskchart serve --db as a user who may write ${needed}, or give another file`
          }
      }
      if (file === undefined) return { status: 'ok', what: `${db} does not exist: taskchart serve --db creates it` }
    } else await checkUse(db, 'doctor', 'taskchart')
    const damaged: string[] = []
    const note = (message: string) => void damaged.push(message)
    const store = await openReader(db, cwd, { warn: note, error: note })
    let total = 0
    try {
      for (const scope of await store.scopes())
        total += (await store.listTasks(scope, { limit: SOME_TASKS, historyLength: 0, artifacts: false })).total
    } finally {
      await store.close()
    }
    if (damaged[0] !== undefined)
      return { status: 'wrong', what: `${databaseNameOf(db)} is damaged: ${damaged[0]}`, mend: restore }
    return { status: 'ok', what: `${databaseNameOf(db)} can be read: ${total === 1 ? '1 task' : `${total} tasks`}` }
  } catch (error) {
    // The lines for a role that lacks rights are those for its administrator.
    const [message = '', statements] = (error as Error).message.split(/ (?=As an administrator, run )/)
    return {
      status: 'wrong',
      what: `${kind === 'file' ? db : 'The database'} cannot be used: ${message}`,
      mend: statements ?? installIn(message) ?? correct
    }
  }
}
