import t from 'tap'
import {
  and,
  assign,
  cancel,
  createActor,
  createMachine,
  emit,
  enqueueActions,
  fromCallback,
  fromPromise,
  fromTransition,
  initialTransition,
  log,
  not,
  or,
  raise,
  sendTo,
  setup,
  spawnChild,
  stateIn,
  stopChild,
  transition,
  type ActorSystem,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventObject,
  type InspectionEvent
} from 'xstate'
import { contextMachine } from '../../../machines/context.machine.ts'
import { taskMachine } from '../../../machines/task.machine.ts'
import { countInspectors, isInspected } from '../../../runtime/xstate/actor-system.ts'
import { compileMachine } from '../../../runtime/xstate/compiled-machine.ts'
import { same, type Chart } from '../../fixtures/charts/chart-paths.ts'
import { asInRuntime, sightsOf, testCompiled, WATCHES } from '../../fixtures/charts/compiled-paths.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

type OddEvent = EventObject & { n?: number }
type OddContext = { n: number; log: string[]; child?: unknown }
type Args = { context: OddContext; event: OddEvent }
type Birth = { input: { n: number }; spawn: (src: string, options: { id: string }) => unknown }

const never = fromPromise<unknown, unknown>(() => new Promise(() => {}))
const counter = fromTransition((count: number, { type }: EventObject) => (type === 'count' ? count + 1 : count), 0)

const implementations = {
  actors: {
    never,
    counter,
    echo: fromCallback<EventObject, unknown>(({ sendBack, receive, input }) =>
      receive(event => sendBack({ type: 'echoed', event, input }))
    )
  },
  guards: {
    isEven: ({ context }: { context: OddContext }) => context.n % 2 === 0,
    isAbove: ({ context }: { context: OddContext }, limit: number) => context.n > limit,
    isThrowing: ({ event }: { event: OddEvent }) => {
      if (event.n === 13) throw new Error('unlucky')
      return false
    }
  },
  actions: {
    note: assign({ log: ({ context }: { context: OddContext }, word: string) => [...context.log, word].slice(-6) }),
    add: assign(({ context }: { context: OddContext }, n: number) => ({ n: (context.n + n) % 8 })),
    custom: () => {},
    fails: () => {
      throw new Error('a broken action')
    },
    several: enqueueActions(({ enqueue, check, context }) => {
      enqueue({ type: 'add', params: 1 })
      if (check('isEven')) enqueue.emit({ type: 'even', n: context.n } as never)
      if (check(stateIn({ outer: 'a' }) as never)) enqueue.raise({ type: 'go.b' })
      enqueue('custom')
      enqueue.sendTo('spawned', { type: 'count' })
    })
  }
}

