import { lstat, rm } from 'node:fs/promises'
import { join, normalize, resolve } from 'node:path'
import { readOptions } from '../arguments.ts'
import { CommandError, EXIT, usageError, type Command, type Io } from '../command.ts'
import { makeFolder } from '../make-folder.ts'
import { isDeviceName } from '../talk/file-name.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import { oneLine, shellWord } from '../text/terminal-text.ts'
import { writeNew } from '../write-own.ts'
import { FILE_NAMES, KINDS, projectFiles, type AgentKind } from './project.ts'

const NAMES = Object.keys(KINDS) as AgentKind[]
const KIND_LINES = NAMES.map(name => `${name.padEnd(11)}  ${KINDS[name].about}`)

/** `taskchart init`: writes a new project. */
export const initCommand: Command = {
  usage: 'taskchart init [DIR] [--kind KIND]',
  details: `Writes ${FILE_NAMES.slice(0, -1).join(', ')} and ${FILE_NAMES.at(-1)} into DIR (default: this folder),
which is created if needed. Nothing is overwritten: if one of these files exists, nothing is written. Installs nothing, and
prints the commands that come next. On a terminal it asks for the kind of agent. Otherwise --kind is required.

${KIND_LINES.map((line, i) => `  ${i === 0 ? '--kind KIND' : '           '}  ${line}`).join('\n')}

Exit codes: 0 written, 1 an error, 2 wrong usage, 130 stopped with Ctrl-C.
`,
  run
}

const OPTIONS = { kind: { type: 'string' } } as const

async function run(args: readonly string[], io: Io): Promise<number> {
  const {
    values: { kind: given },
    positionals: [dir = '.', ...rest]
  } = readOptions(args, OPTIONS)
  if (rest.length > 0)
    throw usageError(`${JSON.stringify(rest[0])} is one argument too many. Put quotes around a folder with spaces.`)
  if (given !== undefined && !isKind(given))
    throw usageError(`There is no --kind ${given}. ${didYouMean(given, NAMES)}`)
  checkFolder(dir)
  const folder = resolve(io.cwd, dir)
  await refuseExisting(folder, dir)
  const kind = given ?? (await askKind(io))
  const files = await projectFiles(kind, folder)
  io.signal.throwIfAborted()
  await writeFiles(folder, files)
  for (const name of FILE_NAMES) io.stdout.write(`${oneLine(join(dir, name))}\n`)
  io.stderr.write(
    `\nNext:\n\n${nextSteps(kind, dir)
      .map(line => `  ${line}\n`)
      .join('')}`
  )
  return EXIT.ok
}

function isKind(text: string): text is AgentKind {
  return Object.hasOwn(KINDS, text)
}

/** Asks until the answer is a number or a name of the list; nothing means the first. */
async function askKind({ input, stderr, signal }: Io): Promise<AgentKind> {
  if (!input.isTerminal)
    throw usageError(`There is no terminal to ask for the kind of agent. Give one: --kind ${NAMES.join('|')}.`)
  stderr.write(`Which kind of agent?\n\n${KIND_LINES.map((line, i) => `  ${i + 1}  ${line}\n`).join('')}\n`)
  for (;;) {
    const line = await input.ask('Number or name (1): ', signal)
    if (line === undefined) throw new CommandError('No kind was given, so nothing was written.')
    const answer = line.trim().toLowerCase() || '1'
    const kind = NAMES[Number(answer) - 1] ?? answer
    if (isKind(kind)) return kind
    stderr.write(`That is not one of 1 to ${NAMES.length}, ${NAMES.join(', ')}.\n`)
  }
}

/** Throws a usage error for a folder that leaves this one, or whose name is none on some system. */
function checkFolder(dir: string): void {
  if (/^\.\.(?:[\\/]|$)/.test(normalize(dir)))
    throw usageError(
      `DIR has to be in this folder, not ${JSON.stringify(dir)}. Change to the folder where the project belongs, or give an absolute path.`
    )
  const wrong = dir.split(/[\\/]/).find(name => isDeviceName(name) || /[<>:"|?*\p{C}]|[^.][. ]$/u.test(name))
  if (wrong !== undefined && !/^[a-z]:$/i.test(wrong))
    throw usageError(
      `${JSON.stringify(wrong)} cannot be the name of a folder on every system. Give another name: npx taskchart init my-agent`
    )
}

async function refuseExisting(folder: string, dir: string): Promise<void> {
  const existing: string[] = []
  for (const name of FILE_NAMES)
    if (
      await lstat(join(folder, name)).then(
        () => true,
        () => false
      )
    )
      existing.push(name)
  if (existing.length === 0) return
  const what = `${existing.join(', ')} ${existing.length === 1 ? 'exists' : 'exist'} in ${dir === '.' ? 'this folder' : dir}`
  throw new CommandError(`${what}, so nothing was written. Give a new folder: npx taskchart init my-agent`)
}

/** Writes all files, or none. */
async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  const written: string[] = []
  try {
    await makeFolder(folder)
    for (const [name, text] of Object.entries(files)) {
      await writeNew(join(folder, name), text)
      written.push(join(folder, name))
    }
  } catch (cause) {
    for (const path of written) await rm(path, { force: true })
    throw new CommandError(`The project could not be written: ${(cause as Error).message}.`, { cause })
  }
}

function nextSteps(kind: AgentKind, dir: string): string[] {
  return [
    ...(dir === '.' ? [] : [`cd ${shellWord(dir)}`]),
    'npm install',
    'npm test',
    ...(kind === 'model' ? ['export OPENAI_API_KEY=…'] : []),
    'npx taskchart dev agent.ts'
  ]
}
