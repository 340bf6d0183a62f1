import { oursInspectable, oursInspected, oursServed } from '../contenders.ts'
import type { Race } from '../race.ts'
import type { Scale } from '../scale.ts'
import { sendRaces } from './send.ts'
import { streamRaces } from './stream.ts'

/** What the inspector costs: nothing while nobody looks, and little while somebody does. */
export function inspectRaces(scale: Scale): Race[] {
  const baseline = { contender: oursServed, name: 'without' }
  return [...sendRaces(scale).slice(-1), ...streamRaces(scale).slice(-1)].map(race => ({
    ...race, baseline, title: `${race.title}, and the inspector`, contenders: [oursServed, oursInspectable, oursInspected]
  }))
}
