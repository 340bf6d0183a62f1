const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' }

/** Text with its few named and numeric HTML entities as characters. */
export function decodedText(text: string): string {
  return text.replaceAll(
    /&(?:(amp|lt|gt|quot|apos|nbsp)|#(\d{1,6}));/g,
    (whole, name: string | undefined, code: string | undefined) => {
      if (name !== undefined) return ENTITIES[name] ?? whole
      return Number(code) > 31 && Number(code) < 0xd800 ? String.fromCharCode(Number(code)) : whole
    }
  )
}

/** The kinds of texts and files, each of which is shown in its own way. */
export type TextKind = 'markdown' | 'csv' | 'json' | 'svg' | 'plain' | 'code'

const BY_TYPE: ReadonlyMap<string, TextKind> = new Map([
  ['text/markdown', 'markdown'],
  ['text/csv', 'csv'],
  ['text/tab-separated-values', 'csv'],
  ['application/json', 'json'],
  ['image/svg+xml', 'svg'],
  ['text/plain', 'plain']
])
const BY_ENDING: ReadonlyMap<string, TextKind> = new Map([
  ['md', 'markdown'],
  ['markdown', 'markdown'],
  ['csv', 'csv'],
  ['tsv', 'csv'],
  ['json', 'json'],
  ['svg', 'svg'],
  ['txt', 'plain']
])

/** The kind of a text, by its media type, else by the ending of its name. Text with neither is Markdown. */
export function textKind(mediaType: string, name: string): TextKind {
  const type = mediaType.split(';')[0]?.trim().toLowerCase() ?? ''
  const byType = BY_TYPE.get(type)
  const ending = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ''
  if (byType && (byType !== 'plain' || ending === '')) return byType
  if (type !== '' && byType === undefined) return 'code'
  return BY_ENDING.get(ending) ?? (ending === '' ? 'markdown' : 'code')
}

/** The rows and cells of a CSV text, at most `most` rows; `undefined` if they are no table. */
export function csvRows(text: string, separator: string, most: number): string[][] | undefined {
  const rows: string[][] = [[]]
  const cell = new RegExp(
    String.raw`(?:"((?:[^"]|"")*)"|([^"${separator}\r\n][^${separator}\r\n]*|))(${separator}|\r?\n|$)`,
    'gy'
  )
  for (let match = cell.exec(text); match && rows.length <= most; match = cell.exec(text)) {
    const [, quoted, bare = '', end] = match
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? bare)
    if (cell.lastIndex >= text.length) break
    if (end !== separator) rows.push([])
  }
  const full = rows.filter(row => row.length > 1 || row[0] !== '')
  return full.length > 1 && full.every(row => row.length > 1) ? full.slice(0, most) : undefined
}
