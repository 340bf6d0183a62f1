import { callAttacks } from './call-attacks.ts'
import { generatedAttacks } from './generated-attacks.ts'
import { httpAttacks } from './http-attacks.ts'
import type { Attack } from './lane.ts'
import { taskAttacks } from './task-attacks.ts'

/** All of them by name. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  ...taskAttacks,
  ...callAttacks,
  ...httpAttacks,
  ...generatedAttacks
}

/** The names with one of these texts in them, all without any. Throws RangeError if there are none. */
export function namesOf(only: readonly string[]): string[] {
  const names = Object.keys(ATTACKS).filter(name => only.length === 0 || only.some(text => name.includes(text)))
  if (names.length === 0)
    throw new RangeError(
      `No attack has ${only.join(' or ')} in its name. There are: ${Object.keys(ATTACKS).join(', ')}.`
    )
  return names
}
