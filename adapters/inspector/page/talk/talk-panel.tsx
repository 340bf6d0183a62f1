import { computed, signal } from '@preact/signals'
import { isInterrupted, isTerminal } from '../../../../machines/protocol/states.ts'
import { EXAMPLE_ID } from '../../feed.ts'
import { lastGeneration, logs, shownTaskId, taskAt } from '../agent/task-log.ts'
import { ArtifactView } from '../content/parts-view.tsx'
import { hello } from '../feed/feed.ts'
import { talk } from '../feed/known.ts'
import { TaskError } from '../parts.tsx'
import { contextId, taskId } from '../selection.ts'
import { generation, isNewest } from '../time-bar.tsx'
import { Composer, type ComposerProps, type Target } from './composer.tsx'
import { conversation, lastOffer, type TalkItem } from './conversation.ts'
import { Examples } from './examples.tsx'
import { Question } from './question-form.tsx'
import { RunLine } from './run-line.tsx'
import { authorizeError, spoken } from './sending.ts'
import { useStayAtEnd } from './stay-at-end.ts'
import { answersIn, TalkMessage, type Answers } from './talk-message.tsx'

const items = computed(() => {
  const here = spoken.value.filter(({ message }) => message.contextId === contextId.value)
  const { value: id } = shownTaskId
  const until = isNewest.value || id === undefined ? undefined : { taskId: id, generation: generation.value }
  return conversation({ logs: logs.value, talk: talk.value, spoken: here, until })
})
const standsHere = computed(() => lastOffer(items.value))
const answers = computed(() => answersIn(items.value))
const errors = computed(() =>
  Array.from(logs.value, ([id, { error }]) => ({ id, error })).filter(({ error }) => error !== undefined)
)

/** The status of the chosen task, or of the newest one of the context. */
const status = computed(() => {
  const events = logs.value.get(taskId.value ?? '')?.events
  return events && lastGeneration(events) > 0 ? taskAt(events, lastGeneration(events)).status : undefined
})

/** The user's choice of destination, until the task changes its state. */
const wanted = signal<{ readonly target: Target; readonly of: string } | undefined>(undefined)

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
          {items.value.length === 0 && errors.value.length === 0 && <Beginning />}
          {items.value.map(item => (
            <ItemView
              key={item.key}
              item={item}
              standsHere={standsHere.value}
              answers={answers.value}
              chosen={taskId.value}
            />
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
  readonly standsHere: string | undefined
  readonly answers: Answers
  readonly chosen: string | undefined
}

function ItemView({ item, standsHere, answers, chosen }: ItemProps) {
  switch (item.kind) {
    case 'message':
      return <TalkMessage message={item.message} standsHere={standsHere} answers={answers} />
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
  const targets: ComposerProps['targets'] = [
    ...(isOpen
      ? [
          {
            name: 'task',
            label: isInterrupted(now) ? 'Answer the task' : 'To the task',
            destination: { taskId: id, ...(isInterrupted(now) && { question: message }) }
          } as const
        ]
      : []),
    ...(context === undefined
      ? []
      : [{ name: 'context', label: 'Same context', destination: { contextId: context } } as const]),
    ...(context === undefined || isOpen || id === undefined
      ? []
      : [{ name: 'about', label: 'About this task', destination: { contextId: context, reference: id } } as const]),
    { name: 'new', label: 'New context', destination: {} }
  ]
  const of = `${context} ${id} ${now}`
  const byHand = wanted.value?.of === of ? wanted.value.target : undefined
  const usual = now && !isInterrupted(now) ? targets.find(({ name }) => name !== 'task') : targets[0]
  return { targets, chosen: byHand ?? usual?.name ?? 'new', choose: target => (wanted.value = { target, of }) }
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
