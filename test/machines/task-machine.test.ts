import t from 'tap'
import {
  createActor,
  fromPromise,
  waitFor,
  type AnyMachineSnapshot,
  type DoneActorEvent,
  type ErrorActorEvent,
  type EventObject
} from 'xstate'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/objects.ts'
import { isTerminal, TASK_STATES, type TaskState } from '../../machines/protocol/states.ts'
import type { Recovery, RestartPolicy } from '../../machines/supervision.ts'
import type { TaskFact, TaskMachineEvent, ToWork, WorkOutcome } from '../../machines/task-events.ts'
import { taskMachine, type TaskContext } from '../../machines/task.machine.ts'
import {
  actorTurns,
  configurationsOf,
  Follower,
  lastTurn,
  pathsOf,
  same,
  testChartPaths,
  type Chart,
  type Turn
} from '../fixtures/charts/chart-paths.ts'
import { testCompiled } from '../fixtures/charts/compiled-paths.ts'

type Arriving = TaskMachineEvent | DoneActorEvent<WorkOutcome, 'work'> | ErrorActorEvent<unknown, 'work'>
type Crashed = Extract<Arriving, { type: 'work.crashed' }>

const taskId = 't1'
const words = { parts: [{ text: 'words' }], metadata: { mood: 'calm' }, extensions: ['urn:example'] }
const metadata = { 'urn:example': { n: 1 } }
const artifact = {
  artifactId: 'a1',
  name: 'boat',
  description: 'A boat',
  parts: [{ text: 'a' }],
  metadata: { n: 1 },
  extensions: ['urn:example']
}
const nameless = { parts: [{ text: 'b' }] }
const [message, second]: [Message, Message] = [messageOf('m1'), messageOf('m2')]
const transient: RestartPolicy = { type: 'transient', intensity: 1, periodMs: 5000 }
const generic = 'The work ended with an error.'

const START: Arriving = { type: 'task.start', taskId, input: { draw: 'a boat' } }
const ASK: Arriving = { type: 'work.asked', message: words }
const NEED: Arriving = { type: 'work.needsAuthorization', message: words }
const ENDS: Arriving[] = [
  { type: 'task.cancel', taskId },
  { type: 'task.fail', taskId, message: words },
  { type: 'task.reject', taskId, message: words }
]

/** Every kind of event that a task can get, with a case for each branch that the event decides. */
const CASES: { [Type in Arriving['type']]: (Arriving & { type: Type })[] } = {
  'task.start': [{ type: 'task.start', taskId, input: 'draw' }],
  'task.recover': [recover(), recover({ intensity: 0 })],
  'recovery.undone': [{ type: 'recovery.undone', taskId }],
  'task.cancel': [
    { type: 'task.cancel', taskId },
    { type: 'task.cancel', taskId, message: words }
  ],
  'task.fail': [{ type: 'task.fail', taskId, message: words }],
  'task.reject': [{ type: 'task.reject', taskId, message: words }],
  'message.received': [{ type: 'message.received', taskId, message }],
  'message.steered': [{ type: 'message.steered', taskId, message }],
  'message.queued': [queue(message), queue(second)],
  'authorization.received': [
    { type: 'authorization.received', taskId, data: { token: 't' } },
    { type: 'authorization.received', taskId, data: undefined }
  ],
  'work.progressed': [{ type: 'work.progressed' }, { type: 'work.progressed', message: words, metadata, ordinal: 1 }],
  'work.produced': [
    { type: 'work.produced', artifact },
    { type: 'work.produced', artifact, append: true, lastChunk: false, ordinal: 2 }
  ],
  'work.asked': [{ type: 'work.asked', message: words, ordinal: 3 }],
  'work.needsAuthorization': [{ type: 'work.needsAuthorization', message: words, ordinal: 4 }],
  'work.resumed': [{ type: 'work.resumed' }],
  // Restarted at 1000, work may crash within the period, up to its last millisecond, or after it.
  'work.crashed': [crash(1000, { ...transient, type: 'temporary' }), crash(1000), crash(5999), crash(6000)],
  'xstate.done.actor.work': [
    ended({ state: 'completed', artifacts: [artifact, nameless] }),
    ended({ state: 'failed', message: words }),
    ended({ state: 'rejected', message: words })
  ],
  'xstate.error.actor.work': [broke(new Error('secret')), broke(new A2AError('ContentTypeNotSupported'))]
}

/**
 * A task whose queue never holds more than two messages, nor one message twice in a row, so that its configurations are
 * finite.
 */
