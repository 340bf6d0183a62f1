import { computed } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { isObject } from '../../../../machines/protocol/codec/json.ts'
import { offerIn } from '../../../../machines/protocol/negotiation.ts'
import type { Message } from '../../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal } from '../../../../machines/protocol/states.ts'
import { answerSchemaOf } from '../../../client/messages.ts'
import { fieldOf, fieldWords } from '../../../client/state/answer-form.ts'
import { EXAMPLE_ID } from '../../feed.ts'
import { innermost, partsText, stateName } from '../../story/chart-path.ts'
import {
  choiceLabel,
  choicesIn,
  lineOfEvent,
  lineOfMessage,
  moveOf,
  POINT_KINDS,
  type RunPoint,
  runPoints,
  statesAfterAnswer
} from '../../story/moments.ts'
import { log, logs, shownTaskId } from '../agent/task-log.ts'
import {
  ChartLegend,
  chartNames,
  choices,
  goesOnTheSame,
  pathMarks,
  pathOfChoice,
  workChoice
} from '../chart/chart-panel.tsx'
import { ChartPicture } from '../chart/chart-picture.tsx'
import { titlesIn } from '../content/data-view.tsx'
import { hello } from '../feed/feed.ts'
import { areActorsKnown, contextChanges, contexts, steps, talk } from '../feed/known.ts'
import { nowMs } from '../page.ts'
import { contextId } from '../selection.ts'
import { lastOffer, talkItems, talkItemsOf } from '../talk/conversation.ts'
import { generation, goTo, isNewest, taskThen } from '../time-bar.tsx'
import { spanText } from '../wording.ts'

/** The offer that stands in the chosen context now, unless an open task or an earlier moment is shown. */
export const standingOffer = computed(() => {
  void contextChanges.value
  const { offer } = contexts.get(contextId.value ?? '') ?? {}
  const { status } = taskThen.value ?? {}
  const isBusy = status !== undefined && !isTerminal(status.state)
  return offer && isNewest.value && !isBusy && offer.expiresMs > nowMs.value ? offer : undefined
})

/** The chart of the author's work, or while an offer stands the author's chart that answers offers. */
const shownChoice = computed(() => {
  const ofId = (id: string) => choices.value.find(({ chart }) => chart.id === id)
  if (standingOffer.value) return ofId('respond')
  return workChoice.value ?? (areActorsKnown.value ? undefined : ofId('work'))
})

/** The terms of the standing offer, in one line. */
export const offerText = computed(() => termsText(lastOffer.value?.terms))

function termsText(terms: Readonly<Record<string, unknown>> = {}): string {
  const titles = titlesIn(hello.value?.agent.terms)
  const valueText = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
  return Object.entries(terms)
    .map(([name, value]) => `${titles.get(name) ?? name} ${valueText(value)}`)
    .join(', ')
}

/** The kind of the half beside the messages: a chart, or the steps of a function or of a task without a record. */
export const runView = computed<'chart' | 'steps'>(() => (shownChoice.value ? 'chart' : 'steps'))

const path = computed(() => pathOfChoice(shownChoice.value))
const marks = computed(() => pathMarks(path.value))

/** The states that the transitions for an answer lead to from the lit ones; empty if the chart has none. */
const afterAnswer = computed(() => {
  const { transitions = [] } = chartNames.value.get(shownChoice.value?.chart.id ?? 'work') ?? {}
  return statesAfterAnswer(path.value.active, transitions)
})

/**
 * The answers that the shown question accepts, and the states that follow, in words. Empty without a question, and if
 * the task goes on otherwise with a changed agent.
 */
export const answerHint = computed(() => {
  const { status } = taskThen.value ?? {}
  if (!status || !isInterrupted(status.state) || !goesOnTheSame.value) return ''
  if (status.state === 'TASK_STATE_AUTH_REQUIRED') return 'Once it is authorized, the work goes on after it.'
  const wanted = wantedText(status.message)
  const about = wanted === '' ? '' : ` (${wanted})`
  if (runView.value === 'steps') return `With your answer${about} the work goes on after this question.`
  const { value: states } = afterAnswer
  return states.length === 0
    ? `With your answer${about} the work goes on.`
    : `Your answer${about} leads to ${states.join(' or ')}.`
})

/** The answers that a question accepts, in words; empty for text. */
function wantedText(question: Message | undefined): string {
  const schema = answerSchemaOf(question)
  if (!schema) return choicesIn(question).map(choiceLabel).join(', ')
  const words = fieldWords(fieldOf(schema))
  return words === 'text' || words === 'JSON' ? '' : words
}

/** Whether the recorded example ran in a chart with other states than the work has now. */
const isOutdated = computed(() => {
  const { states } = chartNames.value.get('work') ?? {}
  const taken = steps.value.flatMap(({ kind, states }) => (kind === 'microstep' ? (states ?? []) : []))
  return shownTaskId.value === EXAMPLE_ID && taken.some(id => !states?.has(id))
})

