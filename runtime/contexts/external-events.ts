import type { AnyActorRef } from 'xstate'
import type { FieldViolation } from '../../machines/protocol/errors.ts'
import type { Received, TaskMachineEvent, ToWork } from '../../machines/task-events.ts'
import type { MessagePolicy } from '../agent/policies.ts'
import type { NewWebhook, DeduplicationKey } from '../store/rows.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import { answered } from '../work/chart-question.ts'
import { runOf } from '../work/function-work.ts'
import type { CheckedAnswer } from '../work/question-queue.ts'

/** An event from outside for one task. */
export type OutsideEvent =
  | { type: 'task.cancel'; taskId: string }
  | ({ type: 'message.received'; taskId: string } & Received)
  | { type: 'authorization.received'; taskId: string; data: unknown }

/** On what terms a task is to take an event. */
export interface OutsideTerms {
  /** Only while the task's newest event has this generation. */
  readonly ifGeneration?: number | undefined
  /** What to remember a message by, if it is not to be taken twice. */
  readonly send?: DeduplicationKey | undefined
  /** The webhook that comes with a message. */
  readonly webhook?: Omit<NewWebhook, 'taskId'> | undefined
  /** The trace that it belongs to. */
  readonly trace?: TraceCarrier | undefined
}

type Taken = Extract<TaskMachineEvent, { type: OutsideEvent['type'] | 'message.steered' | 'message.queued' }>

/** Why a task does not take an event: not now, not at this generation, not one more in its queue, not so many bytes, or not like this. */
export type Refusal = 'refused' | 'stale' | 'full' | 'large' | readonly FieldViolation[]

/** The event as the task's chart takes it now, or why it does not; an answer also has to be one that its work takes, which gets it checked. */
export function acceptEvent(task: AnyActorRef, event: OutsideEvent, policy: MessagePolicy, queueLimit: number): Taken | Refusal {
  const snapshot = task.getSnapshot()
  if (snapshot.status !== 'active') return 'refused'
  const work: AnyActorRef | undefined = snapshot.children.work
  if (snapshot.can(event)) {
    if (event.type === 'task.cancel') return event
    const checked = work && checkedFor(work, event)
    if (!checked) return 'refused'
    return 'event' in checked ? checked.event : checked.violations
  }
  if (event.type !== 'message.received' || policy === 'reject') return 'refused'
  const early = { ...event, type: policy === 'steer' ? ('message.steered' as const) : ('message.queued' as const) }
  if (!snapshot.can(early)) return 'refused'
  if (policy === 'steer') return work && checkedFor(work, event) ? early : 'refused'
  return snapshot.context.queue.length < queueLimit ? early : 'full'
}

/** Checks what the work is to be given; `undefined` if it takes nothing of the kind. A chart whose guards or schema throw takes it, and crashes. */
function checkedFor<Given extends ToWork>(work: AnyActorRef, event: Given): CheckedAnswer<Given> | undefined {
  const run = runOf(work)
  if (run) return run.check(event)
  try {
    const snapshot = work.getSnapshot()
    const heard = answered(snapshot, event)
    return 'violations' in heard || snapshot.can(heard.event) ? heard : undefined
  } catch {
    return { event }
  }
}
