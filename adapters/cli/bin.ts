#!/usr/bin/env node
import { systemClock } from '../../runtime/clock.ts'
import { EXIT } from './command.ts'
import { main } from './main.ts'
import { terminalOf } from './terminal.ts'

/** npm passes a Ctrl-C on that the terminal has sent us already; within this time both count as one. */
const SAME_SIGNAL_MS = 500

const stop = new AbortController()
let stoppedAtMs = 0

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    /* c8 ignore next -- a test would have to wait */
    if (stop.signal.aborted && Date.now() - stoppedAtMs > SAME_SIGNAL_MS) process.exit(EXIT.stopped)
    if (!stop.signal.aborted) stoppedAtMs = Date.now()
    stop.abort()
  })
}
// A reader such as `head` may leave before all is written: then nobody wants the rest.
process.stdout.on('error', () => process.exit(EXIT.error))

const { stdout, stderr } = process
const io = { stdout, stderr, terminal: terminalOf(stderr, process.env), clock: systemClock, signal: stop.signal, cwd: process.cwd() }
const exitCode = await main(process.argv.slice(2), io)
// The author's timers and sockets must not keep the process; what was written must be out.
stdout.write('', () => stderr.write('', () => process.exit(exitCode)))
