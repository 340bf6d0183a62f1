import * as fc from 'fast-check'
import t from 'tap'
import { ActorPlayer, firstDifference, ModelPlayer, RuntimePlayer, type Player } from '../../fixtures/charts/players.ts'
import { randomChart, sourceOf, type RandomChart } from '../../fixtures/charts/random-charts.ts'
import { IS_DEEP, IS_WHOLE, SEED } from '../../fixtures/sample.ts'

/** So many charts are quick; a deep run goes on for a minute, and with `--all` for ten. */
const SOME = 40
const MINUTES = IS_WHOLE ? 10 : 1

function playersOf(chart: RandomChart): Record<string, Player> {
  return {
    'the compiled chart': new ActorPlayer(chart, true),
    // What the model says of charts below a chart is tested where it is made.
    ...(!chart.kid && { 'the model': new ModelPlayer(chart) }),
    'a runtime': new RuntimePlayer(chart),
    'a runtime that is killed before each step': new RuntimePlayer(chart, true)
  }
}

await t.test(
  'random charts take the same steps as an actor of XState: in the model, compiled, and in a runtime that is killed',
  async t => {
    t.capture(console, 'warn')
    const walks = fc.record({ chart: randomChart, walk: fc.array(fc.nat(100), { minLength: 4, maxLength: 8 }) })
    const differs = fc.asyncProperty(walks, async ({ chart, walk }) => {
      const difference = await firstDifference(chart, walk, playersOf(chart))
      if (difference !== undefined) throw new Error(difference)
    })
    const { failed, numRuns, counterexample, errorInstance } = await fc.check(
      differs,
      IS_DEEP ? { seed: SEED, numRuns: 1e6, interruptAfterTimeLimit: MINUTES * 60_000 } : { seed: SEED, numRuns: SOME }
    )
    t.comment(`${numRuns} charts, SEED=${SEED}`)
    t.notOk(failed, 'no chart differs', {
      difference: String(errorInstance),
      ...(counterexample && { source: sourceOf(counterexample[0].chart) })
    })
  }
)
