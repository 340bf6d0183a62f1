import '../fixtures/stores/needs-sqlite.ts'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { spawnBare } from '../fixtures/processes/bare-process.ts'
import { keepResult } from '../fixtures/kills/guarantee-results.ts'

const poisoned = fileURLToPath(new URL('../fixtures/kills/poisoned.js', import.meta.url))

/** Runs the process once; gives its exit code and what it printed. */
async function life(file: string, form: string): Promise<{ code: number | null; printed: string[] }> {
  const child = spawnBare([poisoned, file, form], { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout?.on('data', chunk => (printed += String(chunk)))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, printed: printed.trim().split('\n').toSorted() }
}

for (const form of ['function', 'timer'] as const) {
  await t.test(`work that crashes its process each time by a ${form} fails, and other tasks continue`, async t => {
    const file = join(t.testdir(), 'tasks.db')
    const ends: (number | null)[] = []
    let last = await life(file, form)
    for (; last.code === 9 && ends.length < 20; last = await life(file, form)) ends.push(last.code)
    t.equal(last.code, 0)
    t.equal(ends.length, 6)
    t.strictSame(last.printed, [
      'other: completed',
      'poison: failed: The process ended 6 times while this task was working, without progress in between.',
      'sibling: completed'
    ])
    await keepResult({ trouble: form, times: ends.length })
  })
}
