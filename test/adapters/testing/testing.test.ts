import t from 'tap'
import { z } from 'zod'
import { and, assign, createMachine, emit, fromCallback, fromPromise, not, setup } from 'xstate'
import { SQLITE_PACKAGE } from '../../../adapters/storage/driver.ts'
import { agentTests, type AgentTestOptions, explainFailure } from '../../../adapters/testing/agent-tests.ts'
import { CoverageLog } from '../../../adapters/testing/coverage.ts'
import { chartMermaid } from '../../../adapters/drawing/mermaid.ts'
import { chartOf, planFor, type Path, planWith } from '../../../adapters/testing/plan/plan.ts'
import { testAgent, type Cases } from '../../../adapters/testing/index.ts'
import { VirtualClock } from '../../../adapters/testing/run/virtual-clock.ts'
import { type PathKind, guardBorders } from '../../../adapters/testing/plan/cases.ts'
import { payloadsAt, payloadsFor } from '../../../adapters/testing/plan/payloads.ts'
import { madeCases } from '../../../adapters/testing/plan/made-cases.ts'
import { walkChart } from '../../../adapters/testing/run/chart-run.ts'
import { allDrivers, availableDrivers, type Driver } from '../../../adapters/testing/run/drivers.ts'
import { walk } from '../../../adapters/testing/run/path-run.ts'
import { ScriptedWork } from '../../../adapters/testing/run/scripted-work.ts'
import { StubActors } from '../../../adapters/testing/run/stub-actors.ts'
import countdown from '../../../examples/countdown.ts'
import {
  accepted,
  dataOf,
  artifact,
  defineAgent,
  negotiation,
  offer,
  progress,
  reply,
  setupWork,
  text,
  textOf,
  typed,
  type AgentDefinition,
  type AuthorizationReceived
} from '../../../runtime/index.ts'
import { cases, everything } from '../../fixtures/charts/chart-with-everything.ts'
import { rejection } from '../../fixtures/runtime/runtime-helpers.ts'
import { someWalks } from '../../fixtures/charts/some-walks.ts'
import { NO_SQLITE } from '../../fixtures/stores/sqlite.ts'

const card = { name: 'Tested' }
const at = { reach: 'in process', interlude: 'none' } as const

function agentWith(work: AgentDefinition['work'], more: Partial<AgentDefinition> = {}) {
  return defineAgent({ card, ...(work && { work }), ...more })
}

const inProcess = [
  'the chart',
  'the chart, restored from JSON before every step',
  'in process',
  'in process, restarted before every step',
  'in process, killed before every step'
] as const
const overWire = [
  'over WebSocket',
  'over WebSocket, killed before every step',
  'over JSON-RPC',
  'over JSON-RPC, with the official client',
  'over REST, with the official client'
] as const

await t.test('every path of a complete chart is walked with every driver, with full coverage', async t => {
  const { states, transitions, tags, guards } = await testAgent(someWalks(t), agentWith(everything), {
    cases,
    drivers: inProcess
  })
  t.strictSame([states.missing, transitions.missing, tags.missing, guards.missing], [[], [], [], []])
  t.match(
    { states, transitions, tags, guards },
    {
      states: { total: 10, reached: 10 },
      transitions: { total: 10, reached: 10 },
      tags: { total: 4, reached: 4 },
      guards: { total: 6, reached: 6 }
    }
  )
})

await t.test('paths have unique sentences as names', async t => {
  const { paths, configurations } = await planFor(agentWith(everything), { cases })
  const names = paths.map(({ name }) => name)
  t.equal(new Set(names).size, names.length)
  for (const name of [
    'opened by "start", but not "a key" arrives',
    'opened by "start", then the client says "no", then the client says "no", then the client says "no", which is its end',
    'opened by "start", then the client says "yes", then 5000 ms pass, which is its end',
    'opened by "start", then the client says "yes", then look ends with the error "an error", which is its end',
    'opened by "start", then the client says "yes", then look ends with "something", then "a key" arrives, then the event "a whisper" comes'
  ])
    t.ok(names.includes(name), name)
  t.ok(configurations > 20)
})

await t.test('paths are walked over the wire, and with the official client', async t => {
  await testAgent(someWalks(t), agentWith(everything), { cases, drivers: overWire, only: 'look ends' })
  await testAgent(someWalks(t), countdown, { drivers: overWire, cases: { opening: { two: '2', none: 'x' } } })
  const nothing = { streaming: false, extensions: false }
  await testAgent(
    someWalks(t),
    { ...countdown, capabilities: nothing },
    { drivers: overWire, only: 'none', cases: { opening: { none: 'x' } } }
  )
})

await t.test('functions and generators are walked too, also in a hybrid agent', async t => {
  const negotiate: AgentDefinition['negotiate'] = ({ message }) =>
    textOf(message) === 'a deal' ? accepted({ euros: 5 }) : reply('What?')
  const opening = { 'a deal': 'a deal' }
  await testAgent(
    someWalks(t),
    agentWith(async () => {}, { negotiate }),
    { cases: { opening }, drivers: inProcess }
  )
  await testAgent(
    someWalks(t),
    agentWith(async function* () {
      yield progress()
    }),
    { drivers: ['in process', 'over WebSocket'] }
  )
})

