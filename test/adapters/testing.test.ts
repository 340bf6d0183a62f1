import t from 'tap'
import { z } from 'zod'
import { assign, emit, fromCallback, fromPromise } from 'xstate'
import { agentTests } from '../../adapters/testing/agent-tests.ts'
import { walkChart } from '../../adapters/testing/chart-run.ts'
import { CoverageLog } from '../../adapters/testing/coverage.ts'
import { walk } from '../../adapters/testing/path-run.ts'
import { chartMermaid, chartOf, explained, planFor, testAgent, VirtualClock, type Cases } from '../../adapters/testing/index.ts'
import { Puppet } from '../../adapters/testing/puppet.ts'
import { Stage } from '../../adapters/testing/stage.ts'
import countdown from '../../examples/countdown.ts'
import { accepted, answerOf, artifact, defineAgent, progress, reply, setupWork, text, textOf, typed, type AgentDefinition, type AuthorizationReceived } from '../../runtime/index.ts'
import { rejection } from '../fixtures/runtime-helpers.ts'

const card = { name: 'Tested' }
const at = { reach: 'in process', interlude: 'none' } as const

/** A chart with one of each: questions, an authorization, guards, promises, timers, events of its own, tags for each end. */
const everything = setupWork({
  types: { context: {} as { tries: number }, events: {} as AuthorizationReceived | { readonly type: 'heard'; readonly loud: boolean } },
  actors: { look: fromPromise<string>(async () => 'found'), listen: fromCallback(() => {}) },
  guards: { isYes: (_, said: string) => said === 'yes', isThird: ({ context }) => context.tries === 2, isLoud: ({ event }) => event.type === 'heard' && event.loud },
  delays: { patience: 5000 }
}).createMachine({
  id: 'all',
  context: { tries: 0 },
  initial: 'asking',
  states: {
    asking: {
      tags: 'input-required',
      meta: { prompt: ({ context }) => `Yes or no? (${context.tries})` },
      on: {
        'message.received': [
          { guard: { type: 'isYes', params: ({ event }) => textOf(event.message) }, target: 'looking' },
          { guard: 'isThird', target: 'tired' },
          { actions: assign({ tries: ({ context }) => context.tries + 1 }) }
        ]
      }
    },
    looking: { entry: emit(progress('looking')), invoke: { src: 'look', onDone: 'allowed', onError: 'lost' }, after: { patience: 'slow' } },
    allowed: { tags: 'auth-required', on: { 'authorization.received': 'listening', 'message.received': 'refused' } },
    listening: {
      entry: emit(artifact({ artifactId: 'log', parts: [text('a')] })),
      invoke: { src: 'listen' },
      on: { heard: [{ guard: 'isLoud', target: 'done' }, { actions: emit(artifact({ artifactId: 'log', parts: [text('b')] }, { append: true })) }] }
    },
    slow: { type: 'final', tags: 'failed' },
    lost: { type: 'final', tags: 'failed', meta: { reason: 'Nothing is there.' } },
    refused: { type: 'final', tags: 'rejected', meta: { reason: 'Then not.' } },
    tired: { type: 'final' },
    done: { type: 'final' }
  },
  output: ({ context }) => ({ artifacts: ['first', { artifactId: 'log', parts: [text('c')] }], message: `after ${context.tries}`, metadata: { tries: context.tries } })
})

const cases: Cases = {
  messages: { yes: 'yes', no: 'no' },
  authorizations: { 'a key': { key: 1 } },
  results: { look: { something: 'there', 'an error': new Error('gone') }, listen: {} },
  events: { 'a whisper': { type: 'heard', loud: false } as never, 'a cry': { type: 'heard', loud: true } as never, 'a stranger': { type: 'nobody.knows' } }
}

function agentWith(work: AgentDefinition['work'], more: Partial<AgentDefinition> = {}) {
  return defineAgent({ card, ...(work && { work }), ...more })
}

const inProcess = ['the chart', 'the chart, restored from JSON before every step', 'in process', 'in process, restarted before every step', 'in process, killed before every step'] as const
const overWire = ['over WebSocket', 'over WebSocket, killed before every step', 'over JSON-RPC'] as const

await t.test('every path of a chart with everything is walked in every way, and all of it is reached', async t => {
  const { states, transitions, guards } = await testAgent(t, agentWith(everything), { cases, ways: inProcess })
  t.strictSame([states.missing, transitions.missing, guards.missing], [[], [], []])
  t.match({ states, transitions, guards }, { states: { total: 10, reached: 10 }, transitions: { total: 10, reached: 10 }, guards: { total: 6, reached: 6 } })
})