const chart: Chart = {
  machine: taskMachine.provide({ actors: { work: fromPromise<WorkOutcome, unknown>(() => new Promise(() => {})) } }),
  input: { taskId, contextId: 'c1' },
  events: ({ context }) =>
    Object.values(CASES)
      .flat()
      .filter(event => event.type !== 'message.queued' || hasPlaceFor(event.message, context)),
  memory: ({ context: { queue, restarts } }) => [idsOf(queue), restarts]
}

const configurations = configurationsOf(chart).map(found => ({
  ...found,
  state: lastOf(statesOf(actorTurns(chart, found.way)))
}))
const paths = pathsOf(chart).map(path => ({ path, turns: actorTurns(chart, path) }))
const walks = paths.map(({ turns }) => statesOf(turns))

await t.test('on every path of the task chart', async t => testChartPaths(t, [chart]))
await t.test('the compiled chart', async t => testCompiled(t, [chart]))

// Properties hold also if nothing triggers them; this table demands that each event is tried in each state, and says
// all that it causes.
await t.test('each event has its effect in each state that is not terminal', async t => {
  const tells = 'an artifact',
    twice = 'an artifact, an artifact, COMPLETED',
    passed = 'to work',
    queued = 'queued',
    again = 'WORKING, a restart'
  const [work, ask, need, fail, stop, deny] = [
    'WORKING',
    'INPUT_REQUIRED',
    'AUTH_REQUIRED',
    'FAILED',
    'CANCELED',
    'REJECTED'
  ]
  const noted = 'a recovery',
    nothing = ''
  const no = 'refused',
    none = undefined // none: it cannot arrive there
  const expected: Record<string, (string | undefined)[]> = {
    // state:                           submitted working inputRequired authRequired restarting
    'task.start': [work, no, no, no, work],
    'task.recover': [noted, noted, noted, noted, noted],
    'task.recover, too often': [fail, fail, fail, fail, fail],
    'recovery.undone': [nothing, nothing, nothing, nothing, nothing],
    'task.cancel': [stop, stop, stop, stop, stop],
    'task.fail': [fail, fail, fail, fail, fail],
    'task.reject': [deny, deny, deny, deny, deny],
    'message.received': [no, no, passed, passed, no],
    'message.steered': [no, passed, no, no, no],
    'message.queued': [queued, queued, no, no, queued],
    'authorization.received': [no, no, no, passed, no],
    'work.progressed': [no, work, no, no, no],
    'work.produced': [no, tells, tells, tells, no],
    'work.asked': [no, ask, ask, ask, no],
    'work.asked with a message queued': [no, passed, none, passed, no],
    'work.needsAuthorization': [no, need, need, need, no],
    'work.resumed': [no, no, work, work, no],
    'work.crashed, to restart': [no, again, again, again, no],
    'work.crashed, for good': [no, fail, fail, fail, no],
    'outcome completed': [no, twice, twice, twice, no],
    'outcome failed': [no, fail, fail, fail, no],
    'outcome rejected': [no, deny, deny, deny, no],
    'work breaks': [none, fail, fail, fail, none]
  }
  const columns = ['submitted', 'working', 'inputRequired', 'authRequired', 'restarting']
  const tried = new Set<string>()
  same(
    t,
    configurations
      .filter(({ state }) => !isTerminal(state))
      .flatMap(({ way, legal, illegal, snapshot }) => {
        const state = nameOf(snapshot)
        return [...legal, ...illegal].map(event => {
          const row = rowOf(event as Arriving, snapshot)
          tried.add(`${row} in ${state}`)
          const found = legal.includes(event) ? deedsOf(lastTurn(chart, [...way, event]), snapshot) : no
          return { name: `${row} in ${state}`, found, wanted: expected[row]?.[columns.indexOf(state)] }
        })
      })
  )
  const fields = Object.entries(expected).flatMap(([row, deeds]) =>
    columns.filter((_, i) => deeds[i] !== undefined).map(state => `${row} in ${state}`)
  )
  t.strictSame([...tried].toSorted(), fields.toSorted(), 'every field of the table was tried, and no other exists')
})

