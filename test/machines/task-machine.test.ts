import t from 'tap'
import { createActor, fromPromise, waitFor } from 'xstate'
import type { DoneActorEvent, ErrorActorEvent, EventObject } from 'xstate'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import { TASK_STATES, isTerminal } from '../../machines/protocol/states.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import { taskMachine } from '../../machines/task.machine.ts'
import type { TaskFact, TaskMachineEvent, WorkOutcome } from '../../machines/task.machine.ts'
import { Follower, actorTurns, configurationsOf, lastTurn, pathsOf, testChartPaths } from '../fixtures/chart-paths.ts'
import type { Chart, Turn } from '../fixtures/chart-paths.ts'
import { testCompiled } from '../fixtures/compiled-paths.ts'

type Arriving = TaskMachineEvent | DoneActorEvent<WorkOutcome, 'work'> | ErrorActorEvent<unknown, 'work'>

const taskId = 't1'
const words = { parts: [{ text: 'words' }], metadata: { mood: 'calm' }, extensions: ['urn:example'] }
const metadata = { 'urn:example': { n: 1 } }
const artifact = { artifactId: 'a1', name: 'boat', description: 'A boat', parts: [{ text: 'a' }], metadata: { n: 1 }, extensions: ['urn:example'] }
const nameless = { parts: [{ text: 'b' }] }
const message: Message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'blue' }] }
const generic = 'The work ended with an error.'

const START: Arriving = { type: 'task.start', taskId, input: { draw: 'a boat' } }
const ASK: Arriving = { type: 'work.asked', message: words }
const NEED: Arriving = { type: 'work.needsAuthorization', message: words }
const ENDS: Arriving[] = [{ type: 'task.cancel', taskId }, { type: 'task.fail', taskId, message: words }, { type: 'task.reject', taskId, message: words }]

/** Every kind of event that a task can get, with a case for each branch that the event decides. */
const CASES: { [Type in Arriving['type']]: Extract<Arriving, { type: Type }>[] } = {
  'task.start': [{ type: 'task.start', taskId, input: 'draw' }],
  'task.cancel': [{ type: 'task.cancel', taskId }, { type: 'task.cancel', taskId, message: words }],
  'task.fail': [{ type: 'task.fail', taskId, message: words }],
  'task.reject': [{ type: 'task.reject', taskId, message: words }],
  'message.received': [{ type: 'message.received', taskId, message }],
  'work.progressed': [{ type: 'work.progressed' }, { type: 'work.progressed', message: words, metadata }],
  'work.produced': [{ type: 'work.produced', artifact }, { type: 'work.produced', artifact, append: true, lastChunk: false }],
  'work.asked': [{ type: 'work.asked', message: words }],
  'work.needsAuthorization': [{ type: 'work.needsAuthorization', message: words }],
  'work.resumed': [{ type: 'work.resumed' }],
  'xstate.done.actor.work': [
    ended({ state: 'completed', artifacts: [artifact, nameless] }),
    ended({ state: 'failed', message: words }),
    ended({ state: 'rejected', message: words })
  ],
  'xstate.error.actor.work': [broke(new Error('secret')), broke(new A2AError('ContentTypeNotSupported'))]
}

const chart: Chart = {
  machine: taskMachine.provide({ actors: { work: fromPromise<WorkOutcome, unknown>(() => new Promise(() => {})) } }),
  input: { taskId, contextId: 'c1' },
  events: () => Object.values(CASES).flat(),
  memory: () => null
}

const configurations = configurationsOf(chart).map(found => ({ ...found, state: lastOf(statesOf(actorTurns(chart, found.way))) }))
const walks = pathsOf(chart).map(path => statesOf(actorTurns(chart, path)))

await t.test('on every path of the task chart', async t => testChartPaths(t, [chart]))
await t.test('compiled', async t => testCompiled(t, [chart]))

