import t from 'tap'
import { z } from 'zod'
import { agentTests, testAgent, type Cases } from '../../../adapters/testing/index.ts'
import { describeBargainMove } from '../../../adapters/testing/negotiation/model.ts'
import { planFor } from '../../../adapters/testing/plan/plan.ts'
import { walkBargain } from '../../../adapters/testing/negotiation/run.ts'
import { DRIVERS } from '../../../adapters/testing/run/drivers.ts'
import {
  accepted,
  artifact,
  declined,
  defineAgent,
  negotiation,
  offer,
  reply,
  setupWork,
  text,
  typed
} from '../../../runtime/index.ts'
import { isNegotiation } from '../../../runtime/negotiation/negotiation.ts'
import { rejection } from '../../fixtures/runtime/runtime-helpers.ts'
import { someWalks } from '../../fixtures/charts/some-walks.ts'

const card = { name: 'Gardener' }
const price = z.object({ euros: z.number().positive() })
const bargaining = negotiation({
  terms: price,
  rounds: 7,
  offerMs: 3600_000,
  respond: () => reply('It is never asked here.')
})

/** Mows for the terms that were agreed upon; for many euros it asks first. */
const mowing = setupWork({ types: { context: typed<{ terms: { euros: number } }>() } }).createMachine({
  id: 'mow',
  initial: 'looking',
  context: ({ input }) => ({ terms: price.parse(input.terms) }),
  states: {
    looking: { always: [{ guard: ({ context }) => context.terms.euros > 50, target: 'asking' }, { target: 'done' }] },
    asking: { tags: 'input-required', on: { 'message.received': 'done' } },
    done: { type: 'final' }
  },
  output: ({ context }) => ({ artifact: { name: 'receipt', parts: [text(`${context.terms.euros}`)] } })
})
const gardener = defineAgent({ card, negotiate: bargaining, work: mowing })
const cases: Cases = { terms: { much: { euros: 60 }, little: { euros: 10 } } }

await t.test('a negotiation is walked along all paths: offers, deals, refusals, expiry, restarts', async t => {
  await testAgent(someWalks(t), gardener, {
    cases,
    only: 'negotiating',
    drivers: ['in process', 'in process, restarted before every step', 'in process, killed before every step']
  })
  await testAgent(someWalks(t), gardener, { cases, only: 'an offer", then', drivers: ['over WebSocket'] })
  const few = 'then respond answers "an offer", then the client accepts the offer'
  await testAgent(someWalks(t), gardener, {
    cases,
    only: few,
    drivers: [
      'over WebSocket, killed before every step',
      'over JSON-RPC',
      'over JSON-RPC, with the official client',
      'over REST, with the official client'
    ]
  })
  const crowd = 'the client says "words", then the client says "words", then the client says "words"'
  await testAgent(someWalks(t), gardener, {
    cases,
    only: crowd,
    drivers: ['over JSON-RPC, with the official client', 'over REST, with the official client']
  })
})

await t.test('a negotiation is walked over MCP: forms of offers, moves as arguments, refusals', async t => {
  await testAgent(someWalks(t), gardener, { cases, only: 'negotiating', drivers: ['over MCP'] })
  const offered = 'the client says "words", then respond answers "an offer", then'
  for (const only of [
    `${offered} the client accepts the offer`,
    `${offered} the client declines the offer`,
    `${offered} the client proposes "much", then respond answers "a reply", then the client proposes "little"`,
    `${offered} 3600000 ms pass, then the client accepts the offer`,
    'the client says "words", then respond answers "rejected"',
    'the client says "words", then the client says "words", then the client says "words"'
  ])
    await testAgent(t, gardener, { cases, only: `negotiating: ${only}`, drivers: ['over MCP'] })
  // Terms that a form shows as JSON, and terms that it cannot show.
  const kinds: z.ZodType<Record<string, unknown>>[] = [
    z.record(z.string(), z.number().nullable()),
    z.looseObject({ a: z.number() })
  ]
  for (const terms of kinds) {
    const negotiate = negotiation({ terms, respond: () => declined('no') })
    await testAgent(t, defineAgent({ card, negotiate, work: async () => {} }), {
      cases: { terms: { some: { a: 60 }, more: { a: 6, b: 2 }, other: { a: 1, b: null } } },
      only: `negotiating: ${offered} the client proposes`,
      drivers: ['over MCP'],
      kind: 'shortest'
    })
  }
})

await t.test('its paths have unique sentences, and cover every kind of answer', async t => {
  const { bargains } = await planFor(gardener, { cases })
  const names = bargains.map(({ name }) => name)
  t.equal(new Set(names).size, names.length)
  for (const name of [
    'negotiating: the client says "words", then respond answers "accepted, on its own terms"',
    'negotiating: the client says "words", then respond answers "rejected"',
    'negotiating: the client says "words", then respond throws "an error"',
    'negotiating: the client says "words", then respond answers "an offer", then 3600000 ms pass, then the client accepts the offer',
    'negotiating: the client says "words", then respond answers "an offer", then the client declines the offer',
    'negotiating: the client says "words", then the client says "words", then the client says "words"',
    'negotiating: the client proposes "what are no terms"'
  ])
    t.ok(names.includes(name), name)
  const answers = new Set(
    bargains.flatMap(({ steps }) => steps.flatMap(({ heard }) => heard.flatMap(({ answer }) => Object.keys(answer))))
  )
  t.strictSame(answers, new Set(['message', 'task', 'rejected', 'error']))
})