// Properties say what no walk does; this says also that each change of state that the protocol allows happens on some
// walk.
await t.test('states follow one another only as the protocol allows (§4.1.3)', async t => {
  const [WORKING, INPUT, AUTH] = [
    'TASK_STATE_WORKING',
    'TASK_STATE_INPUT_REQUIRED',
    'TASK_STATE_AUTH_REQUIRED'
  ] as const
  const [COMPLETED, FAILED, CANCELED, REJECTED] = [
    'TASK_STATE_COMPLETED',
    'TASK_STATE_FAILED',
    'TASK_STATE_CANCELED',
    'TASK_STATE_REJECTED'
  ] as const
  const allowed: Record<TaskState | 'new', TaskState[]> = {
    new: ['TASK_STATE_SUBMITTED'],
    TASK_STATE_SUBMITTED: [WORKING, FAILED, CANCELED, REJECTED],
    TASK_STATE_WORKING: [WORKING, INPUT, AUTH, COMPLETED, FAILED, CANCELED, REJECTED],
    TASK_STATE_INPUT_REQUIRED: [WORKING, INPUT, AUTH, COMPLETED, FAILED, CANCELED, REJECTED],
    TASK_STATE_AUTH_REQUIRED: [WORKING, INPUT, AUTH, COMPLETED, FAILED, CANCELED, REJECTED],
    TASK_STATE_COMPLETED: [],
    TASK_STATE_FAILED: [],
    TASK_STATE_CANCELED: [],
    TASK_STATE_REJECTED: []
  }
  const seen = new Set(
    walks.flatMap(states => states.map((state, index) => `${states[index - 1] ?? 'new'} -> ${state}`))
  )
  const wanted = Object.entries(allowed).flatMap(([from, states]) => states.map(to => `${from} -> ${to}`))
  t.strictSame([...seen].toSorted(), wanted.toSorted())
})

await t.test('over all paths', async t => {
  await t.test('some path reports every state of the protocol', async t => {
    t.strictSame([...new Set(walks.flat())].toSorted(), Object.keys(TASK_STATES).toSorted())
  })

  await t.test('every kind of event is accepted in some state', async t => {
    const accepted = new Set(configurations.flatMap(({ legal }) => legal.map(({ type }) => type)))
    t.strictSame([...accepted].toSorted(), Object.keys(CASES).toSorted())
  })

  await t.test('the ids never change', async t => {
    same(
      t,
      configurations.map(
        ({
          way,
          snapshot: {
            context: { taskId, contextId }
          }
        }) => ({ name: `${way.length} events`, found: { taskId, contextId }, wanted: chart.input })
      )
    )
  })

  await t.test('every queued message reaches the work once in order, or is still queued', async t => {
    same(
      t,
      paths.map(({ path, turns }) => {
        const reached = turns.flatMap(({ sent }) =>
          sent.flatMap(({ event }) => ('queued' in event && isMessage(event) ? [event.message] : []))
        )
        const queued = path.flatMap(event =>
          event.type === 'message.queued' && isMessage(event) ? [event.message] : []
        )
        return { name: typesOf(path), found: [...reached, ...contextIn(turns.at(-1)).queue], wanted: queued }
      })
    )
  })

  await t.test('the queue reaches its limit on one path, and is empty while the task waits', async t => {
    t.equal(Math.max(...configurations.map(({ snapshot }) => snapshot.context.queue.length)), 2)
    t.strictSame(
      configurations.filter(
        ({ snapshot }) => nameOf(snapshot) === 'inputRequired' && snapshot.context.queue.length > 0
      ),
      []
    )
  })

  await t.test('crashed work restarts unless it crashed within 5 seconds, and the time is stored', async t => {
    same(
      t,
      paths.map(({ path, turns }) => {
        const crashes = path.filter(
          (event): event is Crashed => event.type === 'work.crashed' && Object(event).crash.policy.type === 'transient'
        )
        const restarted = crashes.filter(
          ({ crash: { atMs } }, i) => i === 0 || atMs - (crashes[i - 1] as Crashed).crash.atMs >= 5000
        )
        const asked = turns.flatMap(({ facts }) => facts.filter(({ type }) => type === 'restart.requested'))
        const found = { restarts: contextIn(turns.at(-1)).restarts, asked: asked.length }
        return {
          name: typesOf(path),
          found,
          wanted: { restarts: restarted.slice(-1).map(({ crash }) => crash.atMs), asked: restarted.length }
        }
      })
    )
  })

  await t.test('work runs exactly from each start to the next crash or end', async t => {
    const starts = ['submitted', 'restarting']
    same(
      t,
      configurations.map(({ way, snapshot, state }) => {
        const idle = isTerminal(state) || starts.includes(nameOf(snapshot))
        return { name: typesOf(way), found: Object.keys(snapshot.children), wanted: idle ? [] : ['work'] }
      })
    )
  })

  await t.test('a terminal state can be reached from every other state', async t => {
    for (const { state, way, legal } of configurations) {
      const ends = legal.filter(event => statesOf([lastTurn(chart, [...way, event])]).some(isTerminal))
      t.equal(ends.length > 0, !isTerminal(state), state)
    }
  })

  await t.test("the last reported state is the chart's, or working on a restart, tagged by class", async t => {
    for (const { state, snapshot } of configurations) {
      const name = nameOf(snapshot)
      const found = {
        chart: name === 'restarting' ? 'working' : name,
        tags: [...snapshot.tags],
        status: snapshot.status
      }
      const { chart, class: kind } = TASK_STATES[state]
      t.strictSame(
        found,
        { chart, tags: kind === 'active' ? [] : [kind], status: kind === 'terminal' ? 'done' : 'active' },
        state
      )
    }
  })
})