/** A chart with all that a flat chart may have, most of which our own charts do not use. */
const odd: AnyStateMachine = createMachine(
  {
    types: {} as { context: OddContext; events: OddEvent; input: { n: number } },
    id: 'odd',
    context: ({ input, spawn }: Birth) => ({ n: input.n, log: [], child: spawn('counter', { id: 'born' }) }),
    entry: [{ type: 'note', params: 'in' }, spawnChild('counter', { id: 'spawned' })],
    exit: [{ type: 'note', params: 'out' }, emit({ type: 'over' })],
    output: ({ context, event }: Args) => ({ n: context.n, event }),
    initial: 'outer',
    on: {
      '*': { actions: { type: 'custom', params: ({ event }: Args) => event.type } },
      'go.*': { actions: [{ type: 'note', params: ({ event }: Args) => event.type }] },
      'go.end': '.end',
      'go.silentEnd': '.silentEnd',
      'go.away': '.other',
      break: { actions: ['several', 'fails'] },
      unguarded: { guard: 'isThrowing', actions: 'fails' },
      unguardedWith: { guard: { type: 'isThrowing' }, actions: 'fails' },
      unguardedInline: { guard: ({ event }: Args) => implementations.guards.isThrowing({ event }), actions: 'fails' },
      lost: { actions: sendTo('nobody', { type: 'count' }) },
      wordy: { actions: sendTo('spawned', 'count') },
      place: {
        actions: enqueueActions(({ enqueue }) => {
          enqueue.spawnChild(counter, { id: () => 'placed' })
          enqueue.stopChild(({ context }: { context: Record<string, unknown> }) => context['child'] as never)
          enqueue.assign({ held: ({ context }: Args) => [{ child: context.child }, 1] })
        })
      },
      forward: { actions: [sendTo('spawned', ({ event }: Args) => ({ ...event, type: 'count' })), () => {}] },
      missing: { guard: { type: 'isMissing' }, actions: 'fails' }
    },
    states: {
      outer: {
        entry: { type: 'note', params: 'in outer' },
        exit: { type: 'note', params: 'out outer' },
        initial: 'a',
        always: { guard: ({ context }: Args) => context.n === 7, actions: { type: 'add', params: 1 } },
        on: {
          'go.b': '.b',
          'go.c': { target: '.c', reenter: true },
          again: { target: 'outer' },
          'again.reenter': { target: 'outer', reenter: true },
          'again.inner': '#odd.outer',
          more: [
            { guard: and(['isEven', not(stateIn('outer'))]), actions: 'fails' },
            { guard: and(['isEven', stateIn({ outer: 'a' })]), target: '.b', actions: { type: 'add', params: 1 } },
            {
              guard: or([{ type: 'isAbove', params: 5 }, stateIn('#deep')]),
              target: 'other',
              actions: [
                { type: 'add', params: ({ event }: Args) => event.n ?? 2 },
                { type: 'note', params: ({ context }: Args) => String(context.n) }
              ]
            },
            { actions: ['several', raise({ type: 'raised' })] }
          ]
        },
        states: {
          a: {
            tags: ['first', 'shared'],
            meta: { word: 'a' },
            entry: { type: 'note', params: 'in a' },
            on: { 'go.b': undefined, 'again.*': 'b', a: 'a', 'a.reenter': { target: 'a', reenter: true } }
          },
          b: {
            tags: 'shared',
            invoke: [
              { src: 'echo', id: 'echo', input: ({ context }: Args) => context.n },
              { src: 'counter', id: 'counting', onSnapshot: { actions: { type: 'note', params: 'counted' } } }
            ],
            entry: [sendTo('echo', { type: 'hello' }), sendTo('counting', { type: 'count' }), { type: 'custom' }],
            exit: [{ type: 'note', params: 'out b' }, stopChild('born')],
            on: {
              echoed: { actions: { type: 'note', params: 'echoed' } },
              raised: 'c',
              '*': { guard: 'isEven', actions: { type: 'note', params: 'any' } }
            }
          },
          c: {
            initial: { target: 'deep', actions: { type: 'note', params: 'first of c' } },
            meta: { word: 'c' },
            always: { guard: 'isEven', target: 'a', actions: raise({ type: 'more', n: 1 } as EventObject) },
            states: {
              deep: {
                id: 'deep',
                tags: 'deep',
                on: { up: '#odd.outer.c', 'up.reenter': { target: '#odd.outer.c', reenter: true }, end: '#odd.end' }
              }
            }
          }
        }
      },
      other: {
        invoke: { src: fromPromise(() => new Promise(() => {})), onDone: 'outer', onError: { actions: 'custom' } },
        entry: [raise({ type: 'later' }, { delay: 10, id: 'later' }), { type: 'add', params: 1 }],
        exit: cancel('later'),
        after: { 20: 'end' },
        always: { guard: ({ event }: Args) => event.type === 'idle', actions: emit({ type: 'idled' }) },
        on: { back: 'outer', 'back.deep': '#deep', later: { actions: { type: 'note', params: 'later' } } }
      },
      end: {
        type: 'final',
        tags: 'ended',
        entry: { type: 'note', params: 'end' },
        exit: { type: 'note', params: 'out end' },
        output: ({ context, event }: Args) => [context.n, event.type]
      },
      silentEnd: { type: 'final', output: 'silence' }
    }
  } as never,
  implementations as never
)

