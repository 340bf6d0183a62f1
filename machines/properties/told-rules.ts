import { atMostOnce, never, precedes, type Property } from './properties.ts'
import { anyOf, toldTerm } from './terms.ts'

/** The rules of A2A for the updates of a task, whatever its agent does. */
export const TOLD_RULES: Readonly<Record<string, Property>> = {
  'a task begins as SUBMITTED (§4.1.3)': precedes(
    toldTerm('SUBMITTED'),
    anyOf(['WORKING', 'interrupted', 'terminal', 'artifact'].map(name => toldTerm(name)))
  ),
  'it is SUBMITTED once (§4.1.3)': atMostOnce(toldTerm('SUBMITTED')),
  'it is WORKING before it asks, produces or completes (§4.1.3)': precedes(
    toldTerm('WORKING'),
    anyOf(['interrupted', 'artifact', 'COMPLETED'].map(name => toldTerm(name)))
  ),
  'nothing is told after a terminal status (§3.1.2, §4.1.3)': never(toldTerm(), toldTerm('terminal'))
}