await t.test('a task reports these facts', async t => {
  const rows: [string, Arriving[], TaskFact[]][] = [
    ['its submission, without words', [], [told('TASK_STATE_SUBMITTED')]],
    [
      'its start, without the input',
      [{ type: 'task.start', taskId, input: { message: words, metadata } }],
      [told('TASK_STATE_WORKING')]
    ],
    ['progress without words', [START, { type: 'work.progressed' }], [told('TASK_STATE_WORKING')]],
    [
      'progress with a message',
      [START, { type: 'work.progressed', message: words }],
      [told('TASK_STATE_WORKING', { message: words })]
    ],
    [
      'progress with metadata',
      [START, { type: 'work.progressed', metadata }],
      [told('TASK_STATE_WORKING', { metadata })]
    ],
    ['a question', [START, { ...ASK, metadata }], [told('TASK_STATE_INPUT_REQUIRED', { message: words, metadata })]],
    [
      'a second question',
      [START, ASK, { type: 'work.asked', message: nameless }],
      [told('TASK_STATE_INPUT_REQUIRED', { message: nameless })]
    ],
    [
      'a need of authorization',
      [START, { ...NEED, metadata }],
      [told('TASK_STATE_AUTH_REQUIRED', { message: words, metadata })]
    ],
    [
      'a second need',
      [START, NEED, { type: 'work.needsAuthorization', message: nameless }],
      [told('TASK_STATE_AUTH_REQUIRED', { message: nameless })]
    ],
    [
      'that it goes on, without the words of the question',
      [START, ASK, { type: 'work.resumed' }],
      [told('TASK_STATE_WORKING')]
    ],
    ['nothing of an answer', [START, ASK, { type: 'message.received', taskId, message }], []],
    ['nothing of a message that is queued', [START, queue(message)], []],
    [
      'nothing of a question that meets a queued message',
      [START, queue(message), { ...ASK, metadata, ordinal: 1 }],
      []
    ],
    [
      'the question that a queued message did not answer',
      [START, queue(message), ASK, { ...ASK, ordinal: 1 }],
      [told('TASK_STATE_INPUT_REQUIRED', { message: words, ordinal: 1 })]
    ],
    ['nothing of a message that steers', [START, { type: 'message.steered', taskId, message }], []],
    ['nothing of an authorization', [START, NEED, { type: 'authorization.received', taskId, data: words }], []],
    [
      'which of the words of the work a status is',
      [START, { type: 'work.progressed', message: words, ordinal: 7 }],
      [told('TASK_STATE_WORKING', { message: words, ordinal: 7 })]
    ],
    [
      'which of the words of the work a need is',
      [START, { ...NEED, ordinal: 8 }],
      [told('TASK_STATE_AUTH_REQUIRED', { message: words, ordinal: 8 })]
    ],
    [
      'which of the words of the work an artifact is',
      [START, { type: 'work.produced', artifact, ordinal: 9 }],
      [produced({ artifact, ordinal: 9 })]
    ],
    [
      'why its work crashed, and then that it wants it started again',
      [START, crash(1000)],
      [told('TASK_STATE_WORKING', { message: words }), { type: 'restart.requested' }]
    ],
    [
      'the same if its work crashed with a question open',
      [START, ASK, crash(1000)],
      [told('TASK_STATE_WORKING', { message: words }), { type: 'restart.requested' }]
    ],
    ['that it works again, without words', [START, crash(1000), START], [told('TASK_STATE_WORKING')]],
    [
      'why its work crashed, if it is never started again',
      [START, crash(1000, { ...transient, type: 'temporary' })],
      [told('TASK_STATE_FAILED', { message: words })]
    ],
    [
      'why its work crashed, if it crashed too often',
      [START, NEED, crash(1000), START, crash(2000)],
      [told('TASK_STATE_FAILED', { message: words })]
    ],
    ['an artifact', [START, { type: 'work.produced', artifact }], [produced({ artifact })]],
    [
      'an artifact without an id',
      [START, { type: 'work.produced', artifact: nameless }],
      [produced({ artifact: nameless })]
    ],
    [
      'a first chunk',
      [START, { type: 'work.produced', artifact, append: false, lastChunk: false }],
      [produced({ artifact, append: false, lastChunk: false })]
    ],
    [
      'a last chunk',
      [START, { type: 'work.produced', artifact, append: true, lastChunk: true }],
      [produced({ artifact, append: true, lastChunk: true })]
    ],
    ['its cancellation without words', [START, { type: 'task.cancel', taskId }], [told('TASK_STATE_CANCELED')]],
    [
      'its cancellation with words',
      [{ type: 'task.cancel', taskId, message: words }],
      [told('TASK_STATE_CANCELED', { message: words })]
    ],
    [
      'why it is failed from outside',
      [START, { type: 'task.fail', taskId, message: words }],
      [told('TASK_STATE_FAILED', { message: words })]
    ],
    [
      'why it is rejected from outside',
      [{ type: 'task.reject', taskId, message: words }],
      [told('TASK_STATE_REJECTED', { message: words })]
    ],
    [
      'completion alone, if the work made nothing and said nothing',
      [START, ended({ state: 'completed', artifacts: [] })],
      [told('TASK_STATE_COMPLETED')]
    ],
    [
      'the artifacts of its outcome, each as whole, and then completion with the last words',
      [START, ASK, ended({ state: 'completed', artifacts: [artifact, nameless], message: words, metadata })],
      [
        produced({ artifact, lastChunk: true }),
        produced({ artifact: nameless, lastChunk: true }),
        told('TASK_STATE_COMPLETED', { message: words, metadata })
      ]
    ],
    [
      'why its work failed',
      [START, ended({ state: 'failed', message: words, metadata })],
      [told('TASK_STATE_FAILED', { message: words, metadata })]
    ],
    [
      'why its work rejected it',
      [START, ended({ state: 'rejected', message: words, metadata })],
      [told('TASK_STATE_REJECTED', { message: words, metadata })]
    ],
    [
      'the text of an A2AError',
      [START, broke(new A2AError('ContentTypeNotSupported', 'Only text, please.'))],
      reasoned('Only text, please.')
    ],
    ['the standard text of an A2AError', [START, broke(new A2AError('RateLimited'))], reasoned('Too many requests')],
    [
      'the text of an A2AError from another copy of this package',
      [START, broke(Object.assign(new Error('Not now.'), { name: 'A2AError', code: 'Overloaded' }))],
      reasoned('Not now.')
    ],
    [
      'a generic reason for an author’s error',
      [START, broke(new Error('secret: hunter2', { cause: words }))],
      reasoned(generic)
    ],
    [
      'a generic reason for an error that only has the name',
      [START, broke(Object.assign(new Error('secret'), { name: 'A2AError' }))],
      reasoned(generic)
    ],
    [
      'a generic reason for what only looks like an error',
      [START, broke({ name: 'A2AError', code: 'Overloaded', message: 'secret' })],
      reasoned(generic)
    ],
    ['a generic reason for a thrown text', [START, NEED, broke('secret')], reasoned(generic)],
    ['a generic reason for nothing at all', [START, broke(undefined)], reasoned(generic)]
  ]
  for (const [name, path, facts] of rows) t.strictSame(lastTurn(chart, path).facts, facts, name)
})

