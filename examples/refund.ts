import { assign } from 'xstate'
import { defineAgent, fromPromise, propertiesOf, setupWork, typed, type AuthorizationReceived } from 'taskchart'

const ATTEMPTS = 2

/** Pays a refund that a person has approved. If the bank declines, it asks again, but not for ever. */
const refund = setupWork({
  types: { events: typed<AuthorizationReceived>(), context: typed<{ left: number }>() },
  actors: { pay: fromPromise<string>(async () => 'paid') },
  guards: { isLast: ({ context }) => context.left === 0 }
}).createMachine({
  id: 'refund',
  context: { left: ATTEMPTS },
  initial: 'asking',
  states: {
    asking: { tags: 'input-required', meta: { prompt: 'How much?' }, on: { 'message.received': 'approving' } },
    approving: {
      tags: 'auth-required',
      meta: { prompt: 'May I pay that?' },
      on: { 'authorization.received': 'paying' }
    },
    paying: {
      entry: assign({ left: ({ context }) => context.left - 1 }),
      invoke: { src: 'pay', onDone: 'paid', onError: 'declined' }
    },
    declined: {
      tags: 'input-required',
      meta: { prompt: 'The bank declines. Another amount?' },
      always: { guard: 'isLast', target: 'refused' },
      on: { 'message.received': 'approving' }
    },
    refused: { type: 'final', tags: 'failed', meta: { reason: 'The bank declines.' } },
    paid: { type: 'final' }
  },
  output: { artifact: { name: 'refund.txt', parts: [{ text: 'The refund is paid.' }] } }
})

const { done, event, eventually, atMostOnce, precedes, terminal } = propertiesOf(refund)

/** One case for each way in which the bank and the client may react. */
export const cases = {
  messages: { 'an amount': '30' },
  authorizations: { 'a yes': true },
  results: { pay: { 'a receipt': 'paid', no: new Error('The account is closed.') } }
}

export default defineAgent({
  card: { name: 'Refunds', description: 'Pays refunds that were approved.' },
  work: refund,
  properties: {
    'an amount is approved before it is paid': precedes(event('authorization.received'), 'paying', {
      after: event('message.received')
    }),
    'every refund comes to an end': eventually(terminal),
    'the bank pays at most once': atMostOnce(done('pay'))
  }
})
