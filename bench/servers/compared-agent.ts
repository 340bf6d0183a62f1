import type * as taskchart from '../../runtime/index.ts'

/** States of the long region, its end included. The other one has two. */
const LONG = 98

/** How many configurations its open tasks can be in. */
export const CONFIGURATIONS = 2 * (LONG - 1)

/**
 * An agent whose work is a chart of 100 states in two regions. A guard decides all transitions, and an edit changes the
 * code of the guard. The framework is handed over, since users have it as a package: so the only local module is this
 * file.
 */
export function comparedAgent(
  { defineAgent, setupWork }: Pick<typeof taskchart, 'defineAgent' | 'setupWork'>,
  { isEdited = false } = {}
): taskchart.Agent {
  const asking = (n: number) => ({
    tags: 'input-required' as const,
    on: { 'message.received': { guard: 'isComplete' as const, target: `s${n + 1}` } }
  })
  const work = setupWork({
    guards: {
      isComplete: isEdited
        ? ({ event }) => event.type === 'message.received' && event.message.parts.length > 1
        : ({ event }) => event.type === 'message.received' && event.message.parts.length > 0
    }
  }).createMachine({
    id: 'compared',
    type: 'parallel',
    states: {
      long: {
        initial: 's0',
        states: Object.fromEntries(
          Array.from({ length: LONG }, (_, n) => [`s${n}`, n === LONG - 1 ? { type: 'final' as const } : asking(n)])
        )
      },
      short: {
        initial: 'open',
        states: {
          open: { on: { 'message.received': { guard: 'isComplete', target: 'closed' } } },
          closed: { type: 'final' }
        }
      }
    }
  })
  return defineAgent({ card: { name: 'Compared' }, version: '1', work })
}

/** The configuration of one of many tasks: all in turn. */
export function configurationOf(task: number): { readonly long: string; readonly short: string } {
  return { long: `s${task % (LONG - 1)}`, short: task % 2 === 0 ? 'open' : 'closed' }
}
