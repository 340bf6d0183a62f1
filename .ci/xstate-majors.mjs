// Uses charts and actors of other copies of XState: another copy of 5 works, 4 and 6 are refused by one line.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, setupWork } from 'taskchart'
import * as xstate4 from 'xstate4'
import { fromPromise as fromPromise4 } from 'xstate4/lib/behaviors.js'
import * as xstate5 from 'xstate5'
import * as xstate6 from 'xstate6'

const card = { name: 'Painter', description: 'Paints.' }
const config = {
  id: 'work',
  initial: 'asking',
  context: {},
  states: { asking: { on: { go: 'over' } }, over: { type: 'final' } }
}
const invoking = actor =>
  setupWork({ actors: { paint: actor } }).createMachine({
    initial: 'painting',
    states: { painting: { invoke: { src: 'paint', onDone: 'over' } }, over: { type: 'final' } }
  })
const refused = (work, what) =>
  assert.throws(
    () => defineAgent({ card, work }),
    ({ name, message }) =>
      name === 'TypeError' && new RegExp(`^${what}, but taskchart runs on XState 5 .*\\.$`).test(message)
  )

const chart4 = xstate4.createMachine({ ...config, predictableActionArguments: true })
const chart6 = xstate6.createMachine(config)
refused(chart4, 'work was made with XState 4')
refused(chart6, 'work was made with XState 6 or newer')
refused(invoking(chart4), 'The actor paint was made with XState 4')
refused(invoking(chart6), 'The actor paint was made with XState 6 or newer')
refused(invoking(fromPromise4(async () => 'red')), 'The actor paint was made with XState 4')
refused(invoking(xstate6.createAsyncLogic({ run: async () => 'red' })), 'The actor paint was made with XState 6 or newer')

const { assign, fromPromise, setup } = xstate5
const work = setup({ actors: { paint: fromPromise(async ({ input }) => `a ${input} sailboat`) } }).createMachine({
  context: { painted: '' },
  initial: 'painting',
  states: {
    painting: {
      invoke: {
        src: 'paint',
        input: 'red',
        onDone: { target: 'over', actions: assign({ painted: ({ event }) => event.output }) }
      }
    },
    over: { type: 'final' }
  },
  output: ({ context }) => ({ message: context.painted })
})
const runtime = createRuntime({ agent: defineAgent({ card, work }) })
const { task } = await runtime.sendMessage({
  message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'a sailboat' }] }
})
assert.equal(task.status.state, 'TASK_STATE_COMPLETED')
assert.equal(task.status.message.parts[0].text, 'a red sailboat')
await runtime.close()
