import { join } from 'node:path'
import t from 'tap'
import {
  and,
  assign,
  enqueueActions,
  fromPromise,
  not,
  or,
  raise,
  setup,
  type AnyActorLogic,
  type AnyStateMachine
} from 'xstate'
import { z } from 'zod'
import { diffAgents } from '../../../../adapters/testing/diff/agent-diff.ts'
import { readLocalModules } from '../../../../adapters/testing/diff/local-modules.ts'
import { chartChanges } from '../../../../adapters/testing/diff/chart-changes.ts'
import { namesSince, partsOf } from '../../../../runtime/work-port.ts'
import { activeStateIds } from '../../../../adapters/testing/diff/verdict-words.ts'
import { ChartVerdicts, type Surroundings } from '../../../../adapters/testing/diff/verdicts.ts'
import { defineAgent } from '../../../../runtime/index.ts'
import { writtenChart } from '../../../../runtime/xstate/written-chart.ts'

const AROUND: Surroundings = {
  isSameVersion: true,
  isMigrated: false,
  mayRestart: false,
  options: [],
  modules: []
}

type Code = Record<string, unknown>

/** A chart with these states, and code by its names. */
function chart(states: object, given: Code = {}, code: Code = {}): AnyStateMachine {
  const made = setup(code as object).createMachine({
    id: 'a',
    initial: Object.keys(states)[0],
    states,
    ...given
  } as never)
  return made as unknown as AnyStateMachine
}

/** The verdicts, by state. */
function verdicts(before: AnyStateMachine, after: AnyStateMachine, around: Partial<Surroundings> = {}) {
  const found = new ChartVerdicts(partsOf(before), partsOf(after), { ...AROUND, ...around }).all
  return Object.fromEntries(found.map(one => [JSON.stringify(one.state).replaceAll('"', ''), one]))
}

/** The verdicts in short. */
function short(before: AnyStateMachine, after: AnyStateMachine, around: Partial<Surroundings> = {}) {
  return Object.entries(verdicts(before, after, around)).map(([state, { verdict }]) => `${state}: ${verdict}`)
}

/** The changes in words. */
const changes = (before: AnyStateMachine, after: AnyStateMachine) =>
  chartChanges(partsOf(before), partsOf(after)).changes.map(({ says }) => says)

const END = { type: 'final' } as const

await t.test('every part of a chart is compared, in words', t => {
  const old = chart(
    {
      a: {
        tags: 'x',
        entry: 'one',
        on: { GO: { target: 'b', guard: 'isA', actions: 'one' }, STAY: { actions: 'one' }, GONE: 'b' },
        after: { late: 'b', 10: { actions: 'one' } },
        invoke: { src: 'first' }
      },
      b: { exit: 'one', initial: 'c', onDone: 'd', states: { c: { always: 'e' }, e: END } },
      d: END
    },
    {},
    {
      actions: { one: () => {}, away: () => 3 },
      guards: { isA: () => true },
      delays: { late: 10, gone: 1 },
      actors: { first: fromPromise(async () => 1), other: fromPromise(async () => 2) }
    }
  )
  const next = chart(
    {
      a: {
        tags: ['x', 'y'],
        on: {
          GO: { target: 'b', actions: ['one', 'two'] },
          STAY: { target: 'a', actions: 'one', reenter: true },
          NEW: { actions: 'two' }
        },
        after: { later: 'b', 10: { actions: 'one' } },
        invoke: { src: 'first', id: 'my-first' }
      },
      b: { initial: 'e', onDone: 'd', states: { c: { always: { target: 'e', guard: () => true } }, e: END } },
      d: { type: 'history' }
    },
    {},
    {
      actions: { one: () => {}, two: () => 2 },
      guards: {},
      delays: { late: 20, later: 3 },
      actors: { first: fromPromise(async () => 1), another: fromPromise(async () => 2) }
    }
  )
  t.strictSame(changes(old, next), [
    'a: its tags is x, y instead of x',
    'a: its entry is none instead of one',
    'a no longer invokes first',
    'a invokes first as my-first, which is new there',
    'a on GO: its guard is none instead of isA',
    'a on GO: its actions are one, two instead of one',
    'a on STAY: it leads to a, and before it stays',
    'a on STAY: it enters its state again',
    'a no longer has "GONE → b"',
    'a on after late: the timer is later instead of late',
    'a has "NEW stays", which is new',
    'b: its initial state is e instead of c',
    'b: its exit is none instead of one',
    'b.c on its own: its guard is a condition instead of none',
    'd: its type is history instead of final',
    'the actor other is now named another',
    'the guard isA is gone',
    'the action away is gone',
    'the action two is new',
    'the delay gone is gone',
    'the delay later is new',
    'the source of the delay late has changed'
  ])
  t.ok(changes(next, old).includes('a on STAY: it no longer enters its state again'))
  t.ok(changes(next, old).includes('a on STAY: it stays, and before it leads to a'))
  t.strictSame(changes(old, old), [])
  t.end()
})