await t.test('steered messages reach a working chart, and queued ones are no step of it', async t => {
  const work = setupWork({}).createMachine({
    initial: 'on',
    states: { on: { on: { 'message.received': 'off' } }, off: { type: 'final' } }
  })
  const steered = await planFor(agentWith(work, { messages: 'deliver' }))
  t.ok(
    steered.paths.some(({ name }) => name === 'opened by "start", then the client says "an answer", which is its end')
  )
  await testAgent(someWalks(t), agentWith(work, { messages: 'deliver' }), {
    drivers: ['in process', 'in process, killed before every step']
  })
  const queued = await planFor(agentWith(work, { messages: 'queue' }))
  t.strictSame(
    queued.paths.map(({ name }) => name),
    ['opened by "start", but not "an authorization" arrives', 'opened by "start", then the client cancels']
  )
})

await t.test('a task may be opened beside others', async t => {
  const work = setupWork({ guards: { hasOne: (_, count: number) => count > 0 } }).createMachine({
    context: ({ input }) => ({ count: input.earlierArtifacts.length }),
    initial: 'looking',
    states: {
      looking: {
        always: [
          { guard: ({ context }) => (context as { count: number }).count === 2, target: 'two' },
          { target: 'other' }
        ]
      },
      two: { type: 'final' },
      other: { type: 'final' }
    }
  })
  const opening = { two: { words: 'go', earlier: ['a', { name: 'b', parts: [text('b')] }] }, none: 'go' }
  const { states } = await testAgent(someWalks(t), agentWith(work), {
    cases: { opening },
    drivers: ['the chart', 'in process', 'in process, killed before every step']
  })
  t.strictSame(states.missing, [])
})

await t.test('unreached parts are reported with the reason', async t => {
  const { states, transitions, tags, guards } = await testAgent(
    { test: async (_, run) => run({ test: async (_, walk) => walk(undefined as never) }) },
    agentWith(everything),
    { cases: { messages: { yes: 'yes' } }, drivers: ['the chart'] }
  )
  t.ok(states.missing.includes('all.tired'))
  t.strictSame(tags, { total: 4, reached: 4, missing: [] })
  for (const line of [
    'all.asking on message.received (branch 2) to tired: no message in the cases is accepted here',
    'all.asking on message.received (branch 3) stays: no message in the cases is accepted here',
    'all.listening on heard (branch 1) to done: no event in the cases is a heard that it accepts'
  ])
    t.ok(transitions.missing.includes(line), line)
  t.ok(guards.missing.includes('isYes is false: no case makes it so'))
  const never = setupWork({
    types: { events: {} as { readonly type: 'never' } },
    actors: { gone: fromPromise(async () => {}) }
  }).createMachine({
    initial: 'a',
    states: {
      a: {
        always: { guard: () => false, target: 'b' },
        after: { 10: 'b', 20: 'c' },
        invoke: { src: 'gone', onDone: 'b', onError: 'c' }
      },
      b: { on: { never: 'c' } },
      c: { type: 'final' }
    }
  })
  const unreached = setupWork({}).createMachine({
    initial: 'a',
    states: { a: {}, b: { tags: 'failed', type: 'final' }, c: { tags: 'rejected', type: 'final' } }
  })
  t.strictSame(
    (await testAgent({ test: async () => {} }, agentWith(unreached), { drivers: ['the chart'] })).tags.missing,
    ['failed: no state with this tag is entered', 'rejected: no state with this tag is entered']
  )
  const told = await testAgent(
    { test: async (_, run) => run({ test: async (_, walk) => walk(undefined as never) }) },
    agentWith(never),
    { cases: { results: { gone: {} } }, drivers: ['the chart'] }
  )
  t.strictSame(told.transitions.missing.map(line => line.slice(line.indexOf(': ') + 2)).toSorted(), [
    'another timer, or an end, always occurs first',
    'its guard never holds first',
    'no event in the cases is a never that it accepts',
    'no result in the cases leads there',
    'the results in the cases include no error'
  ])
})

await t.test('the shortest or all simple paths are walked on request', async t => {
  const work = setupWork({}).createMachine({
    initial: 'a',
    states: {
      a: { tags: 'input-required', after: { 1: 'b', 2: 'c' }, on: { 'message.received': 'c' } },
      b: { tags: 'input-required', after: { 5: 'c' }, on: { 'message.received': 'a' } },
      c: { type: 'final' }
    }
  })
  const namesOf = async (kind: PathKind) => (await planFor(agentWith(work), { kind })).paths.map(({ name }) => name)
  t.strictSame(await namesOf('shortest'), [
    'opened by "start", then the client says "an answer"',
    'opened by "start", then 1 ms pass'
  ])
  t.strictSame(await namesOf('simple'), [
    'opened by "start", then the client says "an answer"',
    'opened by "start", then 1 ms pass, then 5 ms pass'
  ])
  for (const kind of ['shortest', 'simple'] as const)
    await testAgent(someWalks(t), agentWith(work), { kind, drivers: ['the chart', 'in process'] })
})

