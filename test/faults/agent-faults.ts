import type { Fault } from './fault.ts'

/** Faults of agents, whose charts are what their own paths are made of. */
export const agentFaults: readonly Fault[] = [
  {
    name: 'an agent forgets its colour when it is restored',
    file: 'examples/sailboat.ts',
    find: `colour: colourIn(textOf(message)),`,
    replace: `colour: { toString: () => colourIn(textOf(message)) ?? '' } as never,`
  },
  {
    name: 'a failed task of an agent completes',
    file: 'examples/barista.ts',
    find: `onError: 'spilt'`,
    replace: `onError: 'served'`
  },
  {
    name: 'an agent loses the answer that it received',
    file: 'examples/barista.ts',
    unit: 'test/examples/examples.test.ts',
    find: `{ target: 'brewing', actions: assign({ size: ({ event }) => dataOf(event, size) }) }`,
    replace: `'brewing'`
  },
  {
    name: 'an agent loses the output of its actor',
    file: 'examples/sailboat.ts',
    find: `onDone: { target: 'painted', actions: assign({ parts: ({ event }) => [event.output] }) }`,
    replace: `onDone: 'painted'`
  }
]
