import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { eachEvent, type Fault, type Json } from '../../fixtures/servers/faulty-server.ts'
import {
  accepts,
  DONE,
  error,
  findFaults,
  MESSAGE,
  result,
  type FaultRow
} from '../../fixtures/servers/planted-faults.ts'
import { sampleOf } from '../../fixtures/sample.ts'

function reopening(): Fault {
  const reads = new Map<string, number>()
  return result((task, { params }) => {
    if (task.status.state !== 'TASK_STATE_COMPLETED') return task
    reads.set(params.id, (reads.get(params.id) ?? 0) + 1)
    return (reads.get(params.id) ?? 0) > 3 ? { ...task, status: { ...task.status, state: 'TASK_STATE_WORKING' } } : task
  }, 'GetTask')
}

function forgetting(): Fault {
  const canceled = new Set<string>()
  return {
    answer: ({ method, params, id }, answer) => {
      if (method !== 'CancelTask' || !canceled.has(params.id)) {
        canceled.add(params.id)
        return answer
      }
      return { jsonrpc: '2.0', id, error: { code: -32001, message: 'gone' } }
    }
  }
}

const untilAuthorization: Fault = {
  events: async function* (_, events) {
    for await (const event of events) {
      yield event
      if (event.result?.statusUpdate?.status.state === 'TASK_STATE_AUTH_REQUIRED') return
    }
  }
}

/** Each event comes 100 turns after the one before it, and who need not wait does. */
function awaiting(): Fault {
  const pass = async () => {
    for (let turn = 0; turn < 100; turn += 1) await setImmediate()
  }
  return {
    events: async function* (_, events) {
      for await (const event of events) {
        await pass()
        yield event
      }
    },
    answer: async ({ method, params }, answer) => {
      if (method !== 'SendMessage' || !params.configuration?.returnImmediately || !answer.result?.task) return answer
      for (let round = 0; round < 8; round += 1) await pass()
      return { ...answer, result: { task: { ...answer.result.task, status: { state: 'TASK_STATE_COMPLETED' } } } }
    }
  }
}

let reads = 0

function lost(): never {
  throw new Error('lost')
}

await findFaults([
  ['a second cancel does not find the task', 78, forgetting(), 'wait'],
  ['an ended task accepts a message', 27, accepts('SendMessage', { task: DONE })],
  ['a stream starts with an update', 51, eachEvent((event, index) => (index === 1 ? [] : [event]))],
  ['a stream breaks off', 51, eachEvent((event, index) => [index === 2 ? lost() : event])],
  [
    'a subscription does not start with the task',
    57,
    eachEvent((event, index, { method }) => (method === 'SubscribeToTask' && index === 1 ? [] : [event])),
    'ask'
  ],
  [
    'a subscription ends at once',
    57,
    {
      events: async function* ({ method }, events) {
        if (method !== 'SubscribeToTask') yield* events
      }
    },
    'ask'
  ],
  [
    'SendMessage does not wait',
    35,
    result(
      ({ task, message }) => (task ? { task: { ...task, status: { state: 'TASK_STATE_WORKING' } } } : { message }),
      'SendMessage'
    )
  ],
  [
    'a message has no contextId',
    26,
    result(given => (given.message ? { message: { ...given.message, contextId: undefined } } : given), 'SendMessage'),
    'hello'
  ],
  ['a message is streamed twice', 50, eachEvent(event => [event, event]), 'hello'],
  [
    'an answer is answered by a message of another context',
    33,
    result((given, { params }) => (params.message.taskId ? { message: MESSAGE } : given), 'SendMessage'),
    'ask'
  ],
  [
    'a message leaves a task behind',
    26,
    result((page, { params }) => (params.contextId ? { ...page, totalSize: 1 } : page), 'ListTasks'),
    'hello'
  ],
  ['a call that returns immediately waits', 37, awaiting()],
  ['a stream never ends', 51, eachEvent((event, index) => (index === 2 ? Array<Json>(2000).fill(event) : [event]))],
  ['a stream ends while an authorization is awaited', 61, untilAuthorization, 'authorize'],
  [
    'an answer is missing',
    76,
    { answer: ({ method, params }, answer) => (method === 'CancelTask' && params.id ? 'hang' : answer) },
    'wait'
  ]
])