await t.test('each event does this in each state that is not terminal', async t => {
  const tells = 'an artifact', twice = 'an artifact, an artifact, COMPLETED', passed = 'to work', no = 'refused'
  const [work, ask, need, fail, stop, deny] = ['WORKING', 'INPUT_REQUIRED', 'AUTH_REQUIRED', 'FAILED', 'CANCELED', 'REJECTED']
  const expected: Record<string, (string | undefined)[]> = {
    // state:                  SUBMITTED WORKING INPUT_REQUIRED AUTH_REQUIRED
    'task.start':              [work,    no,     no,            no],
    'task.cancel':             [stop,    stop,   stop,          stop],
    'task.fail':               [fail,    fail,   fail,          fail],
    'task.reject':             [deny,    deny,   deny,          deny],
    'message.received':        [no,      no,     passed,        passed],
    'work.progressed':         [no,      work,   no,            no],
    'work.produced':           [no,      tells,  tells,         tells],
    'work.asked':              [no,      ask,    ask,           ask],
    'work.needsAuthorization': [no,      need,   need,          need],
    'work.resumed':            [no,      no,     work,          work],
    'outcome completed':       [no,      twice,  twice,         twice],
    'outcome failed':          [no,      fail,   fail,          fail],
    'outcome rejected':        [no,      deny,   deny,          deny],
    'work breaks':             [no,      fail,   fail,          fail]
  }
  const columns = ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED']
  const seen = new Set<string>()
  for (const { state, way, legal, snapshot } of configurations.filter(({ state }) => !isTerminal(state))) {
    for (const event of Object.values(CASES).flat()) {
      const done = legal.includes(event) ? deedsOf(lastTurn(chart, [...way, event])) : no
      t.equal(done, expected[rowOf(event)]?.[columns.indexOf(state)], `${rowOf(event)} in ${JSON.stringify(snapshot.value)}`)
      seen.add(`${rowOf(event)} in ${state}`)
    }
  }
  t.equal(seen.size, Object.keys(expected).length * columns.length, 'every field of the table was tried')
})

await t.test('one state follows another where the protocol lets it, and nowhere else (§4.1.3)', async t => {
  const [WORKING, INPUT, AUTH] = ['TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'] as const
  const [COMPLETED, FAILED, CANCELED, REJECTED] = ['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED'] as const
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
  const seen = new Set(walks.flatMap(states => states.map((state, index) => `${states[index - 1] ?? 'new'} -> ${state}`)))
  const wanted = Object.entries(allowed).flatMap(([from, states]) => states.map(to => `${from} -> ${to}`))
  t.strictSame([...seen].toSorted(), wanted.toSorted())
})

await t.test('over all paths', async t => {
  await t.test('every state of the protocol is told by some path', async t => {
    t.strictSame([...new Set(walks.flat())].toSorted(), Object.keys(TASK_STATES).toSorted())
  })

  await t.test('every kind of event is accepted somewhere', async t => {
    const accepted = new Set(configurations.flatMap(({ legal }) => legal.map(({ type }) => type)))
    t.strictSame([...accepted].toSorted(), Object.keys(CASES).toSorted())
  })

  await t.test('the context is what the task was born with', async t => {
    for (const { snapshot } of configurations) t.strictSame(snapshot.context, chart.input)
  })

  await t.test('every state that is not terminal can still become terminal', async t => {
    for (const { state, way, legal } of configurations) {
      const ends = legal.filter(event => statesOf([lastTurn(chart, [...way, event])]).some(isTerminal))
      t.equal(ends.length > 0, !isTerminal(state), state)
    }
  })

  await t.test('the state last told is the state that the chart is in, and is tagged as the protocol classes it', async t => {
    for (const { state, snapshot } of configurations) {
      const found = { chart: JSON.stringify(snapshot.value).split('"').at(-2), tags: [...snapshot.tags], status: snapshot.status }
      const { chart, class: kind } = TASK_STATES[state]
      t.strictSame(found, { chart, tags: kind === 'active' ? [] : [kind], status: kind === 'terminal' ? 'done' : 'active' }, state)
    }
  })
})

