import { eventName } from '../../../drawing/chart-words.ts'

/** XState's own events that charts have no word for. */
const OWN: ReadonlyMap<string, string> = new Map([
  ['', 'by itself'], ['xstate.init', 'starts'], ['xstate.stop', 'stop'], ['xstate.promise.resolve', 'resolves'], ['xstate.promise.reject', 'rejects']
])

/** An event as people say it, as the charts do; ids in it are cut. */
export function eventText(type: string): string {
  return OWN.get(type) ?? eventName(type).replaceAll(/[\w-]{18,}\??/g, id => `${id.slice(0, 8)}…`)
}
