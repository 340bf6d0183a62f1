import { readArguments } from './arguments.ts'
import { keepFigures } from './keep-figures.ts'
import { scenarios } from './scenarios.ts'
import { surroundings } from './surroundings.ts'

const { scale, names, isFull } = readArguments(process.argv.slice(2))
const parts: string[] = []
const show = (markdown: string) => {
  parts.push(markdown)
  console.log(markdown)
}

show(`${surroundings(scale)}\n`)
for (const name of names) await scenarios[name]?.(scale, show)
if (isFull) keepFigures('bench/README.md', parts.join('\n'))
