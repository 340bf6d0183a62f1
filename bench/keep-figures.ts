import { readFileSync, writeFileSync } from 'node:fs'

const BEGIN = '<!-- figures -->\n'
const END = '<!-- end of figures -->'

/**
 * Puts the figures of a full run into a Markdown file, in place of those before. Throws Error if the file has no place
 * for them.
 */
export function keepFigures(file: string, markdown: string): void {
  const { before, after } = split(file)
  writeFileSync(file, `${before}\n${markdown}\n${after}`)
}

/**
 * Puts sections that begin with a heading of `###` in place of those with the same heading, or at the end of the
 * figures. Throws Error if the file has no place for them.
 */
export function keepSections(file: string, sections: readonly string[]): void {
  const { before, figures, after } = split(file)
  const kept = figures.split(/^(?=### )/m)
  for (const section of sections) {
    const at = kept.findIndex(one => headingOf(one) === headingOf(section))
    kept.splice(at < 0 ? kept.length : at, at < 0 ? 0 : 1, `${section.trim()}\n\n`)
  }
  writeFileSync(file, `${before}${kept.join('')}${after}`)
}

function headingOf(section: string): string {
  return section.slice(0, section.indexOf('\n'))
}

/** A file around its figures. */
function split(file: string): { readonly before: string; readonly figures: string; readonly after: string } {
  const text = readFileSync(file, 'utf8')
  const begin = text.indexOf(BEGIN)
  const end = text.indexOf(END)
  if (begin < 0 || end < begin) throw new Error(`${file} has to have the lines ${BEGIN.trim()} and ${END}.`)
  const start = begin + BEGIN.length
  return { before: text.slice(0, start), figures: text.slice(start, end), after: text.slice(end) }
}