await t.test('questions are compared by prompt, schema and kind', t => {
  const ask = (meta: object, tags = 'input-required') =>
    chart({ a: { tags, meta, on: { 'message.received': 'b', 'authorization.received': 'b' } }, b: END })
  const [size, count] = [z.enum(['small', 'large']), z.number()]
  const opaque = { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }) } }
  t.strictSame(short(ask({ prompt: 'A?', schema: size }), ask({ prompt: 'A?', schema: z.enum(['small', 'large']) })), [
    'a: same'
  ])
  t.match(verdicts(ask({ schema: size }), ask({ schema: count }))['a'], {
    verdict: 'other answer',
    reasons: [
      /^a asks for another form: \{"type":"string","enum":\["small","large"\]\} before, \{"type":"number"\} now$/
    ]
  })
  t.match(verdicts(ask({ schema: size }), ask({}, 'auth-required'))['a'], { reasons: [/now$/, 'a has changed'] })
  t.match(
    verdicts(ask({ schema: opaque }), ask({}, 'auth-required'))['a']?.reasons[0],
    'a asks for another form: a schema without JSON before, any answer, out of band now'
  )
  t.match(verdicts(ask({ prompt: 'A?' }), ask({ prompt: 'A?' }, 'x'))['a'], {
    verdict: 'other answer',
    reasons: ['a no longer asks', 'a has changed']
  })
  t.strictSame(short(ask({ prompt: 'A?' }), ask({ prompt: 'B?' })), ['a: otherwise'])
  t.strictSame(short(ask({ prompt: () => 'A?' }), ask({ prompt: () => 'B?' })), ['a: depends'])
  t.strictSame(changes(ask({ prompt: 'A?', schema: opaque }), ask({ prompt: () => 'B?' }, 'auth-required')), [
    'a: its tags is auth-required instead of input-required',
    'a: the form of its answer is any answer, out of band instead of a schema without JSON',
    'a: its prompt is a function instead of "A?"'
  ])
  t.strictSame(short(ask({ schema: size.refine(() => true) }), ask({ schema: size.refine(() => false) })), [
    'a: depends'
  ])
  t.end()
})

