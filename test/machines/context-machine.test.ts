import t from 'tap'
import type { Test } from 'tap'
import { createActor, fromPromise, waitFor, type DoneActorEvent, type ErrorActorEvent } from 'xstate'
import {
  contextMachine,
  type ContextContext,
  type ContextFact,
  type ContextInput,
  type ContextMachineEvent,
  type RefusalReason
} from '../../machines/context.machine.ts'
import type { ContextRequest, NegotiationOutcome } from '../../machines/negotiation-events.ts'
import { negotiationMachine } from '../../machines/negotiation.machine.ts'
import type { RestartType } from '../../machines/supervision.ts'
import type { TaskMachineEvent, WorkOutcome } from '../../machines/task-events.ts'
import { taskMachine } from '../../machines/task.machine.ts'
import {
  actorTurns,
  configurationsOf,
  Follower,
  lastTurn,
  pathsOf,
  same,
  testChartPaths,
  type Chart
} from '../fixtures/charts/chart-paths.ts'
import { testCompiled } from '../fixtures/charts/compiled-paths.ts'

type Arriving = ContextMachineEvent | DoneActorEvent<NegotiationOutcome> | DoneActorEvent<undefined> | ErrorActorEvent
type Decision = NegotiationOutcome extends infer Outcome
  ? Outcome extends unknown
    ? Omit<Outcome, 'request'>
    : never
  : never
type Expected = {
  facts?: ContextFact[]
  sent?: { to: string; event: TaskMachineEvent | ContextMachineEvent | { type: string } }[]
  tasks?: string[]
  negotiations?: string[]
  isBargaining?: boolean
}

const words = { parts: [{ text: 'words' }] }
const terms = { price: 3 }
const never = () => new Promise<never>(() => {})
const [one, two, three] = [requestOf(1), requestOf(2), requestOf(3)]

const DECISIONS: Decision[] = [
  { decision: 'replied', reply: words },
  { decision: 'accepted' },
  { decision: 'accepted', terms },
  { decision: 'rejected', reason: words },
  { decision: 'failed' }
]

const CROWDED: Decision = { decision: 'crowded' }

/** A task that stays as it is, whatever it hears, until its end is told to the context by the test. */
const patient = Object.assign(taskMachine.provide({}), { transition: <Snapshot>(snapshot: Snapshot) => snapshot })
/**
 * A negotiation that lasts and stays as it is, whatever it hears, until what it decides is told to the context by the
 * test.
 */
const lasting = Object.assign(negotiationMachine.provide({}), {
  transition: <Snapshot>(snapshot: Snapshot) => snapshot
})
const machine = withTask(patient)

const opening = contextOf({ negotiates: false, taskLimit: 2 }, [one, two, three])
const narrow = contextOf({ negotiates: true, taskLimit: 1 }, [one, two])
const negotiating = contextOf({ negotiates: true, taskLimit: 2 }, [one, two])
const bargaining = contextOf({ negotiates: false, bargains: { rounds: 5, waitingLimit: 1 }, taskLimit: 1 }, [one, two])
const charts = [opening, narrow, negotiating, bargaining]

await t.test('on every path of the context chart', async t => testChartPaths(t, charts))
await t.test('the compiled chart', async t => testCompiled(t, charts))