/** Most of these take the same ways through the tests: `npm run test:deep` plants them all. */
await findFaults(
  sampleOf<FaultRow>(
    t,
    [
      ['an ended task continues', 80, reopening()],
      ['an ended task changes', 80, result(task => ({ ...task, metadata: { reads: (reads += 1) } }), 'GetTask')],
      ['reading changes a task', 79, result(task => ({ ...task, metadata: { reads: (reads += 1) } }), 'GetTask')],
      [
        'a cancel does not cancel',
        76,
        result(task => ({ ...task, status: { ...task.status, state: 'TASK_STATE_WORKING' } }), 'CancelTask', 'GetTask'),
        'wait'
      ],
      ['an ended task is canceled', 77, accepts('CancelTask', DONE)],
      ['a cancel of an ended task is refused with another error', 77, error(-32603, 'CancelTask')],
      ['an ended task accepts a subscription', 59, accepts('SubscribeToTask', { task: DONE })],
      [
        'a contextId is missing',
        31,
        result(({ task, message }) => (task ? { task: { ...task, contextId: undefined } } : { message }), 'SendMessage')
      ],
      [
        "the client's contextId is replaced",
        32,
        result(({ task, message }) => (task ? { task: { ...task, contextId: 'mine' } } : { message }), 'SendMessage')
      ],
      [
        'a contextId of another task is accepted',
        34,
        accepts(
          'SendMessage',
          { task: DONE },
          ({ params }) => params.message?.contextId !== undefined && params.message.taskId !== undefined
        )
      ],
      [
        'states go backwards',
        54,
        eachEvent((event, index) =>
          index === 3
            ? [
                event,
                {
                  ...event,
                  result: { statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' } } }
                }
              ]
            : [event]
        )
      ],
      [
        'a stream sends the task in its middle',
        51,
        eachEvent((event, index) => (index === 2 ? [{ ...event, result: { task: DONE } }] : [event]))
      ],
      ['a stream does not end', 51, { staysOpen: () => true }],
      ['a stream ends before its task', 51, eachEvent((event, index) => (index < 3 ? [event] : []))],
      [
        'an event is sent after the end of a task',
        80,
        eachEvent(event =>
          event.result?.statusUpdate?.status.state === 'TASK_STATE_COMPLETED' ? [event, event] : [event]
        )
      ],
      ['a subscription does not end', 58, { staysOpen: ({ method }) => method === 'SubscribeToTask' }, 'ask'],
      [
        'a subscription repeats artifacts',
        62,
        eachEvent((event, _, { method }) =>
          method === 'SubscribeToTask' && event.result?.artifactUpdate
            ? [event, { ...event, result: { artifactUpdate: { ...event.result.artifactUpdate, append: true } } }]
            : [event]
        ),
        'ask'
      ],
      [
        'GetTask lacks artifacts that were streamed',
        65,
        result(task => ({ ...task, artifacts: undefined }), 'GetTask')
      ],
      [
        'SendMessage lacks artifacts',
        35,
        result(({ task, message }) => (task ? { task: { ...task, artifacts: undefined } } : { message }), 'SendMessage')
      ],
      [
        'an answer is for another context',
        33,
        result(
          (given, { params }) => (params.message.taskId ? { task: { ...given.task, contextId: 'other' } } : given),
          'SendMessage'
        ),
        'ask'
      ],
      [
        "a message is not the agent's",
        26,
        result(given => (given.message ? { message: { ...given.message, role: 'ROLE_USER' } } : given), 'SendMessage'),
        'hello'
      ],
      [
        'streaming is refused though the card has it',
        49,
        {
          events: async function* (asked) {
            yield { jsonrpc: '2.0', id: asked.id, error: { code: -32004, message: 'no streams' } }
          }
        }
      ]
    ],
    3
  )
)
