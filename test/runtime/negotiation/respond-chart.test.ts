import t, { type Test } from 'tap'
import { assign, createMachine, emit, fromPromise, raise } from 'xstate'
import { z } from 'zod'
import type { SendMessageResponse } from '../../../machines/protocol/objects.ts'
import {
  accepted,
  declined,
  defineAgent,
  negotiation,
  offer,
  reply,
  setupNegotiation,
  setupWork,
  text,
  textOf,
  typed,
  type AgentDefinition,
  type Runtime
} from '../../../runtime/index.ts'
import type { RespondChart } from '../../../runtime/negotiation/respond-chart.ts'
import { lives } from '../../fixtures/runtime/lives.ts'
import { messageIn, refusal, say, start, taskIn, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { negotiate, offerIn } from '../../../adapters/client/connect.ts'

const terms = z.object({ euros: z.number() })
type Terms = z.output<typeof terms>

/** The states of a chart that asks 50, comes down by 10 with each message, and gives up after the third. */
const stubborn = setupNegotiation({
  types: { terms: typed(terms), context: typed<{ euros: number }>() },
  guards: { agrees: ({ event }) => textOf(event.message) === 'deal', isPatient: ({ context }) => context.euros > 30 }
}).createMachine({
  id: 'stubborn',
  context: { euros: 60 },
  initial: 'a',
  states: {
    a: {
      on: {
        'message.received': [
          { guard: 'agrees', target: 'b', actions: emit(accepted()) },
          {
            guard: 'isPatient',
            actions: [
              assign({ euros: ({ context }) => context.euros - 10 }),
              emit(({ context }) => offer({ euros: context.euros }))
            ]
          },
          { target: 'b', actions: emit(declined('No.')) }
        ]
      }
    },
    b: { type: 'final' }
  }
})

const work = setupWork({ types: { context: typed<Terms>(), terms: typed(terms) } }).createMachine({
  context: ({ input }) => input.terms,
  initial: 'done',
  states: { done: { type: 'final' } },
  output: ({ context }) => ({ artifact: text(`for ${context.euros}`) })
})

const mover = (respond: RespondChart<Terms>): Omit<AgentDefinition, 'card'> => ({
  negotiate: negotiation({ terms, respond, rounds: 9 }),
  work
})

const tell = (runtime: Runtime, ...words: string[]) =>
  runtime.sendMessage(say('', { contextId: 'c', parts: words.map(text) }))

function brief(response: SendMessageResponse): string {
  if ('task' in response) return taskIn(response).artifacts?.map(textOf).join() ?? ''
  const made = offerIn(messageIn(response))
  return made ? String(made.terms['euros']) : textOf(messageIn(response))
}

await t.test(
  'a chart that negotiates is in the state in which its last answer left it, also after a kill, until there is a deal or none',
  async t => {
    const life = lives(t, mover(stubborn))
    const said = async (words: string) => brief(await tell(life.runtime, words))
    t.equal(await said('a piano'), '50')
    await life.kill()
    t.equal(await said('less'), '40')
    t.equal(await said('deal'), 'for 40')
    t.equal(await said('another'), '50', 'a deal ends it')
    await said('less')
    await said('less')
    await life.kill()
    t.equal(await said('less'), 'No.')
    t.equal(await said('again'), '50', 'it ends without a deal too')
    const made = offerIn(messageIn(await tell(life.runtime, 'less')))
    t.equal(
      brief(
        await life.runtime.sendMessage(
          say('', { contextId: 'c', parts: [negotiate({ accept: { offerId: made?.offerId ?? '' } })] })
        )
      ),
      'for 40',
      'the client accepts by the id'
    )
    t.equal(await said('again'), '50')
    await life.kill(
      mover(
        setupNegotiation({ types: { terms: typed(terms) } }).createMachine({
          initial: 'other',
          states: { other: { on: { 'message.received': { actions: emit(reply('anew')) } } } }
        })
      )
    )
    t.equal(await said('less'), 'anew', 'a chart without that state begins')
  }
)

await t.test('a chart may answer later, when an actor has', async t => {
  const price = fromPromise<number, { for: string }>(async ({ input }) => input.for.length)
  const asking = setupNegotiation({ types: { terms: typed(terms) }, actors: { price } }).createMachine({
    initial: 'a',
    states: {
      a: { on: { 'message.received': 'pricing' } },
      pricing: {
        invoke: {
          src: 'price',
          input: ({ event }) => ({ for: textOf(event.message) }),
          onDone: { target: 'a', actions: emit(({ event }) => offer({ euros: event.output })) }
        }
      }
    }
  })
  const { runtime } = start(t, mover(asking))
  t.equal(brief(await tell(runtime, 'four')), '4')
  t.equal(brief(await tell(runtime, 'seventy')), '7')
})

await t.test('a chart that fails leaves its negotiation as it was, and the log says why', async t => {
  const failing = (then: object) =>
    setupNegotiation({
      types: { terms: typed(terms) },
      actors: { never: fromPromise(() => Promise.reject(new Error('no price'))) }
    }).createMachine({
      id: 'failing',
      initial: 'a',
      states: {
        a: {
          on: {
            'message.received': [
              {
                guard: ({ event }) => textOf(event.message) === 'hello',
                actions: emit(({ event }) => reply(`round ${event.round}`))
              },
              then as never
            ]
          }
        },
        b: {},
        c: { invoke: { src: 'never' } }
      }
    })
  const rows: [then: object, error: RegExp][] = [
    [{ target: 'b' }, /^The chart failing gave 0 answers to a message, and is in "b"\. Emit one there/],
    [{ actions: [emit(reply('x')), emit(reply('y'))] }, /^The chart failing gave 2 answers/],
    [
      {
        actions: () => {
          throw new Error('broken')
        }
      },
      /^broken/
    ],
    [{ target: 'c' }, /^no price/],
    [{ actions: emit(offer({ euros: 'x' })) }, /terms\.euros/],
    [{ actions: emit({ type: 'hello' }) }, /has to answer offer/],
    [{ actions: [emit(reply('x')), assign({ at: new Map() })] }, /the snapshot\.context\.at is a Map/]
  ]
  for (const [then, error] of rows) {
    const { runtime, log } = start(t, mover(failing(then)))
    t.equal(brief(await tell(runtime, 'hello')), 'round 0')
    t.match(await refusal(tell(runtime, 'x')), { code: 'InternalError' })
    t.match(log.at(-1)?.details, { error: { message: error } })
    t.equal(brief(await tell(runtime, 'hello')), 'round 0', 'it is in its state before')
  }
})

await t.test('a chart that has ended with a reply begins again with the next message', async t => {
  const once = setupNegotiation({ types: { terms: typed(terms) } }).createMachine({
    initial: 'a',
    states: {
      a: { on: { 'message.received': { target: 'b', actions: emit(reply('a')) } } },
      b: { on: { 'message.received': { target: 'c', actions: emit(reply('b')) } } },
      c: { type: 'final' }
    }
  })
  const { runtime } = start(t, mover(once))
  for (const answer of ['a', 'b', 'a']) t.equal(brief(await tell(runtime, 'x')), answer)
})

await t.test('a constant context that a chart changes in place is that of its negotiation alone', async t => {
  const heard = { texts: [] as string[] }
  const listening = setupNegotiation({ types: { terms: typed(terms), context: typed<typeof heard>() } }).createMachine({
    context: heard,
    on: {
      'message.received': {
        actions: [
          assign(({ context, event }) => ({ texts: (context.texts.push(textOf(event.message)), context.texts) })),
          emit(({ context }) => reply(context.texts.join()))
        ]
      }
    }
  })
  const { runtime } = start(t, mover(listening))
  for (const contextId of ['one', 'another'])
    t.equal(brief(await runtime.sendMessage(say('hello', { contextId }))), 'hello')
})

await t.test('a chart that waits too long for its actor is too late', async t => {
  const waits = setupNegotiation({
    types: { terms: typed(terms) },
    actors: { never: fromPromise(() => new Promise<never>(() => {})) }
  }).createMachine({
    initial: 'a',
    states: { a: { on: { 'message.received': 'b' } }, b: { invoke: { src: 'never' } } }
  })
  const { runtime, clock } = start(t, mover(waits), { limits: { advanced: { negotiationMs: 1000 } } })
  const late = refusal(tell(runtime, 'x'))
  await until(() => clock.pending === 1)
  clock.increment(1000)
  t.match(await late, { code: 'DeadlineExceeded' })
})

await t.test('a chart that cannot negotiate as written is refused, with what to write instead', async (t: Test) => {
  const refused = (config: object, message: RegExp) =>
    t.throws(() => negotiation({ terms, respond: createMachine({ id: 'x', ...config }) as never }), {
      name: 'TypeError',
      message
    })
  refused({ context: { at: new Date(0) } }, /^The chart x has a context that cannot be stored: context\.at is a Date/)
  refused({ initial: 'a', states: { a: { after: { 1000: 'b' } }, b: {} } }, /^The state x\.a has a delay/)
  refused(
    { invoke: { src: fromPromise(async () => 1) } },
    /^The state x invokes logic without a name\. Name it: setupNegotiation\(\{ actors/
  )
  refused({ invoke: { src: 'nobody' } }, /^The state x invokes logic without a name/)
  t.doesNotThrow(() => negotiation({ terms, respond: createMachine({ entry: raise({ type: 'x' }) }) as never }))
})

/** Never called: that it compiles, and what does not, is the test. */
export function termsAreTyped() {
  const price = z.object({ price: z.string() })
  // @ts-expect-error -- the chart's terms are those of the negotiation
  negotiation({ terms: price, respond: stubborn })
  setupNegotiation({ types: { terms: typed(terms) } }).createMachine({
    // @ts-expect-error -- an offer has the terms of the negotiation
    on: { 'message.received': { actions: emit(offer({ price: 'x' })) } }
  })
  // @ts-expect-error -- the work's terms are those of the negotiation
  defineAgent({ card: { name: 'A' }, negotiate: negotiation({ terms: price, respond: () => reply('x') }), work })
  setupWork({ types: { terms: typed(terms) } }).createMachine({
    // @ts-expect-error -- a chart's terms have a type
    context: ({ input }) => ({ price: input.terms.price })
  })
  setupWork({}).createMachine({ context: ({ input }) => ({ terms: input.terms?.['anything'] }) })
}
