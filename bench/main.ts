import { readArguments } from './arguments.ts'
import { keepFigures } from './keep-figures.ts'
import { scenarios } from './scenarios.ts'
import { ServerProcess } from './server-process.ts'
import { surroundings } from './surroundings.ts'

const { scale, names, isFull, node, against } = readArguments(process.argv.slice(2))
ServerProcess.node = node
const parts: string[] = []
const show = (markdown: string) => {
  parts.push(markdown)
  console.log(markdown)
}

show(`${surroundings(scale, node)}\n`)
for (const name of names) await scenarios[name]?.(scale, show, against)
if (isFull) keepFigures('bench/README.md', parts.join('\n'))
