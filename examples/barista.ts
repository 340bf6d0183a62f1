import { setTimeout as pause } from 'node:timers/promises'
import { dataOf, defineAgent, fromPromise, progress, propertiesOf, setupWork, text, typed } from 'taskchart'
import { assign, emit } from 'xstate'
import { z } from 'zod'

const size = z.enum(['small', 'large'], 'has to be small or large')
const BREWING_MS = 200
type Cup = { size: z.infer<typeof size>; coffee: string }

/**
 * Makes coffee: a statechart whose tags set the status of the task, with a question that accepts only the sizes of its
 * schema.
 */
const barista = setupWork({
  types: { context: typed<Cup>() },
  actors: {
    brew: fromPromise<string, Pick<Cup, 'size'>>(({ input, signal }) =>
      pause(BREWING_MS, `a ${input.size} coffee`, { signal })
    )
  }
}).createMachine({
  id: 'barista',
  context: { size: 'small', coffee: '' },
  initial: 'asking',
  states: {
    asking: {
      tags: 'input-required',
      meta: { prompt: 'Small or large?', schema: size },
      on: { 'message.received': { target: 'brewing', actions: assign({ size: ({ event }) => dataOf(event, size) }) } }
    },
    brewing: {
      entry: emit(({ context }) => progress(`Brewing a ${context.size} one.`)),
      invoke: {
        src: 'brew',
        input: ({ context }) => ({ size: context.size }),
        onDone: { target: 'served', actions: assign({ coffee: ({ event }) => event.output }) },
        onError: 'spilt'
      }
    },
    served: { type: 'final' },
    spilt: { type: 'final', tags: 'failed', meta: { reason: 'The coffee was spilt.' } }
  },
  output: ({ context }) => ({ artifact: { name: 'coffee.txt', parts: [text(context.coffee)] } })
})

const { event, precedes } = propertiesOf(barista)

/** The cases of its tests, one for each way in which the chart may react: `npx taskchart test` takes them from here. */
export const cases = {
  messages: { large: 'large', 'another size': 'huge' },
  results: { brew: { 'a coffee': 'a large coffee', 'an error': new Error('The cup fell over.') } }
}

export default defineAgent({
  card: {
    name: 'Barista',
    description: 'Makes coffee, small or large.',
    skills: [
      {
        id: 'coffee',
        name: 'Make coffee',
        description: 'Asks for the size and makes a coffee.',
        tags: ['coffee'],
        examples: ['a coffee']
      }
    ]
  },
  work: barista,
  // Claims about every walk: `npx taskchart prove` proves them, or shows the shortest walk on which one is false.
  properties: { 'a size is said before a coffee is brewed': precedes(event('message.received'), 'brewing') }
})