await t.test('a task tells these facts', async t => {
  const rows: [string, Arriving[], TaskFact[]][] = [
    ['its submission, without words', [], [told('TASK_STATE_SUBMITTED')]],
    ['its start, without the input', [{ type: 'task.start', taskId, input: { message: words, metadata } }], [told('TASK_STATE_WORKING')]],
    ['progress without words', [START, { type: 'work.progressed' }], [told('TASK_STATE_WORKING')]],
    ['progress with a message', [START, { type: 'work.progressed', message: words }], [told('TASK_STATE_WORKING', { message: words })]],
    ['progress with metadata', [START, { type: 'work.progressed', metadata }], [told('TASK_STATE_WORKING', { metadata })]],
    ['a question', [START, { ...ASK, metadata }], [told('TASK_STATE_INPUT_REQUIRED', { message: words, metadata })]],
    ['a second question', [START, ASK, { type: 'work.asked', message: nameless }], [told('TASK_STATE_INPUT_REQUIRED', { message: nameless })]],
    ['a need of authorization', [START, { ...NEED, metadata }], [told('TASK_STATE_AUTH_REQUIRED', { message: words, metadata })]],
    ['a second need', [START, NEED, { type: 'work.needsAuthorization', message: nameless }], [told('TASK_STATE_AUTH_REQUIRED', { message: nameless })]],
    ['that it goes on, without the words of the question', [START, ASK, { type: 'work.resumed' }], [told('TASK_STATE_WORKING')]],
    ['nothing of an answer', [START, ASK, { type: 'message.received', taskId, message }], []],
    ['an artifact', [START, { type: 'work.produced', artifact }], [produced({ artifact })]],
    ['an artifact without an id', [START, { type: 'work.produced', artifact: nameless }], [produced({ artifact: nameless })]],
    ['a first chunk', [START, { type: 'work.produced', artifact, append: false, lastChunk: false }], [produced({ artifact, append: false, lastChunk: false })]],
    ['a last chunk', [START, { type: 'work.produced', artifact, append: true, lastChunk: true }], [produced({ artifact, append: true, lastChunk: true })]],
    ['its cancellation without words', [START, { type: 'task.cancel', taskId }], [told('TASK_STATE_CANCELED')]],
    ['its cancellation with words', [{ type: 'task.cancel', taskId, message: words }], [told('TASK_STATE_CANCELED', { message: words })]],
    ['why it is failed from outside', [START, { type: 'task.fail', taskId, message: words }], [told('TASK_STATE_FAILED', { message: words })]],
    ['why it is rejected from outside', [{ type: 'task.reject', taskId, message: words }], [told('TASK_STATE_REJECTED', { message: words })]],
    ['completion alone, if the work made nothing and said nothing', [START, ended({ state: 'completed', artifacts: [] })], [told('TASK_STATE_COMPLETED')]],
    [
      'the artifacts of its outcome, each as whole, and then completion with the last words',
      [START, ASK, ended({ state: 'completed', artifacts: [artifact, nameless], message: words, metadata })],
      [
        produced({ artifact, lastChunk: true }),
        produced({ artifact: nameless, lastChunk: true }),
        told('TASK_STATE_COMPLETED', { message: words, metadata })
      ]
    ],
    ['why its work failed', [START, ended({ state: 'failed', message: words, metadata })], [told('TASK_STATE_FAILED', { message: words, metadata })]],
    ['why its work rejected it', [START, ended({ state: 'rejected', message: words, metadata })], [told('TASK_STATE_REJECTED', { message: words, metadata })]],
    ['the text of an A2AError', [START, broke(new A2AError('ContentTypeNotSupported', 'Only text, please.'))], reasoned('Only text, please.')],
    ['the standard text of an A2AError', [START, broke(new A2AError('RateLimited'))], reasoned('Too many requests')],
    [
      'the text of an A2AError from another copy of this package',
      [START, broke(Object.assign(new Error('Not now.'), { name: 'A2AError', code: 'Overloaded' }))],
      reasoned('Not now.')
    ],
    ['a generic reason for an author’s error', [START, broke(new Error('secret: hunter2', { cause: words }))], reasoned(generic)],
    ['a generic reason for an error that only has the name', [START, broke(Object.assign(new Error('secret'), { name: 'A2AError' }))], reasoned(generic)],
    ['a generic reason for what only looks like an error', [START, broke({ name: 'A2AError', code: 'Overloaded', message: 'secret' })], reasoned(generic)],
    ['a generic reason for a thrown text', [START, NEED, broke('secret')], reasoned(generic)],
    ['a generic reason for nothing at all', [START, broke(undefined)], reasoned(generic)]
  ]
  for (const [name, path, facts] of rows) t.strictSame(lastTurn(chart, path).facts, facts, name)
})