await t.test('over all paths', async t => {
  const turns = charts.flatMap(chart => pathsOf(chart).flatMap(path => actorTurns(chart, path)))

  await t.test("the children are the context's tasks and negotiations, and without them it is idle", async t => {
    same(
      t,
      turns.map(({ value, children, context }) => {
        const { tasks, negotiations, bargains, isBargaining }: ContextContext = Object(context)
        const ids = [...tasks, ...(bargains ? [] : negotiations), ...(isBargaining ? ['bargaining'] : [])].toSorted()
        return {
          name: ids.join(),
          found: { value, children },
          wanted: { value: tasks.length + negotiations.length > 0 ? 'busy' : 'idle', children: ids }
        }
      })
    )
  })

  await t.test('the number of tasks reaches its limit on some path and never exceeds it', async t => {
    for (const chart of charts) {
      const counts = configurationsOf(chart).map(({ snapshot }) => snapshot.context.tasks.length)
      t.equal(Math.max(...counts), Object(chart.input).taskLimit)
    }
  })

  await t.test('the context can become idle from every state', async t => {
    for (const chart of charts) {
      same(
        t,
        configurationsOf(chart).map(({ way, snapshot }) => {
          const ends = Object.keys(snapshot.children).map(crashed)
          return { name: `after ${way.length} events`, found: lastTurn(chart, [...way, ...ends]).value, wanted: 'idle' }
        })
      )
    }
  })

  await t.test('every kind of event is accepted in some state', async t => {
    const kinds: Record<ContextMachineEvent['type'] | 'xstate.done.actor' | 'xstate.error.actor', boolean> = {
      'request.received': true,
      'request.decided': true,
      'message.received': true,
      'message.steered': true,
      'message.queued': true,
      'authorization.received': true,
      'work.crashed': true,
      'task.start': true,
      'task.recover': true,
      'recovery.undone': true,
      'task.cancel': true,
      'task.fail': true,
      'xstate.done.actor': true,
      'xstate.error.actor': true
    }
    const accepted = new Set(charts.flatMap(chart => configurationsOf(chart).flatMap(({ legal }) => legal.map(kindOf))))
    for (const [kind, expected] of Object.entries(kinds)) t.equal(accepted.has(kind), expected, kind)
    t.strictSame(
      [...accepted].filter(kind => !(kind in kinds)),
      []
    )
  })
})

await t.test('a request', async t => {
  await t.test('opens a task at once if the context does not negotiate', async t => {
    checkTurn(t, opening, [ask(one)], { facts: [opened(one)], tasks: ['t1'] })
    checkTurn(t, opening, [ask(one), ask(two)], { facts: [opened(two)], tasks: ['t1', 't2'] })
  })

  await t.test('is refused at the limit of live tasks, until one has ended', async t => {
    const full = [ask(one), ask(two), ask(three)]
    checkTurn(t, opening, full, { facts: [refused(three, 'full')], tasks: ['t1', 't2'] })
    checkTurn(t, opening, [...full, ended('t1')], { tasks: ['t2'] })
    checkTurn(t, opening, [...full, ended('t1'), ask(three)], { facts: [opened(three)], tasks: ['t2', 't3'] })
  })

  await t.test('is first negotiated if the context negotiates, also beside others', async t => {
    checkTurn(t, narrow, [ask(one)], { negotiations: ['r1'] })
    checkTurn(t, narrow, [ask(one), ask(two)], { negotiations: ['r1', 'r2'] })
    checkTurn(t, narrow, [ask(one), decided(one, { decision: 'accepted' }), ask(two)], {
      tasks: ['t1'],
      negotiations: ['r2']
    })
  })
})

await t.test('a task is opened with its own id, and a negotiation with its request', async t => {
  const inputs: unknown[] = []
  const negotiation = fromPromise<NegotiationOutcome, ContextRequest>(({ input }) => {
    inputs.push(input)
    return never()
  })
  const actor = createActor(contextMachine.provide({ actors: { negotiation } }), {
    input: { contextId: 'c1', negotiates: true, taskLimit: 1 }
  }).start()
  actor.send(ask(one))
  t.strictSame(inputs, [one])
  actor.send(decided(one, { decision: 'accepted' }))
  t.match(actor.getSnapshot().children['t1']?.getSnapshot(), { context: { taskId: 't1', contextId: 'c1' } })
})