await t.test('guards that are combined, and code that names other code, are followed', t => {
  const states = (guard: unknown) => ({
    a: { on: { GO: [{ guard, target: 'b' }, { guard: 'isC', target: 'a' }, 'c'] } },
    b: END,
    c: END
  })
  const code = (isB: () => boolean) => ({ guards: { isA: () => true, isB, isC: () => true } })
  const [yes, no] = [() => true, () => false]
  for (const guard of [and(['isA', 'isB']), or(['isB', not('isA')]), not('isB')])
    t.strictSame(short(chart(states(guard), {}, code(yes)), chart(states(guard), {}, code(no))), ['a: depends'])
  const enqueued = (isB: () => boolean) =>
    chart(
      {
        a: {
          entry: enqueueActions(({ check, enqueue }) => {
            if (check('isB')) enqueue('x')
          }),
          on: { GO: 'a' }
        }
      },
      {},
      code(isB)
    )
  t.strictSame(short(enqueued(yes), enqueued(no)), ['a: depends'])
  const { depends } = verdicts(chart(states('isB'), {}, code(yes)), chart(states('isB'), {}, code(no)))['a'] ?? {}
  t.match(depends, [
    { ways: { places: ['a on GO: b if it holds, else the next, if isC: a'], holds: ['b'], fails: ['c'] } }
  ])
  const inline = (guard: () => boolean) =>
    chart({ a: { always: { guard, target: 'b' }, on: { X: { guard } } }, b: END })
  const found = verdicts(
    inline(() => true),
    inline(() => false)
  )['a']
  t.match(
    found?.depends.map(({ says, ways }) => [says, ways?.places]),
    [
      ['the condition of a on X, whose source changed', ['a on X: it stays if it holds, else nothing']],
      ['the condition of a on its own, whose source changed', ['a on its own: b if it holds, else nothing']]
    ]
  )
  const named = (one: () => boolean, other: () => boolean) =>
    chart({ a: { on: { GO: [{ guard: and([one, other]), target: 'b' }] } }, b: END })
  t.strictSame(
    short(
      named(
        () => true,
        () => true
      ),
      named(
        () => true,
        () => false
      )
    ),
    ['a: depends']
  )
  function isOld() {
    return true
  }
  t.match(
    verdicts(
      chart({ a: { on: { GO: { guard: isOld, target: 'b' } } }, b: END }),
      chart({ a: { on: { GO: { guard: () => false, target: 'b' } } }, b: END })
    )['a']?.depends,
    [{ says: 'the condition isOld of a on GO, which is written otherwise' }]
  )
  t.end()
})

await t.test('an actor that may run has to be there, and code that starts actors may start all', t => {
  const spawning = (actors: Record<string, AnyActorLogic>) =>
    chart(
      {
        a: {
          entry: assign({ child: ({ spawn }: { spawn: (name: string) => unknown }) => spawn('one') }),
          on: { GO: 'a' }
        }
      },
      {},
      { actors }
    )
  const [one, two] = [fromPromise(async () => 1), fromPromise(async () => 2)]
  t.strictSame(short(spawning({ one, two }), spawning({ one, two: fromPromise(async () => 3) })), ['a: depends'])
  t.match(verdicts(spawning({ one, two }), spawning({ one }))['a']?.depends, [{ says: 'the actor two, which is gone' }])
  const invoking = (src: unknown) =>
    chart({ a: { invoke: { src, onDone: 'b' } }, b: END }, {}, { actors: { one, two } })
  t.strictSame(
    short(invoking('one'), invoking('two')),
    ['a: otherwise'],
    'the stored actor goes on with the logic that it has'
  )
  t.strictSame(short(invoking(one), invoking(fromPromise(async () => 4))), ['a: depends'])
  t.strictSame(short(invoking('one'), invoking('none')), ['a: otherwise'])
  t.strictSame(short(invoking('one'), chart({ a: { invoke: { src: 'one', onDone: 'b' } }, b: END })), ['a: depends'])
  t.end()
})

