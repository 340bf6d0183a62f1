import { computed, signal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { isInterrupted, isTerminal } from '../../../../machines/protocol/states.ts'
import { agent } from '../agent/agent.ts'
import { lastGeneration, taskAt } from '../agent/task-events.ts'
import { log, logError, said } from '../agent/task-log.ts'
import { ArtifactsView, MessageView } from '../content/parts-view.tsx'
import { hello } from '../feed/feed.ts'
import { errorText, shortId } from '../frame/wording.ts'
import { contextId, taskId } from '../selection.ts'
import { StateBadge } from '../state-badge.tsx'
import { Composer, type ComposerProps, type Target } from './composer.tsx'
import { QuestionForm } from './question-form.tsx'
import { authorizeError, sendError, spoken } from './sending.ts'

/** The current task, from its events. */
const task = computed(() => {
  const events = log.value
  return events && lastGeneration(events) > 0 ? taskAt(events, lastGeneration(events)) : undefined
})
const spokenHere = computed(() => spoken.value.filter(message => message.contextId === contextId.value))

/** The user's choice of destination, until the task changes its state. */
const wanted = signal<{ readonly target: Target; readonly of: string } | undefined>(undefined)

/** The dialogue with the agent: messages, questions, artifacts, cancel. */
export function TalkPanel() {
  const { box, content } = useStayAtEnd()
  const events = log.value
  const state = task.value?.status.state
  return (
    <div class="panel talk-panel">
      <div ref={box} class="talk-box">
        <div ref={content} class="talk">
          {!task.value && spokenHere.value.length === 0 && <Beginning />}
          {spokenHere.value.map(message => <MessageView key={message.messageId} message={message} />)}
          {said.value.map(message => <MessageView key={message.messageId} message={message} />)}
          {task.value?.artifacts && <ArtifactsView artifacts={task.value.artifacts} />}
          {events && task.value && state && (
            <p class="talk-state" aria-live="polite">
              <StateBadge state={state} /> <span class="quiet mono" title={events.taskId}>{shortId(events.taskId)}</span>
              {!isTerminal(state) && <button type="button" onClick={() => cancel(events.taskId)}>Cancel the task</button>}
            </p>
          )}
          {logError.value !== undefined && <p class="wrong" role="alert">{logError.value}</p>}
          {authorizeError.value !== undefined && <p class="wrong" role="alert">{authorizeError.value}</p>}
          {task.value && state && isInterrupted(state) && <QuestionForm key={`${task.value.id} ${task.value.status.message?.messageId ?? state}`} taskId={task.value.id} status={task.value.status} />}
        </div>
      </div>
      <Composer {...targetsNow()} />
    </div>
  )
}

/** The possible destinations. The default is the task if it waits, else its context. */
function targetsNow(): ComposerProps {
  const [context, id, state] = [contextId.value, taskId.value, task.value?.status.state]
  const isOpen = id !== undefined && state !== undefined && !isTerminal(state)
  const targets: ComposerProps['targets'] = [
    ...(isOpen ? [{ name: 'task', label: isInterrupted(state) ? 'Answer the task' : 'To the task', destination: { taskId: id } } as const] : []),
    ...(context === undefined ? [] : [{ name: 'context', label: 'Same context', destination: { contextId: context } } as const]),
    ...(context === undefined || isOpen || id === undefined ? [] : [{ name: 'about', label: 'About this task', destination: { contextId: context, reference: id } } as const]),
    { name: 'new', label: 'New context', destination: {} }
  ]
  const of = `${context} ${id} ${state}`
  const byHand = wanted.value?.of === of ? wanted.value.target : undefined
  const usual = state && !isInterrupted(state) ? targets.find(({ name }) => name !== 'task') : targets[0]
  return { targets, chosen: byHand ?? usual?.name ?? 'new', choose: target => (wanted.value = { target, of }) }
}

function cancel(id: string): void {
  agent.peek()?.cancelTask({ id }).catch((error: unknown) => (sendError.value = errorText(error)))
}

function Beginning() {
  const { name, description } = hello.value?.agent ?? {}
  return (
    <div class="empty">
      {name !== undefined && <p><b>{name}</b>{description ? `: ${description}` : ''}</p>}
      <p class="quiet">Write a message below. Its task, with its questions and artifacts, appears here.</p>
    </div>
  )
}

/** The distance in pixels that still counts as the end. */
const NEAR = 60

/** Keeps a box scrolled to its end while its content grows, even by late pictures, until the user scrolls away. */
function useStayAtEnd() {
  const box = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const { current: outer } = box
    const leave = new AbortController()
    let isAtEnd = true
    outer?.addEventListener('scroll', () => (isAtEnd = outer.scrollTop + outer.clientHeight >= outer.scrollHeight - NEAR), { signal: leave.signal })
    const watch = new ResizeObserver(() => isAtEnd && outer?.scrollTo({ top: outer.scrollHeight }))
    for (const element of [outer, content.current]) if (element) watch.observe(element)
    return () => {
      leave.abort()
      watch.disconnect()
    }
  }, [])
  return { box, content }
}
