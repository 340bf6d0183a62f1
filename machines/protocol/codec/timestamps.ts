const RFC_3339 = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/
const FIRST = Date.parse('0001-01-01T00:00:00.000Z')
const LAST = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * Converts an RFC 3339 timestamp to A2A's form: `YYYY-MM-DDTHH:mm:ss.sssZ`, UTC (§5.6.1).
 *
 * Accepts any offset and up to nine fractional digits; those after the third are dropped. A date or time that does not exist, a
 * leap second, or a moment outside the years 0001 to 9999 gives `undefined`.
 */
export function canonicalTimestamp(text: string): string | undefined {
  const match = RFC_3339.exec(text)
  if (match === null) return undefined
  const [, date, time, fraction = '', sign, hours = '0', minutes = '0'] = match
  const local = `${date}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`
  const moment = Date.parse(local)
  if (Number.isNaN(moment) || new Date(moment).toISOString() !== local) return undefined
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000
  const utc = sign === '-' ? moment + offset : moment - offset
  return utc < FIRST || utc > LAST ? undefined : new Date(utc).toISOString()
}
