import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import type { StreamObserver } from '../binding-test.ts'
import { objectMembersOf, outcomeText, actualErrorText } from '../requirements/needs.ts'
import type { SubjectUnderTest } from '../subject-under-test.ts'
import { streamedArtifacts, noteChunks, noteStopped } from './opening.ts'

/** Waits for the task, with streams open. */
export async function followLiveTask(subject: SubjectUnderTest): Promise<void> {
  const streams = await witnesses(subject)
  await subject.readUntil(() => subject.isStopped)
  await checkStreams(subject, streams)
}

/** CancelTask of a live task: the returned task is canceled at once or later (§3.1.5). */
export async function cancel(subject: SubjectUnderTest): Promise<void> {
  const { trial, id } = subject
  const streams = await witnesses(subject)
  subject.isCanceled = true
  const outcome = await trial.ask([76], 'CancelTask', { id })
  if ('refusal' in outcome) {
    await subject.read()
    // It may have ended meanwhile, and an agent need not support cancellation.
    trial.check(
      76,
      outcome.refusal.code === 'TaskNotCancelable',
      'the task, or TaskNotCancelable',
      actualErrorText(outcome.refusal)
    )
  } else {
    trial.options.ledger.learn('live')
    trial.check(76, isObject(outcome.result) && subject.see(outcome.result).id === id, 'the task', outcome.result)
    await subject.read([76])
    const isOver = await subject.readUntil(() => subject.course.isOver)
    trial.check(76, isOver, 'a task that is canceled, after CancelTask gave it', subject.task.status)
  }
  await checkStreams(subject, streams)
}

/** An answer to a question: the context is that of the task (§3.4.3), which continues until it stops again. */
export async function answer(subject: SubjectUnderTest): Promise<void> {
  const { trial, id } = subject
  const { contextId, status } = subject.task
  const isAuthorization = status.state === 'TASK_STATE_AUTH_REQUIRED'
  if (isAuthorization) trial.check(140, status.message !== undefined, 'a message that explains what is needed', status)
  const streams = await witnesses(subject)
  const outcome = await trial.ask([35], 'SendMessage', subject.says(trial.answerFor(subject.text), { taskId: id }))
  if (isAuthorization) trial.check(142, 'result' in outcome, 'a message that is taken', outcomeText(outcome))
  // An agent may refuse an answer.
  if ('refusal' in outcome) return leave(streams)
  const { task, message } = objectMembersOf(outcome.result)
  if (isObject(message)) {
    trial.check(33, message.contextId === contextId, `contextId ${contextId}`, message)
    return leave(streams)
  }
  const seen = subject.see(task)
  trial.check(33, seen.id === id && seen.contextId === contextId, `the task ${id} with contextId ${contextId}`, seen)
  await noteStopped(subject, seen.status.state, seen.artifacts)
  await checkStreams(subject, streams)
}

/**
 * Opens three subscriptions, which begin with the current task (§3.1.6), and closes the first. Empty if the task has
 * ended.
 */
async function witnesses(subject: SubjectUnderTest): Promise<StreamObserver[]> {
  const { trial, id } = subject
  if (!trial.options.card.streaming) return []
  const streams: StreamObserver[] = []
  for (let count = 0; count < 3; count += 1) {
    const stream = trial.stream([57], 'SubscribeToTask', { id })
    const first = await stream.next()
    if (stream.refusal && !subject.isStopped) await subject.read()
    if (stream.refusal && subject.course.isOver) break
    trial.check(
      57,
      first !== undefined && isTask(first, id),
      `first the task ${id}`,
      stream.refusal ? actualErrorText(stream.refusal) : (first ?? 'a stream that ends at once')
    )
    if (first === undefined || !isTask(first, id)) break
    if (subject.isStopped)
      trial.check(
        57,
        isDeepStrictEqual(first.task.status, subject.task.status),
        `the task as it is: ${JSON.stringify(subject.task.status)}`,
        first
      )
    trial.options.ledger.learn('live')
    streams.push(stream)
  }
  streams.shift()?.leave()
  return streams
}

/**
 * Checks the streams of an ended task: equal events in one order (§3.5.2), none missing or twice, ending with the task
 * (§3.1.6).
 */
async function checkStreams(subject: SubjectUnderTest, streams: readonly StreamObserver[]): Promise<void> {
  const { trial, course } = subject
  if (!course.isOver) return leave(streams)
  for (const stream of streams) {
    const rest = await stream.read()
    stream.leave()
    trial.check(
      58,
      rest === 'ended',
      'the end of the stream, with the end of the task',
      `a stream that stays open in ${stream.course.state}`
    )
    trial.check(
      58,
      rest !== 'ended' || stream.course.state === course.state,
      `the end of the task, ${course.state}`,
      stream.events.at(-1)
    )
    noteChunks(trial, 62, streamedArtifacts(stream.events), await subject.read(), 'a subscription')
  }
  const [one, other] = streams
  if (!one || !other) return
  const [longer, shorter] = [one.events.slice(1), other.events.slice(1)].toSorted((a, b) => b.length - a.length) as [
    StreamResponse[],
    StreamResponse[]
  ]
  // A later subscription has fewer events.
  const isSame = isDeepStrictEqual(longer.slice(longer.length - shorter.length), shorter)
  trial.check(55, isSame, `the same events: ${JSON.stringify(longer)}`, shorter)
  trial.check(56, one.course.isOver && other.course.isOver, 'the other streams go on when one is left', one.events)
}

function isTask(event: StreamResponse, id: string): event is Extract<StreamResponse, { task: unknown }> {
  return 'task' in event && isObject(event.task) && event.task.id === id
}

function leave(streams: readonly StreamObserver[]): void {
  for (const stream of streams) stream.leave()
}