await t.test('history, regions, wildcards, routes and raised events are followed', t => {
  const states = (more: object, end: object = END) => ({
    a: {
      initial: 'one',
      states: { one: { on: { NEXT: 'two' } }, two: {}, back: { type: 'history', target: 'one' } },
      on: { 'OUT.*': 'b', '*': 'c' }
    },
    b: { entry: raise({ type: 'X' }), on: { BACK: 'a.back', X: 'c' } },
    c: {
      type: 'parallel',
      states: {
        x: { initial: 'p', states: { p: { on: { P: 'q' } }, q: END } },
        y: { initial: 'p', states: { p: { after: { 5: 'q' } }, q: end } }
      },
      onDone: 'd'
    },
    d: { route: { guard: () => true, actions: raise({ type: 'Y' }) }, ...more }
  })
  const old = chart(states({ type: 'final' }))
  t.strictSame(
    short(old, old).filter(line => !line.endsWith(': same')),
    []
  )
  t.ok(verdicts(old, old)['b']?.history, 'a configuration has its history')
  t.ok(short(old, chart(states({}))).every(line => line.endsWith(': never ends')))
  t.ok(
    short(
      old,
      chart({
        ...states({ type: 'final' }),
        a: { initial: 'one', states: { one: {}, back: { type: 'history' } }, on: { '*': 'c', 'OUT.*': 'b' } }
      })
    ).includes('b: not restored'),
    'a state to which its history leads is gone'
  )
  const regions = chart(
    { x: { initial: 'p', states: { p: { on: { P: 'q' } }, q: END } } },
    { type: 'parallel', initial: undefined }
  )
  t.match(
    verdicts(
      regions,
      chart(
        { x: { initial: 'p', states: { p: { on: { P: 'p' } }, q: END } } },
        { type: 'parallel', initial: undefined }
      )
    ),
    { '{x:p}': { verdict: 'never ends', endings: { removed: ['all regions are done'] } } }
  )
  t.end()
})

await t.test('without the same version a timer that has fired may start again', t => {
  const timer = (after: object, states: object = {}) => chart({ a: { after, on: { GO: 'b' }, ...states }, b: END })
  const line = ['"after 10 ms" of a starts again if it has fired: the version differs']
  for (const after of [
    { 10: { actions: () => {} } },
    { 10: { guard: () => true, target: 'b' } },
    { 10: { target: '.c' } }
  ])
    t.match(
      verdicts(
        timer(after, { initial: 'd', states: { c: {}, d: {} } }),
        timer(after, { initial: 'd', states: { c: {}, d: {} } }),
        { isSameVersion: false }
      ),
      { '{a:d}': { verdict: 'otherwise', reasons: line } }
    )
  t.strictSame(short(timer({ 10: 'b' }), timer({ 10: 'b' }), { isSameVersion: false }), ['a: same'])
  t.strictSame(short(timer({ 10: 'b' }), timer({ 20: 'b' }), { isSameVersion: false }), ['a: otherwise'])
  t.end()
})

await t.test('a migration, a restart, an option and a module decide too', t => {
  const old = chart({ a: { on: { GO: 'b' } }, b: { on: { GO: 'c' } }, c: END }, { context: () => ({ n: 1 }) })
  const next = chart({ x: { on: { GO: 'b' } }, b: { on: { GO: 'c' } }, c: END }, { context: () => ({ n: 2 }) })
  t.match(verdicts(old, next, { isMigrated: true }), {
    a: { verdict: 'depends', reasons: ['without migrate it could not be restored: the chart has no state a.a'] },
    b: { verdict: 'depends', reasons: [], depends: [{ kind: 'migrate' }] }
  })
  t.strictSame(short(old, next, { mayRestart: true }), ['a: not restored', 'b: otherwise'])
  const context = chart({ a: { on: { GO: 'b' } }, b: { on: { GO: 'c' } }, c: END }, { context: () => ({ n: 2 }) })
  t.strictSame(short(old, context), ['a: same', 'b: same'])
  t.strictSame(short(old, context, { mayRestart: true }), ['a: depends', 'b: depends'])
  t.match(short(old, old, { options: ['the agent waits'] }), ['a: otherwise', 'b: otherwise'])
  t.match(short(old, old, { modules: [{ kind: 'module', name: 'x', says: 'x' }] }), ['a: depends', 'b: depends'])
  const hidden = chart({ a: { on: { GO: { guard: 'isA', target: 'b' } } }, b: END }, {}, { guards: { isA: Math.max } })
  t.match(verdicts(hidden, hidden)['a'], {
    verdict: 'depends',
    depends: [{ says: 'the guard isA, whose source cannot be read' }]
  })
  t.end()
})