await t.test('a negotiation', async t => {
  await t.test('that replies answers the request without a task', async t => {
    checkTurn(t, narrow, [ask(one), decided(one, { decision: 'replied', reply: words })], {
      facts: [{ type: 'request.answered', request: one, reply: words }]
    })
  })

  await t.test('that accepts opens the task, with the terms if any', async t => {
    checkTurn(t, narrow, [ask(one), decided(one, { decision: 'accepted' })], { facts: [opened(one)], tasks: ['t1'] })
    checkTurn(t, narrow, [ask(one), decided(one, { decision: 'accepted', terms })], {
      facts: [{ type: 'task.opened', request: one, terms }],
      tasks: ['t1']
    })
  })

  await t.test('that rejects opens the task and rejects it with the reason', async t => {
    checkTurn(t, narrow, [ask(one), decided(one, { decision: 'rejected', reason: words })], {
      facts: [opened(one)],
      sent: [{ to: 't1', event: { type: 'task.reject', taskId: 't1', message: words } }],
      tasks: ['t1']
    })
  })

  await t.test('that fails refuses its request', async t => {
    checkTurn(t, narrow, [ask(one), decided(one, { decision: 'failed' })], { facts: [refused(one, 'failed')] })
  })

  await t.test('that opens a task in a full context has its request refused', async t => {
    const full = [ask(one), ask(two), decided(one, { decision: 'accepted' })]
    checkTurn(t, narrow, [...full, decided(two, { decision: 'accepted', terms })], {
      facts: [refused(two, 'full')],
      tasks: ['t1']
    })
    checkTurn(t, narrow, [...full, decided(two, { decision: 'rejected', reason: words })], {
      facts: [refused(two, 'full')],
      tasks: ['t1']
    })
  })

  await t.test('may still reply or fail in a full context', async t => {
    const full = [ask(one), ask(two), decided(one, { decision: 'accepted' })]
    checkTurn(t, narrow, [...full, decided(two, { decision: 'replied', reply: words })], {
      facts: [{ type: 'request.answered', request: two, reply: words }],
      tasks: ['t1']
    })
    checkTurn(t, narrow, [...full, decided(two, { decision: 'failed' })], {
      facts: [refused(two, 'failed')],
      tasks: ['t1']
    })
  })

  await t.test('does not wait for another: two end independently, in any order', async t => {
    const both = [ask(one), ask(two)]
    checkTurn(t, negotiating, [...both, decided(two, { decision: 'accepted', terms })], {
      facts: [{ type: 'task.opened', request: two, terms }],
      tasks: ['t2'],
      negotiations: ['r1']
    })
    checkTurn(
      t,
      negotiating,
      [...both, decided(two, { decision: 'accepted' }), decided(one, { decision: 'accepted' })],
      {
        facts: [opened(one)],
        tasks: ['t2', 't1']
      }
    )
    checkTurn(
      t,
      negotiating,
      [...both, decided(two, { decision: 'failed' }), decided(one, { decision: 'replied', reply: words })],
      {
        facts: [{ type: 'request.answered', request: one, reply: words }]
      }
    )
  })
})

