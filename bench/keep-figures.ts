import { readFileSync, writeFileSync } from 'node:fs'

const README = 'bench/README.md'
const BEGIN = '<!-- figures -->\n'
const END = '<!-- end of figures -->'

/** Puts the figures of a full run into the README, in place of those before. Throws Error if it has no place for them. */
export function keepFigures(markdown: string): void {
  const text = readFileSync(README, 'utf8')
  const begin = text.indexOf(BEGIN)
  const end = text.indexOf(END)
  if (begin < 0 || end < begin) throw new Error(`${README} has to have the lines ${BEGIN.trim()} and ${END}.`)
  writeFileSync(README, `${text.slice(0, begin + BEGIN.length)}\n${markdown}\n${text.slice(end)}`)
}