await t.test('a chart of 30 states and 100 transitions is explored, but not all simple paths', async t => {
  const names = Array.from({ length: 30 }, (_, i) => `s${i}`)
  const events = Object.fromEntries(['one', 'two', 'three', 'four'].map(type => [type, { type }]))
  const on = (i: number) =>
    Object.fromEntries(Object.keys(events).map((type, n) => [type, `s${(i * (n + 2) + n + 1) % 28}`]))
  const states = Object.fromEntries(
    names.map((name, i) => [
      name,
      i < 25
        ? { on: on(i) }
        : i < 29
          ? { tags: 'input-required', on: { 'message.received': 's29' } }
          : { type: 'final' }
    ])
  )
  const work = setupWork({ actors: { somebody: fromCallback(() => {}) } }).createMachine({
    id: 'large',
    initial: 'all',
    invoke: { src: 'somebody' },
    states: { all: { initial: 's0', states: states as never } }
  })
  const cases = { events, results: { somebody: {} } }
  const { paths, configurations, machine } = await planFor(agentWith(work), { cases })
  t.equal(Object.keys(machine.states['all']?.states ?? {}).length, 30)
  t.ok(configurations >= 25 && configurations <= 30, `${configurations} configurations`)
  t.ok(paths.length >= 100 && paths.length < 200, `${paths.length} paths`)
  t.match(await rejection(planFor(agentWith(work), { cases, kind: 'simple' })), {
    name: 'RangeError',
    message: /more than 10000 simple paths\. Walk the cover/
  })
  await testAgent(someWalks(t), agentWith(work), { cases, drivers: ['the chart', 'in process'] })
})

await t.test('on SQLite, the paths are those that visit each configuration, unless all are asked for', async t => {
  const { paths } = await planFor(agentWith(everything), { cases })
  const visited = (chosen: readonly Path[]) =>
    new Set(
      chosen.flatMap(({ start, steps }) =>
        [start, ...steps.flatMap(({ turn }) => turn ?? [])].map(({ status, chart }) =>
          JSON.stringify([status, chart.value, chart.context])
        )
      )
    )
  const deepest = paths.filter(({ isDeepest }) => isDeepest)
  t.strictSame(visited(deepest), visited(paths))
  t.ok(deepest.length < paths.length / 2, `${deepest.length} of ${paths.length}`)
  const drivers = ['in process', 'in process on SQLite, killed before every step'] as const
  const countsOf = async (options: AgentTestOptions) => {
    const { tests, lacks } = await agentTests(agentWith(everything), { cases, drivers, ...options })
    return [
      ...drivers.map(driver => tests.filter(test => test.driver === driver).length),
      lacks.some(line => line.startsWith(`${drivers[1]}: ${deepest.length} of ${paths.length} paths`))
    ]
  }
  t.strictSame(await countsOf({}), [paths.length, deepest.length, true])
  t.strictSame(await countsOf({ complete: true }), [paths.length, paths.length, false])
  t.strictSame(await countsOf({ only: 'opened' }), [paths.length, paths.length, false])
})

await t.test('paths are walked on SQLite', { skip: NO_SQLITE }, async t => {
  await testAgent(someWalks(t), agentWith(everything), {
    cases,
    drivers: ['in process on SQLite, killed before every step'],
    only: 'the client cancels'
  })
  t.notOk((await agentTests(countdown)).lacks.some(line => line.startsWith('not walked')))
})

await t.test('a plan without fast-check names it, and the line that installs it', async t => {
  const absent = () => Promise.reject(new Error('Cannot find package'))
  const bargaining = defineAgent({
    card,
    negotiate: negotiation({ terms: z.object({ euros: z.number() }), respond: () => offer({ euros: 1 }) }),
    work: async () => {}
  })
  t.match(await rejection(planWith(bargaining, {}, absent)), {
    name: 'TypeError',
    message:
      /^fast-check, which generates terms from their schema, is not installed: npm i -D fast-check\. Or give terms, in the agent's module .*:\nexport const cases/
  })
  const given = { cases: { terms: { 'a price': { euros: 40 } } } }
  t.strictSame((await planWith(bargaining, given, absent)).lacks, [
    'no values of the schemas were tried. To generate them: npm i -D fast-check'
  ])
  t.strictSame((await planFor(bargaining, given)).lacks, [])
  const drivers: Driver[] = ['over MCP', 'over MCP, killed before every step']
  const overMcp = await agentTests(bargaining, { ...given, drivers })
  t.match(overMcp.lacks, [/^not walked over MCP, killed before every step: the \d+ paths of the negotiation\./])
})

