import leven from 'leven'
import { isSwapped } from '../../../runtime/primitives/options.ts'

/** The name that a misspelled word probably means: the nearest one, at most two letters away, one for short words; or the only one that begins so. */
export function nearestName(word: string, names: readonly string[]): string | undefined {
  const [begun, ...others] = names.filter(name => word.length > 2 && name.startsWith(word))
  if (begun !== undefined && others.length === 0) return begun
  const most = word.replace(/^\W+/, '').length > 4 ? 2 : 1
  const ranked = names.map(name => ({
    name,
    distance: isSwapped(word, name) ? 1 : leven(word, name, { maxDistance: most + 1 })
  }))
  return ranked.filter(({ distance }) => distance <= most).toSorted((a, b) => a.distance - b.distance)[0]?.name
}

/** A hint for an unknown word: the nearest name, or all names. */
export function didYouMean(word: string, names: readonly string[]): string {
  const near = nearestName(word, names)
  return near === undefined ? `There are: ${names.join(', ')}.` : `Did you mean ${near}?`
}
