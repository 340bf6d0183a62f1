import { defineAgent, progress, setupWork, text, textOf, typed } from 'taskchart'
import { assign, emit } from 'xstate'

const STEP_MS = 1000
const HIGHEST = 3600

/**
 * Counts down from the number in the message, one a second, and returns a text: a task-generating agent whose work is a
 * statechart. Cancel it at any time.
 */
const countdown = setupWork({
  types: { context: typed<{ left: number; from: number }>() },
  guards: {
    hasNoNumber: ({ context }) => !(context.from >= 1 && context.from <= HIGHEST),
    isLast: ({ context }) => context.left === 1
  },
  delays: { step: STEP_MS }
}).createMachine({
  id: 'countdown',
  context: ({ input }) => {
    const from = numberIn(textOf(input.message))
    return { from, left: from }
  },
  initial: 'starting',
  states: {
    starting: { always: [{ guard: 'hasNoNumber', target: 'refused' }, { target: 'counting' }] },
    counting: {
      entry: emit(({ context }) => progress(`${context.left} …`)),
      after: {
        step: [
          { guard: 'isLast', target: 'liftOff' },
          { target: 'counting', reenter: true, actions: assign({ left: ({ context }) => context.left - 1 }) }
        ]
      }
    },
    refused: {
      type: 'final',
      tags: 'rejected',
      meta: { reason: `Send me a number from 1 to ${HIGHEST} to count down from.` }
    },
    liftOff: { type: 'final' }
  },
  output: ({ context }) => ({
    artifact: { name: 'countdown.txt', parts: [text(`Counted down from ${context.from}. Lift-off!`)] }
  })
})

export default defineAgent({
  card: {
    name: 'Countdown',
    description: 'Counts down from a number, one a second.',
    skills: [
      {
        id: 'countdown',
        name: 'Count down',
        description: 'Counts down from the number in the message.',
        tags: ['time'],
        examples: ['3']
      }
    ]
  },
  work: countdown
})

function numberIn(words: string): number {
  return Number(/\d{1,9}/.exec(words)?.[0] ?? 0)
}