await t.test('the work receives events without the task’s own names', async t => {
  const toWork = (event: ToWork) => [{ to: 'work', event }]
  const sentBy = (...path: Arriving[]) => lastTurn(chart, [START, ...path]).sent

  await t.test('an answer unchanged, while the task is interrupted', async t => {
    for (const interruption of [ASK, NEED])
      t.strictSame(
        sentBy(interruption, { type: 'message.received', taskId, message }),
        toWork({ type: 'message.received', message }),
        interruption.type
      )
  })

  await t.test('a steered message as if it had been asked for', async t => {
    t.strictSame(sentBy({ type: 'message.steered', taskId, message }), toWork({ type: 'message.received', message }))
  })

  await t.test('an authorization with its data, also if empty', async t => {
    for (const data of [{ token: 't' }, null, undefined, '', 0, false]) {
      t.strictSame(
        sentBy(NEED, { type: 'authorization.received', taskId, data }),
        toWork({ type: 'authorization.received', data })
      )
    }
  })

  await t.test('one queued message per question, oldest first, marked as no answer', async t => {
    const [first, next] = [message, second].map(message => toWork({ type: 'message.received', message, queued: true }))
    const ways: Arriving[][] = [
      [queue(message), queue(second), START],
      [START, queue(message), queue(second)],
      [queue(message), START, { type: 'work.progressed' }, queue(second), NEED, { type: 'work.resumed' }],
      [START, queue(message), crash(1000), queue(second), START],
      [START, queue(message), queue(second), NEED]
    ]
    for (const way of ways) {
      for (const restoring of [false, true]) {
        const turns = new Follower(chart, { restoring }).walk([...way, ASK, ASK, ASK]).slice(-3)
        t.strictSame(
          turns.map(({ sent }) => sent),
          [first, next, []],
          typesOf(way)
        )
        t.strictSame(
          turns.map(turn => idsOf(contextIn(turn).queue.map(messageIn))),
          [['m2'], [], []]
        )
        t.strictSame(statesOf(turns), ['TASK_STATE_INPUT_REQUIRED'], 'the third question is asked')
      }
    }
  })
})

