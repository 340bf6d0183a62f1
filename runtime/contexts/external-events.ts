import type { AnyActorRef } from 'xstate'
import type { FieldViolation } from '../../machines/protocol/errors.ts'
import type { ClientMessage, TaskMachineEvent, ToWork } from '../../machines/task-events.ts'
import type { NamedGeneration } from '../access/call-context.ts'
import type { MessagePolicy } from '../agent/policies.ts'
import type { NewWebhook, DeduplicationKey } from '../store/rows.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import { receivedAnswer, validateAnswer } from '../work/chart-question.ts'
import { runOf } from '../work/function-work.ts'
import type { CheckedAnswer } from '../work/question-queue.ts'

/** An event for one task from a caller. */
export type OutsideEvent =
  | { type: 'task.cancel'; taskId: string }
  | ({ type: 'message.received'; taskId: string } & ClientMessage)
  | { type: 'authorization.received'; taskId: string; data: unknown }

/** Terms of an event from a caller. */
export interface EventOptions {
  /** Handle the event only if the task has this generation. */
  readonly ifGeneration?: NamedGeneration | undefined
  /** The question that a message answers. */
  readonly answers?: AnsweredQuestion | undefined
  /** Key of a message that is deduplicated. */
  readonly send?: DeduplicationKey | undefined
  /** Webhook of a message. */
  readonly webhook?: Omit<NewWebhook, 'taskId'> | undefined
  /** Trace context of the event. */
  readonly trace?: TraceCarrier | undefined
}

/**
 * Which question a message answers: `named` by the message, else the one that was open when it was received. Each is a
 * `messageId`.
 */
export interface AnsweredQuestion {
  readonly named: string | undefined
  readonly seen: string | undefined
}

type AcceptedEvent = Extract<TaskMachineEvent, { type: OutsideEvent['type'] | 'message.steered' | 'message.queued' }>

/**
 * Why a task does not take an event. `state`: not in its state. `generation`: it has another one. `question`: the
 * message answers another one than the open one. `queue`: its queue is full. `bytes`: the message exceeds its bytes.
 * `answer`: the answer is invalid.
 */
export type Refusal =
  | { readonly reason: 'state' | 'question' | 'queue' | 'bytes' }
  | { readonly reason: 'generation'; readonly expected: NamedGeneration; readonly current: number }
  | { readonly reason: 'answer'; readonly violations: readonly FieldViolation[] }

/**
 * The task that an event is for: its actor, if it has not ended, the generation of its newest entry, its open question.
 */
export interface AddressedTask {
  readonly actor: AnyActorRef | undefined
  readonly generation: number
  readonly question: string | undefined
}

/** How a task takes messages while it works. */
export interface AcceptRules {
  readonly messages: MessagePolicy
  readonly queuedMessages: number
}

const NOT_NOW: Refusal = { reason: 'state' }

/**
 * The event that the task's chart takes now, or why it takes none: the only place that decides this. An answer is
 * validated by the task's work, which gets the parsed value.
 */
export function acceptEvent(
  { actor, generation, question }: AddressedTask,
  event: OutsideEvent,
  { messages, queuedMessages }: AcceptRules,
  { ifGeneration, answers }: Pick<EventOptions, 'ifGeneration' | 'answers'> = {}
): AcceptedEvent | Refusal {
  if (!actor) return NOT_NOW
  if (ifGeneration !== undefined && ifGeneration !== generation)
    return { reason: 'generation', expected: ifGeneration, current: generation }
  if (answers && isForOther(answers, question, messages)) return { reason: 'question' }
  const snapshot = actor.getSnapshot()
  if (snapshot.status !== 'active') return NOT_NOW
  const work: AnyActorRef | undefined = snapshot.children.work
  if (snapshot.can(event)) {
    if (event.type === 'task.cancel') return event
    const checked = work && checkedFor(work, event, snapshot.context.asks)
    if (!checked) return NOT_NOW
    return 'event' in checked ? checked.event : { reason: 'answer', violations: checked.violations }
  }
  if (event.type !== 'message.received' || messages === 'reject') return NOT_NOW
  const early = { ...event, type: messages === 'deliver' ? ('message.steered' as const) : ('message.queued' as const) }
  if (!snapshot.can(early)) return NOT_NOW
  if (messages === 'deliver') return work && checkedFor(work, event) ? early : NOT_NOW
  return snapshot.context.queue.length < queuedMessages ? early : { reason: 'queue' }
}

/** Whether a message answers another question than the open one. A queued message is for the next question. */
function isForOther({ named, seen }: AnsweredQuestion, open: string | undefined, policy: MessagePolicy): boolean {
  return named === undefined ? open !== undefined && seen !== open && policy !== 'queue' : named !== open
}

/**
 * Validates an event for the work; `undefined` if the work does not handle it. If a chart's guards or schema throw, the
 * event is accepted, and crashes the chart.
 */
function checkedFor<Given extends ToWork>(
  work: AnyActorRef,
  event: Given,
  asks?: string
): CheckedAnswer<Given> | undefined {
  const run = runOf(work)
  if (run) return run.check(event)
  try {
    const snapshot = work.getSnapshot()
    const validated = validateAnswer(snapshot, event, asks)
    if ('violations' in validated) return validated
    return (validated.question?.chart ?? snapshot).can(receivedAnswer(validated))
      ? { event: validated.event }
      : undefined
  } catch {
    return { event }
  }
}
