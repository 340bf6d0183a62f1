import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readTap, type FileRun } from './read-tap.ts'
import type { Report } from './report.ts'

/** So many lines of stderr are printed. */
const MOST_SAID = 100

export interface TapOptions {
  /**
   * Options of tap. With `--tap` its TAP is printed as well, and what tests write to stderr, which is else kept until
   * one fails.
   */
  readonly options?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/**
 * Runs compiled test files or groups of them with tap, and tells the report. Gives whether tap says that all have
 * passed.
 */
export async function runTap(
  report: Report,
  entries: readonly string[],
  { options = [], env = {} }: TapOptions
): Promise<boolean> {
  const isTap = options.includes('--tap')
  const given = [
    'run',
    '--disable-coverage',
    '--reporter=tap',
    ...options.filter(option => option !== '--tap'),
    ...entries
  ]
  const tap = spawn('tap', given, {
    stdio: ['inherit', 'pipe', isTap ? 'inherit' : 'pipe'],
    env: { ...process.env, ...env }
  })
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
  if (code !== 0 && said !== '')
    report.print(`\nWritten to stderr, at its end:\n${said.trimEnd().split('\n').slice(-MOST_SAID).join('\n')}`)
  return code === 0
}
