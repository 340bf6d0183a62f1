import { inspect } from 'node:util'
import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Log, Logger } from '../../../runtime/ports/logger.ts'
import { usageError, type Output } from '../command.ts'
import { jsonLine, plain } from '../text/terminal-text.ts'

/** The values of `--log`. */
const FORMS: Readonly<Record<string, (output: Output, clock: Clock) => Logger>> = { text: textLog, json: jsonLog }

/** The log format for a value of `--log`. Throws a usage error for an unknown one. */
export function readLogForm(form: string): (output: Output, clock: Clock) => Logger {
  const log = Object.entries(FORMS).find(([name]) => name === form)?.[1]
  if (log) return log
  throw usageError(`--log takes text or json, not ${JSON.stringify(form)}.`)
}

/** Lines of text for people: warnings and errors only. */
function textLog(output: Output): Logger {
  const write: Log = (message, details) => output.write(`taskchart: ${plain(`${message} ${inspect(details)}`)}\n`)
  return { warn: write, error: write }
}

/** Lines of JSON for programs: `{ time, level, message, details }`. */
function jsonLog(output: Output, clock: Clock): Logger {
  const writer =
    (level: string): Log =>
    (message, details) =>
      output.write(
        jsonLine({ time: new Date(clock.now()).toISOString(), level, message, details: plainErrors(details) })
      )
  return { info: writer('info'), warn: writer('warn'), error: writer('error') }
}

/** Replaces errors by plain objects, since `JSON.stringify` drops their members. */
function plainErrors(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainErrors)
  if (typeof value !== 'object' || value === null) return value
  const { name, message, stack, cause, errors } = value as Error & { errors?: unknown }
  const members = value instanceof Error ? Object.assign({}, value, { name, message, stack, cause, errors }) : value
  return Object.fromEntries(Object.entries(members).map(([key, member]) => [key, plainErrors(member)]))
}