await t.test('the paths of the work start with a deal on each of the terms', async t => {
  const { paths } = await planFor(gardener, { cases })
  t.strictSame(
    paths.map(({ name }) => name),
    [
      'opened by "a deal on much", but not "an authorization" arrives',
      'opened by "a deal on much", then the client cancels',
      'opened by "a deal on much", then the client says "an answer", which is its end',
      'opened by "a deal on little", which is its end'
    ]
  )
  const { states } = await testAgent(someWalks(t), gardener, { cases, only: 'opened by' })
  t.strictSame(states.missing, [])
  const named = await planFor(gardener, {
    cases: { ...cases, opening: { go: 'Go ahead.', more: { words: 'More.', earlier: [artifact('a').artifact] } } }
  })
  t.ok(
    named.paths.some(
      ({ name, opening }) => name.startsWith('opened by "more on little"') && opening.earlier.length === 1
    )
  )
})

await t.test('terms are generated from their schema, and have to be given if that is opaque', async t => {
  const { paths, bargains } = await planFor(gardener)
  t.match(paths[0]?.name, /^opened by "a deal on \{"euros":\d+\}"/)
  t.ok(bargains.some(({ name }) => /the client proposes "\{"euros":\d+\}"/.test(name)))
  const odd = defineAgent({
    card,
    negotiate: negotiation({
      terms: z.custom<{ a: number }>(value => Object(value).a === 1),
      respond: () => declined('no')
    }),
    work: async () => {}
  })
  t.match(await rejection(planFor(odd)), { name: 'TypeError', message: /export const cases = \{\s+terms: / })
  t.match(await rejection(planFor(odd, { cases: { terms: { one: { a: 1 }, none: {} } } })), {
    name: 'A2AError',
    code: 'InvalidParams'
  })
})

await t.test('possible answers of respond can be given, also invalid ones', async t => {
  const results = {
    respond: { offered: offer({ euros: 5 }), 'no terms': offer({ euros: -5 }), agreed: accepted({ euros: -1 }) }
  }
  const { bargains } = await planFor(gardener, { cases: { ...cases, results, requests: { hello: 'Hello.' } } })
  t.ok(
    bargains.some(
      ({ name, steps }) =>
        name === 'negotiating: the client says "hello", then respond answers "no terms"' &&
        steps.some(({ heard }) => heard.some(({ answer }) => 'error' in answer && answer.error === 'InternalError'))
    )
  )
  await testAgent(someWalks(t), gardener, {
    cases: { ...cases, results },
    only: 'negotiating',
    drivers: ['in process', 'in process, killed before every step']
  })
})

await t.test('the shortest or all simple paths are walked on request', async t => {
  const shortest = await planFor(gardener, { cases, kind: 'shortest' })
  t.ok(shortest.bargains.length > 5 && shortest.bargains.length < 30, `${shortest.bargains.length}`)
  await testAgent(someWalks(t), gardener, { cases, kind: 'shortest', only: 'negotiating', drivers: ['in process'] })
  const simple = await planFor(gardener, {
    cases: { terms: { much: { euros: 60 } }, requests: {}, results: { respond: { offered: offer({ euros: 5 }) } } },
    kind: 'simple'
  })
  t.ok(simple.bargains.length > shortest.bargains.length / 10)
})

await t.test('an agent that deviates from its negotiation chart is detected at that step', async t => {
  const { bargains } = await planFor(gardener, { cases })
  const path = bargains.find(({ name }) =>
    name.endsWith('then respond answers "an offer", then the client accepts the offer')
  )
  if (!path || !isNegotiation(gardener.negotiate)) throw new TypeError('There is no such path.')
  const manner = DRIVERS['in process']
  const wrong = {
    ...path,
    steps: path.steps.map(step => (step.move.type === 'accept' ? { ...step, heard: [] } : step))
  }
  t.match(await rejection(walkBargain(gardener, gardener.negotiate, wrong, manner)), {
    name: 'PathError',
    step: 'the client accepts the offer',
    wanted: { answers: [] },
    found: { answers: [{ answer: { task: { euros: 60 } } }] }
  })
  t.equal(describeBargainMove({ type: 'time', delayMs: 5 }), '5 ms pass')
  const silent = {
    ...path,
    steps: path.steps
      .slice(0, 1)
      .map(step => ({ ...step, asks: true, heard: path.steps.flatMap(({ heard }) => heard) }))
  }
  t.match(
    await rejection(walkBargain(gardener, gardener.negotiate, silent, DRIVERS['over WebSocket'])),
    { name: 'PathError', found: { answers: [] } },
    'what does not come over a socket is waited for, not for ever'
  )
})

await t.test('only paths with a given text are walked, and the others are not reported', async t => {
  const { tests, notes } = await agentTests(gardener, {
    cases,
    only: 'negotiating',
    drivers: ['the chart', 'in process', 'in process on SQLite, killed before every step']
  })
  t.strictSame(new Set(tests.map(({ driver }) => driver)), new Set(['in process']))
  t.strictSame(notes(), [])
  t.match(tests[0]?.steps(), [{ move: /^the client /, states: [], transitions: [] }])
})
