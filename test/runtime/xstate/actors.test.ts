import t, { type Test } from 'tap'
import {
  Actor,
  assign,
  createActor,
  emit,
  fromCallback,
  type AnyActorRef,
  type EventObject,
  type InspectionEvent
} from 'xstate'
import { taskMachine } from '../../../machines/task.machine.ts'
import {
  inputRequired,
  progress,
  setupWork,
  text,
  textOf,
  type AgentDefinition,
  type WorkFunction
} from '../../../runtime/index.ts'
import type { Observer } from '../../../runtime/contexts/observers.ts'
import { lives } from '../../fixtures/runtime/lives.ts'
import { say, start, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'

type Work = NonNullable<AgentDefinition['work']>

const OWNER = { tenant: '', principal: 'anonymous' }

const asking: WorkFunction = async ({ ask, emit: say }) => {
  say(progress('looking'))
  const colour = textOf(await ask(inputRequired('Which colour?')))
  say(progress(`painting it ${colour}`))
  return { artifact: text(colour) }
}

const askingChart = setupWork({ types: { context: {} as { colour: string } } }).createMachine({
  id: 'painter',
  context: { colour: '' },
  initial: 'looking',
  states: {
    looking: { entry: emit(progress('looking')), always: 'asking' },
    asking: {
      tags: 'input-required',
      meta: { prompt: 'Which colour?' },
      on: {
        'message.received': {
          target: 'painting',
          actions: assign({ colour: ({ event }) => textOf(event.message) })
        }
      }
    },
    painting: { entry: emit(({ context }) => progress(`painting it ${context.colour}`)), always: 'painted' },
    painted: { type: 'final' }
  },
  output: ({ context }) => ({ artifact: text(context.colour) })
})

const WORKS: Readonly<Record<string, Work>> = { function: asking, chart: askingChart }

/** What passes a method of XState's actors from now on: the actor and the type of its event. */
function passedTo(t: Test, method: 'send' | '_send'): string[] {
  const passed: string[] = []
  const own = Actor.prototype as unknown as Record<typeof method, (event: EventObject) => void>
  const original = own[method]
  t.teardown(() => void (own[method] = original))
  own[method] = function (this: AnyActorRef, event) {
    passed.push(`${this.id} ${event.type}`)
    original.call(this, event)
  }
  return passed
}

/** The actors of a context with one task, which asks and has been answered. */
async function runAnswered(t: Test, work: Work, observer: Observer = {}) {
  const { runtime } = start(t, { work })
  let root: AnyActorRef | undefined
  runtime.observe({ ...observer, entered: live => void (root = live.root) })
  const { id } = taskIn(await runtime.sendMessage(say('a boat')))
  const task = childOf(root, id)
  const run = childOf(task, 'work')
  await runtime.sendMessage(say('blue', { taskId: id }))
  return { id, actors: [root, task, run] }
}

function childOf(actor: AnyActorRef | undefined, id: string): AnyActorRef | undefined {
  return actor?.getSnapshot().children[id]
}

for (const [name, work] of Object.entries(WORKS)) {
  await t.test(`a context, its task and its work, which is a ${name}, are actors of XState`, async t => {
    const { actors } = await runAnswered(t, work)
    for (const actor of actors) {
      t.ok(actor instanceof Actor)
      t.equal(Object.getPrototypeOf(actor), Actor.prototype, 'of no class of ours')
    }
  })

  await t.test(
    `each event of a context, its task and its work, which is a ${name}, passes XState's methods`,
    async t => {
      const sent = passedTo(t, 'send')
      const arrived = passedTo(t, '_send')
      const { id } = await runAnswered(t, work)
      for (const event of [`context request.received`, 'context task.start', 'context message.received'])
        t.ok(sent.includes(event), `sent: ${event}`)
      for (const event of [...sent, `${id} task.start`, `${id} message.received`, `work message.received`])
        t.ok(arrived.includes(event), `arrived: ${event}`)
      t.ok(arrived.includes(`${id} xstate.done.actor.work`) && arrived.includes(`context xstate.done.actor.${id}`))
    }
  )

  await t.test(
    `an inspect of XState sees a context, its task and its work, which is a ${name}, and each event`,
    async t => {
      const arrived = passedTo(t, '_send')
      const seen: InspectionEvent[] = []
      const { id } = await runAnswered(t, work, { inspect: event => void seen.push(event) })
      const actorsOf = (type: InspectionEvent['type']) =>
        seen.filter(event => event.type === type).map(({ actorRef }) => (actorRef as AnyActorRef).id)
      t.strictSame(actorsOf('@xstate.actor'), ['context', id, 'work'])
      for (const type of ['@xstate.microstep', '@xstate.action'] as const)
        t.ok(actorsOf(type).includes('context') && actorsOf(type).includes(id), type)
      const events = seen.flatMap(event =>
        event.type === '@xstate.event' && event.event.type !== 'xstate.init'
          ? [`${(event.actorRef as AnyActorRef).id} ${event.event.type}`]
          : []
      )
      t.strictSame(events, arrived, 'each event, in order')
      for (const actor of ['context', id, 'work']) {
        const snapshots = actorsOf('@xstate.snapshot').filter(each => each === actor)
        const got = events.filter(event => event.startsWith(`${actor} `))
        t.ok(snapshots.length > got.length, `${actor} has a snapshot after its start and after each event`)
      }
    }
  )
}

await t.test('an observer with inspect sees contexts that enter memory from then on, restored ones too', async t => {
  const life = lives(t, { work: askingChart })
  const { id } = taskIn(await life.runtime.sendMessage(say('a boat')))
  const late: string[] = []
  const { stop } = life.runtime.observe({ inspect: ({ type }) => void late.push(type) })
  const runtime = await life.restart()
  const seen: string[] = []
  const lookers = [
    runtime.observe({}),
    runtime.observe({ inspect: ({ type, actorRef }) => void seen.push(`${type} ${(actorRef as AnyActorRef).id}`) })
  ]
  await runtime.sendMessage(say('blue', { taskId: id }))
  for (const actor of ['context', id, 'work'])
    for (const type of ['@xstate.actor', '@xstate.event', '@xstate.snapshot'])
      t.ok(seen.includes(`${type} ${actor}`), `${type} ${actor}`)
  for (const looker of lookers) looker.stop()
  const { length } = seen
  await runtime.sendMessage(say('another boat'))
  t.equal(seen.length, length, 'it has stopped')
  t.strictSame(late, [])
  stop()
})

/** What a task's actor got and emitted after its runtime had stopped while it asked, and what was stored before. */
async function goOn(t: Test, work: Work) {
  const life = lives(t, { work })
  const { id } = taskIn(await life.runtime.sendMessage(say('a boat')))
  const stored = JSON.parse(String(await life.store.readSnapshot(OWNER, id)))
  const runtime = await life.restart()
  const got: Record<string, EventObject[]> = { [id]: [], work: [] }
  const emitted: Record<string, EventObject[]> = { [id]: [], work: [] }
  let run: AnyActorRef | undefined
  runtime.observe({
    entered: ({ root }) => {
      const task = childOf(root, id)
      run = childOf(task, 'work')
      for (const actor of [task, run]) actor?.on('*', fact => void emitted[actor.id]?.push(fact))
      root.system.inspect(seen => {
        if (seen.type !== '@xstate.event' || seen.event.type === 'xstate.init') return
        got[(seen.actorRef as AnyActorRef).id]?.push(seen.event)
      })
    }
  })
  const answer = taskIn(await runtime.sendMessage(say('blue', { taskId: id })))
  t.equal(answer.status.state, 'TASK_STATE_COMPLETED')
  return { id, stored, got, emitted, run }
}

for (const [name, work] of Object.entries(WORKS)) {
  await t.test(
    `createActor of the plain task chart goes on where a runtime stopped, with work that is a ${name}`,
    async t => {
      const { id, stored, got, emitted } = await goOn(t, work)
      // Its work says the same as in the runtime.
      const silent = fromCallback(() => {})
      const task = createActor(taskMachine.provide({ actors: { work: silent as never } }), {
        id,
        input: undefined as never,
        snapshot: { ...stored, children: { work: { ...stored.children.work, snapshot: { status: 'active' } } } }
      })
      const words: EventObject[] = []
      task.on('*', fact => void words.push(fact))
      task.start()
      t.match(task.getSnapshot().value, { active: { started: 'inputRequired' } })
      for (const event of got[id] ?? []) task.send(event as never)
      t.ok(words.length > 2)
      t.strictSame(words, emitted[id])
      t.equal(task.getSnapshot().value, 'completed')
    }
  )
}

await t.test("createActor of an author's plain chart goes on where a runtime stopped", async t => {
  const { stored, got, emitted, run } = await goOn(t, askingChart)
  const { snapshot } = stored.children.work
  const chart = createActor(askingChart, { input: undefined as never, snapshot })
  const words: EventObject[] = []
  chart.on('*', fact => void words.push(fact))
  chart.start()
  t.equal(chart.getSnapshot().value, 'asking')
  for (const event of got['work'] ?? []) chart.send(event as never)
  t.strictSame(words, [progress('painting it blue')])
  t.strictSame(words, emitted['work'])
  const { value, context, status, output } = chart.getSnapshot()
  t.match(run?.getSnapshot(), { value, context, status })
  t.strictSame(output, { artifact: text('blue') })
})
