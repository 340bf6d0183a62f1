import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { changedFiles } from './changed-files.ts'
import { randomFrom, SEED } from '../fixtures/sample.ts'
import type { Fault } from './fault.ts'
import { FAULTS } from './faults.ts'
import { LAYERS, type Layer } from './layers.ts'
import { loadedBy } from './loaded.ts'
import { runFile, type Ran } from './run-file.ts'
import { FaultStage } from './stage.ts'
import { isCaught, withJudgement, type Judgement } from './table.ts'

/**
 * Plants the faults whose names have one of these texts in them, all without any, one at a time in a copy of the
 * compiled tree, and has the layers look for each: `npm run faults [-- TEXT …] [--write]`. With `--changed` it takes
 * those whose file or unit test has changed, in an order drawn by `SEED`, until two minutes are over, or with `--all`
 * to the end; it is content with one that catches them. What nothing catches fails it.
 */
const PAGE = 'test/faults/README.md'

/** How long changed ones are planted, a quarter of a minute each; the last may end later. */
const CHANGED_MS = 2 * 60_000

const startMs = Date.now()
const flag = { type: 'boolean', default: false } as const
const { values, positionals } = parseArgs({
  options: { write: flag, changed: flag, all: flag },
  allowPositionals: true
})
const changed = values.changed ? changedFiles() : undefined
const found = FAULTS.filter(
  ({ name }) => positionals.length === 0 || positionals.some(text => name.includes(text))
).filter(({ file, unit = '' }) => changed === undefined || changed.has(file) || changed.has(unit))
const random = randomFrom(SEED)
const chosen = changed
  ? found
      .map(fault => ({ fault, drawn: random() }))
      .toSorted((a, b) => a.drawn - b.drawn)
      .map(({ fault }) => fault)
  : found
if (chosen.length === 0 && !changed) throw new RangeError(`No fault has ${positionals.join(' or ')} in its name.`)

let tried = 0
let lost = 0
const stage = await FaultStage.open()
try {
  const forLayers = chosen.filter(({ unit }) => !changed || unit === undefined)
  for (const file of LAYERS.filter(layer => forLayers.some(fault => loads(layer, fault))).flatMap(
    ({ files }) => files
  )) {
    const { outcome, words } = await run(file)
    if (outcome !== 'passed') throw new Error(`Without any fault ${file} does not pass: ${words}`)
  }
  for (const fault of chosen) {
    if (isOver()) break
    tried += 1
    const judgement = await stage.with(fault, () => (changed ? heldBy(fault) : judged(fault)))
    report(judgement)
    if (values.write) await write(judgement)
  }
} finally {
  await stage.close()
}
if (changed)
  console.log(
    `planted ${tried} of the ${chosen.length} faults whose files have changed, in an order drawn by SEED=${SEED}${tried < chosen.length ? '; --all plants all' : ''}`
  )
console.log(`# { total: ${tried}, pass: ${tried - lost}, fail: ${lost} }`)

/** At least one is planted, however long the layers took without any. */
function isOver(): boolean {
  return changed !== undefined && !values.all && tried > 0 && Date.now() - startMs > CHANGED_MS
}

async function run(file: string): Promise<Ran> {
  const ran = await runFile(stage.compiled(file), stage.folder)
  if (ran.words.startsWith('SyntaxError')) throw new Error(`${file} does not load, so nothing is shown: ${ran.words}`)
  return ran
}

/** Writes its row at once, so that a run that is ended has not been in vain. */
async function write(judgement: Judgement): Promise<void> {
  await writeFile(
    PAGE,
    withJudgement(
      await readFile(PAGE, 'utf8'),
      judgement,
      FAULTS.map(({ name }) => name)
    )
  )
}

function loads({ files }: Layer, { file }: Fault): boolean {
  return files.some(test => loadsFile(test, file))
}

function loadsFile(test: string, file: string): boolean {
  return loadedBy(stage.compiled(test), name => stage.own(name)).has(stage.compiled(file))
}

/** What catches a fault first: its unit test, or else a layer. */
async function heldBy(fault: Fault): Promise<Judgement> {
  const unit = fault.unit === undefined ? undefined : await run(fault.unit)
  return unit && isCaught(unit) ? { fault, layers: new Map(), unit } : judged(fault)
}

async function judged(fault: Fault): Promise<Judgement> {
  const layers = new Map<string, Ran>()
  for (const { name, files } of LAYERS) {
    for (const file of files.filter(test => loadsFile(test, fault.file))) {
      const ran = await run(file)
      layers.set(name, ran)
      if (isCaught(ran)) break
    }
    if (changed && [...layers.values()].some(isCaught)) break
  }
  const isLost = ![...layers.values()].some(isCaught)
  return { fault, layers, ...(isLost && fault.unit !== undefined && { unit: await run(fault.unit) }) }
}

function report({ fault: { name, file, unit }, layers, unit: held }: Judgement): void {
  console.log(`${name} (${file})`)
  for (const [layer, { outcome, words, tookMs }] of layers)
    console.log(`  ${layer}: ${outcome === 'passed' ? 'not caught' : words} (${tookMs} ms)`)
  if (held) console.log(`  ${unit}: ${isCaught(held) ? held.words : 'not caught'}`)
  if ([...layers.values(), held].some(isCaught)) return
  console.log('  nothing catches it')
  lost += 1
  process.exitCode = 1
}
