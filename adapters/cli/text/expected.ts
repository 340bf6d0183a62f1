import { cutToWidth } from './cut-to-width.ts'
import { oneLine } from './terminal-text.ts'

/** Formats of text, as people say them. */
const FORMATS: ReadonlyMap<unknown, string> = new Map([
  ['date', 'a date, as in 2027-05-01'],
  ['time', 'a time, as in 17:30:00'],
  ['date-time', 'a date and time, as in 2027-05-01T17:30:00Z'],
  ['email', 'an email address'],
  ['uri', 'a URL'],
  ['uuid', 'a UUID']
])

/**
 * What a JSON Schema expects, in a line for people of so many columns: `a number from 50`, `one of small, large`, or else the
 * schema itself, cut. It comes from outside, so that nothing in it is taken for what it should be.
 */
export function expectedText(schema: Readonly<Record<string, unknown>>, columns: number): string {
  const { $schema: _, ...wanted } = schema
  try {
    return cutToWidth(oneLine(inWords(wanted) ?? JSON.stringify(wanted)), columns)
  } catch {
    return 'more than can be shown: its schema is nested too deep'
  }
}

/** A schema that is simple enough for words; the pattern of a format says nothing more. */
function inWords({ type, enum: choices, format, pattern, minimum, exclusiveMinimum, maximum, exclusiveMaximum, ...others }: Record<string, unknown>): string | undefined {
  if (Array.isArray(choices)) return `one of ${choices.map(choice => (typeof choice === 'string' ? choice : JSON.stringify(choice))).join(', ')}`
  if (Object.keys(others).length > 0) return undefined
  if (type === 'number' || type === 'integer') {
    const bounds = [bound('from', minimum), bound('above', exclusiveMinimum), bound('to', maximum), bound('below', exclusiveMaximum)]
    return [type === 'number' ? 'a number' : 'a whole number', ...bounds.flat()].join(' ')
  }
  if (type === 'boolean') return 'true or false'
  if (type !== 'string') return undefined
  return FORMATS.get(format) ?? (format === undefined && pattern === undefined ? 'text' : undefined)
}

/** A bound, if it is one that somebody has set: libraries bound whole numbers by what they can hold. */
function bound(word: string, limit: unknown): string[] {
  return typeof limit === 'number' && Math.abs(limit) !== Number.MAX_SAFE_INTEGER ? [`${word} ${limit}`] : []
}
