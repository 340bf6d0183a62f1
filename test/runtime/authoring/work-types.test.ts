/* oxlint-disable typescript/no-unnecessary-type-parameters -- types are compared by them */
import t from 'tap'
import { z } from 'zod'
import { assign } from 'xstate'
import {
  accepted,
  dataOf,
  artifact,
  authRequired,
  data,
  declined,
  defineAgent,
  failed,
  fromPromise,
  inputRequired,
  negotiation,
  offer,
  progress,
  reply,
  setupWork,
  text,
  typed,
  type OpenOffer,
  type StandardSchema,
  type Authorization,
  type Message,
  type Question,
  type WorkArguments,
  type WorkFunction,
  type WorkGenerator,
  type WorkInput
} from '../../../runtime/index.ts'

/** Holds if two types are the same, and not only assignable to each other. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** Compiles if `Claim` holds. */
function holds<Claim extends true>(_claim?: Claim): void {}

const trip = z.object({ day: z.iso.date(), people: z.string().transform(Number) })
declare const byHand: StandardSchema<{ count: number }>

/** Never called: that it compiles, and what does not, is the test. */
export function answersAreTyped() {
  const generator: WorkGenerator = async function* ({ step, sleep, signal, spawn }) {
    const day: Message = yield* inputRequired('Which day?')
    const late: Message = yield* inputRequired('Which day?', { deadlineMs: 1000 })
    const booked = yield* inputRequired('When, and how many?', { schema: trip, deadlineMs: 1000 })
    holds<Same<typeof booked, { day: string; people: number }>>()
    const { count } = yield* inputRequired('How many?', { schema: byHand })
    holds<Same<typeof count, number>>()
    // @ts-expect-error -- an answer without a schema is a message
    const words: string = yield* inputRequired('Which day?')

    const authorization = yield* authRequired('Log in.')
    holds<Same<typeof authorization, Authorization>>()
    // @ts-expect-error -- which of the two came has to be looked at
    void authorization.data
    if ('message' in authorization) holds<Same<typeof authorization.message, Message>>()
    else holds<Same<typeof authorization.data, unknown>>()
    const typed = yield* authRequired('Log in.', { schema: z.object({ token: z.string() }) })
    if ('data' in typed) holds<Same<typeof typed.data, { token: string }>>()

    const result = await step('book', ({ idempotencyKey }) => ({ key: idempotencyKey }))
    holds<Same<typeof result, { key: string }>>()
    const later = await step('book', async () => 7)
    holds<Same<typeof later, number>>()
    holds<Same<typeof signal, AbortSignal>>()
    await sleep(1000)
    // @ts-expect-error -- milliseconds are a number
    await sleep('1s')
    const child = spawn(
      fromPromise<string, { n: number }>(async ({ input }) => String(input.n)),
      { input: { n: 1 } }
    )
    holds<Same<ReturnType<typeof child.getSnapshot>['output'], string | undefined>>()
    spawn(
      fromPromise<string, { n: number }>(async ({ input }) => String(input.n)),
      // @ts-expect-error -- the input is that of the logic
      { input: { n: '1' } }
    )

    yield progress('on the way')
    yield artifact({ parts: [text(JSON.stringify([day, late, words, later]))] })
    return { artifact: 'done' }
  }
  // @ts-expect-error -- text is no word: progress(…) or artifact(…) is
  const unclear: WorkGenerator = async function* () {
    yield 'text'
  }
  // @ts-expect-error -- a reason to end with is returned
  const yielded: WorkGenerator = async function* () {
    yield failed('no')
  }

  const telling: WorkGenerator = async function* (work) {
    // @ts-expect-error -- a generator yields its words
    work.emit(progress())
    // @ts-expect-error -- a generator asks by yield*
    await work.ask(inputRequired('Which day?'))
    yield progress()
  }

  const functional: WorkFunction = async ({ ask, emit }) => {
    const day = await ask(inputRequired('Which day?'))
    holds<Same<typeof day, Message>>()
    const { people } = await ask(inputRequired('How many?', { schema: trip }))
    holds<Same<typeof people, number>>()
    const authorization = await ask(authRequired('Log in.'))
    holds<Same<typeof authorization, Authorization>>()
    emit(progress())
    // @ts-expect-error -- a question is asked, so that there is an answer
    emit(inputRequired('Which day?'))
    return failed('no')
  }

  // @ts-expect-error -- a schema is one of Standard Schema
  inputRequired('?', { schema: { parse: (value: unknown) => value } })
  // @ts-expect-error -- there is no such option
  inputRequired('?', { timeout: 1000 })
  holds<Same<ReturnType<typeof authRequired>, Question<Authorization>>>()

  return [
    unclear,
    yielded,
    telling,
    defineAgent({
      card: { name: 'A' },
      work: generator,
      messages: 'queue',
      restart: { type: 'transient', intensity: 3 }
    }),
    defineAgent({ card: { name: 'A' }, work: functional, restart: 'transient' }),
    defineAgent({
      card: { name: 'A' },
      async *work({ message }) {
        holds<Same<typeof message, Message>>()
        const { day } = yield* inputRequired('When?', { schema: trip })
        return { artifact: day }
      }
    }),
    defineAgent({
      card: { name: 'A' },
      // @ts-expect-error -- a generator's words are typed in place, too
      work: async function* () {
        yield 7
      }
    }),
    // @ts-expect-error -- a task has an end
    defineAgent({ card: { name: 'A' }, work: functional, restart: 'permanent' }),
    // @ts-expect-error -- an intensity alone says nothing
    defineAgent({ card: { name: 'A' }, work: functional, restart: { intensity: 3 } }),
    // @ts-expect-error -- there is no such policy
    defineAgent({ card: { name: 'A' }, work: functional, messages: 'drop' }),
    setupWork({
      actors: {
        buy: fromPromise<number, { what: string }>(async ({ input, step, signal }) => {
          holds<Same<typeof input, { what: string }>>()
          holds<Same<typeof signal, AbortSignal>>()
          const paid = await step('pay', () => input.what.length)
          holds<Same<typeof paid, number>>()
          return paid
        })
      }
    })
  ]
}