/** The work of the agent: the lit chart, or its steps. */
export function StoryRun() {
  const shown = shownChoice.value
  if (!shown)
    return (
      <section class="story-run" aria-label="What the agent does">
        <RunNote />
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
      <RunNote />
      <p class="story-run-foot">
        <b>
          {now === '' ? shown.chart.title : `Now: ${now}${standingOffer.value ? ', until you answer the offer' : ''}`}
        </b>
        <span class="tools-gap" />
        <ChartLegend />
      </p>
    </section>
  )
}

/** Why no chart is lit, if there is one. */
function RunNote() {
  const hasChart = hello.value?.charts.some(({ id }) => id === 'work')
  const notes = [
    isOutdated.value &&
      'The chart has changed since this example was recorded, so its steps are not all lit. Save the example again to renew it.',
    hasChart &&
      log.value !== undefined &&
      !shownChoice.value &&
      !isOutdated.value &&
      !standingOffer.value &&
      'The steps in the chart were not recorded: the task ran while no inspector watched. This is what it said.'
  ]
  const note = notes.find(Boolean)
  return note ? <p class="quiet story-note">{note}</p> : null
}

/** A point of a run; before a task it has no generation. */
type ShownPoint = Omit<RunPoint, 'generation'> & { readonly generation: number | undefined }

/** The messages since the last task that belong to no task. */
const pointsBeforeTask = computed(() => {
  const items = talkItems.value.slice(talkItems.value.findLastIndex(({ kind }) => kind === 'run') + 1)
  return items.flatMap((item): ShownPoint[] => {
    if (item.kind !== 'message' || item.taskId !== undefined) return []
    const { key, message } = item
    return [{ key, generation: undefined, atMs: 0, ...saidPoint(message) }]
  })
})

/** The point of a message without a task. */
function saidPoint(message: Message): Pick<ShownPoint, 'kind' | 'text'> {
  const offer = message.role === 'ROLE_AGENT' ? offerIn(message) : undefined
  if (offer) return { kind: 'offers', text: termsText(offer.terms) }
  if (message.role === 'ROLE_AGENT') return { kind: 'works', text: partsText(message.parts) }
  const move = moveOf(message)
  if (!move) return { kind: 'client', text: partsText(message.parts) }
  if (move['accept'] !== undefined) return { kind: 'client', text: 'accept the offer' }
  if (move['decline'] !== undefined) return { kind: 'client', text: 'decline the offer' }
  const { propose } = move
  const terms = isObject(propose) && isObject(propose['terms']) ? propose['terms'] : undefined
  return { kind: 'client', text: `propose ${termsText(terms)}` }
}

/** The points of the chosen task's run, or of what was said since the last task, oldest first. */
const points = computed<readonly ShownPoint[]>(() => {
  const log = logs.value.get(shownTaskId.value ?? '')
  if (!log || standingOffer.value) return pointsBeforeTask.value
  const items = talkItemsOf({ logs: new Map([['', log]]), talk: talk.value, spoken: [] })
  const lines = items.flatMap(item => {
    if (item.kind === 'run') return item.events.map(lineOfEvent)
    return item.kind === 'message' && item.message.role === 'ROLE_USER' ? [lineOfMessage(item.message)] : []
  })
  return runPoints(
    lines,
    steps.value.filter(({ taskId }) => taskId === shownTaskId.value)
  )
})

const KINDS = { ...POINT_KINDS, client: 'you' }

/** The run of a function as a line: its words, steps, questions and results, lit at the shown generation. */
function RunSteps() {
  const all = points.value
  if (all.length === 0)
    return (
      <p class="empty quiet">
        {hello.value?.charts.some(({ id }) => id === 'work')
          ? 'Nothing is known yet.'
          : 'The work of this agent is a function. What it says, asks and stores appears here, step by step.'}
      </p>
    )
  const now = all.findLastIndex(point => (point.generation ?? 0) <= generation.value)
  const startMs = all.find(({ atMs }) => atMs > 0)?.atMs ?? 0
  return (
    <ol class="run-steps" aria-label="The run, step by step">
      {all.map(({ key, kind, text, generation: of, atMs }, i) => (
        <li
          key={key}
          class={`run-step run-step-${kind}${i > now ? ' run-step-later' : ''}`}
          aria-current={i === now ? 'step' : undefined}
        >
          <StepLine of={of} isLast={i === all.length - 1}>
            <span class="run-step-kind">{KINDS[kind]}</span>
            <span class="run-step-text">{text}</span>
            <span class="quiet run-step-time">{atMs > startMs ? `+${spanText(atMs - startMs)}` : ''}</span>
          </StepLine>
        </li>
      ))}
    </ol>
  )
}

interface StepLineProps {
  readonly of: number | undefined
  readonly isLast: boolean
  readonly children: ComponentChildren
}

/** A point of the line: a click on one of a task shows the task as it was then. */
function StepLine({ of, isLast, children }: StepLineProps) {
  if (of === undefined) return <div class="run-step-line">{children}</div>
  return (
    <button
      type="button"
      class="plain run-step-line"
      title="Show this moment"
      onClick={() => goTo(isNewest.peek() && isLast ? Infinity : of)}
    >
      {children}
    </button>
  )
}
