import { cutToWidth } from './columns.ts'
import { oneLine } from './terminal-text.ts'

/** The formats of a string in words. */
const FORMATS: ReadonlyMap<unknown, string> = new Map([
  ['date', 'a date, as in 2027-05-01'],
  ['time', 'a time, as in 17:30:00'],
  ['date-time', 'a date and time, as in 2027-05-01T17:30:00Z'],
  ['email', 'an email address'],
  ['uri', 'a URL'],
  ['uuid', 'a UUID']
])

/**
 * Describes a JSON Schema in one line of at most so many columns: `a number from 50`, `one of small, large`, or else the schema
 * itself, cut. The schema is untrusted, so every member is checked.
 */
export function expectedText(schema: Readonly<Record<string, unknown>>, columns: number): string {
  const { $schema: _, ...wanted } = schema
  try {
    return cutToWidth(oneLine(inWords(wanted) ?? JSON.stringify(wanted)), columns)
  } catch {
    return 'a value whose schema is nested too deep to show'
  }
}

/** Describes a simple schema in words. A format makes its pattern redundant. */
function inWords({
  type,
  enum: choices,
  format,
  pattern,
  minimum,
  exclusiveMinimum,
  maximum,
  exclusiveMaximum,
  ...others
}: Record<string, unknown>): string | undefined {
  if (Array.isArray(choices))
    return `one of ${choices.map(choice => (typeof choice === 'string' ? choice : JSON.stringify(choice))).join(', ')}`
  if (Object.keys(others).length > 0) return undefined
  if (type === 'number' || type === 'integer') {
    const bounds = [
      bound('from', minimum),
      bound('above', exclusiveMinimum),
      bound('to', maximum),
      bound('below', exclusiveMaximum)
    ]
    return [type === 'number' ? 'a number' : 'a whole number', ...bounds.flat()].join(' ')
  }
  if (type === 'boolean') return 'true or false'
  if (type !== 'string') return undefined
  return FORMATS.get(format) ?? (format === undefined && pattern === undefined ? 'text' : undefined)
}

/** A numeric bound. Libraries add ±MAX_SAFE_INTEGER to integers, which is left out. */
function bound(word: string, limit: unknown): string[] {
  return typeof limit === 'number' && Math.abs(limit) !== Number.MAX_SAFE_INTEGER ? [`${word} ${limit}`] : []
}
