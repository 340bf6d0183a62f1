import { systemClock } from '../../../runtime/ports/clock.ts'
import { EXIT } from '../command.ts'
import { main } from '../main.ts'
import { terminalOf } from '../text/terminal.ts'
import { stopSignal } from './process-events.ts'
import { divertOutput, lineInput, wholeOutput } from './streams.ts'

const signal = stopSignal(
  process,
  () => performance.now(),
  code => end(code)
)
process.stdout.on('error', lost)
// The agent is served even if its log cannot be written.
process.stderr.on('error', () => {})

const { stdin, stdout, stderr, env } = process
const [terminal, screen] = [stderr, stdout].map(stream => terminalOf(stream, env))
const input = lineInput(stdin, stderr, () => process.kill(process.pid, 'SIGINT'))
const output = wholeOutput(stdout, lost)
const io = {
  stdout: output,
  divertStdout: divertOutput.bind(undefined, stdout, stderr, output),
  stderr,
  input,
  env,
  terminal,
  screen,
  clock: systemClock,
  signal,
  cwd: process.cwd()
}
process.once('beforeExit', stuck)
let isDone = false
// Node reports an error that nobody catches.
process.once('uncaughtExceptionMonitor', () => (isDone = true))
process.once('exit', () => {
  if (isDone) return
  // An exit code of the author's says nothing about the command.
  process.exitCode = EXIT.error
  stderr.write("taskchart: The agent's code ended the process, so the command is not done. Look for process.exit.\n")
})
void run()

/** Ends the process with the exit code of the command. */
function end(code: number): void {
  isDone = true
  process.exit(code)
}

async function run(): Promise<void> {
  const exitCode = await main(process.argv.slice(2), io)
  // The command is done: open handles of the author's code must not keep the process alive, nor its errors change the
  // exit code.
  for (const trouble of ['unhandledRejection', 'uncaughtException'] as const) process.on(trouble, () => {})
  // Exits only after both streams are flushed.
  stdout.write('', error => (error ? lost(error) : stderr.write('', () => end(exitCode))))
}

/** Ends the process, because nothing is left to happen, and the command is not done. */
function stuck(): void {
  stderr.write(
    "taskchart: The command waits for something that never happens. Look for an await at the top level of the agent's module that never ends.\n",
    () => end(EXIT.error)
  )
}

/**
 * Ends the process, because its results cannot be written. A reader such as `head` may close the pipe early: the rest
 * is not needed then.
 */
function lost(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE')
    process.stderr.write(
      `taskchart: The output is incomplete, because it could not be written: ${error.message}. Make room, and run the command again.\n`
    )
  end(EXIT.error)
}