const TYPES = [
  'go.b',
  'go.c',
  'go',
  'gone',
  'go.on',
  'go.end',
  'go.silentEnd',
  'go.away',
  'again',
  'again.reenter',
  'again.inner',
  'again.other',
  'more',
  'a',
  'a.reenter',
  'echoed',
  'raised',
  'up',
  'up.reenter',
  'end',
  'back',
  'back.deep',
  'forward',
  'unknown',
  'idle',
  'xstate.init',
  'xstate.done.actor.0.odd.other',
  'xstate.error.actor.0.odd.other'
]
const FATAL: OddEvent[] = [
  { type: 'break' },
  { type: 'unguarded', n: 13 },
  { type: 'unguardedWith', n: 13 },
  { type: 'unguardedInline', n: 13 },
  { type: 'lost' },
  { type: 'wordy' },
  { type: 'missing' },
  { type: 'xstate.error.actor.echo', error: new Error('a broken child') } as OddEvent,
  { type: 'xstate.stop' }
]

const oddChart = (n: number): Chart => ({
  machine: odd,
  input: { n },
  events: () => [...TYPES.flatMap(type => [{ type }]), { type: 'more', n: 3 }, { type: 'unguarded', n: 1 }],
  memory: ({ context }) => [context.n % 2, context.n > 5]
})

await t.test('a compiled chart with every feature of a flat chart equals the original', async t => {
  await testCompiled(t, [oddChart(0)], { walks: 60, length: 10, sample: 60 })
})

await t.test(
  'a compiled actor ends like the original, and takes eventless transitions as it does; what cannot be restored stays equal',
  async t => {
    for (const event of [...FATAL, { type: 'place' }, { type: 'idle' }]) {
      for (const way of [[], ['go.c'], ['again.x'], ['go.away'], ['again.x', 'go.end'], ['more', 'more']]) {
        const walk = [...way.map(type => ({ type })), event, { type: 'more' }]
        for (const by of WATCHES)
          t.strictSame(
            sightsOf(oddChart(4), true, walk, 'never', by),
            sightsOf(oddChart(4), false, walk, 'never', by),
            [...way, event.type].join()
          )
      }
    }
  }
)

await t.test('an actor that fails to start has the same error', async t => {
  const broken = (change: object): Chart => ({
    machine: createMachine({
      id: 'broken',
      context: { n: 1 },
      tags: 'root',
      initial: 'a',
      states: { a: { tags: 'a', initial: 'b', states: { b: { tags: 'b' } } } },
      ...change
    }),
    input: {},
    events: () => [],
    memory: () => null
  })
  const fails = () => {
    throw new Error('not today')
  }
  for (const change of [
    { context: fails },
    { entry: assign(fails) },
    { entry: [assign({ n: 2 }), emit(fails)] },
    { entry: [emit({ type: 'told' }), fails, emit({ type: 'never told' })] },
    { entry: 'unknown' },
    { always: { guard: fails } },
    {}
  ]) {
    t.strictSame(sightsOf(broken(change), true, []), sightsOf(broken(change), false, []), Object.keys(change).join())
  }
})

