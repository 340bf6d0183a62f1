import { computed, signal } from '@preact/signals'
import type { ActorRow, Chart, ActorStep } from '../../feed.ts'
import { chartPathOf, rebuiltSteps, type ChartPath } from '../../story/chart-path.ts'
import { log, shownTaskId } from '../agent/task-log.ts'
import { hello } from '../feed/feed.ts'
import { actors, steps } from '../feed/known.ts'
import { taskId } from '../selection.ts'
import { isNewest, stepsUntilThen } from '../time-bar.tsx'
import { namesIn } from './chart-picture.tsx'

/** A chart to show, with the actor that runs it, if any. */
export interface ChartChoice {
  readonly key: string
  readonly chart: Chart
  readonly actor?: ActorRow
}

/** The key of the user's choice; without one, the work of the chosen task is shown. */
export const chosenKey = signal<string | undefined>(undefined)

/** The states and transitions of each chart. */
export const chartNames = computed(() => new Map(hello.value?.charts.map(({ id, svg }) => [id, namesIn(svg)])))

/** The choices in this context: the actors of the chosen task and of the context, then charts without an actor. */
export const choices = computed<readonly ChartChoice[]>(() => {
  const charts = hello.value?.charts ?? []
  const here = actors.value.filter(({ taskId: of }) => of === undefined || of === taskId.value)
  const running = here.flatMap(actor => {
    const chart = charts.find(({ id }) => id === actor.chart)
    return chart ? [{ key: actor.sessionId, chart, actor }] : []
  })
  const idle = charts
    .filter(({ id }) => !running.some(({ chart }) => chart.id === id))
    .map(chart => ({ key: chart.id, chart }))
  return [...running, ...idle]
})

/** The chart of the work of the chosen task; without a task, that of the work. `undefined` if it was not recorded. */
export const workChoice = computed(() => {
  const work = choices.value.filter(({ chart }) => chart.id === 'work')
  const seen = work.find(({ actor }) => actor?.status === 'active') ?? work.findLast(isSeen)
  return seen ?? (log.value === undefined ? work.at(-1) : undefined)
})

/** The shown chart. */
export const choice = computed<ChartChoice | undefined>(() => {
  const all = choices.value
  return (
    all.find(({ key }) => key === chosenKey.value) ??
    workChoice.value ??
    all.find(({ chart }) => chart.id === 'task') ??
    all[0]
  )
})

/** The recorded steps of the shown actor, in its chart. */
const recordedSteps = computed(() => (choice.value ? recordedOf(choice.value) : []))

/** Whether the shown path is rebuilt from the stored events, since it was not recorded. */
export const isRebuilt = computed(
  () => recordedSteps.value.length === 0 && choice.value?.chart.id === 'task' && log.value !== undefined
)

/**
 * The steps of the shown actor, in its chart: recorded, or those of the task's own chart rebuilt from its stored
 * events.
 */
export const chosenSteps = computed(() => {
  const names = chartNames.value.get('task')
  return isRebuilt.value && log.value && names ? rebuiltSteps(log.value.events, names) : recordedSteps.value
})

/** The path of a choice up to the shown generation, of its recorded steps or of given ones. */
export function pathOfChoice(one: ChartChoice | undefined, steps = one ? recordedOf(one) : []): ChartPath {
  const now = isNewest.value && one?.actor && one.actor.states.length > 0 ? one.actor.states : undefined
  return chartPathOf(stepsUntilThen(steps), now)
}

function recordedOf({ chart, actor }: ChartChoice) {
  const { states } = chartNames.value.get(chart.id) ?? { states: new Set<string>() }
  if (actor) return stepsOf(steps.value, actor, states)
  return shownTaskId.value === undefined ? [] : stepsOf(steps.value, { taskId: shownTaskId.value }, states)
}

function isSeen(choice: ChartChoice): boolean {
  return choice.actor !== undefined || recordedOf(choice).length > 0
}

/** The steps of an actor in its chart: by session, or those of a task whose states all belong to the chart. */
function stepsOf(
  steps: readonly ActorStep[],
  who: { readonly sessionId: string } | { readonly taskId: string },
  chartStates: ReadonlySet<string>
): ActorStep[] {
  const isIts =
    'sessionId' in who ? ({ to }: ActorStep) => to === who.sessionId : ({ taskId }: ActorStep) => taskId === who.taskId
  return steps.filter(
    step =>
      isIts(step) && step.states !== undefined && step.states.length > 0 && step.states.every(id => chartStates.has(id))
  )
}

/** Why a chart shows no state at the shown generation. */
export function unseenText(title: string): string {
  if (chosenSteps.value.length > 0) return `${title} had not started at this generation.`
  return `The steps of ${title} were not recorded: the task ran while no inspector watched. The chart “A task” is rebuilt from its stored events.`
}

/** The label of a choice. */
export function choiceText({ chart, actor }: ChartChoice): string {
  if (!actor) return chart.title
  const ended = actor.status === 'active' ? '' : `, ${actor.status}`
  return `${chart.title} · ${actor.name}${ended}`
}