await t.test('a lasting negotiation', async t => {
  const heard = (request: ContextRequest) => ({ to: 'bargaining', event: ask(request) })
  const news = (type: 'deal.made' | 'deal.off') => ({ to: 'bargaining', event: { type } })

  await t.test('starts with the first request, receives all, and leaves the context idle when answered', async t => {
    checkTurn(t, bargaining, [ask(one)], { sent: [heard(one)], negotiations: ['r1'], isBargaining: true })
    checkTurn(t, bargaining, [ask(one), ask(two)], {
      sent: [heard(two)],
      negotiations: ['r1', 'r2'],
      isBargaining: true
    })
    checkTurn(t, bargaining, [ask(one), told(one, { decision: 'replied', reply: words })], {
      facts: [{ type: 'request.answered', request: one, reply: words }],
      isBargaining: true
    })
    checkTurn(t, bargaining, [ask(one), told(one, { decision: 'replied', reply: words }), ask(two)], {
      sent: [heard(two)],
      negotiations: ['r2'],
      isBargaining: true
    })
  })

  await t.test('that agrees opens the task with the terms, and is informed of it', async t => {
    checkTurn(t, bargaining, [ask(one), told(one, { decision: 'accepted', terms })], {
      facts: [{ type: 'task.opened', request: one, terms }],
      sent: [news('deal.made')],
      tasks: ['t1'],
      isBargaining: true
    })
    checkTurn(t, bargaining, [ask(one), told(one, { decision: 'rejected', reason: words })], {
      facts: [opened(one)],
      sent: [{ to: 't1', event: { type: 'task.reject', taskId: 't1', message: words } }, news('deal.made')],
      tasks: ['t1'],
      isBargaining: true
    })
  })

  await t.test('is informed that the deal is off if the context is full', async t => {
    const full = [ask(one), told(one, { decision: 'accepted', terms }), ask(two)]
    checkTurn(t, bargaining, [...full, told(two, { decision: 'accepted', terms })], {
      facts: [refused(two, 'full')],
      sent: [news('deal.off')],
      tasks: ['t1'],
      isBargaining: true
    })
  })

  await t.test('has requests refused that exceed its queue or that it could not answer', async t => {
    for (const decision of ['crowded', 'failed'] as const)
      checkTurn(t, bargaining, [ask(one), told(one, { decision })], {
        facts: [refused(one, decision)],
        isBargaining: true
      })
  })

  await t.test('that crashes has its requests reported, and the next request starts another', async t => {
    const facts: ContextFact[] = [
      { type: 'child.crashed', actorId: 'r1' },
      { type: 'child.crashed', actorId: 'r2' }
    ]
    checkTurn(t, bargaining, [ask(one), ask(two), crashed('bargaining')], { facts, isBargaining: false })
    checkTurn(t, bargaining, [ask(one), crashed('bargaining'), ask(two)], {
      sent: [heard(two)],
      negotiations: ['r2'],
      isBargaining: true
    })
  })
})

await t.test(
  'a withdrawal opens a task that is canceled at once, without a negotiation, also if the context is full',
  async t => {
    const given: ContextRequest = { ...two, isWithdrawal: true }
    const canceled = { to: 't2', event: cancel('t2') }
    checkTurn(t, negotiating, [ask(given)], { facts: [opened(given)], sent: [canceled], tasks: ['t2'] })
    checkTurn(t, negotiating, [ask(one), ask(given)], {
      facts: [opened(given)],
      sent: [canceled],
      tasks: ['t2'],
      negotiations: ['r1']
    })
    checkTurn(t, bargaining, [ask(one), ask(given)], {
      facts: [opened(given)],
      sent: [canceled, { to: 'bargaining', event: { type: 'client.withdrew' } }],
      tasks: ['t2'],
      negotiations: ['r1'],
      isBargaining: true
    })
    checkTurn(t, bargaining, [ask(given)], { facts: [opened(given)], sent: [canceled], tasks: ['t2'] })
    checkTurn(t, narrow, [ask(one), decided(one, { decision: 'accepted' }), ask(given)], {
      facts: [opened(given)],
      sent: [canceled],
      tasks: ['t1', 't2']
    })
  }
)

await t.test('an event for a task', async t => {
  await t.test('is passed on unchanged to that task alone', async t => {
    for (const event of forTask('t2')) {
      checkTurn(t, opening, [ask(one), ask(two), event], { sent: [{ to: 't2', event }], tasks: ['t1', 't2'] })
    }
  })

  await t.test('is dropped before the task is opened and after it has ended', async t => {
    for (const event of forTask('t1')) {
      checkTurn(t, opening, [event], {})
      checkTurn(t, opening, [ask(two), event], { tasks: ['t2'] })
      checkTurn(t, narrow, [ask(one), event], { negotiations: ['r1'] })
      checkTurn(t, opening, [ask(one), ask(two), ended('t1'), event], { tasks: ['t2'] })
      checkTurn(t, opening, [ask(one), ended('t1'), event], {})
    }
  })
})