await t.test('eventless ways in circles end, and what cannot be followed is unknown', t => {
  const circle = chart({
    a: { on: { GO: 'b' } },
    b: { always: [{ guard: () => true, target: 'c' }, 'd'] },
    c: { always: 'b' },
    d: END
  })
  t.strictSame(short(circle, circle), ['a: same'])
  const endless = chart({ a: { on: { GO: 'b', END: 'd' } }, b: { always: 'c' }, c: { always: 'b' }, d: END })
  t.strictSame(short(endless, endless), ['a: same'])
  const regions = (always: object) => ({
    p: {
      type: 'parallel',
      states: { x: { initial: 'b', states: { b: { always }, c: { always: 'b' } } } },
      on: { GO: 'd' }
    },
    d: END
  })
  const wild = [{ guard: () => true, target: 'c' }]
  t.strictSame(
    short(chart({ a: { on: { GO: 'p' } }, ...regions(wild) }), chart({ a: { on: { GO: 'p' } }, ...regions(wild) })),
    ['a: unknown']
  )
  const atOnce = chart(regions(wild))
  t.match(new ChartVerdicts(partsOf(atOnce), partsOf(atOnce), AROUND).all, [{ verdict: 'unknown', state: 'any state' }])
  const two = [
    { guard: () => true, target: 'c' },
    { guard: () => false, target: 'a', reenter: true }
  ]
  t.match(
    short(
      chart({ z: { on: { GO: 'a' } }, a: { always: two }, c: { always: two } }),
      chart({ z: { on: { GO: 'a' } }, a: { always: two }, c: { always: two } })
    ).at(0),
    /^z: /
  )
  t.end()
})

await t.test('at most so many configurations and combinations of guards are followed', t => {
  const long = chart(
    Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`s${i}`, { on: { GO: `s${(i + 1) % 9}` } }]))
  )
  const cut = new ChartVerdicts(partsOf(long), partsOf(long), AROUND, 4)
  t.ok(cut.all.every(({ verdict }) => verdict === 'unknown'))
  t.match(cut.at('s8'), { state: 's8', verdict: 'unknown', reasons: [/more configurations than are followed/] })
  const whole = new ChartVerdicts(partsOf(long), partsOf(long), AROUND)
  t.equal(whole.at('s8'), whole.at('s8'), 'a verdict is made once')
  t.match(whole.at('nowhere'), { verdict: 'unknown', reasons: [/does not come to this configuration/] })
  const regions = Object.fromEntries(
    Array.from({ length: 11 }, (_, i) => [
      `r${i}`,
      { initial: 'a', states: { a: { on: { GO: { guard: () => true, target: 'b' } } }, b: {} } }
    ])
  )
  const wide = chart(regions, { type: 'parallel', initial: undefined })
  t.match(new ChartVerdicts(partsOf(wide), partsOf(wide), AROUND).all, [{ verdict: 'unknown' }])
  t.end()
})

await t.test('an initial state that goes, and an actor without a name, are said', t => {
  const old = chart({
    a: { initial: 'b', states: { b: {}, c: {} } },
    d: { invoke: { src: fromPromise(async () => 1) } }
  })
  const next = chart({ a: { initial: 'c', states: { c: {} } }, d: {} })
  t.strictSame(changes(old, next), [
    'the state a.b is gone',
    'a: its initial state is c instead of b',
    'd no longer invokes 0.a.d'
  ])
  t.end()
})

