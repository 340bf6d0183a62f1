/* oxlint-disable typescript/no-unnecessary-type-parameters -- types are compared by them */
import t from 'tap'
import {
  and,
  assertEvent,
  assign,
  cancel,
  createActor,
  emit,
  enqueueActions,
  forwardTo,
  fromCallback,
  fromObservable,
  fromTransition,
  log,
  not,
  or,
  raise,
  sendParent,
  sendTo,
  spawnChild,
  stateIn,
  stopChild,
  type ActorRefFrom,
  type SnapshotFrom,
  type StateFrom
} from 'xstate'
import {
  data,
  defineAgent,
  fromPromise,
  offer,
  progress,
  setupNegotiation,
  setupWork,
  textOf,
  typed,
  type AuthorizationReceived,
  type MessageReceived
} from '../../../runtime/index.ts'

/** Holds if two types are the same, and not only assignable to each other. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** Compiles if `Claim` holds. */
function holds<Claim extends true>(_claim?: Claim): void {}

type Order = { dish: string; count: number }
type Tick = { type: 'tick'; by: number }

const types = { context: typed<Order>(), events: typed<Tick | AuthorizationReceived>() }
const job = fromPromise<number, { dish: string }>(async ({ input }) => input.dish.length)

/** Never called, as all functions here: that it compiles, and what does not, is the test. */
export function actionsWithoutActors() {
  return [
    setupWork({
      types,
      actions: {
        note: () => {},
        read: ({ context, event }) =>
          holds<Same<[typeof context, typeof event], [Order, MessageReceived | Tick | AuthorizationReceived]>>()
      }
    }),
    setupWork({ types, actions: { add: assign({ count: ({ context }) => context.count + 1 }) } }),
    setupWork({ types, actions: { add: assign(({ context }) => ({ count: context.count + 1 })) } }),
    setupWork({
      types,
      actions: { add: assign({ count: ({ context }, by: number) => context.count + by }) }
    }).createMachine({
      context: { dish: '', count: 0 },
      entry: [
        { type: 'add', params: 1 },
        { type: 'add', params: ({ context }) => context.count }
      ],
      on: { tick: { actions: { type: 'add', params: ({ event }) => event.by } } }
    }),
    setupWork({
      types,
      actions: {
        many: enqueueActions(({ enqueue, check, context, event }) => {
          holds<Same<typeof context, Order>>()
          assertEvent(event, 'tick')
          enqueue.assign({ count: context.count + event.by })
          if (check(({ context }) => context.count > 1)) enqueue(() => {})
          enqueue.raise({ type: 'tick', by: 1 }, { delay: 10, id: 'later' })
          enqueue.cancel('later')
          enqueue.sendTo('job', { type: 'go' })
          enqueue.stopChild('job')
          enqueue.emit(progress('Now.'))
          enqueue(emit(progress('Then.')))
        }),
        withParams: enqueueActions(({ enqueue }, by: number) => enqueue.raise({ type: 'tick', by }))
      }
    }),
    setupWork({ actions: { many: enqueueActions(({ enqueue }) => enqueue.emit(progress())) } }),
    setupWork({
      types,
      actions: {
        raise: raise({ type: 'tick', by: 1 }),
        later: raise(({ context }) => ({ type: 'tick' as const, by: context.count }), { delay: 10, id: 'later' }),
        cancel: cancel('later'),
        log: log('x'),
        logs: log(({ context }) => context.dish),
        forward: forwardTo('job'),
        send: sendTo('job', { type: 'go' }),
        self: sendTo(({ self }) => self, { type: 'tick', by: 1 }),
        parent: sendParent({ type: 'up' }),
        stop: stopChild('job'),
        stops: stopChild(({ context }) => context.dish),
        emit: emit(progress('x')),
        emits: emit(({ context }) => progress(context.dish))
      }
    }),
    setupWork({
      types,
      guards: { isBig: ({ context }) => context.count > 1 },
      actions: { note: () => {}, add: assign({ count: 1 }) },
      delays: { short: 10 }
    }),
    // @ts-expect-error -- the context has no such member
    setupWork({ types, actions: { add: assign({ counts: 1 }) } }),
    // @ts-expect-error -- a chart emits words
    setupWork({ types, actions: { say: emit({ type: 'hello' }) } }),
    // @ts-expect-error -- there is no such event
    setupWork({ types, actions: { go: raise({ type: 'tock' }) } })
  ]
}

