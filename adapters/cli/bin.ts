#!/usr/bin/env node
import { systemClock } from '../../runtime/ports/clock.ts'
import { EXIT } from './command.ts'
import { main } from './main.ts'
import { stopSignal } from './process/stopping.ts'
import { terminalOf } from './text/terminal.ts'

const signal = stopSignal(process, () => performance.now(), code => process.exit(code))
// A reader such as `head` may leave before all is written: then nobody wants the rest.
process.stdout.on('error', () => process.exit(EXIT.error))
// An agent serves on when nobody reads its log.
process.stderr.on('error', () => {})

const { stdout, stderr } = process
const [terminal, screen] = [stderr, stdout].map(stream => terminalOf(stream, process.env))
const io = { stdout, stderr, terminal, screen, clock: systemClock, signal, cwd: process.cwd() }
const exitCode = await main(process.argv.slice(2), io)
// What the author's code does from here on counts no more: its timers and sockets must not keep the process, nor its errors change the code.
for (const trouble of ['unhandledRejection', 'uncaughtException'] as const) process.on(trouble, () => {})
// What was written must be out.
stdout.write('', () => stderr.write('', () => process.exit(exitCode)))
