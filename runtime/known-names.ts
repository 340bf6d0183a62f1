/**
 * Throws TypeError for a member that is none of these names, with the name that is probably meant, or else all of them. A
 * member that is `undefined` counts as left out.
 */
export function checkNames(given: object, names: readonly string[], what: string): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || names.includes(name)) continue
    const near = nearest(name, names)
    throw new TypeError(`${what} has no ${shortened(name)}. ${near === undefined ? `There are ${names.join(', ')}.` : `Is ${near} meant?`}`)
  }
}

/** So much of a name is shown in an error. */
const SHOWN = 80

function shortened(name: string): string {
  return name.length > SHOWN ? `${name.slice(0, SHOWN)}…` : name
}

/**
 * The name that a misspelled one is likely to mean, if any: that with the same letters but for case and separators, a letter in
 * six at the most apart, or an ending.
 */
export function nearest(word: string, names: readonly string[]): string | undefined {
  const letters = lettersOf(word)
  return names.find(name => isNear(letters, lettersOf(name)))
}

function isNear(word: string, name: string): boolean {
  if (word[0] !== name[0]) return false
  const [short = '', long = ''] = [word, name].toSorted((one, other) => one.length - other.length)
  if (long.startsWith(short) && short.length >= 4 && long.length - short.length <= 2) return true
  return isWithin(word, name, Math.max(1, Math.floor(name.length / 6)))
}

function lettersOf(name: string): string {
  return name.replace(/^TASK_STATE_/, '').replace(/[^\p{L}\d]/gu, '').toLowerCase()
}

/** Whether one word becomes the other when so many letters at the most are put in, left out or changed. Ends at once for a word that is longer by more. */
function isWithin(from: string, to: string, changes: number): boolean {
  if (from === to) return true
  if (Math.abs(from.length - to.length) > changes) return false
  if (from !== '' && from[0] === to[0]) return isWithin(from.slice(1), to.slice(1), changes)
  if (changes === 0) return false
  const left = changes - 1
  return isWithin(from.slice(1), to, left) || isWithin(from, to.slice(1), left) || isWithin(from.slice(1), to.slice(1), left)
}