await t.test('a path that lacks a prerequisite is skipped and reported', async t => {
  t.strictSame(
    [...new Set((await agentTests(countdown)).tests.map(({ driver }) => driver))],
    (await availableDrivers()).drivers
  )
  const absent = {
    official: () => Promise.reject(new Error('Cannot find package')),
    sqlite: () => Promise.reject(new TypeError('no driver')),
    mcp: () => Promise.reject(new TypeError('no package'))
  }
  const { drivers, lacks } = await availableDrivers(absent)
  t.strictSame(lacks, [
    `not walked: in process on SQLite, killed before every step; over JSON-RPC, with the official client; over REST, with the official client; over MCP; over MCP, killed before every step. To walk them: npm i -D ${SQLITE_PACKAGE} @a2a-js/sdk @modelcontextprotocol/server`
  ])
  t.equal(drivers.length, allDrivers.length - 5)
})

await t.test('cases are generated from schemas if the author gives none', async t => {
  const schema = z.object({ day: z.iso.date() })
  const work = setupWork({ types: { events: typed<AuthorizationReceived>() } }).createMachine({
    initial: 'asking',
    states: {
      asking: { tags: 'input-required', meta: { schema }, on: { 'message.received': 'again' } },
      again: { tags: 'input-required', meta: { schema }, on: { 'message.received': 'waiting' } },
      waiting: { tags: 'auth-required', meta: { schema: z.int().min(3) }, on: { 'authorization.received': 'done' } },
      done: { type: 'final' }
    }
  })
  const { paths } = await planFor(agentWith(work))
  const day = String.raw`\{"day":"\d{4}-\d\d-\d\d"\}`
  t.ok(
    paths.some(({ name }) =>
      new RegExp(
        `^opened by "start", then the client says "${day}", then the client says "${day}", then "8" arrives, which is its end$`
      ).test(name)
    )
  )
  t.ok(
    paths.some(({ steps }) =>
      steps.some(({ move, refusal }) => move.type === 'message' && move.name === '{}' && refusal === 'InvalidParams')
    )
  )
  t.ok(
    paths.some(({ steps }) =>
      steps.some(({ move, refusal }) => move.type === 'authorization' && refusal === 'InvalidParams')
    )
  )
  await testAgent(someWalks(t), agentWith(work), { drivers: ['the chart', 'in process'] })
  const none = { opening: {}, terms: {}, messages: {}, authorizations: {} }
  t.strictSame(await madeCases(agentWith(work), work, () => Promise.reject(new Error('Cannot find package'))), {
    ...none,
    lacksGenerator: true
  })
  t.strictSame(await madeCases(agentWith(everything), everything), none)
  const opened = defineAgent({
    card,
    input: z.object({ text: z.string().min(70) }),
    inputJsonSchema: { type: 'object', properties: { text: { type: 'string', minLength: 70 } }, required: ['text'] },
    work: async () => {}
  })
  const names = (await planFor(opened)).paths.map(({ name }) => name)
  t.match(
    names[0],
    /^opened by "\{"text":".{51}… \(1\)", then/,
    'long ones are cut; the default, which is refused, opens none'
  )
  t.match(await rejection(planFor(opened, { cases: { opening: { wrong: 'wrong' } } })), {
    name: 'A2AError',
    code: 'InvalidParams'
  })
  const unshown = defineAgent({
    card,
    input: z.custom<object>(value => typeof value === 'object').transform(value => value),
    work: async () => {}
  })
  t.strictSame(await madeCases(unshown, everything), none)
  const words = defineAgent({ card, input: z.string().min(2), work: async () => {} })
  t.match((await planFor(words)).paths.map(({ opening }) => opening.words).at(-1), /^..$/)
})

