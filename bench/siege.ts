import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { keepFigures } from './keep-figures.ts'
import { namesOf } from './siege/attacks.ts'
import { siege, siegeOfOne, type SiegeOptions } from './siege/siege.ts'
import { answers, blame, failuresOf, mibs, report } from './siege/verdict.ts'
import { short, whole } from './tables.ts'

/**
 * Besieges a server: `npm run siege [-- --seconds 60 --seed 1 --only TEXT,… --node PATH --write]`. Exits with 1 if a
 * bound was exceeded or an answer was wrong.
 */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    connections: { type: 'string', default: '25' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string', default: '' },
    node: { type: 'string', default: process.execPath },
    write: { type: 'boolean', default: false },
    each: { type: 'boolean', default: false },
    log: { type: 'boolean', default: false }
  }
})
const seconds = Number(values.seconds)
const options: SiegeOptions = {
  seed: Number(values.seed),
  connections: Number(values.connections),
  only: values.only.split(',').filter(text => text !== ''),
  node: values.node,
  attackMs: seconds * 1000,
  idleMs: Math.min(10, seconds) * 1000,
  apartMs: Math.min(20, seconds) * 1000,
  holdMs: 2000
}
console.log(`Seed ${options.seed}.`)
if (values.each) await eachAlone()
else await allTogether()

async function allTogether(): Promise<void> {
  const [load = NaN] = loadavg()
  const found = await siege(options, line => console.log(line))
  const failures = failuresOf(found)
  const markdown = [
    `- ${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}, ${cpus().length} cores of ${cpus()[0]?.model ?? 'an unknown CPU'}, load average before the run ${short(load)}`,
    `- seed ${options.seed}, ${options.connections} connections, ${seconds} s\n`,
    report(found)
  ].join('\n')
  console.log(markdown)
  if (values.log) console.log(found.log)
  for (const failure of failures) console.log(`Failed: ${failure}`)
  for (const line of blame(found)) console.log(`  ${line}`)
  if (failures.length > 0) process.exitCode = 1
  else if (values.write) keepFigures('bench/siege.md', markdown)
}

/** Runs each attack alone against a fresh server. */
async function eachAlone(): Promise<void> {
  for (const name of namesOf(options.only)) {
    const { longest, peaks, failures, told } = await siegeOfOne(name, options)
    console.log(
      `${name}: longest wait ${whole(longest)} ms, heap ${mibs(peaks.heap)}, resident ${mibs(peaks.rss)}, file ${mibs(peaks.file)}, log ${mibs(peaks.log)} MiB, blocked ${whole(peaks.blockedMs)} ms; ${told ? answers(told.codes) : ''}`
    )
    for (const failure of [...failures.slice(0, 3), ...(told?.defects ?? [])]) console.log(`  ${failure}`)
  }
}