await t.test('enqueueActions gets the same arguments, and its actions run in the same order', async t => {
  const given: unknown[] = []
  const child: AnyStateMachine = createMachine({
    context: { n: 1 },
    initial: 'a',
    states: { a: {} },
    on: {
      fail: {
        actions: enqueueActions(({ enqueue }) => {
          enqueue.emit({ type: 'told' })
          throw new Error('not today')
        })
      },
      go: {
        actions: enqueueActions(args => {
          const { enqueue, check, self } = args
          given.push([
            Object.keys(args).toSorted(),
            Object.keys(enqueue).toSorted(),
            args.context,
            args.event,
            self.id,
            args.system === self.system
          ])
          enqueue.assign({ n: 5 })
          enqueue.raise({ type: 'raised' }, { id: 'soon', delay: 10 })
          enqueue.cancel('soon')
          enqueue.spawnChild(counter, { id: 'counter' })
          enqueue.sendTo('counter', { type: 'count' })
          enqueue.stopChild('counter')
          enqueue.sendParent({ type: 'reported' })
          enqueue(enqueueActions(({ context }) => void given.push(context)))
          if (check(({ context, event }) => context['n'] === 1 && event.type === 'go')) enqueue.emit({ type: 'told' })
          enqueue(({ context }) => given.push(context))
        })
      }
    }
  })
  const parent = (logic: AnyStateMachine): Chart => ({
    machine: createMachine({
      invoke: { id: 'child', src: logic },
      on: { '*': { actions: sendTo('child', ({ event }: Args) => event) }, reported: {} }
    }),
    input: {},
    events: () => [],
    memory: () => null
  })
  const sights = [child, compileMachine(child)].map(logic =>
    sightsOf(
      parent(logic),
      false,
      ['go', 'go', 'fail', 'go'].map(type => ({ type }))
    )
  )
  t.strictSame(sights[1], sights[0])
  t.match(JSON.stringify(sights[0]), /reported/)
  t.strictSame(given.slice(given.length / 2), given.slice(0, given.length / 2))
})

await t.test('an inspector that comes within a macrostep sees the microsteps that follow, each as it was', async t => {
  const seen = [false, true].map(isCompiled => {
    const seen: unknown[] = []
    const snapshots: AnyMachineSnapshot[] = []
    const machine: AnyStateMachine = createMachine({
      context: { n: 0 },
      initial: 'a',
      states: { a: {}, b: {} },
      on: {
        look: {
          actions: [
            assign({ n: 1 }),
            (args: { system: ActorSystem<never>; spawn?: unknown }) => {
              seen.push(args.spawn)
              args.system.inspect((sight: InspectionEvent) => {
                seen.push(sight.type === '@xstate.action' ? sight.action : sight.type)
                if (sight.type === '@xstate.microstep') snapshots.push(sight.snapshot as AnyMachineSnapshot)
              })
            },
            assign({ n: 2 }),
            raise({ type: 'on' })
          ]
        },
        on: { target: '.b', actions: [assign({ n: 3 }), raise({ type: 'last' })] },
        last: { actions: assign({ n: 4 }) }
      }
    } as never)
    const actor = createActor(isCompiled ? compileMachine(machine) : machine)
    countInspectors(actor.system, 0)
    actor.start().send({ type: 'look' })
    return [...seen, ...snapshots.map(({ value, context }) => [value, context])]
  })
  t.strictSame(seen[1], seen[0])
  t.match(seen[0], [undefined, /./])
})

await t.test('a chart that ends at once, or lacks context or output, stays equal', async t => {
  const brief = (change: object): Chart => ({
    machine: createMachine({
      id: 'brief',
      initial: 'a',
      states: { a: { type: 'final', entry: emit({ type: 'hi' }) } },
      ...change
    }),
    input: {},
    events: () => [],
    memory: () => null
  })
  for (const change of [
    {},
    { output: 'constant' },
    { context: {}, output: ({ event }: { event: unknown }) => ({ event }) }
  ]) {
    t.strictSame(sightsOf(brief(change), true, [{ type: 'late' }]), sightsOf(brief(change), false, [{ type: 'late' }]))
  }
})

await t.test('the pure functions agree too, also on hand-made and final snapshots', async t => {
  const both = [odd, compileMachine(odd)] as const
  const seen = both.map(machine => {
    const [first, effects] = initialTransition(machine, { n: 1 })
    const given = machine.resolveState({ value: { outer: { c: 'deep' } }, context: { n: 3, log: [] } })
    const [second, more] = transition(machine, given, { type: 'up.reenter' })
    const [ended, last] = transition(machine, second, { type: 'go.end' })
    const [after, none] = transition(machine, ended, { type: 'go.away' })
    return JSON.stringify([
      first,
      effects.map(({ type }) => type),
      second.value,
      second.context,
      more.map(({ type }) => type),
      ended.status,
      ended.output,
      last.length,
      after.value,
      after.status,
      none.length
    ])
  })
  t.equal(seen[1], seen[0])
  t.throws(
    () =>
      compileMachine(odd).transition(
        { ...compileMachine(odd).resolveState({ value: 'other', context: { n: 1, log: [] } }), _nodes: [] },
        { type: 'go' },
        {} as never
      ),
    TypeError
  )
})