await t.test('work that crashes restarts as often as its policy allows within its period', async t => {
  const often: RestartPolicy = { type: 'transient', intensity: 2, periodMs: 100 }
  const crashes: [atMs: number, restarts: number[]][] = [
    [0, [0]],
    [50, [0, 50]],
    [100, [50, 100]],
    [149, [50, 100]]
  ]
  for (const restoring of [false, true]) {
    const follower = new Follower(chart, { restoring })
    const turns = crashes.flatMap(([atMs]) => {
      follower.send(START)
      return follower.send(crash(atMs, often))
    })
    t.strictSame(
      turns.map(turn => contextIn(turn).restarts),
      crashes.map(([, restarts]) => restarts)
    )
    t.strictSame(
      turns.map(({ value }) => value),
      [{ active: 'restarting' }, { active: 'restarting' }, { active: 'restarting' }, 'failed']
    )
  }
})

await t.test('work runs from the start to the end of its task, through interruptions', async t => {
  const runs: { input: unknown; signal: AbortSignal }[] = []
  const work = fromPromise<WorkOutcome, unknown>(({ input, signal }) => {
    runs.push({ input, signal })
    return new Promise(() => {})
  })
  const observed = { ...chart, machine: taskMachine.provide({ actors: { work } }) }

  await t.test('it gets the input of the start once, and stops with its task', async t => {
    for (const end of ENDS) {
      runs.length = 0
      const follower = new Follower(observed)
      t.strictSame(runs, [], 'not before the start')
      follower.walk([START, { type: 'work.progressed' }, ASK, ASK, NEED, { type: 'work.resumed' }])
      t.strictSame(
        runs.map(({ input, signal }) => [input, signal.aborted]),
        [[{ draw: 'a boat' }, false]]
      )
      follower.send(end)
      t.strictSame(
        runs.map(({ signal }) => signal.aborted),
        [true],
        end.type
      )
    }
  })

  await t.test('a task that is restored while submitted has no work yet', async t => {
    runs.length = 0
    new Follower(observed, { restoring: true }).send({ type: 'work.resumed' })
    t.strictSame(runs, [])
  })

  await t.test('crashed work is stopped before the next one starts with the new input', async t => {
    runs.length = 0
    const follower = new Follower(observed)
    follower.walk([START, ASK, crash(1000)])
    t.strictSame(
      runs.map(({ signal }) => signal.aborted),
      [true]
    )
    follower.walk(CASES['task.start'])
    t.strictSame(
      runs.map(({ input, signal }) => [input, signal.aborted]),
      [
        [{ draw: 'a boat' }, true],
        ['draw', false]
      ]
    )
    follower.send(crash(1001))
    t.strictSame(
      runs.map(({ signal }) => signal.aborted),
      [true, true]
    )
  })

  await t.test('a task that is restored while it restarts has no work until it is started', async t => {
    runs.length = 0
    const follower = new Follower(observed, { restoring: true })
    follower.walk([START, crash(1000)])
    t.strictSame(
      runs.map(({ signal }) => signal.aborted),
      [true, true],
      'the one that ran, and the one restored to crash'
    )
    follower.send({ type: 'work.resumed' })
    t.equal(runs.length, 2)
    follower.send(START)
    t.strictSame(
      runs.map(({ signal }) => signal.aborted),
      [true, true, false]
    )
  })

  await t.test('it runs again with the same input when an unfinished task is restored', async t => {
    runs.length = 0
    const follower = new Follower(observed, { restoring: true })
    follower.walk([START, ASK])
    t.strictSame(
      runs.map(({ input }) => input),
      [{ draw: 'a boat' }, { draw: 'a boat' }]
    )
    follower.walk(ENDS)
    t.strictSame(
      runs.map(({ signal }) => signal.aborted),
      [true, true, true]
    )
  })
})

