import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readTap, type FileRun } from './read-tap.ts'
import type { Report } from './report.ts'

export interface TapOptions {
  /** Options of tap. With `--tap` its TAP is printed as well. */
  readonly options?: readonly string[]
  /** Whether what tests write to stderr is kept, and printed only if one fails. */
  readonly isQuiet?: boolean
  readonly env?: Readonly<Record<string, string>>
}

/** Runs compiled test files or groups of them with tap, and tells the report. Gives whether tap says that all have passed. */
export async function runTap(report: Report, entries: readonly string[], { options = [], isQuiet = false, env = {} }: TapOptions): Promise<boolean> {
  const isTap = options.includes('--tap')
  const given = ['run', '--disable-coverage', '--reporter=tap', ...options.filter(option => option !== '--tap'), ...entries]
  const tap = spawn('tap', given, { stdio: ['inherit', 'pipe', isQuiet ? 'pipe' : 'inherit'], env: { ...process.env, ...env } })
  let said = ''
  tap.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  // Lines for a person would be in the middle of the TAP of a file.
  const late: FileRun[] = []
  tap.stdout?.pipe(readTap(run => (isTap ? late.push(run) : report.add(run))))
  if (isTap) tap.stdout?.pipe(process.stdout, { end: false })
  const [code] = (await once(tap, 'close')) as [number | null]
  for (const run of late) report.add(run)
  if (code !== 0 && said !== '') report.print(`\nWritten to stderr:\n${said.trimEnd()}`)
  return code === 0
}
