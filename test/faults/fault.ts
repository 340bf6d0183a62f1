/** A fault as a refactoring might make it: in a source file, a text that occurs there once becomes another. */
export interface Fault {
  /** What goes wrong, as a short sentence, unique in the list. */
  readonly name: string
  readonly file: string
  readonly find: string
  readonly replace: string
  /** The unit test that holds it where no layer does. */
  readonly unit?: string
}

/**
 * A source with a fault in it. Throws Error unless the text that it replaces occurs exactly once: the source has
 * changed, and the fault has to follow.
 */
export function planted(source: string, { name, file, find, replace }: Fault): string {
  const [before, after, ...more] = source.split(find)
  if (before === undefined || after === undefined || more.length > 0) {
    throw new Error(`The fault "${name}" looks for a text that is not in ${file} exactly once: ${find}`)
  }
  return `${before}${replace}${after}`
}
