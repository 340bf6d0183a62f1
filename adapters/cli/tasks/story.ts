import { taskMachine } from '../../../machines/task.machine.ts'
import { redacted } from '../../../runtime/ports/redact.ts'
import { drawChart } from '../../drawing/chart-drawing.ts'
import { rebuiltSteps } from '../../inspector/story/rebuilt-path.ts'
import { storyHtml } from '../../inspector/story/story.ts'
import { taskChartNames } from '../../inspector/story/task-story.ts'
import type { TaskSource } from './source.ts'

/** The story of a task as an HTML file: the task's own chart, rebuilt from its events, its sequence and its talk. */
export async function taskStoryOf(source: TaskSource, taskId: string): Promise<string> {
  const { task, generation, events: known } = await source.read(taskId)
  // An agent that numbers no events cannot send them again.
  const events = known ?? (generation === undefined ? [] : await source.events?.(taskId, generation)) ?? []
  const svg = await drawChart(taskMachine)
  return storyHtml(
    {
      task,
      events,
      charts: [{ title: 'A task', svg, steps: rebuiltSteps(events, taskChartNames()), isRebuilt: true }]
    },
    redacted
  )
}
