import { computed, signal } from '@preact/signals'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Message } from '../../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal, type TaskState } from '../../../../machines/protocol/states.ts'
import { EXAMPLE_ID } from '../../feed.ts'
import { lastGeneration, logs, shownTaskId, taskAt } from '../agent/task-log.ts'
import { ArtifactView } from '../content/parts-view.tsx'
import { hello } from '../feed/feed.ts'
import { TaskError } from '../parts.tsx'
import { contextId, taskId } from '../selection.ts'
import { Composer, type ComposerProps, type Target } from './composer.tsx'
import { standingOfferId, talkItems, type TalkItem } from './conversation.ts'
import { isAnsweredInWords, Question } from './question-form.tsx'
import { RunLine } from './run-line.tsx'
import { authorizeError, sendParts } from './sending.ts'
import { answersIn, TalkMessage, type Answers } from './talk-message.tsx'

const answers = computed(() => answersIn(talkItems.value))
const errors = computed(() =>
  Array.from(logs.value, ([id, { error }]) => ({ id, error })).filter(({ error }) => error !== undefined)
)

/** The status of the chosen task, or of the newest one of the context. */
const status = computed(() => {
  const events = logs.value.get(taskId.value ?? '')?.events
  return events && lastGeneration(events) > 0 ? taskAt(events, lastGeneration(events)).status : undefined
})

/** The user's choice of destination, until the task changes its state. */
const wanted = signal<{ readonly target: Target['name']; readonly of: string } | undefined>(undefined)

/**
 * The conversation of the chosen context: messages, offers, tasks with their questions and artifacts, in the order of
 * time.
 */
export function TalkPanel() {
  const { box, content, isAway, toEnd } = useStayAtEnd(contextId.value, taskId.value)
  return (
    <div class="panel talk-panel">
      {shownTaskId.value === EXAMPLE_ID && <ExampleNote />}
      <div ref={box} class="talk-box" tabIndex={0} role="region" aria-label="The conversation">
        <div ref={content} class="talk">
          {talkItems.value.length === 0 && errors.value.length === 0 && <Beginning />}
          {talkItems.value.map(item => (
            <ItemView key={item.key} item={item} answers={answers.value} chosen={taskId.value} />
          ))}
          {errors.value.map(({ id, error }) => (
            <p key={id} class="wrong" role="alert">
              {error}
            </p>
          ))}
          {authorizeError.value !== undefined && (
            <p class="wrong" role="alert">
              {authorizeError.value}
            </p>
          )}
        </div>
      </div>
      {isAway && (
        <button type="button" class="to-end" onClick={toEnd}>
          ↓ Newest
        </button>
      )}
      <Composer {...targetsNow()} />
    </div>
  )
}

interface ItemProps {
  readonly item: TalkItem
  readonly answers: Answers
  readonly chosen: string | undefined
}

function ItemView({ item, answers, chosen }: ItemProps) {
  switch (item.kind) {
    case 'message':
      return <TalkMessage message={item.message} answers={answers} />
    case 'run':
      return (
        <>
          <RunLine run={item} isChosen={item.taskId === chosen} />
          {item.isLast && <TaskError taskId={item.taskId} />}
        </>
      )
    case 'question':
      return <Question taskId={item.taskId} status={item.status} isOpen={item.isOpen} />
    case 'artifact':
    default:
      return <ArtifactView artifact={item.artifact} />
  }
}

/** The possible destinations. The default is the task if it waits, else its context. */
function targetsNow(): ComposerProps {
  const [context, id, { state: now, message } = {}] = [contextId.value, taskId.value, status.value]
  const isOpen = id !== undefined && now !== undefined && !isTerminal(now)
  const targets: Target[] = []
  if (isOpen && isInterrupted(now))
    targets.push({
      name: 'task',
      label: 'Answer',
      hint: answerHint(now, message),
      destination: { taskId: id, question: message }
    })
  else if (isOpen)
    targets.push({
      name: 'task',
      label: 'To the running task',
      hint: 'A message to the task while it runs',
      destination: { taskId: id }
    })
  if (context !== undefined)
    targets.push({
      name: 'context',
      label: 'In this context',
      hint: standingOfferId.value
        ? 'Answer the offer above, or in your own words here'
        : 'The next message of this context: it may begin a new task',
      destination: { contextId: context }
    })
  if (context !== undefined && !isOpen && id !== undefined)
    targets.push({
      name: 'about',
      label: 'About this task',
      hint: 'A message about this task, as in “make it red”: it may begin a new task',
      destination: { contextId: context, reference: id }
    })
  targets.push({
    name: 'new',
    label: 'New context',
    hint: 'The first message of a new context',
    destination: {}
  })
  const of = `${context} ${id} ${now}`
  const byHand = wanted.value?.of === of ? wanted.value.target : undefined
  const usual = now && !isInterrupted(now) ? targets.find(({ name }) => name !== 'task') : targets[0]
  return { targets, chosen: byHand ?? usual?.name ?? 'new', choose: target => (wanted.value = { target, of }) }
}

