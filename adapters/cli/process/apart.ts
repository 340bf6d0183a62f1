import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { isUrl } from '../arguments.ts'
import { EXIT } from '../command.ts'
import { COMMANDS } from '../commands.ts'
import { stopSignal } from './process-events.ts'

/** The module that runs a command, as it is built. */
const COMMAND_PROCESS = fileURLToPath(new URL('./command-process.js', import.meta.url))

/** The time that a command has to end by itself after a signal. */
const GRACE_MS = 500

/**
 * Whether a command explores a chart, so that it receives no signal while it computes. A test of a server waits, and
 * receives them.
 */
export function computesApart(args: readonly string[]): boolean {
  const [named] = args.filter((arg, i) => !arg.startsWith('-') && args[i - 1] !== '--color')
  return COMMANDS.some(({ name, computes }) => computes && name === named) && !args.some(isUrl)
}

/**
 * Runs a command in a process of its own, with the streams of this one. Resolves with its exit code, less than a second
 * after a signal.
 */
export async function runApart(args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [...process.execArgv, COMMAND_PROCESS, ...args], { stdio: 'inherit' })
  const end = () => void child.kill('SIGKILL')
  const signal = stopSignal(process, () => performance.now(), end)
  signal.addEventListener('abort', () => {
    // A terminal has sent the same to both.
    child.kill('SIGINT')
    setTimeout(end, GRACE_MS).unref()
  })
  const [code, ended] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  if (code !== null) return code
  if (signal.aborted) return EXIT.stopped
  process.stderr.write(
    `taskchart: ${ended} ended the process that computed, as happens when it needs more memory than Node has. So nothing is known. Give memory in the cases, or a lower --memory or --limit.\n`
  )
  return EXIT.waiting
}
