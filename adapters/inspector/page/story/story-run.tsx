import { computed } from '@preact/signals'
import { isInterrupted, isTerminal } from '../../../../machines/protocol/states.ts'
import { innermost, stateName } from '../../story/chart-path.ts'
import { log } from '../agent/task-log.ts'
import { ChartLegend, chartNames, choices, pathMarks, pathOfChoice, workChoice } from '../chart/chart-panel.tsx'
import { ChartPicture } from '../chart/chart-picture.tsx'
import { hello } from '../feed/feed.ts'
import { areActorsKnown, contextChanges, contexts } from '../feed/known.ts'
import { nowMs } from '../page.ts'
import { contextId } from '../selection.ts'
import { isNewest, taskThen } from '../time-bar.tsx'
import { RunSteps } from './run-steps.tsx'

/** The offer that stands in the chosen context now, unless an open task or an earlier moment is shown. */
export const standingOffer = computed(() => {
  void contextChanges.value
  const { offer } = contexts.get(contextId.value ?? '') ?? {}
  const { status } = taskThen.value ?? {}
  const isBusy = status !== undefined && !isTerminal(status.state)
  return offer && isNewest.value && !isBusy && offer.expiresMs > nowMs.value ? offer : undefined
})

/** The chart of the author's work, or of the negotiation while an offer stands. */
const shownChoice = computed(() => {
  const ofId = (id: string) => choices.value.filter(({ chart }) => chart.id === id)
  if (standingOffer.value) {
    const all = ofId('negotiation')
    const running = all.findLast(({ actor }) => actor?.status === 'active') ?? all.at(-1)
    if (running) return running
  }
  return workChoice.value ?? (areActorsKnown.value ? undefined : ofId('work').at(-1))
})

/** What is beside the conversation: a chart, or the steps of a function and of a task that was not recorded. */
export const runView = computed<'chart' | 'steps'>(() => (shownChoice.value ? 'chart' : 'steps'))

const path = computed(() => pathOfChoice(shownChoice.value))
const marks = computed(() => pathMarks(path.value))

/** The event of a chart that an answer of the client is. */
const ANSWER = ' on message.received '

/** The states that the transitions for an answer lead to from the lit ones; empty if the chart has none. */
const afterAnswer = computed(() => {
  const { transitions = [] } = chartNames.value.get(shownChoice.value?.chart.id ?? 'work') ?? {}
  const leaving = transitions.filter(name => path.value.active.some(id => name.startsWith(`${id}${ANSWER}`)))
  const targets = leaving.flatMap(name => {
    const at = name.lastIndexOf(' to ')
    return at < 0 ? [] : [name.slice(at + 4)]
  })
  return [...new Set(targets)]
})

/** What an answer to the shown question leads to; empty without a question. */
export const answerHint = computed(() => {
  const { status } = taskThen.value ?? {}
  if (!status || !isInterrupted(status.state)) return ''
  if (status.state === 'TASK_STATE_AUTH_REQUIRED') return 'Once it is authorized, the work goes on.'
  const states = runView.value === 'chart' ? afterAnswer.value : []
  return states.length === 0 ? 'With your answer the work goes on.' : `Your answer leads to ${states.join(' or ')}.`
})

/** What the agent runs: the lit chart, or its steps. */
export function StoryRun() {
  const shown = shownChoice.value
  if (!shown)
    return (
      <section class="story-run" aria-label="What the agent does">
        {hello.value?.charts.some(({ id }) => id === 'work') && log.value !== undefined && (
          <p class="quiet story-note">
            The steps in the chart were not recorded: the task ran while no inspector watched. This is what it said.
          </p>
        )}
        <RunSteps />
      </section>
    )
  const now = innermost(path.value.active).map(stateName).join(', ')
  return (
    <section class="story-run" aria-label="What the agent does">
      <ChartPicture
        label={`${shown.chart.title}. Active: ${now || 'nothing'}`}
        svg={shown.chart.svg}
        marks={marks.value}
      />
      <p class="story-run-foot">
        <b>{now === '' ? shown.chart.title : `Now: ${now}`}</b>
        <span class="tools-gap" />
        <ChartLegend />
      </p>
    </section>
  )
}