await t.test('an answer reaches the work as it came, from the client’s question on', async t => {
  const received: Arriving = { type: 'message.received', taskId, message }
  for (const interruption of [ASK, NEED]) {
    t.strictSame(lastTurn(chart, [START, interruption, received]).sent, [{ to: 'work', event: received }], interruption.type)
  }
})

await t.test('work runs from the start to the end of its task, through interruptions', async t => {
  const runs: { input: unknown; signal: AbortSignal }[] = []
  const work = fromPromise<WorkOutcome, unknown>(({ input, signal }) => {
    runs.push({ input, signal })
    return new Promise(() => {})
  })
  const observed = { ...chart, machine: taskMachine.provide({ actors: { work } }) }

  await t.test('it gets the input of the start, once, and is stopped when the task ends without it', async t => {
    for (const end of ENDS) {
      runs.length = 0
      const follower = new Follower(observed)
      t.strictSame(runs, [], 'not before the start')
      follower.walk([START, { type: 'work.progressed' }, ASK, ASK, NEED, { type: 'work.resumed' }])
      t.strictSame(runs.map(({ input, signal }) => [input, signal.aborted]), [[{ draw: 'a boat' }, false]])
      follower.send(end)
      t.strictSame(runs.map(({ signal }) => signal.aborted), [true], end.type)
    }
  })

  await t.test('a task that is restored while submitted has no work yet', async t => {
    runs.length = 0
    new Follower(observed, { restoring: true }).send({ type: 'work.resumed' })
    t.strictSame(runs, [])
  })

  await t.test('it runs again with the same input when the task is restored, unless the task is over', async t => {
    runs.length = 0
    const follower = new Follower(observed, { restoring: true })
    follower.walk([START, ASK])
    t.strictSame(runs.map(({ input }) => input), [{ draw: 'a boat' }, { draw: 'a boat' }])
    follower.walk(ENDS)
    t.strictSame(runs.map(({ signal }) => signal.aborted), [true, true, true])
  })
})

await t.test('real work ends its task', async t => {
  const failed = reasoned(generic)

  t.strictSame(await lastFactsOf(working(async input => ({ state: 'completed', artifacts: [{ parts: [{ text: String(input) }] }] }))), [
    { type: 'artifact.produced', artifact: { parts: [{ text: 'b' }] }, lastChunk: true },
    { type: 'status.changed', state: 'TASK_STATE_COMPLETED' }
  ], 'with its result')
  t.strictSame(await lastFactsOf(working(() => Promise.reject(new Error('secret')))), failed, 'with its rejection')
  t.strictSame(await lastFactsOf(working(() => { throw new Error('secret') })), failed, 'with what it throws')
  t.strictSame(await lastFactsOf(taskMachine), failed, 'and so does the lack of work')
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

/** What a turn did, in few words: the states and artifacts that it told, and whether something went to the work. */
function deedsOf({ facts, sent }: Turn): string {
  const tellings = facts.map(fact => (isStatus(fact) ? fact.state.replace('TASK_STATE_', '') : 'an artifact'))
  return [...tellings, ...sent.map(({ to }) => `to ${to}`)].join(', ')
}

/** The row of the table that an event belongs to. */
function rowOf(event: Arriving): string {
  if (event.type === 'xstate.done.actor.work') return `outcome ${event.output.state}`
  return event.type === 'xstate.error.actor.work' ? 'work breaks' : event.type
}
