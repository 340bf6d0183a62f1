import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { enqueueActions, type AnyStateMachine } from 'xstate'
import { proveChart } from '../../adapters/testing/index.ts'
import { type ChartCases, chartInitialState } from '../../adapters/testing/proof/agent-states.ts'
import { ExplorationBounds } from '../../adapters/testing/bounds.ts'
import { counterexampleIn } from '../../adapters/testing/proof/counterexample.ts'
import { stateSpaceOf, type StateSpace } from '../../adapters/testing/proof/state-space.ts'
import type { Moment } from '../../machines/properties/terms.ts'
import type { ToWork } from '../../machines/task-events.ts'
import type { Property } from '../../runtime/index.ts'
import { context, contextCases, contextProperties } from '../fixtures/charts/context-properties.ts'
import { mutantsOf, withChange } from '../fixtures/charts/chart-mutants.ts'
import { negotiation, negotiationCases, negotiationProperties } from '../fixtures/charts/negotiation-properties.ts'
import { sampleOf } from '../fixtures/sample.ts'
import { task, taskCases, taskProperties } from '../fixtures/charts/task-properties.ts'

interface Proved {
  readonly chart: AnyStateMachine
  readonly properties: Readonly<Record<string, Property>>
  /** One for each input. */
  readonly cases: readonly ChartCases[]
}

const charts = {
  task: { chart: task, properties: taskProperties, cases: [taskCases] },
  negotiation: { chart: negotiation, properties: negotiationProperties, cases: [negotiationCases] },
  context: { chart: context, properties: contextProperties, cases: contextCases }
} satisfies Record<string, Proved>

/** The configurations of a chart, up to several times as many as the real one has. */
function explored(machine: AnyStateMachine, { cases }: Proved): StateSpace[] {
  return cases.map(given =>
    stateSpaceOf(chartInitialState(machine, given).initialState, new ExplorationBounds({ limit: 2000 }))
  )
}

/** The first property that a chart does not have. */
function violatedIn(spaces: readonly StateSpace[], { properties }: Proved): string | undefined {
  return Object.entries(properties).find(([, property]) => spaces.some(space => counterexampleIn(space, property)))?.[0]
}

for (const [name, proved] of Object.entries(charts)) {
  await t.test(`the ${name} chart has its properties`, async t => {
    for (const cases of proved.cases) {
      const { verdicts, configurations, isWhole } = await proveChart(proved.chart, proved.properties, cases)
      t.strictSame(
        verdicts.filter(({ outcome }) => outcome !== 'proved'),
        []
      )
      t.ok(isWhole)
      t.comment(`${verdicts.length} properties, ${configurations} configurations`)
    }
  })

  await t.test(`each mistake in one place of the ${name} chart is found, or changes nothing`, t => {
    const original = explored(proved.chart, proved)
    // A mistake may make the chart go round for ever.
    const mutants = mutantsOf(withChange(proved.chart, ['options'], { maxIterations: 100 }))
    let alike = 0
    for (const { name, machine } of sampleOf(t, mutants, 1, 40)) {
      const spaces = explored(machine, proved)
      const isViolated = violatedIn(spaces, proved) !== undefined
      t.equal(
        spaces.every((space, i) => isAlike(original[i] as StateSpace, space)),
        !isViolated,
        name
      )
      alike += isViolated ? 0 : 1
    }
    t.comment(`${mutants.length} mistakes, ${alike} that change nothing`)
    t.end()
  })
}

const STARTED = ['states', 'active', 'states', 'started']

/**
 * Mistakes that the tests of the chart's paths once passed, since chart and runtime agreed, and those of the planted
 * faults.
 */
const planted: Readonly<Record<string, AnyStateMachine>> = {
  'an illegal event is accepted': withChange(task, [...STARTED, 'states', 'working', 'on', 'message.received'], {
    target: 'working',
    reenter: true
  }),
  'work that throws completes its task': withChange(task, [...STARTED, 'invoke', 'onError'], '#task.completed'),
  'a cancel does not cancel': withChange(task, ['states', 'active', 'on', 'task.cancel'], {}),
  'work that failed completes its task': withChange(task, [...STARTED, 'invoke', 'onDone', 0], undefined),
  'an answer is not passed on': withChange(
    task,
    [...STARTED, 'states', 'inputRequired', 'on', 'message.received'],
    undefined
  ),
  'a canceled task is opened again by a late word': withChange(task, ['states', 'canceled'], {
    tags: 'terminal',
    entry: Object(task.config).states.canceled.entry,
    on: { 'work.progressed': 'active' }
  }),
  'a restart is not counted': task.provide({ actions: { noteRestart: () => {} } }),
  'of queued messages the newest comes first': task.provide({
    actions: {
      passOnQueued: enqueueActions(({ context, enqueue }) => {
        const [next, ...queue] = context.queue.toReversed()
        if (next)
          enqueue.sendTo('work', {
            type: 'message.received',
            ...('message' in next ? next : { message: next }),
            queued: true
          } satisfies ToWork)
        enqueue.assign({ queue })
      })
    }
  })
}

await t.test('planted mistakes of the task chart are found by the properties alone', t => {
  for (const [name, machine] of sampleOf(t, Object.entries(planted), 1))
    t.ok(violatedIn(explored(machine, charts.task), charts.task), name)
  t.end()
})

/**
 * Whether two charts rest in the same states, tell and send the same, and start their work with the same, on every
 * walk.
 */
function isAlike(one: StateSpace, other: StateSpace): boolean {
  if (!isDeepStrictEqual(one.moments.map(seenAt), other.moments.map(seenAt))) return false
  const pairs: [number, number][] = [[0, 0]]
  const seen = new Set<string>()
  for (const [i, j] of pairs) {
    const edges = one.nodes[i]?.edges ?? []
    const others = new Map(other.nodes[j]?.edges.map(edge => [edge.transition.says, edge]))
    if (edges.length !== others.size) return false
    for (const edge of edges) {
      const same = others.get(edge.transition.says)
      if (
        !same ||
        !isDeepStrictEqual([edge.restarts, edge.moments.map(seenAt)], [same.restarts, same.moments.map(seenAt)])
      )
        return false
      const key = `${edge.to} ${same.to}`
      if (!seen.has(key)) pairs.push([edge.to, same.to])
      seen.add(key)
    }
  }
  return one.isWhole && other.isWhole
}

/** All that can be seen of a moment, with the inputs of the actors. */
function seenAt({ kind, name, value, over, chart }: Moment): unknown {
  const actors = Object.entries(
    chart.children as Readonly<Record<string, { readonly options: { readonly input?: unknown } }>>
  )
  return [
    kind,
    name,
    value,
    over,
    chart.status,
    chart.value,
    chart.context,
    actors.map(([id, { options }]) => [id, options.input])
  ]
}
