import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** What came of a test file: it passed, it failed, or it hung. `words`: the first that it said of that. */
export interface Ran {
  readonly outcome: 'passed' | 'failed' | 'hung'
  readonly words: string
  readonly tookMs: number
}

/** How long a test file may say nothing before it is taken for one that hangs, however busy the machine is. */
const SILENT_MS = 180_000

/** Runs a compiled test file in a process of its own, until it fails. */
export async function runFile(file: string, cwd: string): Promise<Ran> {
  const startMs = Date.now()
  const env = { ...process.env, TAP_BAIL: '1', TAP_TIMEOUT: '600', NO_COLOR: '1', DEEP: '1' }
  const child = spawn(process.execPath, [file], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  let isSilent = false
  const timer = setTimeout(() => {
    isSilent = true
    child.kill('SIGKILL')
  }, SILENT_MS)
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text
      timer.refresh()
    })
  }
  const [code] = (await once(child, 'close')) as [number | null]
  clearTimeout(timer)
  const tookMs = Date.now() - startMs
  if (isSilent) return { outcome: 'hung', words: `silent for ${SILENT_MS / 1000} s`, tookMs }
  return code === 0 ? { outcome: 'passed', words: '', tookMs } : { outcome: 'failed', words: firstWords(said), tookMs }
}

/** The innermost test that failed first, by its name; of what is no test, the first line that tells of an error. */
function firstWords(said: string): string {
  const lines = said.split('\n').map(line => line.trim())
  const failed = lines
    .find(line => /^not ok \d+/.test(line) && !/# TODO/i.test(line))
    ?.replace(/^not ok \d+ (?:- )?/, '')
    .replace(/ # time=.*$/, '')
  return failed ?? lines.find(line => /error|fails/i.test(line)) ?? 'it ended without a word'
}
