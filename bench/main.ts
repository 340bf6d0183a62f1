import { readArguments } from './arguments.ts'
import { keepFigures, keepSections } from './keep-figures.ts'
import { scenarios } from './scenarios.ts'
import { ServerProcess } from './server-process.ts'
import { surroundings } from './surroundings.ts'

const { scale, names, keep, node, against } = readArguments(process.argv.slice(2))
ServerProcess.node = node
const parts: string[] = []
const show = (markdown: string) => {
  parts.push(markdown)
  console.log(markdown)
}

const FILE = 'bench/README.md'
const where = surroundings(scale, node)

if (keep === 'some') console.log(`${where}\n`)
else show(`${where}\n`)
for (const name of names) await scenarios[name]?.(scale, show, against)
if (keep === 'all') keepFigures(FILE, parts.join('\n'))
if (keep === 'some') keepSections(FILE, parts)