await t.test('payloads are generated for all expressible JSON Schemas', t => {
  const made = (schema: object, takes: (value: unknown) => boolean = () => true) =>
    payloadsFor(schema as Record<string, unknown>, 2, takes)
  t.strictSame(made({ const: 'x' }), ['x'])
  t.strictSame(new Set(made({ enum: ['a', 'b'] })), new Set(['a', 'b']))
  t.ok(made({ type: 'integer', minimum: 5, maximum: 7 }).every(value => [5, 6, 7].includes(value as number)))
  t.ok(made({ type: 'integer', exclusiveMaximum: 0 }).every(value => Number(value) < 0))
  t.ok(made({ type: 'number', exclusiveMinimum: 2 }).every(value => Number(value) > 2))
  t.ok(made({ type: 'number', maximum: -2000 }).every(value => Number(value) <= -2000))
  t.equal(made({ type: 'number' }).length, 2)
  t.strictSame(new Set(made({ type: ['boolean', 'null'] }, value => value !== true)), new Set([false, null]))
  t.ok(made({ type: 'string', pattern: '^[A-Z]{3}$' }).every(value => /^[A-Z]{3}$/.test(String(value))))
  t.strictSame(made({ type: 'string', pattern: '(' }), [], 'an invalid pattern')
  t.strictSame(made({ type: 'integer', minimum: 3, maximum: 2 }), [], 'a contradiction')
  t.ok(made({ type: 'string', minLength: 3, maxLength: 3 }).every(value => String(value).length === 3))
  for (const format of ['date-time', 'date', 'time', 'email', 'uri', 'uuid']) {
    const schema = {
      'date-time': z.iso.datetime(),
      date: z.iso.date(),
      time: z.iso.time(),
      email: z.email(),
      uri: z.url(),
      uuid: z.uuid()
    }[format]
    t.equal(made({ type: 'string', format }, value => schema?.safeParse(value).success === true).length, 2, format)
  }
  for (const format of ['unheard-of', 'constructor'])
    t.equal(typeof made({ type: 'string', format })[0], 'string', format)
  t.ok(
    made({ type: 'array', items: { type: 'boolean' }, minItems: 2, maxItems: 2 }).every(
      value => Array.isArray(value) && value.length === 2
    )
  )
  t.ok(
    made({ type: 'object', properties: { a: { type: 'null' }, b: {} }, required: ['a', 'c'] }).every(
      value => Object(value).a === null
    )
  )
  t.strictSame(made({ type: 'object' }), [{}])
  t.ok(made({ oneOf: [{ const: 1 }, { const: 2 }] }).length === 2)
  t.ok(
    made({
      allOf: [{ $ref: '#/$defs/a~1b' }, true, { required: ['n'] }],
      $defs: { 'a/b': { type: 'object', properties: { n: { const: 1 } } } }
    }).every(value => Object(value).n === 1)
  )
  const tree = { type: 'object', properties: { child: { $ref: '#' } }, required: ['child'] }
  t.ok(made(tree, value => 'child' in Object(value)).length > 0, 'a schema that refers to itself')
  t.equal(made({ $ref: '#/nowhere/at/all' }).length, 2, 'a dangling reference gives no value')
  for (const type of ['unheard-of', 'constructor']) t.equal(made({ type }).length, 2, type)
  const named = { type: 'object', properties: { constructor: { type: 'null' } }, required: ['constructor', 'toString'] }
  t.ok(
    made(named, value => Object.hasOwn(Object(value), 'constructor')).length > 0,
    'members named as those of prototypes'
  )
  t.end()
})

await t.test('a chart whose first chunk appends is tested as its events are sent', async t => {
  const chunk = (parts: string, artifactId?: string) =>
    artifact({ ...(artifactId !== undefined && { artifactId }), parts: [text(parts)] }, { append: true })
  const work = setupWork({}).createMachine({
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        meta: { prompt: 'Go on?' },
        on: {
          'message.received': {
            target: 'done',
            actions: [emit(chunk('1', 'a')), emit(chunk('2', 'a')), emit(chunk('3'))]
          }
        }
      },
      done: { type: 'final' }
    }
  })
  await testAgent(someWalks(t), agentWith(work), { drivers: inProcess })
})

await t.test('a chart that throws is reported, and fails its task', async t => {
  const work = setupWork({
    actors: { look: fromPromise<{ name: string }>(async () => ({ name: 'x' })) }
  }).createMachine({
    initial: 'looking',
    states: {
      looking: {
        invoke: {
          src: 'look',
          onDone: { target: 'done', actions: assign(({ event }) => ({ name: event.output.name.length })) }
        }
      },
      done: { type: 'final' }
    }
  })
  const { notes } = await agentTests(agentWith(work), {
    cases: { results: { look: { nothing: undefined } } },
    drivers: inProcess
  })
  t.match(notes(), [/^the chart throws, opened by "start", then look ends with "nothing": TypeError: Cannot read/])
  await testAgent(someWalks(t), agentWith(work), {
    cases: { results: { look: { nothing: undefined } } },
    drivers: inProcess
  })
})

await t.test('an invalid output is reported too', async t => {
  const work = setupWork({ types: { context: typed<{ parts: never[] }>() } }).createMachine({
    context: { parts: [] },
    initial: 'a',
    states: { a: { type: 'final' } },
    output: ({ context }) => ({ artifact: { parts: context.parts } })
  })
  const { notes } = await agentTests(agentWith(work), { drivers: inProcess })
  t.match(notes()[0], /^the chart throws, opened by "start": A2AError: .*artifact\.parts/)
  await testAgent(someWalks(t), agentWith(work), {
    drivers: ['the chart', 'in process', 'in process, killed before every step']
  })
})

