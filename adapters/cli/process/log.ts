import { inspect } from 'node:util'
import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Log, Logger } from '../../../runtime/ports/logger.ts'
import { usageError, type Output } from '../command.ts'
import { jsonLine, plain } from '../text/terminal-text.ts'

/** The forms of a log, by what `--log` says. */
const FORMS: Readonly<Record<string, (output: Output, clock: Clock) => Logger>> = { text: textLog, json: jsonLog }

/** The form of log that the user wants. Throws a usage error for one that there is not. */
export function readLogForm(form: string): (output: Output, clock: Clock) => Logger {
  const log = Object.entries(FORMS).find(([name]) => name === form)?.[1]
  if (log) return log
  throw usageError(`--log takes text or json, not ${JSON.stringify(form)}.`)
}

/** Lines for people: only what went wrong. */
function textLog(output: Output): Logger {
  const write: Log = (message, details) => output.write(`taskchart: ${plain(`${message} ${inspect(details)}`)}\n`)
  return { warn: write, error: write }
}

/** Lines of JSON for programs: `{ time, level, message, details }`. */
function jsonLog(output: Output, clock: Clock): Logger {
  const writer = (level: string): Log => (message, details) =>
    output.write(jsonLine({ time: new Date(clock.now()).toISOString(), level, message, details: plainErrors(details) }))
  return { info: writer('info'), warn: writer('warn'), error: writer('error') }
}

/** The value with its errors as objects, for JSON would leave nothing of them. */
function plainErrors(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainErrors)
  if (typeof value !== 'object' || value === null) return value
  const { name, message, stack, cause, errors } = value as Error & { errors?: unknown }
  const members = value instanceof Error ? Object.assign({}, value, { name, message, stack, cause, errors }) : value
  return Object.fromEntries(Object.entries(members).map(([key, member]) => [key, plainErrors(member)]))
}
