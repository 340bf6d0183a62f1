import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { Artifact, Message, StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import { type BindingTest, type Rest, stateIn } from '../binding-test.ts'
import { Unanswered } from '../callers/caller.ts'
import { objectMembersOf, itemsOf, actualErrorText } from '../requirements/needs.ts'
import type { SubjectUnderTest } from '../subject-under-test.ts'

/** The time between first and last event that distinguishes progress from an answer at the end. */
const TELLING_MS = 250

/** SendStreamingMessage: reads the stream to its end, to a question, or until it is silent. */
export async function stream(subject: SubjectUnderTest): Promise<void> {
  const { trial, text } = subject
  const { clock, ledger } = trial.options
  if (!trial.options.card.streaming) return
  trial.opens()
  const listening = trial.stream([51], 'SendStreamingMessage', subject.says(text))
  const first = await listening.next()
  trial.check(
    49,
    listening.refusal?.code !== 'UnsupportedOperation',
    'streaming, as the card says',
    listening.refusal && actualErrorText(listening.refusal)
  )
  if (first === undefined) return
  const beganMs = clock.now()
  if ('message' in first) {
    const rest = await listening.read()
    trial.check(
      50,
      rest === 'ended' && listening.events.length === 1,
      'one message, then the end',
      listening.events.length === 1 ? 'a stream that stays open' : listening.events
    )
    listening.leave()
    await replied(subject, objectMembersOf(first.message))
    return
  }
  if (!('task' in first)) {
    trial.check(51, false, 'first the task, or a message', first)
    listening.leave()
    return
  }
  subject.see(first.task)
  isNew(subject)
  const rest = await listening.read(() => listening.course.isOver)
  const end = rest === 'there' ? await listening.read() : rest
  listening.leave()
  const { events, course } = listening
  const tookMs = clock.now() - beganMs
  const others = events.slice(1).filter((event, i) => 'message' in event || ('task' in event && i + 2 < events.length))
  trial.check(51, others.length === 0, 'after the task only its updates', others)
  trial.check(
    51,
    end !== 'endless' && !(course.isOver && end === 'silent'),
    'the end of the stream with the end of the task',
    `a stream that stays open after ${events.length} events`
  )
  trial.check(
    51,
    end !== 'ended' || course.isOver || course.state.endsWith('Required'),
    'a stream that goes on until the task ends',
    `a stream that ended in ${course.state}`
  )
  if (course.isOver && tookMs >= TELLING_MS) {
    trial.tookMs.set(text, tookMs)
    ledger.learn('immediate')
    trial.check(53, true, '', undefined)
  }
  noteWaiting(subject, events, end)
  const task = await subject.read()
  if (!course.isOver) return
  trial.check(
    65,
    course.state === subject.course.state,
    `the state that the stream told, ${course.state}`,
    task.status.state
  )
  noteChunks(trial, 64, streamedArtifacts(events), task, 'the stream')
}

/** SendMessage with returnImmediately, and with the client's own contextId. */
export async function sendAtOnce(subject: SubjectUnderTest): Promise<void> {
  const { trial, text } = subject
  const { clock } = trial.options
  const contextId = crypto.randomUUID()
  const sentMs = clock.now()
  const answer = await answered(subject, [37], subject.says(text, { contextId }, { returnImmediately: true }))
  const tookMs = clock.now() - sentMs
  if (!answer) return
  const found = 'task' in answer ? answer.task.contextId : answer.message.contextId
  trial.check(32, found === contextId, `contextId ${contextId}, or a refusal`, found)
  trial.keepsContexts = found === contextId
  if ('message' in answer) return
  const usualMs = trial.tookMs.get(text)
  if (usualMs === undefined) return
  trial.check(
    37,
    !subject.course.isOver || tookMs < usualMs / 2,
    `the task while it works: its stream took ${usualMs} ms`,
    `${answer.task.status.state} after ${tookMs} ms`
  )
}

/** SendMessage without returnImmediately. */
export async function send(subject: SubjectUnderTest): Promise<void> {
  const { trial, text } = subject
  // After a time-out the task can be found by its context.
  const context = trial.keepsContexts ? { contextId: crypto.randomUUID() } : {}
  const opening = subject.says(text, context, { historyLength: 0 })
  // A long-running task is not an error.
  const answer = await answered(subject, trial.answersIn(text), opening).catch(async (error: unknown) => {
    if (trial.keepsContexts) await trial.findTasks(context)
    throw error
  })
  if (!answer) return
  const { contextId } = 'task' in answer ? answer.task : answer.message
  trial.check(31, typeof contextId === 'string' && contextId !== '', 'a contextId', answer)
  if (!('task' in answer)) return
  const { history, status, artifacts } = answer.task
  trial.check(39, history === undefined || history.length === 0, 'no history, for historyLength 0', history)
  trial.check(39, history === undefined, 'no member history, for historyLength 0', history, false)
  await noteStopped(subject, status.state, artifacts)
}

/** Resends, with returnImmediately, a message that was answered with a message. */
export async function replyAgain(subject: SubjectUnderTest): Promise<void> {
  const { trial, text } = subject
  const again = subject.says(text, {}, { returnImmediately: true })
  trial.opens()
  const outcome = await trial.ask([38], 'SendMessage', again)
  // An agent may answer differently the second time, so only an equal kind of answer counts.
  if ('result' in outcome && isObject(outcome.result) && 'message' in outcome.result)
    trial.check(38, true, '', undefined)
}

/** After SendMessage has waited, the task must have ended or wait for its client, and have all of its artifacts. */
export async function noteStopped(
  subject: SubjectUnderTest,
  found: string,
  artifacts: readonly Artifact[] | undefined
): Promise<void> {
  const { trial } = subject
  trial.options.ledger.learn('stopped')
  trial.check(35, subject.isStopped, 'a task that has ended, or waits for its client', found)
  if (!subject.isStopped) return
  if (!subject.course.isOver) trial.check(36, true, '', undefined)
  const task = await subject.read()
  trial.check(
    35,
    isDeepStrictEqual(artifacts ?? [], task.artifacts ?? []),
    `all artifacts, as GetTask gives them: ${JSON.stringify(task.artifacts ?? [])}`,
    artifacts ?? []
  )
}

type Answer = { readonly task: Task } | { readonly message: Message }

/** Opens a task by SendMessage; `undefined` if the agent refuses the message. */
async function answered(
  subject: SubjectUnderTest,
  ids: readonly number[],
  request: object
): Promise<Answer | undefined> {
  const { trial } = subject
  trial.opens()
  const outcome = await trial.ask(ids, 'SendMessage', request)
  if ('refusal' in outcome) {
    trial.refusals.add(actualErrorText(outcome.refusal))
    return undefined
  }
  const { task, message } = objectMembersOf(outcome.result)
  trial.options.ledger.learn('answer')
  trial.check(25, isObject(task) !== isObject(message), '{ task } or { message }', outcome.result)
  if (isObject(message)) {
    await replied(subject, message)
    return { message: message as unknown as Message }
  }
  if (!isObject(task)) throw new Unanswered('neither a task nor a message')
  const seen = subject.see(task)
  isNew(subject)
  return { task: seen }
}

function isNew({ trial, id, task }: SubjectUnderTest): void {
  const isKnown = trial.opened.has(id)
  trial.opened.add(id)
  trial.check(30, id !== '' && !isKnown, 'an id that no other task has', id)
  const { contextId } = task
  trial.check(31, typeof contextId === 'string' && contextId !== '', 'a contextId', task)
}

/** A message in reply opens no task (§3.1.1). */
async function replied(subject: SubjectUnderTest, message: Record<string, unknown>): Promise<void> {
  const { trial } = subject
  const { ledger } = trial.options
  subject.course.see('reply')
  ledger.learn('reply')
  ledger.learn('answer')
  const { role, contextId } = message
  trial.check(
    26,
    role === 'ROLE_AGENT' && typeof contextId === 'string' && contextId !== '',
    'a message of ROLE_AGENT with a contextId',
    message
  )
  if (typeof contextId !== 'string') return
  const listed = await trial.ask([], 'ListTasks', { contextId })
  if ('result' in listed && isObject(listed.result))
    trial.check(
      26,
      listed.result.totalSize === 0 || trial.hasTaskIn(contextId),
      'no task in a context with a message alone',
      listed.result
    )
}

/** A request for authorization must have a message, and the stream must stay open (§7.6.1). */
function noteWaiting({ trial }: SubjectUnderTest, events: readonly StreamResponse[], end: Rest): void {
  const request = events
    .filter(event => 'statusUpdate' in event)
    .find(event => stateIn(event) === 'TASK_STATE_AUTH_REQUIRED')
  if (!request) return
  trial.options.ledger.learn('auth')
  trial.check(140, request.statusUpdate.status.message !== undefined, 'a message that explains what is needed', request)
  trial.check(
    61,
    end !== 'ended' || events.at(-1) !== request,
    'a stream that stays open while an authorization is awaited',
    'its end'
  )
}

/** The artifacts in the events of a stream, which begins with a task (§4.2.2): their parts by id. */
export function streamedArtifacts(events: readonly StreamResponse[]): ReadonlyMap<string, readonly unknown[]> {
  let streamed = new Map<string, readonly unknown[]>()
  for (const event of events) {
    if ('task' in event) streamed = contentsOf(event.task)
    if (!('artifactUpdate' in event)) continue
    const { artifact, append } = objectMembersOf(event.artifactUpdate)
    const { artifactId, parts } = objectMembersOf(artifact)
    streamed.set(String(artifactId), [
      ...(append === true ? itemsOf(streamed.get(String(artifactId))) : []),
      ...itemsOf(parts)
    ])
  }
  return streamed
}

/** Records whether a stream's artifacts equal those of GetTask: every artifact (§3.1.3), and each chunk once. */
export function noteChunks(
  trial: BindingTest,
  id: number,
  streamed: ReadonlyMap<string, readonly unknown[]>,
  task: Task,
  source: string
): void {
  const given = contentsOf(task)
  const missing = [...streamed.keys()].filter(artifactId => !given.has(artifactId))
  trial.check(
    65,
    missing.length === 0,
    `the artifacts that ${source} told: ${[...streamed.keys()].join(', ')}`,
    task.artifacts ?? []
  )
  trial.check(
    id,
    isDeepStrictEqual(textsOf(streamed), textsOf(given)),
    `what ${source} told, put together, as GetTask gives it: ${JSON.stringify([...given])}`,
    [...streamed]
  )
}

function contentsOf(task: unknown): Map<string, readonly unknown[]> {
  return new Map(
    itemsOf(objectMembersOf(task).artifacts)
      .map(objectMembersOf)
      .map(({ artifactId, parts }) => [String(artifactId), itemsOf(parts)])
  )
}

/** The agent may join consecutive texts. */
function textsOf(contents: ReadonlyMap<string, readonly unknown[]>): ReadonlyMap<string, string> {
  return new Map([...contents].map(([id, parts]) => [id, parts.map(textIn).join('')]))
}

function textIn(part: unknown): string {
  const { text } = objectMembersOf(part)
  return typeof text === 'string' ? text : JSON.stringify(part)
}