interface Order {
  readonly dish: string
  readonly people?: number
}

/** Never called: that it compiles, and what does not, is the test. */
export function inputIsTyped() {
  const card = { name: 'A' }
  const order = z.object({ dish: z.string(), people: z.string().transform(Number) })
  type Ordered = { dish: string; people: number }
  const functional: WorkFunction<Ordered> = ({ input }) => holds<Same<typeof input, Ordered>>()
  const general: WorkFunction = ({ input }) => holds<Same<typeof input, unknown>>()
  const chart = setupWork({ types: { context: typed<Ordered>(), input: typed(order) } }).createMachine({
    context: ({ input }) => {
      holds<Same<typeof input, WorkInput<Ordered>>>()
      return input.input
    },
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        meta: { prompt: ({ context }) => `For ${context.people}?`, schema: order },
        on: {
          'message.received': {
            target: 'done',
            actions: assign(({ event }) => {
              // @ts-expect-error -- dataOf reads the answer
              void event.answer
              const answer = dataOf(event, order)
              holds<Same<typeof answer, Ordered>>()
              return answer
            })
          }
        }
      },
      done: { type: 'final' }
    },
    output: ({ context }) => ({ artifact: data(context) })
  })
  const start = { left: 3 }
  const begun = setupWork({ types: { context: start } }).createMachine({
    context: start,
    output: ({ context }) => ({ artifact: data(context.left) })
  })
  const wanting = setupWork({ types: { input: typed<string>() } }).createMachine({})
  const agnostic = setupWork({}).createMachine({})

  const read = dataOf({ parts: [text('x')] }, order)
  holds<Same<typeof read, Ordered>>()
  const byInterface: Order = { dish: 'soup' }
  data(byInterface)
  data(null)
  data([1, { a: ['b', null] }])
  // @ts-expect-error -- JSON holds no functions
  data({ dish: () => 'soup' })
  // @ts-expect-error -- nor what may be anything
  data(JSON.parse('1') as unknown)
  // @ts-expect-error -- JSON Schema without a schema would check nothing
  inputRequired('?', { jsonSchema: { type: 'string' }, deadlineMs: 1 })

  return [
    defineAgent({
      card,
      input: order,
      work({ input }) {
        holds<Same<typeof input, Ordered>>()
      }
    }),
    defineAgent({
      card,
      input: order,
      work: async function* ({ input }) {
        holds<Same<typeof input, Ordered>>()
        const day = yield* inputRequired('When?', { schema: trip, jsonSchema: { type: 'object' } })
        holds<Same<typeof day, { day: string; people: number }>>()
        return { artifact: data(input) }
      }
    }),
    defineAgent({
      card,
      work({ input }) {
        holds<Same<typeof input, undefined>>()
      }
    }),
    defineAgent({ card, input: order, work: functional }),
    defineAgent({ card, input: order, work: general }),
    defineAgent({ card, work: general }),
    defineAgent({ card, input: order, work: chart }),
    defineAgent({ card, input: order, work: agnostic }),
    defineAgent({ card, work: agnostic }),
    defineAgent({ card, work: begun }),
    // @ts-expect-error -- the work wants an input that nobody checks
    defineAgent({ card, work: functional }),
    // @ts-expect-error -- the chart wants an input that nobody checks
    defineAgent({ card, work: chart }),
    // @ts-expect-error -- the chart wants another input
    defineAgent({ card, input: order, work: wanting }),
    // @ts-expect-error -- the work wants another input
    defineAgent({ card, input: z.string(), work: functional }),
    // @ts-expect-error -- there is no such member
    defineAgent({ card, worker: general }),
    // @ts-expect-error -- there is no such tag
    setupWork({}).createMachine({ initial: 'a', states: { a: { tags: 'inputRequired' } } }),
    setupWork({}).createMachine({
      initial: 'a',
      // @ts-expect-error -- what to ask is said in meta
      states: { a: { tags: 'input-required', meta: { question: 'Which day?' } } }
    }),
    setupWork({}).createMachine({
      initial: 'a',
      // @ts-expect-error -- a schema is one of Standard Schema
      states: { a: { tags: 'input-required', meta: { prompt: '?', schema: { parse: Number } } } }
    })
  ]
}