await t.test('paths have sentences for names, each once', async t => {
  const { paths, configurations } = await planFor(agentWith(everything), { cases })
  const names = paths.map(({ name }) => name)
  t.equal(new Set(names).size, names.length)
  for (const name of [
    'opened by "start", but not "a key" arrives',
    'opened by "start", then the client says "no", then the client says "no", then the client says "no", which is its end',
    'opened by "start", then the client says "yes", then 5000 ms pass, which is its end',
    'opened by "start", then the client says "yes", then look ends with the error "an error", which is its end',
    'opened by "start", then the client says "yes", then look ends with "something", then "a key" arrives, then the event "a whisper" comes'
  ]) t.ok(names.includes(name), name)
  t.ok(configurations > 20)
})

await t.test('paths are walked over the wire, too', async t => {
  await testAgent(t, agentWith(everything), { cases, ways: overWire, only: 'look ends' })
  await testAgent(t, countdown, { ways: overWire, cases: { opening: { two: '2', none: 'x' } } })
})

await t.test('work that is no chart is played, as a function and as a generator, in a hybrid agent too', async t => {
  const negotiate: AgentDefinition['negotiate'] = ({ message }) => (textOf(message) === 'a deal' ? accepted({ euros: 5 }) : reply('What?'))
  const opening = { 'a deal': 'a deal' }
  await testAgent(t, agentWith(async () => {}, { negotiate }), { cases: { opening }, ways: inProcess })
  await testAgent(t, agentWith(async function* () { yield progress() }), { ways: ['in process', 'over WebSocket'] })
})

await t.test('steered messages reach a chart that works; queued ones are neither taken nor refused there', async t => {
  const work = setupWork({}).createMachine({ initial: 'on', states: { on: { on: { 'message.received': 'off' } }, off: { type: 'final' } } })
  const steered = await planFor(agentWith(work, { messages: 'steer' }))
  t.ok(steered.paths.some(({ name }) => name === 'opened by "start", then the client says "an answer", which is its end'))
  await testAgent(t, agentWith(work, { messages: 'steer' }), { ways: ['in process', 'in process, killed before every step'] })
  const queued = await planFor(agentWith(work, { messages: 'queue' }))
  t.strictSame(queued.paths.map(({ name }) => name), ['opened by "start", but not "an authorization" arrives', 'opened by "start", then the client cancels'])
})

await t.test('a task may be opened where there are others', async t => {
  const work = setupWork({ guards: { hasOne: (_, count: number) => count > 0 } }).createMachine({
    context: ({ input }) => ({ count: input.earlierArtifacts.length }),
    initial: 'looking',
    states: { looking: { always: [{ guard: ({ context }) => (context as { count: number }).count === 2, target: 'two' }, { target: 'other' }] }, two: { type: 'final' }, other: { type: 'final' } }
  })
  const opening = { two: { words: 'go', earlier: ['a', { name: 'b', parts: [text('b')] }] }, none: 'go' }
  const { states } = await testAgent(t, agentWith(work), { cases: { opening }, ways: ['the chart', 'in process', 'in process, killed before every step'] })
  t.strictSame(states.missing, [])
})

await t.test('what is not reached is told, with the reason', async t => {
  const { states, transitions, guards } = await testAgent({ test: async (_, run) => run({ test: async (_, walk) => walk(undefined as never) }) }, agentWith(everything), { cases: { messages: { yes: 'yes' } }, ways: ['the chart'] })
  t.ok(states.missing.includes('all.tired'))
  for (const line of [
    'all.asking on message.received (branch 2) to tired: no message of the cases is taken here',
    'all.asking on message.received (branch 3) stays: no message of the cases is taken here',
    'all.listening on heard (branch 1) to done: no event of the cases is a heard that it takes'
  ]) t.ok(transitions.missing.includes(line), line)
  t.ok(guards.missing.includes('isYes is false: no case makes it so'))
  const never = setupWork({ types: { events: {} as { readonly type: 'never' } }, actors: { gone: fromPromise(async () => {}) } }).createMachine({
    initial: 'a',
    states: {
      a: { always: { guard: () => false, target: 'b' }, after: { 10: 'b', 20: 'c' }, invoke: { src: 'gone', onDone: 'b', onError: 'c' } },
      b: { on: { never: 'c' } },
      c: { type: 'final' }
    }
  })
  const told = await testAgent({ test: async (_, run) => run({ test: async (_, walk) => walk(undefined as never) }) }, agentWith(never), { cases: { results: { gone: {} } }, ways: ['the chart'] })
  t.strictSame(told.transitions.missing.map(line => line.slice(line.indexOf(': ') + 2)).toSorted(), [
    'another timer, or an end, always comes first', 'its guard never holds first', 'no error is among the results of the cases',
    'no event of the cases is a never that it takes', 'no result of the cases leads there'
  ])
})

