import { readArguments } from '../arguments.ts'
import { EXIT, type Io } from '../command.ts'
import { jsonLine, oneLine } from '../text/terminal-text.ts'
import { SOURCE_OPTIONS, withSource } from './open-source.ts'
import { recordLines } from './record-lines.ts'

const OPTIONS = { ...SOURCE_OPTIONS, json: { type: 'boolean' } } as const

/** `taskchart tasks show`: all that is known of a task. */
export async function showTask(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals: [id] } = readArguments(args, OPTIONS, ['TASK'])
  const report = (message: string) => io.stderr.write(`taskchart: ${oneLine(message)}\n`)
  const record = await withSource(values, report, io, source => source.read(id))
  io.stdout.write(values.json ? jsonLine({ ...record.task, ...(record.webhooks && { webhooks: record.webhooks }) }) : recordLines(record, io.clock.now()).map(line => `${line}\n`).join(''))
  return EXIT.ok
}