await t.test('an impossible plan is refused with what to do', async t => {
  const counting = setupWork({ types: { context: {} as { n: number } } }).createMachine({
    context: { n: 0 },
    initial: 'a',
    states: {
      a: {
        tags: 'input-required',
        on: { 'message.received': { actions: assign({ n: ({ context }) => context.n + 1 }) } }
      }
    }
  })
  t.match(await rejection(planFor(agentWith(counting), { limit: 20 })), {
    name: 'RangeError',
    message: /more than 20 configurations.*cases\.memory/s
  })
  const { configurations } = await planFor(agentWith(counting), {
    cases: { memory: context => Math.min((context as { n: number }).n, 2) }
  })
  t.equal(configurations, 3)
  t.match(await rejection(planFor(agentWith(everything), { cases: { message: {} } as Cases })), {
    name: 'TypeError',
    message: 'cases has no message. Is messages meant?'
  })
  t.match(await rejection(planFor(defineAgent({ card, negotiate: () => reply('x') }))), {
    name: 'TypeError',
    message: /has no work to test/
  })
  const picky = agentWith(async () => {}, {
    negotiate: ({ message }) => (textOf(message) === 'yes' ? accepted() : reply('no'))
  })
  t.match(await rejection(planFor(picky)), { message: /"start" opens no task/ })
  t.match(await rejection(planFor(picky, { cases: { opening: { yes: 'yes', no: 'no' } } })), {
    message: /"no" opens no task/
  })
  const skills = [{ id: 'a', name: 'a', description: 'a', tags: [], examples: ['no', 'yes'] }]
  t.ok(
    (await planFor({ ...picky, card: { ...picky.card, skills } })).paths.every(({ name }) =>
      name.startsWith('opened by "yes"')
    )
  )
  t.match(await rejection(agentTests(agentWith(everything), { cases, only: 'nowhere' })), {
    name: 'RangeError',
    message: /No path's name contains "nowhere"/
  })
})

await t.test('a failed walk shows the error of the chart with its line', async t => {
  class Size {
    isLarge() {
      return false
    }
  }
  const work = setupWork({ types: { context: typed<{ size: Size }>() } }).createMachine({
    context: () => ({ size: new Size() }),
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        on: {
          'message.received': {
            target: 'done',
            actions: assign({ size: ({ context }) => (context.size.isLarge(), context.size) })
          }
        }
      },
      done: { type: 'final' }
    }
  })
  const { tests } = await agentTests(agentWith(work), {
    drivers: ['the chart, restored from JSON before every step', 'in process'],
    only: 'its end'
  })
  const [restored, inProcess] = await Promise.all(tests.map(({ run }) => rejection(run().catch(explainFailure))))
  t.match(
    Object(restored).message,
    /wanted: [^]*found: [^]*\n {2}error: {2}TypeError: context\.size\.isLarge is not a function \(at .*testing\.test\.ts:\d+:\d+\)?/
  )
  t.match(
    Object(inProcess).message,
    /wanted: [^]*found: [^]*\n {2}error: {2}A2AError: .*context\.size is an instance of Size/
  )
})

await t.test('a runtime that deviates from its chart is detected at that step', async t => {
  const chart = (words: string, more: object = {}) =>
    setupWork({}).createMachine({
      initial: 'asking',
      states: {
        asking: { tags: 'input-required', meta: { prompt: words }, on: { 'message.received': 'done' } },
        done: { type: 'final' },
        ...more
      },
      output: { artifact: { artifactId: 'a', name: 'a.txt', parts: [text(words)] } }
    })
  const agent = agentWith(chart('Well?'))
  const { paths } = await planFor(agent)
  const [path] = paths.filter(({ name }) => name.includes('which is its end'))
  if (!path) throw new TypeError('There is no such path.')
  const told = await rejection(walk(agent, new StubActors(chart('How?')), path, at))
  t.match(told, {
    name: 'PathError',
    step: 'the opening',
    wanted: [{}, {}, { message: { parts: [{ text: 'Well?' }] } }],
    found: [{}, {}, { message: { parts: [{ text: 'How?' }] } }]
  })
  t.throws(() => explainFailure(told), { message: /the task has to tell\n {2}wanted: [^]*Well\?[^]*found: [^]*How\?/ })
  t.throws(() => explainFailure(new Error('another')), { message: 'another' })
  t.throws(() => walkChart(path, 'live', new CoverageLog(chart('How?', { asking: { type: 'final' } })), () => {}), {
    name: 'PathError',
    step: 'the opening',
    wanted: { status: 'active' },
    found: { status: 'done' }
  })
  const deaf = agentWith(async () => {}, { negotiate: () => reply('I say nothing.') })
  for (const manner of [at, { reach: 'JSONRPC', isOfficial: true, interlude: 'none' }] as const) {
    t.match(await rejection(walk(deaf, new ScriptedWork(), path, manner)), {
      name: 'PathError',
      step: 'the opening',
      wanted: 'a task',
      found: { parts: [{ text: 'I say nothing.' }] }
    })
  }
  const [refused] = paths.filter(({ name }) => name.includes('but not'))
  const step = refused?.steps.at(-1)
  if (!refused || !step) throw new TypeError('There is no such path.')
  const { refusal: _, ...taken } = step
  t.match(await rejection(walk(agent, new StubActors(chart('Well?')), { ...refused, steps: [taken] }, at)), {
    step: '"an authorization" arrives',
    found: 'UnsupportedOperation'
  })
  t.match(
    await rejection(
      walk(
        agent,
        new StubActors(chart('Well?')),
        { ...path, steps: path.steps.map(step => ({ ...step, refusal: 'TaskNotFound' })) },
        at
      )
    ),
    { wanted: 'TaskNotFound', found: 'it was taken' }
  )
})