await t.test('real work ends its task', async t => {
  const failed = reasoned(generic)

  t.strictSame(
    await lastFactsOf(
      working(async input => ({ state: 'completed', artifacts: [{ parts: [{ text: String(input) }] }] }))
    ),
    [
      { type: 'artifact.produced', artifact: { parts: [{ text: 'b' }] }, lastChunk: true },
      { type: 'status.changed', state: 'TASK_STATE_COMPLETED' }
    ],
    'with its result'
  )
  t.strictSame(await lastFactsOf(working(() => Promise.reject(new Error('secret')))), failed, 'with its rejection')
  t.strictSame(
    await lastFactsOf(
      working(() => {
        throw new Error('secret')
      })
    ),
    failed,
    'with the thrown error'
  )
  t.strictSame(await lastFactsOf(taskMachine), failed, 'so does missing work')
})

await t.test("a task's initial deadline is stored only in its context", t => {
  for (const [deadline, kept] of [
    [{ deadlineAtMs: 5 }, { deadlineAtMs: 5 }],
    [{}, {}]
  ]) {
    const actor = createActor(
      working(() => new Promise(() => {})),
      { input: { taskId, contextId: 'c1' } }
    ).start()
    actor.send({ type: 'task.start', taskId, input: 'b', ...deadline })
    t.strictSame(actor.getSnapshot().context, { taskId, contextId: 'c1', queue: [], restarts: [], ...kept })
    actor.stop()
  }
  t.end()
})

await t.test('a task remembers its recoveries since its last progress, and fails above the limit', t => {
  const facts: TaskFact[] = []
  const actor = createActor(
    working(() => new Promise(() => {})),
    { input: { taskId, contextId: 'c1' } }
  )
  actor.on('*', fact => facts.push(fact))
  actor.start()
  const heard = (...events: TaskMachineEvent[]) => {
    for (const event of events) actor.send(event)
    return actor.getSnapshot().context.recoveries
  }
  t.equal(heard({ type: 'recovery.undone', taskId }), undefined)
  t.strictSame(heard(recover()), { done: 'nothing', atMs: [1000] })
  t.strictSame(heard({ type: 'recovery.undone', taskId }), { done: 'nothing', atMs: [] })
  t.strictSame(heard(recover({ atMs: 1500 }), START, recover({ atMs: 2000, intensity: 2 })), {
    done: 'nothing',
    atMs: [1500, 2000]
  })
  t.strictSame(heard(recover({ atMs: 3000, done: 'more' })), { done: 'more', atMs: [3000] })
  t.strictSame(heard(recover({ atMs: 8000, done: 'more' })), { done: 'more', atMs: [8000] })
  t.strictSame(heard(recover({ atMs: 12_999, done: 'more' })), { done: 'more', atMs: [8000] })
  t.strictSame(facts, [
    told('TASK_STATE_SUBMITTED'),
    told('TASK_STATE_WORKING'),
    told('TASK_STATE_FAILED', { message: words })
  ])
  t.end()
})

function working(run: (input: unknown) => Promise<WorkOutcome>) {
  return taskMachine.provide({ actors: { work: fromPromise<WorkOutcome, unknown>(({ input }) => run(input)) } })
}

/** The facts from the end of the work on, after submission and start. */
async function lastFactsOf(machine: typeof taskMachine): Promise<TaskFact[]> {
  const facts: TaskFact[] = []
  const actor = createActor(machine, { input: { taskId, contextId: 'c1' } })
  actor.on('*', fact => facts.push(fact))
  actor.start()
  actor.send({ type: 'task.start', taskId, input: 'b' })
  await waitFor(actor, snapshot => snapshot.hasTag('terminal'))
  return facts.slice(2)
}

