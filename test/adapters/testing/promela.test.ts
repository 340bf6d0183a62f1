import { join } from 'node:path'
import t from 'tap'
import { promelaOf } from '../../../adapters/testing/proof/prove.ts'
import { proveAgent } from '../../../adapters/testing/index.ts'
import { formulaOf } from '../../../adapters/testing/proof/promela.ts'
import { defineAgent, fromPromise, propertiesOf, setupWork } from '../../../runtime/index.ts'
import { generatedAgents } from '../../fixtures/charts/generated-charts.ts'
import { SEED, sampleOf } from '../../fixtures/sample.ts'
import { NO_SPIN, spinVerdicts } from '../../fixtures/charts/spin.ts'

const lamp = setupWork({
  actors: { hand: fromPromise(async () => 'x') },
  guards: { isDark: ({ event }) => Boolean(Object(event).output) }
}).createMachine({
  id: 'lamp',
  initial: 'off',
  states: {
    off: {
      invoke: {
        src: 'hand',
        onDone: [
          { guard: 'isDark', target: 'on' },
          { target: 'off', reenter: true }
        ],
        onError: 'broken'
      }
    },
    on: { after: { 10: 'off' } },
    broken: { on: { 'message.received': 'off' } }
  }
})
const { always, atMostOnce, done, event, eventually, leadsTo, never, precedes, terminal, told } = propertiesOf(lamp)
const agent = defineAgent({
  card: { name: 'Lamp */ #1\n' },
  work: lamp,
  properties: {
    'it is lit': eventually('on'),
    'it is never lit': never('on'),
    'it works or asks': leadsTo('off', 'broken', { fairness: 'choice' })
  }
})

await t.test(
  'a model has a label for each configuration, an option for each step, and a formula for each property',
  async t => {
    const model = await promelaOf(agent)
    t.match(
      model,
      '/* Written by taskchart prove --promela\n   Lamp * / #1 : 8 configurations.\n   No case gives results of hand, so guards hold both ways from there.\n'
    )
    t.match(model, '\n   Those under CHOICE need: spin -DCHOICE -a model.pml\n*/\n')
    t.match(
      model,
      '\n#define rests (m == 3 || m == 4 || m == 5 || m == 7 || m == 10 || m == 12)\n#define p1_a (m == 4 || m == 8 || m == 9 || m == 10)\n'
    )
    t.match(model, '\n#define p4_a false\n', 'nothing throws')
    t.match(
      model,
      '\n  :: m = 2; m = 1; m = 2; m = 1; m = 3; goto c0 /* opened by "start" */\n  fi;\nc0: m = 0; settles /* "off" */\n  if\n'
    )
    t.match(
      model,
      '  :: goes(false, 0, 1, 2) m = 2; m = 1; m = 3; goto c2 /* hand ends with "done" (if not isDark) */\n'
    )
    t.match(model, '  :: goes_on(false) m = 8; m = 1; m = 3; goto c2 /* 10 ms pass */\n')
    t.match(
      model,
      'c3: m = 0; settles /* "broken" */\n  if\n  :: quits m = 2; m = 1; m = 11; m = 1; m = 12; goto c7 /* the client cancels */\n  :: goto ended\n  fi;\nc4: m = 0; goto end_gone; /* "off" canceled */\n'
    )
    t.match(
      model,
      '\n#ifndef CHOICE\n/* eventually: it is lit */\nltl p1 { ([] <> round) -> (<> p1_a) }\n#endif\n/* never: it is never lit */\nltl p2 { !<> (p2_a) }\n#ifdef CHOICE\n'
    )
    t.notMatch(
      await promelaOf(agent, { only: 'lit', cases: { results: { hand: { light: 'x' } } } }),
      /under CHOICE|No case/
    )
  }
)

const bell = setupWork({ actors: { hand: fromPromise(async () => 'x') } }).createMachine({
  id: 'bell',
  type: 'parallel',
  states: {
    clapper: { initial: 'left', states: { left: { after: { 10: 'right' } }, right: { after: { 10: 'left' } } } },
    rope: {
      initial: 'held',
      states: { held: { invoke: { src: 'hand', onDone: 'free', onError: 'free' } }, free: { type: 'final' } }
    },
    clock: { initial: 'early', states: { early: { after: { 15: 'late' } }, late: { type: 'final' } } }
  }
})
const bells = propertiesOf(bell)
const ringing = defineAgent({
  card: { name: 'Bell' },
  work: bell,
  deadlineMs: 1000,
  properties: {
    'it gets free': bells.eventually(bells.any('rope.free', terminal)),
    'it gets late': bells.leadsTo('rope.free', bells.any('clock.late', terminal)),
    'it stays held': bells.always('rope.held'),
    'it swings back': bells.eventually('clapper.right')
  }
})

