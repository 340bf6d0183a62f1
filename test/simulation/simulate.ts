import { parseArgs } from 'node:util'
import { runSeed } from './simulation.ts'

/**
 * Runs seeds from the command line: `--seed N` the first of them, `--runs N` how many, `--nodes N` with so many nodes
 * of a cluster, `--verbose` with every line of every world's journal. The first that fails ends it, with the shortest
 * way there and the command that shows it again.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '0' },
    runs: { type: 'string', default: '1' },
    nodes: { type: 'string', default: '0' },
    verbose: { type: 'boolean', default: false },
    all: { type: 'boolean', default: false }
  }
})
const first = Number(values.seed)
const runs = Number(values.runs)
let failures = 0
let tasks = 0
let commands = 0
const startMs = Date.now()
for (let seed = first; seed < first + runs; seed += 1) {
  const outcome = await runSeed(seed, {
    nodes: Number(values.nodes),
    print: values.verbose ? line => console.log(line) : undefined,
    shrinks: !values.all
  })
  tasks += outcome.tasks
  commands += outcome.commands
  if (outcome.failure === undefined) continue
  failures += 1
  console.error(
    `seed ${seed} fails: ${outcome.failure}\nnpm run simulate -- ${values.nodes === '0' ? '' : `--nodes ${values.nodes} `}--seed ${seed} --verbose`
  )
  process.exitCode = 1
  if (!values.all) break
}
console.log(`${runs} seeds, ${commands} commands, ${tasks} tasks, ${failures} failures, ${Date.now() - startMs} ms`)
