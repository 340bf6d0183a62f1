import t from 'tap'
import { ProofRun, TestRun } from '../../../../adapters/cli/dev/runs.ts'
import { shownProof } from '../../../../adapters/cli/test/prove.ts'
import type { Proving, TestProgress } from '../../../../adapters/inspector/test-result.ts'
import { proveAgent } from '../../../../adapters/testing/index.ts'
import { defineAgent, fromPromise, propertiesOf, setupWork } from '../../../../runtime/index.ts'
import { until } from '../../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'

const card = { name: 'Lamp' }

await t.test('a proof is shown with the reason of each verdict, and the steps of each counterexample', async t => {
  const work = setupWork({
    actors: { hand: fromPromise(async () => 'x') },
    guards: { isDark: ({ event }) => Boolean(Object(event).output) }
  }).createMachine({
    id: 'lamp',
    initial: 'off',
    states: {
      off: { invoke: { src: 'hand', onDone: [{ guard: 'isDark', target: 'on' }, 'off'], onError: 'broken' } },
      on: { after: { 10: 'off' } },
      broken: { type: 'final' }
    }
  })
  const { eventually, never, terminal } = propertiesOf(work)
  const agent = defineAgent({
    card,
    work,
    properties: {
      'it is never lit': never('on'),
      'it is over': eventually(terminal),
      "it's over": eventually(terminal, { fairness: 'choice' })
    }
  })
  const shown = shownProof(
    await proveAgent(agent, { cases: { results: { hand: { x: 'x', no: new Error('no') } } } }),
    'my lamp.ts',
    5
  )
  t.match(shown, { atMs: 5, head: /^\d configurations, all, opened by "start"$/, bounds: [] })
  const [lit, over, choice] = shown.verdicts
  t.strictSame(lit, {
    property: 'it is never lit',
    outcome: 'confirmed',
    means: 'it does not hold: the real chart, with the cases, walks this counterexample, which is the shortest',
    says: '',
    walk: {
      steps: [
        { move: 'opened by "start"', states: ['lamp', 'lamp.off'], transitions: [], told: 'tells SUBMITTED, WORKING' },
        {
          move: 'hand ends with "x"',
          states: ['lamp', 'lamp.on'],
          transitions: ['lamp.off on xstate.done.actor.0.lamp.off (branch 1) to on'],
          told: ''
        }
      ],
      loops: 0,
      ending: '',
      alone: 'npx taskchart prove "my lamp.ts" --only "it is never lit"'
    }
  })
  t.match(over?.walk, { loops: 2, ending: 'and for ever again:' })
  t.match(choice, {
    outcome: 'proved',
    says: /^in \d configurations, if everything that is possible again and again happens in the end$/
  })
  const open = shownProof(await proveAgent(agent, { only: 'lit' }), 'lamp.ts', 5)
  t.match(open, {
    bounds: ['No case gives results of hand, so guards hold both ways from there.'],
    verdicts: [{ outcome: 'possible', says: 'if isDark' }]
  })
  t.match(shownProof(await proveAgent(agent, { limit: 1 }), 'lamp.ts', 5).verdicts.at(-1), {
    outcome: 'unknown',
    says: 'there are more than 1 configurations'
  })
  const waits = propertiesOf(work).leadsTo('on', 'off')
  t.match(
    shownProof(await proveAgent(defineAgent({ card, work, properties: { waits } }), { only: 'waits' }), 'lamp.ts', 5)
      .verdicts,
    [{ says: /, if whatever waits goes on$/ }]
  )
})

await t.test('a module that does not load, and a command that is stopped, give no proof', async t => {
  const file = `${t.testdir({ 'agent.mjs': "console.log('{}')\nthrow new Error('no such thing')" })}/agent.mjs`
  const told: (Proving | TestProgress)[] = []
  const ended = async () => {
    await until(() => told.at(-1)?.isRunning === false)
    return told.splice(0)
  }
  const proofs = new ProofRun(file, 'agent.mjs', new TestClock())
  proofs.stop()
  proofs.start(one => told.push(one))
  proofs.start(one => told.push(one))
  t.match(await ended(), [{ isRunning: true }, { isRunning: false, error: /no such thing/ }], 'it runs once')
  proofs.start(one => told.push(one))
  proofs.stop()
  t.strictSame(await ended(), [
    { type: 'proving', isRunning: true },
    { type: 'proving', isRunning: false, error: 'The proof did not start.' }
  ])
  const tests = new TestRun(file)
  tests.start(one => told.push(one))
  tests.stop()
  t.match(await ended(), [{ isRunning: true }, { isRunning: false, error: 'The tests did not start.' }])
})
