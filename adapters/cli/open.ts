import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readArguments, isUrl } from './arguments.ts'
import { EXIT, usageError, type Command, type Io, type Environment } from './command.ts'

/** `taskchart open`: opens the page of an agent in the browser. */
export const openCommand: Command = {
  usage: ['taskchart open URL'],
  details: `URL is the agent's http: or ws: URL. taskchart dev prints it, with a token if the page requires one. Without a browser, the address is
written to stdout only.

Exit codes: 0 opened or written, 2 wrong usage.
`,
  run
}

/** The programs that open an address, by platform. */
export const OPEN_COMMANDS: Readonly<Partial<Record<NodeJS.Platform, readonly [program: string, ...args: string[]]>>> =
  {
    darwin: ['open'],
    // Not start, which is a command of the shell, to which an address may look like two commands.
    win32: ['rundll32', 'url.dll,FileProtocolHandler']
  }

/**
 * The maximum time until a program reports that it found no browser. A browser that runs in the foreground ends later.
 */
const WAIT_MS = 2000

async function run(args: readonly string[], { stdout, stderr, env, clock }: Io): Promise<number> {
  const {
    positionals: [given]
  } = readArguments(args, {}, ['URL'])
  if (!isUrl(given) || !URL.canParse(given))
    throw usageError(
      `${JSON.stringify(given)} is not the address of an agent. Write one such as http://127.0.0.1:4242/.`
    )
  const { href } = new URL(given.replace(/^ws/i, 'http'))
  stdout.write(`${href}\n`)
  const late = new Promise<boolean>(resolve => clock.setTimeout(() => resolve(true), WAIT_MS))
  if (!(await Promise.race([opens(href, env), late])))
    stderr.write('There is no browser to open. Open this address yourself.\n')
  return EXIT.ok
}

/** Resolves with whether a program has opened the address. */
async function opens(href: string, env: Environment): Promise<boolean> {
  const [program, ...args] = OPEN_COMMANDS[process.platform] ?? ['xdg-open']
  try {
    const child = spawn(program, [...args, href], { env, stdio: 'ignore', detached: true })
    child.unref()
    const [code] = (await once(child, 'exit')) as [number | null]
    return code === 0
  } catch {
    return false
  }
}
