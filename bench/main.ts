import { figuresOf } from './figures.ts'
import { run } from './race.ts'
import { full, quick } from './scale.ts'
import { sendRaces } from './scenarios/send.ts'
import { raceTable } from './tables.ts'

const scale = process.argv.includes('--quick') ? quick : full
for (const race of sendRaces(scale)) {
  const lanes = await run(race, scale.rounds)
  console.log(`\n### ${race.title}\n\n${raceTable(race.unit, figuresOf(lanes, race.times))}`)
}
