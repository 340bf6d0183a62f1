/** An event as people say it: `paint is done`, `after`, `starts`. */
export function eventText(type: string): string {
  if (type === 'xstate.init') return 'starts'
  if (type === 'xstate.stop') return 'stop'
  const [, kind, rest = ''] = /^xstate\.(after|done|error)\.(.*)$/.exec(type) ?? []
  if (kind === 'after') return `after ${rest.split('.')[0]} ms`
  if (kind === undefined) return type === '' ? 'by itself' : type
  return `${nameIn(rest)} ${kind === 'done' ? 'is done' : 'fails'}`
}

/** Who is done: an actor by its id, which for one without a name is its place in the chart; or a state by its key. */
function nameIn(rest: string): string {
  const [, of, name = rest] = /^(actor|state)\.(.*)$/.exec(rest) ?? []
  if (of === 'actor') return /^\d+\./.test(name) ? 'what it invokes' : name
  return name.slice(name.lastIndexOf('.') + 1)
}
