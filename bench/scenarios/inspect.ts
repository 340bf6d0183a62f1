import { ours, oursInspectable, oursInspected, oursObserving, oursRecorded } from '../contenders.ts'
import type { Race } from '../race.ts'
import type { Scale } from '../scale.ts'
import { sendRaces } from './send.ts'
import { streamRaces } from './stream.ts'

/** What the inspector costs: nothing while nobody looks, and little while somebody does. */
export function inspectRaces(scale: Scale): Race[] {
  const baseline = { contender: ours, name: 'without' }
  return [...sendRaces(scale).slice(-1), ...streamRaces(scale).slice(-1)].map(race => ({
    ...race,
    baseline,
    title: `${race.title}, and the inspector`,
    contenders: [ours, oursInspectable, oursRecorded, oursInspected]
  }))
}

/** What it costs to observe properties. */
export function observeRaces(scale: Scale): Race[] {
  return sendRaces(scale)
    .slice(-1)
    .map(race => ({
      ...race,
      baseline: { contender: ours, name: 'without' },
      title: `${race.title}, and observed properties`,
      contenders: [ours, oursObserving]
    }))
}
