import { taskMachine } from '../../../machines/task.machine.ts'
import type { Observation } from '../../../runtime/contexts/observers.ts'
import type { Scope } from '../../../runtime/store/store.ts'
import { readAllEvents, readWhole } from '../../../runtime/streams/whole-task.ts'
import { outlineOf } from '../../drawing/outline.ts'
import type { Chart } from '../feed.ts'
import type { Recorder } from '../recorder/recorder.ts'
import { shownStep, type Redact } from '../recorder/seen-step.ts'
import { rebuiltSteps, type ChartNames } from './rebuilt-path.ts'
import { storyHtml, type Story, type StoryChart } from './story.ts'

/** The states and transitions of taskchart's own chart of a task. */
export function taskChartNames(): ChartNames {
  const { states, transitions } = outlineOf(taskMachine)
  return { states: new Set(states.map(({ id }) => id)), transitions: transitions.map(({ name }) => name) }
}

/** Where the story of a watched agent comes from. */
export interface StorySource {
  readonly agent: string
  readonly store: Observation['store']
  readonly recorder: Recorder
  readonly charts: readonly Chart[]
  readonly redact: Redact
}

/** The story of a task as an HTML file; `undefined` if there is none in this scope. */
export async function taskStory(
  { agent, store, recorder, charts, redact }: StorySource,
  scope: Scope,
  taskId: string
): Promise<string | undefined> {
  const stored = await readWhole(store, scope, taskId)
  if (!stored) return undefined
  const { task, generation } = stored
  const events = await readAllEvents(store, scope, taskId, generation)
  const steps = (recorder.find(task.contextId)?.steps.from(1) ?? []).filter(
    ({ to, nodes }) => to.taskId === taskId && nodes !== undefined
  )
  const shown = charts.flatMap(({ id, title, svg }): StoryChart[] => {
    const own = steps.filter(({ to }) => to.chart === id).map(step => shownStep(step, redact))
    if (own.length > 0) return [{ title, svg, steps: own, isRebuilt: false }]
    return id === 'task' ? [{ title, svg, steps: rebuiltSteps(events, taskChartNames()), isRebuilt: true }] : []
  })
  const story: Story = { agent, task, events, charts: shown }
  return storyHtml(story, redact)
}
