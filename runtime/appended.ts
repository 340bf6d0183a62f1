/** Up to which length a list is made anew for each item. */
const SHORT = 8

/**
 * A list with one more item. A short one is a new list without room to spare, for of short ones there are many: the first
 * `push` makes room for 17. A long one grows in place.
 */
export function appended<T extends object>(list: T[], item: T): T[] {
  if (list.length < SHORT) return list.concat([item])
  list.push(item)
  return list
}
