import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { ErrorCode } from '../../../machines/protocol/errors.ts'
import { objectMembersOf, itemsOf, outcomeText } from '../requirements/needs.ts'
import type { SubjectUnderTest } from '../subject-under-test.ts'

/** Reads a stopped task twice: reading changes nothing (§3.3.1). */
export async function readTwice(subject: SubjectUnderTest): Promise<void> {
  const { trial } = subject
  const one = await subject.read()
  trial.check(65, one.id === subject.id, 'the task', one)
  if (!subject.isStopped) return
  const other = await subject.read()
  trial.check(79, isDeepStrictEqual(one, other), `the same as before: ${JSON.stringify(one)}`, other)
}

/** The history has at most the requested length (§3.2.4), and contains the sent messages unchanged (§3.7). */
export async function checkHistory(subject: SubjectUnderTest): Promise<void> {
  const { trial, sent } = subject
  const all = itemsOf((await subject.read()).history)
  const one = itemsOf((await subject.read([66], { historyLength: 1 })).history)
  trial.check(66, one.length <= 1, 'one message at most, for historyLength 1', one)
  if (one.length === 1 && all.length > 1)
    trial.check(66, isDeepStrictEqual(one, all.slice(-1)), `the newest: ${JSON.stringify(all.at(-1))}`, one)
  const { history } = await subject.read([66], { historyLength: 0 })
  trial.check(66, history === undefined || history.length === 0, 'no history, for historyLength 0', history)
  trial.check(66, history === undefined, 'no member history, for historyLength 0', history, false)
  const kept = sent.flatMap(({ messageId, parts }) =>
    all
      .map(objectMembersOf)
      .filter(message => message.messageId === messageId)
      .map(message => ({ parts, found: message.parts }))
  )
  for (const { parts, found } of kept) trial.check(67, textOf(parts) === textOf(found), textOf(parts), textOf(found))
  if (kept.length > 0) trial.options.ledger.learn('history')
}

/** A message with the task's id and another contextId (§3.4.3). */
export async function nameAnotherContext(subject: SubjectUnderTest): Promise<void> {
  const { trial } = subject
  const before = subject.task
  const outcome = await trial.ask(
    [34],
    'SendMessage',
    subject.says(subject.text, { taskId: subject.id, contextId: crypto.randomUUID() }, { returnImmediately: true })
  )
  subject.sent.pop()
  trial.check(34, 'refusal' in outcome, 'a refusal', 'result' in outcome && outcome.result)
  if (!subject.isStopped) return
  const { status } = await subject.read()
  trial.check(
    34,
    isDeepStrictEqual(status, before.status),
    `the task as it was: ${JSON.stringify(before.status)}`,
    status
  )
}

/** A message to an ended task (§3.1.1). */
export async function sendToEndedTask(subject: SubjectUnderTest, wanted: ErrorCode): Promise<void> {
  await subject.trial.refused(27, wanted, 'SendMessage', subject.says(subject.text, { taskId: subject.id }))
}

/** Streams a message to an ended task (§3.1.2). */
export async function streamToEndedTask(subject: SubjectUnderTest, wanted: ErrorCode): Promise<void> {
  const { trial } = subject
  if (trial.options.card.streaming)
    await trial.refused(52, wanted, 'SendStreamingMessage', subject.says(subject.text, { taskId: subject.id }))
}

/** A subscription to an ended task (§3.1.6). */
export async function subscribe({ trial, id }: SubjectUnderTest, wanted: ErrorCode): Promise<void> {
  if (trial.options.card.streaming) await trial.refused(59, wanted, 'SubscribeToTask', { id })
}

/** Canceling a canceled task changes nothing (§3.3.1): it is returned, or refused (§3.1.5). */
export async function cancelAgain(subject: SubjectUnderTest): Promise<void> {
  const { trial, id } = subject
  const outcome = await trial.ask([78], 'CancelTask', { id })
  if ('refusal' in outcome) trial.isRefusedWith(78, 'TaskNotCancelable', outcome)
  else
    trial.check(
      78,
      isObject(outcome.result) && subject.see(outcome.result).id === id,
      'the canceled task, or TaskNotCancelable',
      outcome.result
    )
  await subject.read([78])
}

/** Checks that no move has changed the ended task (§3.1.1). */
export async function readAtLast(subject: SubjectUnderTest): Promise<void> {
  const last = await subject.read([80])
  subject.trial.check(
    80,
    isDeepStrictEqual(last, subject.atEnd),
    `the task as it was: ${JSON.stringify(subject.atEnd)}`,
    last
  )
}

/**
 * Push notification configurations: refused if the card does not offer them (§3.3.4), else stored, read, listed and
 * deleted (§3.1.7 to §3.1.10). A server may drop them when the task ends (§3.1.7): then the move ends.
 */
export async function keepWebhooks(subject: SubjectUnderTest): Promise<void> {
  const { trial, id: taskId } = subject
  const { card, ledger } = trial.options
  const config = { taskId, url: NOWHERE }
  if (!card.pushNotifications) {
    await trial.refused(81, 'PushNotificationNotSupported', 'CreateTaskPushNotificationConfig', config)
    await trial.refused(81, 'PushNotificationNotSupported', 'GetTaskPushNotificationConfig', { taskId, id: 'none' })
    await trial.refused(81, 'PushNotificationNotSupported', 'ListTaskPushNotificationConfigs', { taskId })
    await trial.refused(81, 'PushNotificationNotSupported', 'DeleteTaskPushNotificationConfig', { taskId, id: 'none' })
    return
  }
  const made = await trial.ask([82], 'CreateTaskPushNotificationConfig', config)
  // A server may refuse an unreachable URL.
  if ('refusal' in made) return
  ledger.learn('webhookAccepted')
  const { id } = objectMembersOf(made.result)
  trial.check(82, typeof id === 'string' && id !== '', 'the configuration, with an id', made.result)
  const found = await trial.ask([84], 'GetTaskPushNotificationConfig', { taskId, id })
  if ('refusal' in found) await subject.read()
  if ('refusal' in found && subject.course.isOver) return
  trial.check(
    84,
    'result' in found && isObject(found.result) && found.result.url === NOWHERE,
    'the configuration',
    outcomeText(found)
  )
  trial.check(83, 'result' in found, 'the configuration, at least until the task ends', outcomeText(found))
  const listed = await trial.result<{ configs?: readonly { id?: unknown }[] }>(
    [85],
    'ListTaskPushNotificationConfigs',
    { taskId }
  )
  trial.check(
    85,
    (listed.configs ?? []).some(config => config.id === id),
    'the configuration in the list',
    listed
  )
  await trial.result([86], 'DeleteTaskPushNotificationConfig', { taskId, id })
  const again = await trial.ask([86], 'DeleteTaskPushNotificationConfig', { taskId, id })
  trial.check(86, 'result' in again, 'to delete twice as to delete once', outcomeText(again))
  await trial.refused(84, 'TaskNotFound', 'GetTaskPushNotificationConfig', { taskId, id })
  await trial.refused(82, 'TaskNotFound', 'CreateTaskPushNotificationConfig', {
    ...config,
    taskId: crypto.randomUUID()
  })
}

/** A URL that never resolves (RFC 2606). */
const NOWHERE = 'https://webhook.invalid/'

function textOf(parts: unknown): string {
  return itemsOf(parts)
    .map(part => String(objectMembersOf(part).text))
    .join('')
}