/** How a question is answered: in its form or by its choices above, or in words. */
function answerHint(state: TaskState, message: Message | undefined): string {
  if (state === 'TASK_STATE_AUTH_REQUIRED') return 'Authorize it above. A message here answers in words instead'
  return isAnsweredInWords(message) ? 'Your answer to the question above' : 'Answer above, or in your own words here'
}

/** Marks a recorded example, and offers to run it. */
function ExampleNote() {
  return (
    <section class="example-note" aria-label="A recorded example">
      <p>
        <b>A recorded example.</b> It ran earlier, and nothing of it is stored. Run it yourself, or write a message
        below:
      </p>
      <Examples />
    </section>
  )
}

function Beginning() {
  const { name, description, examples = [] } = hello.value?.agent ?? {}
  return (
    <div class="empty">
      {name !== undefined && (
        <p>
          <b>{name}</b>
          {description ? `: ${description}` : ''}
        </p>
      )}
      <p class="quiet">
        {examples.length > 0
          ? 'Write a message below, or send an example:'
          : 'Write a message below. Its answer, or its task, appears here.'}
      </p>
      <Examples contextId={contextId.value} />
    </div>
  )
}

/** The messages that the agent's card gives as examples, as buttons that send them. */
export function Examples({ contextId }: { readonly contextId?: string | undefined }) {
  const { examples = [] } = hello.value?.agent ?? {}
  if (examples.length === 0) return null
  return (
    <div class="choices">
      {examples.map(text => (
        <button key={text} type="button" onClick={() => void sendParts([{ text }], { contextId })}>
          {text}
        </button>
      ))}
    </div>
  )
}

/** The distance in pixels that still counts as the end. */
const NEAR = 60

/**
 * Keeps a box scrolled to its end while its content grows, even by late pictures, until the reader scrolls away. In a
 * newly chosen context it begins at the end. Choosing a task that is out of sight shows where it begins.
 */
function useStayAtEnd(context: string | undefined, task: string | undefined) {
  const box = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const shown = useRef({ context, task })
  const [isAway, setIsAway] = useState(false)
  const toEnd = () => {
    isAtEnd.current = true
    box.current?.scrollTo({ top: box.current.scrollHeight })
    setIsAway(false)
  }
  useLayoutEffect(() => {
    const { current: outer } = box
    const leave = new AbortController()
    let lastTop = 0
    outer?.addEventListener(
      'scroll',
      () => {
        // Content that grew after a scroll is no sign that the reader went up.
        if (outer.scrollTop + outer.clientHeight >= outer.scrollHeight - NEAR) isAtEnd.current = true
        else if (outer.scrollTop < lastTop) isAtEnd.current = false
        lastTop = outer.scrollTop
        setIsAway(!isAtEnd.current)
      },
      { signal: leave.signal }
    )
    const watch = new ResizeObserver(() => isAtEnd.current && outer?.scrollTo({ top: outer.scrollHeight }))
    for (const element of [outer, content.current]) if (element) watch.observe(element)
    return () => {
      leave.abort()
      watch.disconnect()
    }
  }, [])
  useLayoutEffect(() => {
    const before = shown.current
    shown.current = { context, task }
    if (before.context !== context) return toEnd()
    if (before.task === task || task === undefined) return
    const run = content.current?.querySelector(`[data-task="${CSS.escape(task)}"]`)
    // A task that is not here yet is the newest.
    if (!run) return toEnd()
    isAtEnd.current = false
    run.scrollIntoView({ block: 'center' })
  }, [context, task])
  return { box, content, isAway, toEnd }
}
