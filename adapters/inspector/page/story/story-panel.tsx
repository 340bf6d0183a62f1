import { computed } from '@preact/signals'
import { EXAMPLE_ID } from '../../feed.ts'
import { artifactTitle, partsText } from '../../story/chart-path.ts'
import { statusWords } from '../../story/moments.ts'
import { shownTaskId } from '../agent/task-log.ts'
import { ChangedLine } from '../chart/chart-panel.tsx'
import { hello } from '../feed/feed.ts'
import { nowMs } from '../page.ts'
import { StateBadge } from '../parts.tsx'
import { storyHalf } from '../selection.ts'
import { talkItems } from '../talk/conversation.ts'
import { TalkPanel } from '../talk/talk-panel.tsx'
import { generation, taskThen, TimeBar } from '../time-bar.tsx'
import { leftText } from '../wording.ts'
import { answerHint, offerText, runView, standingOffer, StoryRun } from './story-run.tsx'

/**
 * The first view: what the chosen task is doing, in one line; its conversation, in which it is answered; and beside
 * that what it runs, lit. One slider below takes both to any moment. A phone shows one half at a time.
 */
export function StoryPanel() {
  const half = storyHalf.value
  return (
    <div class="panel story-panel" data-half={half}>
      <div class="story-head">
        <p class="story-now" aria-live="polite">
          <Now />
        </p>
        <div class="story-switch" role="group" aria-label="What is shown">
          <button type="button" aria-pressed={half === 'talk'} onClick={() => (storyHalf.value = 'talk')}>
            Conversation
          </button>
          <button type="button" aria-pressed={half === 'chart'} onClick={() => (storyHalf.value = 'chart')}>
            {runView.value === 'steps' ? 'Steps' : 'Chart'}
          </button>
        </div>
      </div>
      <ChangedLine />
      <div class="story-halves">
        <div class="story-talk">
          <TalkPanel />
        </div>
        <StoryRun />
      </div>
      <TimeBar />
    </div>
  )
}

/** The titles of the task's results at the shown generation. */
const results = computed(() => (taskThen.value?.artifacts ?? []).map(artifactTitle))

/** The line on the task at the shown generation: its state, its question and the states after an answer, or its end. */
function Now() {
  const offer = standingOffer.value
  if (offer)
    return (
      <>
        <span class="state state-offer">offer stands</span>{' '}
        {`The agent offers: ${offerText.value}. That stands for ${leftText(offer.expiresMs - nowMs.value)}.`}
        <span class="story-hint"> Accept it, and the work begins. Counter it, and the agent answers.</span>
      </>
    )
  const { status } = taskThen.value ?? {}
  if (!status || generation.value === 0) return <NothingRuns />
  const { state, message } = status
  const words = partsText(message?.parts)
  return (
    <>
      {shownTaskId.value === EXAMPLE_ID && <span class="state state-offer">recorded example</span>}{' '}
      <StateBadge state={state} /> <span title={words}>{statusWords({ state }, words, results.value, 'client')}</span>
      {answerHint.value !== '' && <span class="story-hint">{` ${answerHint.value}`}</span>}
    </>
  )
}

/** Before the first message, and after an answer without a task. */
function NothingRuns() {
  const last = talkItems.value.findLast(({ kind }) => kind === 'message')
  if (last?.kind === 'message' && last.message.role === 'ROLE_AGENT')
    return (
      <>
        <span class="state">answered</span> The agent answered without a task: nothing runs, and nothing waits for you.
      </>
    )
  return (
    <span class="quiet">
      {hello.value
        ? 'Nothing has run yet. Send a message: here is what it leads to, as it happens.'
        : 'Waiting for the agent…'}
    </span>
  )
}
