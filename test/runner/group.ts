import t from 'tap'
import { FILE_COMMENT } from './read-tap.ts'

/** Runs test files one after the other in this process. Rejects if tap has ended before the last of them. */
export async function runGroup(files: ReadonlyMap<string, string>): Promise<void> {
  const closers: (() => unknown)[] = []
  // Once its root has a teardown, tap ends it as soon as no test runs, which is before the next file is loaded.
  const root: { teardown: (close: () => unknown) => void } = t
  root.teardown = close => void closers.unshift(close)
  for (const [file, url] of files) {
    t.comment(`${FILE_COMMENT}${file}`)
    await import(url)
  }
  let isOpen = false
  await t.test('every file of the group has run', async () => {
    isOpen = true
  })
  for (const close of closers) await close()
  if (!isOpen) throw new Error('tap has ended before all files of the group had run')
}
