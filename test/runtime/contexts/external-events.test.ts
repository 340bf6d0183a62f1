import t from 'tap'
import { createActor, createMachine, fromPromise, type AnyActorLogic, type AnyActorRef, type EventObject } from 'xstate'
import type { WorkOutcome } from '../../../machines/task-events.ts'
import { taskMachine } from '../../../machines/task.machine.ts'
import type { MessagePolicy } from '../../../runtime/agent/policies.ts'
import { acceptEvent, type OutsideEvent } from '../../../runtime/contexts/external-events.ts'
import { userMessage } from '../../fixtures/runtime/runtime-helpers.ts'

const taskId = 't'
const message = userMessage('blue')
const cancel: OutsideEvent = { type: 'task.cancel', taskId }
const words: OutsideEvent = { type: 'message.received', taskId, message }
const authorization: OutsideEvent = { type: 'authorization.received', taskId, data: 'granted' }
const POLICIES: MessagePolicy[] = ['reject', 'deliver', 'queue']

const START = { type: 'task.start', taskId, input: undefined }
const ASK = { type: 'work.asked', message: { parts: [] } }
const NEED = { type: 'work.needsAuthorization', message: { parts: [] } }
const CRASH = {
  type: 'work.crashed',
  taskId,
  message: { parts: [] },
  crash: { atMs: 0, policy: { type: 'transient', intensity: 1, periodMs: 1 } }
}
const QUEUED = { type: 'message.queued', taskId, message }

/** Work as a chart: one that takes whatever comes, one that takes nothing, and one whose guard throws. */
const take = { actions: () => {} }
const open = createMachine({ on: { 'message.received': take, 'authorization.received': take } })
const deaf = createMachine({})
const broken = createMachine({
  on: {
    'message.received': {
      ...take,
      guard: () => {
        throw new Error('secret')
      }
    }
  }
})

function task(events: EventObject[], work: AnyActorLogic = open): AnyActorRef {
  const actor = createActor(taskMachine.provide({ actors: { work: work as never } }), {
    input: { taskId, contextId: 'c' }
  })
  actor.start()
  for (const event of events) actor.send(event as never)
  return actor
}

function accepted(actor: AnyActorRef, event: OutsideEvent, messages: MessagePolicy, queuedMessages = 1) {
  return acceptEvent({ actor, generation: 1, question: undefined }, event, { messages, queuedMessages })
}

/** What the policies make of an event, in their order; the event itself by its type. */
function verdicts(actor: AnyActorRef, event: OutsideEvent, queueLimit = 1): unknown[] {
  return POLICIES.map(policy => {
    const verdict = accepted(actor, event, policy, queueLimit)
    return 'type' in verdict ? verdict.type : verdict.reason
  })
}

const no = 'state'
const all = (verdict: unknown) => [verdict, verdict, verdict]

await t.test("an event is accepted, converted or refused by the task's state and the policy", async t => {
  const rows: [name: string, events: EventObject[], cancel: unknown[], words: unknown[], authorization: unknown[]][] = [
    // while it after cancel a message an authorization
    ['waits for its start', [], all('task.cancel'), [no, no, 'message.queued'], all(no)],
    ['works', [START], all('task.cancel'), [no, 'message.steered', 'message.queued'], all(no)],
    ['waits for input', [START, ASK], all('task.cancel'), all('message.received'), all(no)],
    [
      'waits for authorization',
      [START, NEED],
      all('task.cancel'),
      all('message.received'),
      all('authorization.received')
    ],
    ['restarts', [START, CRASH], all('task.cancel'), [no, no, 'message.queued'], all(no)],
    ['is canceled', [START, ASK, cancel], all(no), all(no), all(no)]
  ]
  for (const [name, events, ...expected] of rows) {
    t.strictSame(
      [cancel, words, authorization].map(event => verdicts(task(events), event)),
      expected,
      `a task that ${name}`
    )
  }
})

await t.test('a chart refuses answers and steered messages that it does not accept', async t => {
  t.strictSame(verdicts(task([START, ASK], deaf), words), all(no))
  t.strictSame(verdicts(task([START, NEED], deaf), words), all(no))
  t.strictSame(verdicts(task([START, NEED], deaf), authorization), all(no))
  t.strictSame(verdicts(task([START], deaf), words), [no, no, 'message.queued'], 'it may wait for a question')
})

await t.test('a chart whose guards throw accepts the event, and then fails by that error', async t => {
  t.strictSame(verdicts(task([START, ASK], broken), words), all('message.received'))
  t.strictSame(verdicts(task([START], broken), words), [no, 'message.steered', 'message.queued'])
})

await t.test('an accepted event is unchanged, and an early message only gets another type', async t => {
  t.equal(accepted(task([START, ASK]), words, 'reject'), words)
  t.equal(accepted(task([START, NEED]), authorization, 'queue'), authorization)
  t.strictSame(accepted(task([START]), words, 'deliver'), { type: 'message.steered', taskId, message })
  t.strictSame(accepted(task([START]), words, 'queue'), { type: 'message.queued', taskId, message })
})

await t.test('a queue accepts messages up to its limit, and another once one is processed', async t => {
  for (const [length, verdict] of [
    [0, 'message.queued'],
    [1, 'message.queued'],
    [2, 'queue'],
    [3, 'queue']
  ] as const) {
    const actor = task([START, ...Array.from({ length }, () => QUEUED)])
    t.strictSame(verdicts(actor, words, 2), [no, 'message.steered', verdict])
  }
  t.strictSame(verdicts(task([QUEUED, QUEUED]), words, 2), [no, no, 'queue'], 'also before the start')
  t.strictSame(verdicts(task([QUEUED, QUEUED, START, ASK]), words, 2), [no, 'message.steered', 'message.queued'])
})

await t.test('a task whose work was lost accepts only its cancellation', async t => {
  const stored = JSON.parse(JSON.stringify(task([START, ASK]).getPersistedSnapshot()))
  const work = fromPromise<WorkOutcome, unknown>(() => new Promise(() => {}))
  const actor = createActor(taskMachine.provide({ actors: { work } }), {
    snapshot: { ...stored, children: {} },
    input: { taskId, contextId: 'c' }
  }).start()
  t.strictSame(
    [cancel, words, authorization].map(event => verdicts(actor, event)),
    [all('task.cancel'), all(no), all(no)]
  )
})
