/** The last `count` of a list that is oldest first; all of them without a count. */
export function newest<T>(list: readonly T[], count: number = list.length): T[] {
  return count === 0 ? [] : list.slice(-count)
}