await t.test('a step says who still waits after it', async t => {
  const model = await promelaOf(ringing, { only: 'it ' })
  t.match(
    model,
    /:: goes\(\(k == \d\), \d, \d, \d\).* 10 ms pass/,
    'the clapper swings while the hand and the deadline wait'
  )
  t.match(model, / \/\* \{"clapper":"right","rope":"free","clock":"late"\} late \*\/\n/)
})

await t.test('SPIN decides under the same fairness', { skip: NO_SPIN }, async t => {
  const model = await promelaOf(ringing, { only: 'it ' })
  t.strictSame(
    await spinVerdicts(join(t.testdir(), 'bell'), model, 'progress'),
    (await proveAgent(ringing, { only: 'it ' })).verdicts.map(({ outcome }) => outcome === 'proved')
  )
})

await t.test('each word is a formula', t => {
  const textOf = (property: Parameters<typeof formulaOf>[0]) => formulaOf(property, 'p').text
  const since = { after: 'on' } as const
  t.strictSame([never('on'), never('on', since), always('on'), always('on', since)].map(textOf), [
    '!<> (p_a)',
    '!<> (p_after && <> (!p_after && <> (p_a)))',
    '!<> (rests && !p_a)',
    '!<> (p_after && <> (!p_after && <> (rests && !p_a)))'
  ])
  t.strictSame(
    [atMostOnce('on'), atMostOnce(done('hand')), atMostOnce('on', since), atMostOnce(done('hand'), since)].map(textOf),
    [
      '!<> (p_a && <> ((rests && !p_a) && <> p_a))',
      '!<> (p_a && <> (between && <> p_a))',
      '!<> (p_after && <> (!p_after && <> (p_a && !p_after && (!p_after U ((rests && !p_a) && !p_after && (!p_after U p_a))))))',
      '!<> (p_after && <> (!p_after && <> (p_a && !p_after && (!p_after U (between && !p_after && (!p_after U p_a))))))'
    ]
  )
  t.strictSame([precedes('on', 'off'), precedes('on', 'off', since)].map(textOf), [
    '!(!p_a U (p_b && !p_a))',
    '!<> (p_after && (p_after U (between && (!p_a U (p_b && !p_a)))))'
  ])
  t.strictSame(
    [
      leadsTo('on', told()),
      leadsTo(event('message.received'), 'off', { fairness: 'choice' }),
      eventually(terminal)
    ].map(textOf),
    [
      '([] <> round) -> (!<> (still && ((!p_b && !rests) U (p_a && [] !p_b))))',
      '(<> settled) -> (!<> (p_a && [] !p_b))',
      '([] <> round) -> (<> p_a)'
    ]
  )
  t.end()
})

await t.test('a chart with more configurations than the limit has no model', async t => {
  await t.rejects(promelaOf(agent, { limit: 1 }), {
    name: 'RangeError',
    message: /^there are more than 1 configurations\. Raise that bound/
  })
})

await t.test('SPIN and the proof agree on generated charts', { skip: NO_SPIN, timeout: 1_000_000 }, async t => {
  // Some of these charts have states that nobody would write.
  t.capture(console, 'warn')
  const folder = t.testdir()
  const agents = sampleOf(t, generatedAgents(100, SEED), 3, 20)
  const found = new Set<string>()
  const compare = async ({ agent, cases, fairness, text }: (typeof agents)[number], i: number) => {
    const { verdicts, isWhole, unmodelled } = await proveAgent(agent, { cases, only: '. ', limit: 300 })
    // Timers without an id may add up for ever, and SPIN takes the configurations as they are.
    if (!isWhole || unmodelled.length > 0) return
    const spin = await spinVerdicts(join(folder, `${i}`), await promelaOf(agent, { cases, only: '. ' }), fairness)
    t.strictSame(
      verdicts.map(({ property }, i) => [property, spin[i]]),
      verdicts.map(({ property, outcome }) => [property, outcome === 'proved']),
      `chart ${i + 1}`,
      { chart: text }
    )
    for (const { outcome } of verdicts) found.add(outcome)
  }
  // Two at a time, for most of it is the compiler's.
  const left = agents.entries()
  await Promise.all(
    [1, 2].map(async () => {
      for (const [i, each] of left) await compare(each, i)
    })
  )
  t.ok(found.has('proved') && found.has('confirmed'), 'both verdicts were compared')
})