await t.test('delays pass alike', async t => {
  const seen = [odd, compileMachine(odd)].map(machine => {
    const clock = new TestClock()
    const actor = createActor(machine, { input: { n: 1 }, clock }).start()
    actor.send({ type: 'go.away' })
    clock.increment(15)
    const between = actor.getSnapshot()
    clock.increment(15)
    return JSON.stringify([between, actor.getSnapshot()])
  })
  t.equal(seen[1], seen[0])
})

await t.test('an event without effect keeps the same snapshot object, whatever is sent and emitted', async t => {
  for (const machine of [odd, compileMachine(odd)]) {
    const actor = createActor(machine, { input: { n: 1 } }).start()
    for (const type of ['unknown', 'go.b', 'xstate.done.actor.nobody', 'forward']) {
      const before = actor.getSnapshot()
      actor.send({ type })
      t.equal(actor.getSnapshot(), before, type)
    }
  }
})

await t.test('an actor with a system id makes room for the next one of that id', async t => {
  const named: Chart = {
    machine: createMachine({
      initial: 'a',
      states: { a: { invoke: { src: never, systemId: 'named' }, on: { x: { target: 'a', reenter: true } } } }
    }),
    input: {},
    events: () => [],
    memory: () => null
  }
  const walk = [{ type: 'x' }, { type: 'x' }]
  t.strictSame(sightsOf(named, true, walk), sightsOf(named, false, walk))
})

await t.test('an actor with onSnapshot stays equal, also by its system id', async t => {
  const told: Chart = {
    machine: createMachine(
      {
        initial: 'a',
        states: {
          a: {
            invoke: { src: 'counter', id: 'counter', systemId: 'counted', onSnapshot: {} },
            on: { count: { actions: sendTo('counter', { type: 'count' }) } }
          }
        }
      },
      { actors: { counter } }
    ),
    input: {},
    events: () => [],
    memory: () => null
  }
  const walk = [{ type: 'count' }, { type: 'count' }]
  t.strictSame(sightsOf(told, true, walk), sightsOf(told, false, walk))
})

await t.test(
  'a compiled chart is logic that createActor of XState runs by itself, for which five functions suffice',
  async t => {
    const { getInitialSnapshot, transition, getPersistedSnapshot, restoreSnapshot, start }: AnyStateMachine =
      compileMachine(odd)
    const logic = { getInitialSnapshot, transition, getPersistedSnapshot, restoreSnapshot, start } as AnyStateMachine
    const seen = [odd, logic].map(logic => {
      const told: unknown[] = []
      let text: string | undefined
      for (const walk of [['go.b', 'more'], ['go.c', 'more', 'forward'], ['go.away'], ['back'], ['go.end']]) {
        const snapshot: unknown = text && JSON.parse(text)
        const actor = createActor(logic, { input: { n: 1 }, ...(snapshot ? { snapshot } : {}) } as object)
        actor.on('*', word => told.push(word))
        actor.start()
        for (const type of walk) actor.send({ type })
        text = JSON.stringify(actor.getPersistedSnapshot())
        told.push(text)
        actor.stop()
      }
      return told
    })
    t.strictSame(seen[1], seen[0])
  }
)