await t.test("answers are read by their questions' schemas, and refused by them", async t => {
  const size = z.coerce.number().min(10)
  const work = setupWork({
    types: { context: typed<{ size: number }>(), events: typed<AuthorizationReceived>() }
  }).createMachine({
    context: { size: 0 },
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        meta: { prompt: 'How long?', schema: size },
        on: {
          'message.received': { target: 'waiting', actions: assign({ size: ({ event }) => dataOf(event, size) }) }
        }
      },
      waiting: {
        tags: 'auth-required',
        meta: { prompt: 'Log in.', schema: z.object({ account: z.string() }) },
        on: { 'authorization.received': 'done' }
      },
      done: { type: 'final' }
    },
    output: ({ context }) => ({ artifact: `${context.size} cm` })
  })
  const cases = {
    messages: { ten: '10', 'a word': 'long' },
    authorizations: { 'an account': { account: 'a' }, nothing: {} }
  }
  const { paths } = await planFor(agentWith(work), { cases })
  t.ok(
    paths.some(({ steps }) =>
      steps.some(({ move, refusal }) => move.type === 'authorization' && refusal === 'InvalidParams')
    )
  )
  t.strictSame((await testAgent(someWalks(t), agentWith(work), { cases, drivers: inProcess })).states.missing, [])
})

await t.test('a chart that emits a message and asks the same again is followed', async t => {
  const work = setupWork({}).createMachine({
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        on: {
          'message.received': {
            target: 'asking',
            reenter: true,
            actions: emit(progress({ parts: [text('Again.')], metadata: { n: 1 }, extensions: ['urn:x'] }))
          }
        },
        after: { 1000: 'done' }
      },
      done: { type: 'final' }
    }
  })
  await testAgent(someWalks(t), agentWith(work), { drivers: inProcess })
})

await t.test('a chart is drawn as a mermaid diagram', t => {
  const work = setupWork({ actors: { look: fromPromise(async () => {}) }, guards: { ok: () => true } }).createMachine({
    id: 'm',
    type: 'parallel',
    states: {
      left: {
        initial: 'a',
        states: {
          a: { on: { 'message.received': { guard: 'ok', target: 'b' } }, tags: 'input-required' },
          b: {
            invoke: {
              src: 'look',
              id: 'look',
              onDone: { guard: () => true, target: 'a' },
              onError: { guard: { type: 'ok' }, target: 'c' }
            },
            after: { 5: 'c' }
          },
          c: { type: 'final' }
        }
      },
      right: { always: { guard: () => false, actions: emit(progress()) } }
    }
  })
  const nested = setupWork({ actors: { look: fromPromise(async () => {}) } }).createMachine({
    initial: 'one',
    states: {
      one: {
        initial: 'a',
        states: { a: { invoke: { src: 'look', onDone: 'b' } }, b: { type: 'final' } },
        onDone: 'two'
      },
      two: { always: 'three' },
      three: {}
    }
  })
  t.match(chartMermaid(nested), /_one --> .*_two: one is done[^]*: look is done[^]*_two --> .*_three$/m)
  t.equal(chartMermaid(setupWork({}).createMachine({})), 'stateDiagram-v2\n')
  t.equal(
    chartMermaid(work),
    `stateDiagram-v2
  state "m" as m {
    state "left" as m_left {
      [*] --> m_left_a
      state "a #input-required" as m_left_a
      state "b" as m_left_b
      state "c" as m_left_c
      m_left_c --> [*]
    }
    --
    state "right" as m_right
  }
  m_left_a --> m_left_b: message.received [ok]
  m_left_b --> m_left_a: look is done [a condition]
  m_left_b --> m_left_c: look fails [ok]
  m_left_b --> m_left_c: after 5 ms
`
  )
  t.match(chartMermaid(chartOf(agentWith(async () => {})).machine), /state "asking #input-required"/)
  t.end()
})

await t.test("the virtual clock fires delays beyond Node's maximum after a millisecond, as Node does", t => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const fired: string[] = []
  for (const [name, delayMs] of [
    ['past', -1],
    ['too long', 2 ** 31],
    ['none', Number.NaN],
    ['later', 2]
  ] as const)
    clock.setTimeout(() => fired.push(name), delayMs)
  clock.increment(1)
  t.strictSame(fired, ['past', 'too long', 'none'])
  clock.increment(1)
  t.strictSame(fired.at(-1), 'later')
  t.equal(clock.now(), Date.parse('2026-01-01T00:00:00.002Z'))
  t.end()
})