await t.test('a crashed child is reported and removed, and the others continue', async t => {
  checkTurn(t, opening, [ask(one), ask(two), crashed('t1')], {
    facts: [{ type: 'child.crashed', actorId: 't1' }],
    tasks: ['t2']
  })
  checkTurn(t, negotiating, [ask(one), ask(two), crashed('r2')], {
    facts: [{ type: 'child.crashed', actorId: 'r2' }],
    negotiations: ['r1']
  })
  checkTurn(t, negotiating, [ask(one), crashed('r1')], { facts: [{ type: 'child.crashed', actorId: 'r1' }] })
})

await t.test('with real tasks', async t => {
  const hardWorking = taskMachine.provide({ actors: { work: fromPromise<WorkOutcome, unknown>(never) } })
  const real = (task = hardWorking, input = { negotiates: false, taskLimit: 200 }): Chart => ({
    ...contextOf(input),
    machine: withTask(task)
  })

  await t.test('200 ended tasks leave no child and no id, live or persisted', async t => {
    const { machine, input } = real()
    const actor = createActor(machine, { input }).start()
    const opened = Array.from({ length: 200 }, (_, index) => requestOf(index))
    for (const request of opened) actor.send(ask(request))
    t.equal(Object.keys(actor.getSnapshot().children).length, 200)
    for (const { taskId } of opened) actor.send(cancel(taskId))
    t.strictSame(actor.getSnapshot().children, {})
    const { value, context, children } = JSON.parse(JSON.stringify(actor.getPersistedSnapshot()))
    t.strictSame(
      { value, context, children },
      { value: 'idle', context: { ...Object(input), tasks: [], negotiations: [] }, children: {} }
    )
  })

  await t.test('each is removed by its own end, also after a restart at every step', async t => {
    const path: Arriving[] = [
      ask(one),
      ask(two),
      { type: 'task.start', taskId: 't2', input: 'draw' },
      cancel('t3'),
      cancel('t1'),
      cancel('t2')
    ]
    for (const restoring of [false, true]) {
      const turns = new Follower(real(), { restoring }).walk(path)
      t.strictSame(
        turns.map(({ children }) => children.join()),
        ['', 't1', 't1,t2', 't1,t2', 't1,t2', 't2', '']
      )
      t.equal(turns.at(-1)?.value, 'idle')
    }
  })

  await t.test('one that is opened by a withdrawal ends at once', async t => {
    const given: ContextRequest = { ...one, isWithdrawal: true }
    checkTurn(t, real(hardWorking, { negotiates: true, taskLimit: 1 }), [ask(given)], {
      facts: [opened(given)],
      sent: [{ to: 't1', event: cancel('t1') }]
    })
  })

  await t.test('one that is opened to be rejected ends at once', async t => {
    checkTurn(
      t,
      real(hardWorking, { negotiates: true, taskLimit: 1 }),
      [ask(one), decided(one, { decision: 'rejected', reason: words })],
      {
        facts: [opened(one)],
        sent: [{ to: 't1', event: { type: 'task.reject', taskId: 't1', message: words } }]
      }
    )
  })

  await t.test('one whose work crashes lives until its last restart, also when restored', async t => {
    const begin = (taskId: string): Arriving => ({ type: 'task.start', taskId, input: 'draw' })
    const path: Arriving[] = [
      ask(one),
      ask(two),
      begin('t1'),
      begin('t2'),
      crashOf('t2', 'temporary'),
      crashOf('t1', 'transient'),
      begin('t1'),
      crashOf('t1', 'transient')
    ]
    for (const restoring of [false, true]) {
      const turns = new Follower(real(), { restoring }).walk(path)
      t.strictSame(
        turns.map(({ children }) => children.join()),
        ['', 't1', 't1,t2', 't1,t2', 't1,t2', 't1', 't1', 't1', '']
      )
      t.strictSame(
        turns.flatMap(({ facts }) => facts),
        [opened(one), opened(two)]
      )
    }
  })

  await t.test('one that crashes is reported and removed, and the others continue', async t => {
    const fragile = hardWorking.provide({
      actions: {
        tellStatus: (_, { state }) => {
          if (state === 'TASK_STATE_WORKING') throw new Error('secret')
        }
      }
    })
    const path: Arriving[] = [ask(one), ask(two), { type: 'task.start', taskId: 't1', input: 'draw' }]
    const turns = new Follower(real(fragile)).walk([...path, cancel('t1'), cancel('t2')])
    t.strictSame(
      turns.map(({ children }) => children.join()),
      ['', 't1', 't1,t2', 't2', 't2', '']
    )
    t.strictSame(turns.flatMap(({ facts }) => facts).slice(2), [{ type: 'child.crashed', actorId: 't1' }])
    t.strictSame(
      turns.flatMap(({ sent }) => sent.map(({ to }) => to)),
      ['t1', 't2']
    )
  })
})