await t.test('agents are compared with their options and local modules', async t => {
  const work = chart({ a: { tags: 'input-required', on: { 'message.received': 'b' } }, b: END })
  const agent = (more: object = {}) => defineAgent({ card: { name: 'A', version: '1' }, work: work as never, ...more })
  const folder = t.testdir({
    one: { 'agent.jsx': "import './price.js'\n<p>it's</p>", 'price.js': 'export default 1' },
    two: { 'agent.jsx': "import './price.js'\n<p>it's</p>", 'price.js': 'export default 2' },
    three: { 'agent.jsx': "import './price.js'\n<p>it's</p>" }
  })
  const side = (place: string, given = agent()) => ({
    agent: given,
    localModules: () => readLocalModules(join(folder, place, 'agent.jsx'))
  })
  const same = diffAgents(side('one'), side('one'))
  t.match([same.notSeen[0], same.charts[0]?.configurations], ['packages', [{ verdict: 'same' }]])
  t.match(diffAgents(side('one'), side('two')), {
    changes: [{ says: 'the local module price.js has changed' }],
    charts: [{ configurations: [{ verdict: 'depends' }] }]
  })
  t.match(diffAgents(side('one'), side('three')).changes, [
    { part: 'module', change: 'removed', says: 'the local module price.js is gone' }
  ])
  const restarts = agent({ restart: 'transient' })
  t.match(
    diffAgents(side('one', restarts), side('one', agent({ restart: 'transient', input: z.string() }))).charts[0]
      ?.configurations,
    [{ verdict: 'otherwise', reasons: ["the agent's input has changed"] }]
  )
  const run = async () => {}
  t.match(diffAgents(side('one', agent({ work: run })), side('two', agent({ work: run }))).work, {
    verdict: 'depends',
    reasons: ['the local module price.js has changed', /journal/]
  })
  t.match(diffAgents(side('one', restarts), side('one')).changes, [
    { name: 'restart', change: 'changed', before: /transient/ }
  ])
  const renamed = {
    version: '2',
    work: chart({ c: { tags: 'input-required', on: { 'message.received': 'b' } }, b: END })
  }
  const verdict = (given: object) =>
    diffAgents(side('one'), side('one', agent(given))).charts[0]?.configurations[0]?.verdict
  t.equal(verdict(renamed), 'not restored')
  t.equal(verdict({ ...renamed, earlier: { '0': work } }), 'not restored', 'work of another version is not for them')
  t.match(diffAgents(side('one'), side('one', agent({ ...renamed, earlier: { '1': work } }))), {
    versions: { before: '1', after: '2' },
    compared: { 3: /earlier keeps for version 1/ },
    charts: [{ configurations: [{ state: 'a', verdict: 'same' }] }]
  })
  t.end()
})

await t.test('states that are left at once, and history, decide too', t => {
  const through = (back: object) => chart({ a: { on: { GO: 'b' } }, b: back, c: END, d: END })
  t.strictSame(short(through({ always: 'c' }), through({ always: 'd' })), ['a: otherwise'])
  t.strictSame(short(through({ always: 'c' }), through({ type: 'final' })), ['a: otherwise'])
  t.strictSame(short(through({ always: 'c', exit: () => 1 }), through({ always: 'c', exit: () => 2 })), ['a: depends'])
  const past = (history: object) =>
    chart({
      a: { on: { GO: 'b.past' } },
      b: { initial: 'one', states: { one: {}, two: {}, past: { type: 'history', ...history } } }
    })
  t.strictSame(short(past({}), past({})), ['a: same', '{b:one}: same'])
  t.match(short(past({}), past({ history: 'deep' })), ['a: otherwise', '{b:one}: otherwise'])
  t.match(short(past({}), past({ target: 'two' })), ['a: otherwise'])
  t.end()
})

