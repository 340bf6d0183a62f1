import { readdirSync } from 'node:fs'

/** All test files, by path, without those of packages that are installed below `test`. */
export function allTestFiles(): string[] {
  return readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.test.ts') && !path.includes('node_modules'))
    .map(path => `test/${path}`)
    .toSorted()
}

/**
 * The test files that a name means, `websocket`, `adapters/websocket` or a path: those of this name, or else those that
 * have it in theirs.
 */
export function testFiles(name: string): string[] {
  const all = allTestFiles()
  const wanted = name.replace(/^\.\/|^\.build\//, '').replace(/(\.test)?\.[jt]s$/, '')
  const exact = all.filter(path => `/${path}`.endsWith(`/${wanted}.test.ts`))
  const found = exact.length > 0 ? exact : all.filter(path => path.includes(wanted))
  if (found.length === 0)
    throw new RangeError(
      `No test file has "${name}" in its path. npm test runs all of them, npm test -- websocket those named so.`
    )
  return found
}

/** What a test file is compiled to. */
export function compiled(file: string): string {
  return `.build/${file.replace(/\.ts$/, '.js')}`
}
