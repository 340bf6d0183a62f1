import { readFileSync, writeFileSync } from 'node:fs'

const BEGIN = '<!-- figures -->\n'
const END = '<!-- end of figures -->'

/**
 * Puts the figures of a full run into a Markdown file, in place of those before. Throws Error if the file has no place
 * for them.
 */
export function keepFigures(file: string, markdown: string): void {
  const text = readFileSync(file, 'utf8')
  const begin = text.indexOf(BEGIN)
  const end = text.indexOf(END)
  if (begin < 0 || end < begin) throw new Error(`${file} has to have the lines ${BEGIN.trim()} and ${END}.`)
  writeFileSync(file, `${text.slice(0, begin + BEGIN.length)}\n${markdown}\n${text.slice(end)}`)
}
