import { installedVersion } from '../../peers/installed-packages.ts'
import { satisfies } from '../../peers/versions.ts'
import { isUrl, readOptions, refusePassword } from '../arguments.ts'
import { EXIT, usageError, type Command, type Io } from '../command.ts'
import { nodeReader } from '../load-agent.ts'
import { ACCESS_HELP, ACCESS_OPTIONS, accessOption, ENVIRONMENT_HELP, readAccess } from '../talk/agent-connection.ts'
import { styled, type Style } from '../text/colour.ts'
import { oneLine, plain } from '../text/terminal-text.ts'
import { agentFinding, nodeFinding, portFinding, USUAL_PORT } from './checks.ts'
import { databaseFinding } from './database.ts'
import { manifest, packageFindings, type Finding } from './packages.ts'
import { urlFindings } from './remote-agent.ts'

/** `taskchart doctor`: says what is wrong on this machine, or with an agent, and what mends it. */
export const doctorCommand: Command = {
  usage:
    'taskchart doctor [URL|AGENT.ts|js] [--text "TEXT"] [--db FILE|URL] [--api-key KEY] [--header NAME:VALUE]… [--credential-origin ORIGIN]…',
  details: `Looks at Node, the packages that taskchart can use, and the usual port. With a module, at whether it can be loaded. With a URL,
at the agent's card, its clock, and calls that change nothing. What is odd about the answers is a note if taskchart's client
copes with it. Each line on stdout begins with ok, note or WRONG. Below it stands the line that mends it, if there is one.

  --text "TEXT"   also send this message to the agent, once, and say how that went
  --db FILE|URL   also at this file or database of taskchart serve --db
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
  const option = text === undefined ? accessOption(values) : '--text'
  const about = manifest()
  const isRemote = target !== undefined && isUrl(target)
  if (isRemote) refusePassword(target)
  if (option !== undefined && !isRemote) throw usageError(`${option} is for a URL.`)
  const findings: Finding[] = []
  const tell = (...found: readonly Finding[]) => {
    findings.push(...found)
    for (const finding of found) io.stdout.write(textOf(finding, io.colours.stdout))
  }
  tell(
    nodeFinding(about, process.versions.node),
    ...packageFindings(about, installedVersion, {
      stripsTypes: nodeReader.stripsTypes,
      hasSqlite: satisfies(process.versions.node, '>=22.13'),
      node: process.versions.node
    })
  )
  if (!isRemote) tell(await portFinding(USUAL_PORT))
  if (db !== undefined) tell(await databaseFinding(db, io))
  if (isRemote)
    for await (const finding of urlFindings({ url: target, access: readAccess(values, io.env), text }, io))
      tell(finding)
  else if (target !== undefined) tell(await agentFinding(target, io))
  return findings.some(({ status }) => status === 'wrong') ? EXIT.error : EXIT.ok
}

const MARKS: Readonly<Record<Finding['status'], readonly [mark: string, style: Style]>> = {
  ok: ['ok', 'green'],
  note: ['note', 'yellow'],
  wrong: ['WRONG', 'red']
}

function textOf({ status, what, mend }: Finding, hasColours: boolean): string {
  const [mark, style] = MARKS[status]
  const lines = plain(what).split('\n').join('\n       ')
  return `${styled(hasColours, style, mark.padEnd(5))}  ${lines}\n${mend === undefined ? '' : `       ${oneLine(mend)}\n`}`
}
