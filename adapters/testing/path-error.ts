import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * An unexpected result on a path: the step, and the expected and actual values. Its cause is the error of the chart, if
 * there is one.
 */
export class PathError extends Error {
  override readonly name = 'PathError'
  readonly step: string
  readonly wanted: unknown
  readonly found: unknown

  constructor(step: string, what: string, wanted: unknown, found: unknown, cause?: unknown) {
    super(`${step}: ${what}`, { cause })
    this.step = step
    this.wanted = wanted
    this.found = found
  }
}

/** An author's error, with the line of the author's code that threw it, if its stack has one. */
export function locatedErrorText(error: unknown): string {
  const lines = String(Object(error).stack)
    .split('\n')
    .filter(line => /^\s+at /.test(line))
  const line = lines.find(line => !NOT_THE_AUTHORS.some(part => line.includes(part)))
  return line === undefined ? String(error) : `${String(error)} (${line.trim()})`
}

const NOT_THE_AUTHORS = [
  'node:',
  `${sep}node_modules${sep}`,
  ...['adapters', 'runtime', 'machines'].map(folder => fileURLToPath(new URL(`../../${folder}/`, import.meta.url)))
]