t.ok(inputIsTyped, 'and inputs, too')
t.ok(answersAreTyped, 'this file compiles, so answers, results and wrong uses have these types')

const price = z.object({ euros: z.number() })

/** Never called, likewise. */
export function termsAreTyped() {
  const card = { name: 'A' }
  return [
    defineAgent({
      card,
      negotiate: negotiation({
        terms: price,
        respond: ({ proposal, standing, round }) => {
          holds<Same<typeof proposal, { euros: number } | undefined>>()
          holds<Same<typeof standing, OpenOffer<{ euros: number }> | undefined>>()
          if (round > 3) return declined('no')
          return proposal && proposal.euros > 40 ? accepted() : offer({ euros: 40 }, { message: 'What about that?' })
        }
      }),
      work: async ({ terms }) => {
        holds<Same<typeof terms, { euros: number }>>()
        return { artifact: `${terms.euros}` }
      }
    }),
    defineAgent({
      card,
      async *work({ terms }) {
        holds<Same<typeof terms, { euros: number }>>()
        yield progress(`${terms.euros}`)
      },
      negotiate: negotiation({ terms: price, respond: async () => accepted({ euros: 1 }) })
    }),
    // @ts-expect-error -- the schema says what terms are, not what is offered
    negotiation({ terms: price, respond: () => offer({ pounds: 1 }) }),
    // @ts-expect-error -- nor what is accepted
    negotiation({ terms: price, respond: () => accepted({ euros: '1' }) }),
    // @ts-expect-error -- terms are an object
    negotiation({ terms: z.string(), respond: () => reply('x') }),
    defineAgent({
      card,
      negotiate: ({ message }) => (message.parts.length > 1 ? accepted({ euros: 5 }) : reply('How much?')),
      work: ({ terms }) => holds<Same<typeof terms, { euros: number }>>()
    }),
    defineAgent({
      card,
      negotiate: ({ message }) => (message.parts.length > 1 ? accepted() : accepted({ euros: 5 })),
      work: ({ terms }) => holds<Same<typeof terms, { euros: number } | undefined>>()
    }),
    defineAgent({ card, negotiate: () => accepted(), work: ({ terms }) => holds<Same<typeof terms, undefined>>() }),
    defineAgent({ card, work: ({ terms }) => holds<Same<typeof terms, Record<string, unknown> | undefined>>() }),
    defineAgent({
      card,
      negotiate: negotiation({ terms: price, respond: () => accepted() }),
      // @ts-expect-error -- a work for other terms
      work: ({ terms }: WorkArguments<unknown, { pounds: number }>) => void terms
    })
  ]
}

t.ok(termsAreTyped, 'terms are too')
t.ok(answersAreTyped, 'this file compiles, so answers, results and wrong uses have these types')