await t.test('the first actions of a compiled chart run when its actor starts, as those of the chart', async t => {
  const child: AnyStateMachine = createMachine({ initial: 'a', states: { a: { entry: log('started') } } })
  const seen = [child, asInRuntime(compileMachine(child))].map(logic => {
    const told: unknown[] = []
    const parent = setup({ actors: { child: logic } }).createMachine({
      on: { go: { actions: [spawnChild('child'), () => void told.push('spawned')] } }
    })
    const actor = createActor(parent, { logger: (...words: unknown[]) => void told.push(words.at(-1)) })
    countInspectors(actor.system, 0)
    actor.start().send({ type: 'go' })
    return told
  })
  t.strictSame(seen, [
    ['spawned', 'started'],
    ['spawned', 'started']
  ])
})

await t.test('a compiled chart reports to inspectors while there is one', async t => {
  const actor = createActor(compileMachine(odd), { input: { n: 1 } })
  const { system } = actor
  t.ok(isInspected(system), 'nobody counts')
  countInspectors(system, 0)
  t.notOk(isInspected(system))
  const seen: string[] = []
  actor.start()
  const [one, two] = [1, 2].map(() => system.inspect(({ type }) => void seen.push(type)))
  actor.send({ type: 'go.b' })
  t.equal(seen.filter(type => type === '@xstate.microstep').length, 2, 'one, to two')
  one?.unsubscribe()
  one?.unsubscribe()
  t.ok(isInspected(system), 'one is left')
  two?.unsubscribe()
  t.notOk(isInspected(system))
})

await t.test('a chart that is not flat is returned unchanged', async t => {
  const state = { initial: 'a', states: { a: {}, b: {} } }
  const charts: Record<string, object> = {
    'without states': {},
    parallel: { type: 'parallel', states: { a: {}, b: {} } },
    'parallel inside': { initial: 'a', states: { a: { type: 'parallel', states: { b: {} } } } },
    history: { initial: 'a', states: { a: { initial: 'b', states: { b: {}, h: { type: 'history' } } } } },
    'an end inside a state': { initial: 'a', states: { a: { initial: 'b', states: { b: { type: 'final' } } } } },
    'two targets': { initial: 'a', states: { a: { on: { x: ['b', { target: ['a', 'b'] }] } }, b: {} } },
    'its root as a target': { ...state, id: 'all', on: { x: '#all' } },
    'a root that is entered again': { ...state, on: { x: { target: '.b', reenter: true } } },
    'a wildcard inside a wildcard': { ...state, on: { 'x.*.*': '.b' } }
  }
  for (const [name, config] of Object.entries(charts)) {
    const machine: AnyStateMachine = createMachine(config)
    t.equal(compileMachine(machine), machine, name)
  }
  t.not(compileMachine(createMachine(state)), createMachine(state))
})

await t.test('compiled tasks in a compiled context equal the originals in events and snapshots', async t => {
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'a boat' }] }
  const task = taskMachine.provide({ actors: { work: never as never } })
  const chartOf = (logic: typeof task): Chart => ({
    machine: contextMachine.provide({ actors: { task: logic, negotiation: never as never } }),
    input: { contextId: 'c', negotiates: false, taskLimit: 2 },
    events: () => [],
    memory: () => null
  })
  const ids = ['t1', 't2', 't3']
  const events: EventObject[] = ids.flatMap(taskId => [
    { type: 'request.received', request: { callId: `call ${taskId}`, taskId, message } },
    { type: 'task.start', taskId, input: 'draw' },
    { type: 'task.cancel', taskId },
    { type: 'task.fail', taskId, message: { parts: [] } },
    { type: 'message.received', taskId, message }
  ])
  const starts = events.flatMap((_, first) => [1, 2, 3, 4, 5, 6, 7].map(stride => ({ first, stride })))
  const walks = starts.map(({ first, stride }) =>
    Array.from({ length: 9 }, (_, i) => events[(first + i * stride) % events.length] as EventObject)
  )
  for (const restoring of ['never', 'from its own text'] as const) {
    same(
      t,
      walks.map(walk => ({
        name: walk.map(({ type }) => type).join(', '),
        found: WATCHES.map(by => sightsOf(chartOf(compileMachine(task)), true, walk, restoring, by)),
        wanted: WATCHES.map(by => sightsOf(chartOf(task), false, walk, restoring, by))
      }))
    )
  }
})
