/**
 * How new a node is: the format of its stored actors, then the numbers of its agent's version without zeros at the end. `2.1.0` of format 1
 * is `[1, 2, 1]`. A version that does not begin with a number has none.
 */
export type NodeVersion = readonly number[]

export function nodeVersion({ format, agent }: { readonly format: number; readonly agent: string }): NodeVersion {
  const [text = ''] = /^\d{1,15}(\.\d{1,15})*/.exec(agent) ?? []
  const numbers = text.split('.').filter(Boolean).map(Number)
  return [format, ...numbers.slice(0, numbers.findLastIndex(number => number !== 0) + 1)]
}

/** Whether a node of one version may restore what a node of another has stored: its own is the same or newer. */
export function isAsNew(own: NodeVersion, other: NodeVersion): boolean {
  const at = own.findIndex((number, i) => number !== other[i])
  return at < 0 ? own.length >= other.length : Number(own[at]) > (other[at] ?? -1)
}

/** The same, with any version of the agent. */
export function isFormatAsNew(own: NodeVersion, other: NodeVersion): boolean {
  return Number(own[0]) >= Number(other[0])
}

/** The version as an array of PostgreSQL, which compares arrays as {@link isAsNew} does. */
export function versionText(version: NodeVersion): string {
  return `{${version.join()}}`
}

export function versionIn(text: string | null | undefined): NodeVersion {
  return text ? text.slice(1, -1).split(',').map(Number) : []
}