await t.test('a chart that draws random numbers is told so, once it matters', async t => {
  const { random } = Math
  const drawing = (draw: () => unknown, shows: boolean, loops = false) =>
    agentWith(
      setupWork({ types: { context: typed<{ drawn: unknown }>() } }).createMachine({
        context: { drawn: 0 },
        initial: 'asking',
        states: {
          asking: {
            tags: 'input-required',
            on: { 'message.received': { ...(!loops && { target: 'over' }), actions: assign({ drawn: draw }) } }
          },
          over: { type: 'final' }
        },
        output: ({ context }) => ({ artifact: text(shows ? String(context.drawn) : 'a number') })
      })
    )
  const told = { name: 'TypeError', message: /^its chart draws random numbers, .*fromPromise/ }
  const numbers = new Uint8Array(16)
  for (const draw of [() => Math.random(), () => crypto.randomUUID(), () => String(crypto.getRandomValues(numbers))]) {
    const runs = async (shows: boolean) =>
      (await agentTests(drawing(draw, shows), { drivers: ['in process'], only: 'its end' })).tests.map(({ run }) => run)
    for (const run of await runs(true)) await t.rejects(run(), told)
    for (const run of await runs(false)) await run()
    await t.rejects(planFor(drawing(draw, true, true), { limit: 20 }), told)
  }
  t.strictSame([Math.random, Object.keys(crypto)], [random, []])
})

await t.test('borders of numbers are read from guards', t => {
  type Given = {
    readonly event: { readonly age: number; readonly text: string; readonly more: { readonly size: number } }
  }
  const of = (...guards: unknown[]) =>
    guardBorders(
      createMachine({ initial: 'a', states: { a: { on: { go: guards.map(guard => ({ guard: guard as never })) } } } })
    )
  t.strictSame(
    of(({ event }: Given) => event.age >= 18),
    [{ name: 'age', sides: [17, 18] }]
  )
  t.strictSame(
    of(({ event }: Given) => event.age > 18 && event.more.size < -2.5),
    [
      { name: 'age', sides: [18, 19] },
      { name: 'size', sides: [-3.5, -2.5] }
    ]
  )
  t.strictSame(
    of(({ event }: Given) => 18 <= event.age || 1_000 < event.more.size),
    [
      { name: 'age', sides: [17, 18] },
      { name: 'size', sides: [1000, 1001] }
    ]
  )
  t.strictSame(
    of(({ event }: Given) => Number(event.text) === 7 || [1].map(() => 5).length !== 2),
    [
      { name: 'text', sides: [7, 8] },
      { name: 'length', sides: [2, 3] }
    ]
  )
  t.strictSame(
    of(() => 5, 'named', undefined, not(and([(({ event }: Given) => event.age <= 3) as never, 'named']) as never)),
    [{ name: 'age', sides: [3, 4] }]
  )
  t.strictSame(of({ type: 'atLeast', params: { age: 18, name: 'x' } }, { type: 'is', params: 2 }), [
    { sides: [17, 18, 19] },
    { sides: [1, 2, 3] }
  ])
  t.strictSame(guardBorders(setup({ guards: { isOld: () => Date.now() > 65 } }).createMachine({})), [
    { sides: [65, 66] }
  ])
  t.end()
})

await t.test('generated values take guards on numbers both ways', async t => {
  const schema = z.object({
    name: z.string(),
    age: z.number().int().min(0).max(99),
    home: z.object({ rooms: z.number().int() }).optional()
  })
  const work = setupWork({
    guards: {
      isAdult: ({ event }) => dataOf(event as never, schema).age >= 18,
      isHoused: ({ event }) => Number(dataOf(event as never, schema).home?.rooms) > 3
    }
  }).createMachine({
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        meta: { schema },
        on: {
          'message.received': [
            { guard: 'isHoused', target: 'housed' },
            { guard: 'isAdult', target: 'adult' },
            { target: 'child' }
          ]
        }
      },
      housed: { type: 'final' },
      adult: { type: 'final' },
      child: { type: 'final' }
    }
  })
  const { messages } = await madeCases(agentWith(work), work)
  const values = Object.values(messages).map(words => Object(words).parts[0].data)
  t.match(
    [17, 18].map(age => values.some(value => value.age === age)),
    [true, true]
  )
  t.match(
    [3, 4].map(rooms => values.some(value => value.home?.rooms === rooms)),
    [true, true]
  )
  t.strictSame((await testAgent(someWalks(t), agentWith(work), { drivers: ['the chart'] })).guards.missing, [])
  const whole = payloadsAt(
    { type: 'integer', maximum: 18 },
    [{ name: 'age', sides: [17, 18] }, { sides: [18, 19] }],
    value => Number(value) <= 18
  )
  t.strictSame(whole, [17, 18])
  t.strictSame(
    payloadsAt({ type: 'string' }, [{ sides: [1] }], value => typeof value === 'string'),
    []
  )
  t.strictSame(
    payloadsAt({ type: 'string' }, [{ sides: [1] }], () => false),
    []
  )
})