await t.test('a chart that throws is told of, and fails its task', async t => {
  const work = setupWork({ actors: { look: fromPromise<{ name: string }>(async () => ({ name: 'x' })) } }).createMachine({
    initial: 'looking',
    states: { looking: { invoke: { src: 'look', onDone: { target: 'done', actions: assign(({ event }) => ({ name: event.output.name.length })) } } }, done: { type: 'final' } }
  })
  const { notes } = await agentTests(agentWith(work), { cases: { results: { look: { nothing: undefined } } } })
  t.match(notes(), [/^the chart throws, opened by "start", then look ends with "nothing": TypeError: Cannot read/])
  await testAgent(t, agentWith(work), { cases: { results: { look: { nothing: undefined } } }, ways: inProcess })
})

await t.test('so is one whose output is none', async t => {
  const work = setupWork({ types: { context: typed<{ parts: never[] }>() } }).createMachine({ context: { parts: [] }, initial: 'a', states: { a: { type: 'final' } }, output: ({ context }) => ({ artifact: { parts: context.parts } }) })
  const { notes } = await agentTests(agentWith(work))
  t.match(notes()[0], /^the chart throws, opened by "start": A2AError: .*artifact\.parts/)
  await testAgent(t, agentWith(work), { ways: ['the chart', 'in process', 'in process, killed before every step'] })
})

await t.test('what cannot be planned is refused with what to do', async t => {
  const counting = setupWork({ types: { context: {} as { n: number } } }).createMachine({ context: { n: 0 }, initial: 'a', states: { a: { tags: 'input-required', on: { 'message.received': { actions: assign({ n: ({ context }) => context.n + 1 }) } } } } })
  t.match(await rejection(planFor(agentWith(counting), { limit: 20 })), { name: 'RangeError', message: /more than 20 configurations.*cases\.memory/s })
  const { configurations } = await planFor(agentWith(counting), { cases: { memory: context => Math.min((context as { n: number }).n, 2) } })
  t.equal(configurations, 3)
  t.match(await rejection(planFor(agentWith(everything), { cases: { message: {} } as Cases })), { name: 'TypeError', message: /cases has no message; it may have opening, messages,/ })
  t.match(await rejection(planFor(defineAgent({ card, negotiate: () => reply('x') }))), { name: 'TypeError', message: /does no tasks/ })
  const picky = agentWith(async () => {}, { negotiate: ({ message }) => (textOf(message) === 'yes' ? accepted() : reply('no')) })
  t.match(await rejection(planFor(picky)), { message: /"start" opens no task/ })
  t.match(await rejection(planFor(picky, { cases: { opening: { yes: 'yes', no: 'no' } } })), { message: /"no" opens no task/ })
  const skills = [{ id: 'a', name: 'a', description: 'a', tags: [], examples: ['no', 'yes'] }]
  t.ok((await planFor({ ...picky, card: { ...picky.card, skills } })).paths.every(({ name }) => name.startsWith('opened by "yes"')))
  t.match(await rejection(agentTests(agentWith(everything), { cases, only: 'nowhere' })), { name: 'RangeError', message: /No path has "nowhere" in its name/ })
})

await t.test('a runtime that does something else than its chart is caught, at the step where it does', async t => {
  const chart = (words: string, more: object = {}) => setupWork({}).createMachine({
    initial: 'asking',
    states: { asking: { tags: 'input-required', meta: { prompt: words }, on: { 'message.received': 'done' } }, done: { type: 'final' }, ...more },
    output: { artifact: { artifactId: 'a', name: 'a.txt', parts: [text(words)] } }
  })
  const agent = agentWith(chart('Well?'))
  const { paths } = await planFor(agent)
  const [path] = paths.filter(({ name }) => name.includes('which is its end'))
  if (!path) throw new TypeError('There is no such path.')
  const told = await rejection(walk(agent, new Stage(chart('How?')), path, at))
  t.match(told, { name: 'PathError', step: 'the opening', wanted: [{}, {}, { message: { parts: [{ text: 'Well?' }] } }], found: [{}, {}, { message: { parts: [{ text: 'How?' }] } }] })
  t.throws(() => explained(told), { message: /the task has to tell\n {2}wanted: [^]*Well\?[^]*found: [^]*How\?/ })
  t.throws(() => explained(new Error('another')), { message: 'another' })
  t.throws(() => walkChart(path, 'live', new CoverageLog(chart('How?', { asking: { type: 'final' } }))), { name: 'PathError', step: 'the opening', wanted: { status: 'active' }, found: { status: 'done' } })
  const deaf = agentWith(async () => {}, { negotiate: () => reply('I say nothing.') })
  t.match(await rejection(walk(deaf, new Puppet(), path, at)), { name: 'PathError', step: 'the opening', wanted: 'a task' })
  const [refused] = paths.filter(({ name }) => name.includes('but not'))
  const step = refused?.steps.at(-1)
  if (!refused || !step) throw new TypeError('There is no such path.')
  const { refusal: _, ...taken } = step
  t.match(await rejection(walk(agent, new Stage(chart('Well?')), { ...refused, steps: [taken] }, at)), { step: '"an authorization" arrives', found: 'UnsupportedOperation' })
  t.match(await rejection(walk(agent, new Stage(chart('Well?')), { ...path, steps: path.steps.map(step => ({ ...step, refusal: 'TaskNotFound' })) }, at)), { wanted: 'TaskNotFound', found: 'it was taken' })
})