await t.test('a real negotiation runs in the context', async t => {
  const factsOf = async (machine: typeof contextMachine) => {
    const facts: ContextFact[] = []
    const actor = createActor(machine, { input: { contextId: 'c1', negotiates: true, taskLimit: 1 } })
    actor.on('*', fact => facts.push(fact))
    actor.start()
    actor.send(ask(one))
    await waitFor(actor, snapshot => snapshot.matches('idle'))
    return facts
  }
  const crash = { type: 'child.crashed', actorId: 'r1' }

  t.strictSame(
    await factsOf(deciding(async request => ({ request, decision: 'replied', reply: words }))),
    [{ type: 'request.answered', request: one, reply: words }],
    'answers with its reply'
  )
  t.strictSame(
    await factsOf(deciding(() => Promise.reject(new Error('secret')))),
    [crash],
    'a rejected promise is reported as a crash'
  )
  t.strictSame(
    await factsOf(
      deciding(() => {
        throw new Error('secret')
      })
    ),
    [crash],
    'so is a throwing function'
  )
  t.strictSame(await factsOf(contextMachine), [crash], 'so is missing logic')
})

/**
 * Checks all that came of the last event, live and restored: what was told, what was sent on, and who lives now; by
 * default nothing and nobody.
 */
function checkTurn(
  t: Test,
  chart: Chart,
  path: readonly Arriving[],
  { facts = [], sent = [], tasks = [], negotiations = [], isBargaining }: Expected
): void {
  const value = tasks.length + negotiations.length > 0 ? 'busy' : 'idle'
  const children = [
    ...tasks,
    ...(isBargaining === undefined ? negotiations : isBargaining ? ['bargaining'] : [])
  ].toSorted()
  const expected = {
    status: 'active',
    value,
    context: { ...Object(chart.input), tasks, negotiations, ...(isBargaining !== undefined && { isBargaining }) },
    children,
    facts,
    sent
  }
  for (const restoring of [false, true]) {
    t.strictSame(
      new Follower(chart, { restoring }).walk(path).at(-1),
      expected,
      `${path.map(({ type }) => type).join(', ')}${restoring ? ', restored' : ''}`
    )
  }
}

function withTask(task: typeof taskMachine) {
  return contextMachine.provide({
    actors: { task, negotiation: fromPromise<NegotiationOutcome, ContextRequest>(never), bargaining: lasting }
  })
}

function deciding(decide: (request: ContextRequest) => Promise<NegotiationOutcome>) {
  return contextMachine.provide({
    actors: { negotiation: fromPromise<NegotiationOutcome, ContextRequest>(({ input }) => decide(input)) }
  })
}

function contextOf(input: Omit<ContextInput, 'contextId'>, requests: ContextRequest[] = []): Chart {
  return {
    machine,
    input: { contextId: 'c1', ...input },
    events: snapshot => arriving(snapshot.context, requests),
    memory: ({ context: { tasks, negotiations, isBargaining } }) => [tasks, negotiations, isBargaining]
  }
}