await t.test('what an agent has renamed is compared under its new name', async t => {
  const folder = t.testdir({ 'agent.mjs': '' })
  const never = fromPromise(async () => 1)
  const inner = chart({ x: { on: { GO: 'y' } }, y: END })
  const sideOf = (work: AnyStateMachine, version: string, more: object = {}) => ({
    agent: defineAgent({ card: { name: 'A' }, version, work, ...more }),
    localModules: () => readLocalModules(join(folder, 'agent.mjs'))
  })
  const before = chart(
    { a: { invoke: { src: 'one', id: 'child' }, on: { GO: 'b' } }, b: { invoke: { src: 'two' }, onDone: 'c' }, c: END },
    {},
    { actors: { one: inner, two: never } }
  )
  const after = chart(
    {
      first: { invoke: { src: 'uno', id: 'kind' }, entry: 'more', on: { GO: 'b', STOP: 'c' } },
      b: { invoke: { src: 'due' }, onDone: 'c' },
      c: END
    },
    {},
    { actors: { uno: chart({ x: { on: { GO: 'y' } }, z: {}, y: END }), due: never }, actions: { more: () => 1 } }
  )
  const renamed = { states: { a: 'first' }, actors: { one: 'uno', child: 'kind', two: 'due' } }
  const { charts } = diffAgents(sideOf(before, '1'), sideOf(after, '2', { renamed }))
  t.strictSame(
    charts.map(({ chart, changes }) => [chart, changes.map(({ says }) => says)]),
    [
      [
        'work',
        [
          'the state a is now named first',
          'first: its entry is more instead of none',
          'first has "STOP → c", which is new',
          'the actor one is now named uno',
          'the actor two is now named due',
          'the source of the actor one has changed',
          'the action more is new'
        ]
      ],
      ['child:one', ['the state z is new']]
    ]
  )
  t.strictSame(
    charts[0]?.configurations.map(({ state, verdict }) => [state, verdict]),
    [
      ['a', 'otherwise'],
      ['b', 'same']
    ]
  )
  t.strictSame(charts[0]?.marks.states.get('a.a'), 'a.first')
})

await t.test('two regions that would become one are not restored', t => {
  const parallel = (...names: readonly string[]) =>
    chart({
      p: {
        type: 'parallel',
        states: Object.fromEntries(names.map(name => [name, { initial: 'x', states: { x: {} } }]))
      }
    })
  const [before, after] = [parallel('a', 'b'), parallel('b', 'c')]
  const names = namesSince('1', { version: '2', work: after, renamed: { '1': { states: { 'p.a': 'p.b' } } } })
  const found = new ChartVerdicts(partsOf(before), partsOf(after, undefined, names), {
    ...AROUND,
    isSameVersion: false,
    names
  }).all
  t.match(found, [
    {
      verdict: 'not restored',
      reasons: ['This task cannot be resumed with the present agent: two of its active states are named p.b now.']
    }
  ])
  t.end()
})

await t.test('the error of an actor is an ending if all of its transitions have guards', t => {
  const [pay, isShort] = [fromPromise(async () => {}), () => true]
  const paying = (onError: unknown, guard: () => boolean = isShort) =>
    chart(
      {
        a: {
          invoke: [
            { src: 'pay', id: 'payment', onDone: 'b', onError },
            { src: 'pay', id: 'tip', onDone: 'b', onError: 'c' }
          ]
        },
        b: END,
        c: END
      },
      {},
      { actors: { pay }, guards: { isShort: guard } }
    )
  const guarded = paying({ guard: 'isShort', target: 'c' })
  const { a: added } = verdicts(paying('c'), guarded)
  t.strictSame([added?.verdict, added?.endings], ['otherwise', { added: ['the failure of pay'], removed: [] }])
  const { a: changed } = verdicts(
    guarded,
    paying({ guard: 'isShort', target: 'c' }, () => false)
  )
  t.equal(changed?.verdict, 'depends')
  t.strictSame(changed?.depends[0]?.ways?.holds, ['b', 'c'])
  t.strictSame(changed?.depends[0]?.ways?.fails, ['b', 'c', 'the failure of pay'])
  t.end()
})

await t.test('of a stored state, what the chart has is active', t => {
  const { root } = writtenChart(chart({ b: { initial: 'c', states: { c: {} } } }))
  t.strictSame(activeStateIds(root, { b: 'c' }), ['a', 'a.b', 'a.b.c'])
  t.strictSame(activeStateIds(root, { b: 'gone' }), ['a', 'a.b'])
  t.strictSame(activeStateIds(root, undefined), [])
  t.end()
})