function told(state: TaskState, said: Omit<Extract<TaskFact, { state: TaskState }>, 'type' | 'state'> = {}): TaskFact {
  return { type: 'status.changed', state, ...said }
}

function produced(fact: Omit<Extract<TaskFact, { artifact: unknown }>, 'type'>): TaskFact {
  return { type: 'artifact.produced', ...fact }
}

function reasoned(text: string): TaskFact[] {
  return [told('TASK_STATE_FAILED', { message: { parts: [{ text }] } })]
}

function ended(output: WorkOutcome): DoneActorEvent<WorkOutcome, 'work'> {
  return { type: 'xstate.done.actor.work', actorId: 'work', output }
}

function broke(error: unknown): ErrorActorEvent<unknown, 'work'> {
  return { type: 'xstate.error.actor.work', actorId: 'work', error }
}

/** The states that were told, oldest first. */
function statesOf(turns: readonly Turn[]): TaskState[] {
  return turns.flatMap(({ facts }) => facts.filter(isStatus).map(({ state }) => state))
}

function isStatus(fact: EventObject): fact is Extract<TaskFact, { type: 'status.changed' }> {
  return fact.type === 'status.changed'
}

function lastOf(states: TaskState[]): TaskState {
  const last = states.at(-1)
  if (!last) throw new Error('no state was told')
  return last
}

/**
 * What a turn did, in few words: the states and artifacts that it told, what it wants, and whether something went to
 * the work, into the queue or among the recoveries.
 */
function deedsOf(turn: Turn, { context: { queue, recoveries } }: AnyMachineSnapshot): string {
  const tellings = turn.facts.map(fact => {
    if (isStatus(fact)) return fact.state.replace('TASK_STATE_', '')
    return fact.type === 'artifact.produced' ? 'an artifact' : 'a restart'
  })
  const queued = contextIn(turn).queue.length > queue.length ? ['queued'] : []
  const noted = contextIn(turn).recoveries?.atMs.length === recoveries?.atMs.length ? [] : ['a recovery']
  return [...tellings, ...turn.sent.map(({ to }) => `to ${to}`), ...queued, ...noted].join(', ')
}

/** The row of the table that an event belongs to where it arrives. */
function rowOf(event: Arriving, { context: { queue, restarts } }: AnyMachineSnapshot): string {
  const { type } = event
  if (type === 'xstate.done.actor.work') return `outcome ${event.output.state}`
  if (type === 'xstate.error.actor.work') return 'work breaks'
  if (type === 'work.asked' && queue.length > 0) return 'work.asked with a message queued'
  if (type === 'task.recover' && event.recovery.intensity === 0) return 'task.recover, too often'
  if (type !== 'work.crashed') return type
  const { atMs, policy } = event.crash
  const isFirst = restarts.length === 0 || (restarts[0] === 1000 && atMs === 6000)
  return policy.type === 'transient' && isFirst ? 'work.crashed, to restart' : 'work.crashed, for good'
}

function messageOf(messageId: string): Message {
  return { messageId, role: 'ROLE_USER', parts: [{ text: 'blue' }] }
}

function queue(message: Message): Arriving & { type: 'message.queued' } {
  return { type: 'message.queued', taskId, message }
}

function recover(change: Partial<Recovery> = {}): Arriving & { type: 'task.recover' } {
  return {
    type: 'task.recover',
    taskId,
    message: words,
    recovery: { atMs: 1000, done: 'nothing', intensity: 1, periodMs: 5000, ...change }
  }
}

function crash(atMs: number, policy = transient): Crashed {
  return { type: 'work.crashed', taskId, message: words, crash: { atMs, policy } }
}

function hasPlaceFor({ messageId }: Message, { queue }: TaskContext): boolean {
  return queue.length < 2 && queue.map(messageIn).at(-1)?.messageId !== messageId
}

/** The message of what waits in a queue. */
function messageIn(queued: TaskContext['queue'][number]): Message {
  return 'message' in queued ? queued.message : queued
}

function isMessage(event: EventObject): event is EventObject & { message: Message } {
  return 'message' in event
}

function idsOf(queue: readonly Message[]): string[] {
  return queue.map(({ messageId }) => messageId)
}

function contextIn(turn: Turn | undefined): TaskContext {
  return Object(turn?.context)
}

/** The name of the innermost state that a task is in. */
function nameOf({ value }: AnyMachineSnapshot): string {
  return JSON.stringify(value).split('"').at(-2) ?? ''
}

function typesOf(path: readonly EventObject[]): string {
  return path.map(({ type }) => type).join(', ')
}
