import { computed, signal } from '@preact/signals'
import type { ActorRow, Chart } from '../../feed.ts'
import { hello } from '../feed/feed.ts'
import { actors, steps } from '../feed/known.ts'
import { taskId } from '../selection.ts'
import { statesIn } from './chart-picture.tsx'
import { stepsOf } from './chart-path.ts'

/** A chart to show, with the actor that runs it, if any. */
export interface ChartChoice {
  readonly key: string
  readonly chart: Chart
  readonly actor?: ActorRow
}

/** The key of the user's choice; without one, the work of the chosen task is shown. */
export const chosenKey = signal<string | undefined>(undefined)

/** The state ids of each chart. */
const chartStates = computed(() => new Map(hello.value?.charts.map(({ id, svg }) => [id, statesIn(svg)])))

/** The choices in this context: the actors of the chosen task and of the context, then charts without an actor. */
export const choices = computed<readonly ChartChoice[]>(() => {
  const charts = hello.value?.charts ?? []
  const here = actors.value.filter(({ taskId: of }) => of === undefined || of === taskId.value)
  const running = here.flatMap(actor => {
    const chart = charts.find(({ id }) => id === actor.chart)
    return chart ? [{ key: actor.sessionId, chart, actor }] : []
  })
  const idle = charts.filter(({ id }) => !running.some(({ chart }) => chart.id === id)).map(chart => ({ key: chart.id, chart }))
  return [...running, ...idle]
})

/** The shown chart. */
export const choice = computed<ChartChoice | undefined>(() => {
  const all = choices.value
  const work = all.filter(({ chart }) => chart.id === 'work')
  return all.find(({ key }) => key === chosenKey.value) ?? work.find(({ actor }) => actor?.status === 'active') ?? work.at(-1) ?? all.find(({ chart }) => chart.id === 'task') ?? all[0]
})

/** The steps of the shown actor, in its chart. */
export const chosenSteps = computed(() => {
  const { chart, actor } = choice.value ?? {}
  const states = (chart && chartStates.value.get(chart.id)) ?? new Set<string>()
  if (actor) return stepsOf(steps.value, actor, states)
  return taskId.value === undefined ? [] : stepsOf(steps.value, { taskId: taskId.value }, states)
})

/** The label of a choice. */
export function choiceText({ chart, actor }: ChartChoice): string {
  if (!actor) return `${chart.title} (no actor)`
  const ended = actor.status === 'active' ? '' : `, ${actor.status}`
  return `${chart.title} · ${actor.name}${ended}`
}
