/** Whether a version satisfies a range of comparators, such as `>=1.3.0 <2`. `*` is any. */
export function satisfies(version: string, range: string): boolean {
  return range.split(' ').every(comparator => {
    const isBelow = weightOf(version) < weightOf(comparator.replace(/^\D+/, ''))
    return comparator.startsWith('<') ? isBelow : !isBelow
  })
}

/** The versions that promise to be compatible with this one: its major, or `0` and its minor. */
export function lineOf(version: string): string {
  return /^(?:0\.\d+|\d+)/.exec(version)?.[0] ?? version
}

/** A version as a number, without its prerelease. */
function weightOf(version: string): number {
  const parts = version.replace(/-.*/, '').split('.').map(Number)
  return [0, 1, 2].reduce((sum, i) => sum * 100_000 + (parts[i] ?? 0), 0)
}
