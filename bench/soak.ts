import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { keepFigures } from './keep-figures.ts'
import { soak } from './soak/soak.ts'
import { failuresOf, report } from './soak/verdict.ts'
import { short, whole } from './tables.ts'

/**
 * Soaks a server: `npm run soak [-- --minutes 60 --life 60 --visitors 8 --node PATH --write]`. Exits with 1 if anything
 * failed or grew.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    life: { type: 'string', default: '60' },
    visitors: { type: 'string', default: '8' },
    pause: { type: 'string', default: '50' },
    node: { type: 'string', default: process.execPath },
    write: { type: 'boolean', default: false }
  }
})
const lifeMs = Number(values.life) * 1000
const options = {
  lives: Math.max(1, Math.round((Number(values.minutes) * 60_000) / lifeMs)),
  lifeMs,
  visitors: Number(values.visitors),
  pauseMs: Number(values.pause),
  node: values.node
}
const [load = NaN] = loadavg()
const found = await soak(options, line => console.log(line))
const [loadAfter = NaN] = loadavg()
const markdown = [
  `- ${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}, ${cpus().length} cores of ${cpus()[0]?.model ?? 'an unknown CPU'}, load average ${short(load)} before the run, ${short(loadAfter)} after it`,
  `- ${values.minutes} minutes, a kill every ${values.life} s, ${values.visitors} visitors, ${whole(found.visits.length)} things done apart from restarts\n`,
  report(found)
].join('\n')
console.log(markdown)
const failures = failuresOf(found)
for (const failure of failures.slice(0, 50)) console.log(`Failed: ${failure}`)
if (failures.length > 0) process.exitCode = 1
else if (values.write) keepFigures('bench/soak.md', `${markdown}\n`)
