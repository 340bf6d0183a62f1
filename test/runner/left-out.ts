import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The tests that were left out, one line each with why, as tap's results in this folder say: whole files, and tests within them. Those of a
 * `--grep` do not count, nor do files for `npm run test:deep` alone.
 */
export function leftOut(folder: string): string[] {
  if (!existsSync(folder)) return []
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(path => path.endsWith('.tap')).toSorted()
  return paths.flatMap(path => {
    const file = path.replace(/^\.build\//, '').replace(/\.js\.tap$/, '.ts')
    const text = readFileSync(join(folder, path), 'utf8')
    const whole = Array.from(text.matchAll(/^1\.\.0 # (?!only in npm run test:deep)(.*)$/gm), ([, why = '']) => `  ${file}: ${why}`)
    const tests = Array.from(text.matchAll(/^ *ok \d+ - (.*) # SKIP (?!filter:)(.*)$/gm), ([, test = '', why = '']) => `  ${file}, "${test}": ${why}`)
    return [...whole, ...tests].map(line => line.replaceAll('\\#', '#'))
  })
}