/**
 * What may come to a context: requests that are not under way, events for tasks that live or do not, and the ends of
 * what lives. Without a child an end comes too, which nobody awaits.
 */
function arriving(
  { tasks, taskLimit, negotiations, bargains, isBargaining }: ContextContext,
  requests: ContextRequest[]
): Arriving[] {
  const fresh = requests.filter(({ callId, taskId }) => !negotiations.includes(callId) && !tasks.includes(taskId))
  const busy = tasks.length + negotiations.length > 0
  return [
    ...fresh.map(ask),
    ...(tasks.length < taskLimit ? fresh.slice(0, 1) : []).map(request => ask({ ...request, isWithdrawal: true })),
    ...requests.flatMap<Arriving>(({ taskId }) => forTask(taskId)),
    ...(busy ? tasks : ['t1']).map(ended),
    ...tasks.map(crashed),
    ...(isBargaining ? [crashed('bargaining'), ended('bargaining')] : []),
    ...(bargains ? [] : negotiations.map(crashed)),
    ...requests
      .filter(({ callId }) => negotiations.includes(callId))
      .flatMap<Arriving>(request =>
        bargains
          ? [...DECISIONS, CROWDED].map(decision => told(request, decision))
          : DECISIONS.map(decision => decided(request, decision))
      )
  ]
}

function forTask(taskId: string): Extract<ContextMachineEvent, { taskId: string }>[] {
  return [
    { type: 'task.start', taskId, input: 'draw' },
    {
      type: 'task.recover',
      taskId,
      message: words,
      recovery: { atMs: 1000, done: 'nothing', intensity: 1, periodMs: 5000 }
    },
    { type: 'recovery.undone', taskId },
    { type: 'task.cancel', taskId, message: words },
    { type: 'task.fail', taskId, message: words },
    { type: 'message.received', taskId, message: one.message },
    { type: 'message.steered', taskId, message: one.message },
    { type: 'message.queued', taskId, message: one.message },
    { type: 'authorization.received', taskId, data: { token: 't' } },
    crashOf(taskId, 'transient')
  ]
}

function requestOf(number: number): ContextRequest {
  return {
    callId: `r${number}`,
    taskId: `t${number}`,
    message: { messageId: `m${number}`, role: 'ROLE_USER', parts: [{ text: 'a boat' }] }
  }
}

function ask(request: ContextRequest): ContextMachineEvent {
  return { type: 'request.received', request }
}

function decided(request: ContextRequest, decision: Decision): DoneActorEvent<NegotiationOutcome> {
  return { type: `xstate.done.actor.${request.callId}`, actorId: request.callId, output: { request, ...decision } }
}

function told(request: ContextRequest, decision: Decision): ContextMachineEvent {
  return { type: 'request.decided', output: { request, ...decision } }
}

/** The crash of a task's work, which is started again once, if at all. */
function crashOf(taskId: string, type: RestartType): Extract<ContextMachineEvent, { type: 'work.crashed' }> {
  return {
    type: 'work.crashed',
    taskId,
    message: words,
    crash: { atMs: 1000, policy: { type, intensity: 1, periodMs: 5000 } }
  }
}

function cancel(taskId: string): ContextMachineEvent {
  return { type: 'task.cancel', taskId }
}

function ended(taskId: string): Arriving {
  return { type: `xstate.done.actor.${taskId}`, actorId: taskId, output: undefined }
}

function crashed(actorId: string): Arriving {
  return { type: `xstate.error.actor.${actorId}`, actorId, error: new Error('secret') }
}

function opened(request: ContextRequest): ContextFact {
  return { type: 'task.opened', request }
}

function refused(request: ContextRequest, reason: RefusalReason): ContextFact {
  return { type: 'request.refused', request, reason }
}

/** The kind of an event: its type, without the child's id. */
function kindOf({ type }: { type: string }): string {
  return type.replace(/^(xstate\.\w+\.actor)\..*$/, '$1')
}