await t.test('answers are read by the schemas of their questions, and refused by them', async t => {
  const size = z.coerce.number().min(10)
  const work = setupWork({ types: { context: typed<{ size: number }>(), events: typed<AuthorizationReceived>() } }).createMachine({
    context: { size: 0 },
    initial: 'asking',
    states: {
      asking: { tags: 'input-required', meta: { prompt: 'How long?', schema: size }, on: { 'message.received': { target: 'waiting', actions: assign({ size: ({ event }) => answerOf(event, size) }) } } },
      waiting: { tags: 'auth-required', meta: { prompt: 'Log in.', schema: z.object({ account: z.string() }) }, on: { 'authorization.received': 'done' } },
      done: { type: 'final' }
    },
    output: ({ context }) => ({ artifact: `${context.size} cm` })
  })
  const cases = { messages: { ten: '10', 'a word': 'long' }, authorizations: { 'an account': { account: 'a' }, nothing: {} } }
  const { paths } = await planFor(agentWith(work), { cases })
  t.ok(paths.some(({ steps }) => steps.some(({ move, refusal }) => move.type === 'authorization' && refusal === 'InvalidParams')))
  t.strictSame((await testAgent(t, agentWith(work), { cases, ways: inProcess })).states.missing, [])
})

await t.test('a chart that says something and asks the same again is followed', async t => {
  const work = setupWork({}).createMachine({
    initial: 'asking',
    states: { asking: { tags: 'input-required', on: { 'message.received': { target: 'asking', reenter: true, actions: emit(progress({ parts: [text('Again.')], metadata: { n: 1 }, extensions: ['urn:x'] })) } }, after: { 1000: 'done' } }, done: { type: 'final' } }
  })
  await testAgent(t, agentWith(work), { ways: inProcess })
})

await t.test('a chart is drawn for mermaid', t => {
  const work = setupWork({ actors: { look: fromPromise(async () => {}) }, guards: { ok: () => true } }).createMachine({
    id: 'm',
    type: 'parallel',
    states: {
      left: { initial: 'a', states: { a: { on: { 'message.received': { guard: 'ok', target: 'b' } }, tags: 'input-required' }, b: { invoke: { src: 'look', id: 'look', onDone: { guard: () => true, target: 'a' }, onError: { guard: { type: 'ok' }, target: 'c' } }, after: { 5: 'c' } }, c: { type: 'final' } } },
      right: { always: { guard: () => false, actions: emit(progress()) } }
    }
  })
  const nested = setupWork({ actors: { look: fromPromise(async () => {}) } }).createMachine({
    initial: 'one',
    states: { one: { initial: 'a', states: { a: { invoke: { src: 'look', onDone: 'b' } }, b: { type: 'final' } }, onDone: 'two' }, two: { always: 'three' }, three: {} }
  })
  t.match(chartMermaid(nested), /: look is done[^]*_one --> .*_two: one is done[^]*_two --> .*_three$/m)
  t.equal(chartMermaid(setupWork({}).createMachine({})), 'stateDiagram-v2\n')
  t.equal(chartMermaid(work), `stateDiagram-v2
  state "left" as m_left {
    [*] --> m_left_a
    state "a #input-required" as m_left_a
    state "b" as m_left_b
    state "c" as m_left_c
    m_left_a --> m_left_b: message.received [ok]
    m_left_b --> m_left_a: look is done [a condition]
    m_left_b --> m_left_c: look fails [ok]
    m_left_b --> m_left_c: after 5 ms
    m_left_c --> [*]
  }
  --
  state "right" as m_right
`)
  t.match(chartMermaid(chartOf(agentWith(async () => {})).machine), /state "asking #input-required"/)
  t.end()
})

await t.test('the virtual clock fires what Node could not keep after a millisecond, as Node does', t => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const fired: string[] = []
  for (const [name, delayMs] of [['past', -1], ['too long', 2 ** 31], ['none', Number.NaN], ['later', 2]] as const) clock.setTimeout(() => fired.push(name), delayMs)
  clock.increment(1)
  t.strictSame(fired, ['past', 'too long', 'none'])
  clock.increment(1)
  t.strictSame(fired.at(-1), 'later')
  t.equal(clock.now(), Date.parse('2026-01-01T00:00:00.002Z'))
  t.end()
})