export function everyPartOfSetup() {
  const parts = setupWork({
    types: {
      ...types,
      children: typed<{ baker: 'job'; ear: 'listen' }>(),
      tags: typed<'busy'>(),
      meta: typed<{ label?: string }>()
    },
    actors: {
      job,
      listen: fromCallback<Tick, { ms: number }>(({ sendBack, input }) => {
        sendBack({ type: 'tick', by: input.ms })
      }),
      count: fromTransition((state: number) => state + 1, 0),
      watch: fromObservable<number, undefined>(() => ({ subscribe: () => ({ unsubscribe: () => {} }) }))
    },
    actions: {
      note: (_args: unknown, _words: { text: string }) => {},
      bake: spawnChild('job', { id: 'baker', input: ({ context }) => ({ dish: context.dish }) }),
      both: enqueueActions(({ enqueue }) => {
        enqueue({ type: 'note', params: { text: 'big' } })
        enqueue.spawnChild('job', { id: 'baker', input: { dish: 'soup' } })
      })
    },
    guards: {
      isBig: ({ context }) => context.count > 1,
      isOver: ({ context }, { limit }: { limit: number }) => context.count > limit,
      isEither: or(['isBig', not('isBig'), stateIn('baking')]),
      isAll: and(['isBig', { type: 'isOver', params: { limit: 3 } }])
    },
    delays: { short: 10, long: ({ context }) => context.count * 10 }
  })
  const extended = parts.extend({
    actions: { more: assign({ count: 1 }) },
    guards: { isMore: () => true },
    delays: { longer: 100 }
  })
  const baking = extended.createStateConfig({
    tags: ['busy'],
    meta: { label: 'In the oven' },
    entry: ['more', { type: 'note', params: { text: 'in' } }],
    invoke: {
      src: 'job',
      id: 'baker',
      input: ({ context }) => ({ dish: context.dish }),
      onDone: { target: 'done', actions: assign({ count: ({ event }) => event.output }) },
      onError: { actions: ({ event }) => holds<Same<typeof event.error, unknown>>() }
    },
    after: {
      short: { guard: 'isMore', actions: 'both' },
      longer: 'done',
      1000: { guard: { type: 'isOver', params: ({ context }) => ({ limit: context.count }) }, target: 'done' }
    }
  })
  const chart = extended.createMachine({
    id: 'bakery',
    context: ({ spawn, input }) => {
      spawn('listen', { id: 'ear', input: { ms: 1 } })
      return { dish: textOf(input.message), count: 0 }
    },
    initial: 'asking',
    states: {
      asking: {
        tags: ['input-required', 'busy'],
        meta: { prompt: ({ context }) => `How many of ${context.dish}?`, label: 'Asks' },
        on: {
          'message.received': [
            { guard: and(['isBig', not('isMore')]), target: 'baking' },
            { target: 'done', actions: extended.createAction(({ context }) => void context.count) }
          ],
          tick: { actions: extended.raise({ type: 'tick', by: 1 }) }
        }
      },
      baking,
      done: { id: 'done', route: {}, type: 'final' }
    },
    exit: enqueueActions(({ enqueue, check }) => {
      if (check('isBig') && check({ type: 'isOver', params: { limit: 3 } }))
        enqueue({ type: 'note', params: { text: 'big' } })
      enqueue.assign({ count: 1 })
    }),
    output: ({ context }) => ({ artifact: data(context) })
  })
  const actor: ActorRefFrom<typeof chart> = createActor(chart, { input: {} as never })
  const snapshot: SnapshotFrom<typeof chart> = actor.getSnapshot()
  holds<Same<SnapshotFrom<typeof chart>, StateFrom<typeof chart>>>()
  holds<Same<typeof snapshot.context, Order>>()
  const { baker } = snapshot.children
  holds<Same<typeof baker, ActorRefFrom<typeof job> | undefined>>()
  snapshot.hasTag('busy')
  // @ts-expect-error -- there is no such tag
  snapshot.hasTag('idle')
  actor.send({ type: 'xstate.route', to: '#done' })
  // @ts-expect-error -- the children of the chart are named
  parts.createMachine({ context: { dish: '', count: 0 }, invoke: { src: 'job', id: 'cook', input: { dish: '' } } })
  // @ts-expect-error -- the guard has params
  parts.createMachine({ context: { dish: '', count: 0 }, on: { tick: { guard: 'isOver', actions: 'both' } } })
  // @ts-expect-error -- the meta of a state is the chart's own, or the words of a question
  parts.createMachine({ context: { dish: '', count: 0 }, initial: 'a', states: { a: { meta: { name: 'x' } } } })
  // @ts-expect-error -- a child is one of the actors
  setupWork({ types: { children: {} as { baker: 'cook' } }, actors: { job } })
  return defineAgent({ card: { name: 'Bakery' }, work: chart })
}

export function chartsOfNegotiations() {
  const terms = { types: { terms: typed<{ euros: number }>(), context: typed<{ rounds: number }>() } }
  return [
    setupNegotiation({
      ...terms,
      actions: {
        count: assign({ rounds: ({ context }) => context.rounds + 1 }),
        answer: emit(({ context }) => offer({ euros: context.rounds }))
      }
    }),
    setupNegotiation({
      ...terms,
      actions: {
        both: enqueueActions(({ enqueue, context }) => {
          enqueue.assign({ rounds: context.rounds + 1 })
          enqueue.emit(offer({ euros: 1 }))
        })
      }
    })
  ]
}

const parts = [actionsWithoutActors, everyPartOfSetup, chartsOfNegotiations]
t.ok(parts, 'this file compiles, so setupWork takes what setup of XState takes')
