import t from 'tap'
import { emit } from 'xstate'
import { metricsText } from '../../adapters/serve/serve-metrics.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import { artifact, defineAgent, propertiesOf, setupWork, type Property } from '../../runtime/index.ts'
import { PropertyWatch } from '../../runtime/property-watch.ts'
import type { Runtime } from '../../runtime/runtime-options.ts'
import type { Commit, ContextKey, TaskEvent } from '../../runtime/store/store.ts'
import { Counters } from '../../runtime/telemetry/counters.ts'
import { lives } from '../fixtures/runtime/lives.ts'
import {
  deferred,
  recordingLogger,
  rest,
  say,
  start,
  taskIn,
  until,
  type Logged
} from '../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../fixtures/runtime/test-clock.ts'

/** Prints a page, asks whether to print another, and does so for every answer but `enough`. */
const printer = setupWork({}).createMachine({
  id: 'printer',
  entry: emit(artifact('page 1')),
  initial: 'asking',
  states: {
    asking: {
      tags: 'input-required',
      meta: { prompt: 'Another?' },
      on: {
        'message.received': [
          {
            guard: ({ event }) => event.message.parts.some(part => 'text' in part && part.text === 'enough'),
            target: 'done'
          },
          { target: 'asking', reenter: true, actions: emit(artifact('another page')) }
        ]
      }
    },
    done: { type: 'final' }
  }
})

const { atMostOnce, eventually, never, told } = propertiesOf(printer)
const ONCE = { 'one page is printed': atMostOnce(told('artifact')) }
const SILENCE = 'nothing is told after a terminal status (§3.1.2, §4.1.3)'
const VIOLATED = 'a task violates a property'

async function answer(runtime: Runtime, taskId: string, text: string): Promise<void> {
  await runtime.sendMessage(say(text, { taskId }))
}

function violations(log: readonly Logged[]) {
  return log.filter(({ message }) => message === VIOLATED).map(({ level, details }) => ({ level, ...details }))
}

async function counted(runtime: Runtime): Promise<Record<string, number>> {
  const [metric] = (await runtime.metrics.read()).filter(({ name }) => name === 'taskchart.property.violations')
  return Object.fromEntries(
    (metric?.values ?? []).map(({ value, attributes }) => [String(attributes['property']), value])
  )
}

await t.test('a runtime counts and logs a task that violates a property of its agent, once', async t => {
  const { runtime, log } = start(
    t,
    { work: printer, properties: { ...ONCE, 'a "quoted" \\ name\nof two lines': never(told('REJECTED')) } },
    { observeProperties: true }
  )
  const { id, contextId } = taskIn(await runtime.sendMessage(say('print')))
  t.strictSame(violations(log), [])
  for (const text of ['one more', 'one more', 'enough']) await answer(runtime, id, text)
  t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_COMPLETED', 'the task goes on')
  t.match(violations(log), [
    { level: 'error', property: 'one page is printed', taskId: id, contextId, event: 'artifact', generation: Number }
  ])
  t.match(await counted(runtime), { 'one page is printed': 1, [SILENCE]: 0 })
  const text = await metricsText(runtime)
  t.match(text, '\ntaskchart_property_violations_total{property="one page is printed"} 1\n')
  t.match(text, '\ntaskchart_property_violations_total{property="a \\"quoted\\" \\\\ name\\nof two lines"} 0\n')
})

await t.test('properties are not observed by default', async t => {
  const { runtime, log } = start(t, { work: printer, properties: ONCE })
  const { id } = taskIn(await runtime.sendMessage(say('print')))
  await answer(runtime, id, 'one more')
  t.strictSame([log, await counted(runtime)], [[], {}])
})

await t.test('a task that waited in the store is observed with what was told before', async t => {
  const { log, again, runtime } = lives(t, { work: printer, properties: ONCE }, { observeProperties: true })
  const { id } = taskIn(await runtime.sendMessage(say('print')))
  await answer(await again(), id, 'one more')
  await until(() => violations(log).length > 0)
  t.match(violations(log), [{ property: 'one page is printed', taskId: id }])
  await answer(await again(), id, 'one more')
  await rest()
  t.equal(violations(log).length, 1, 'it was reported before')
})

await t.test('a task of an earlier version is observed by the properties of that version', async t => {
  const { log, again, runtime, restart } = lives(t, { work: printer, version: '1' }, { observeProperties: true })
  const { id } = taskIn(await runtime.sendMessage(say('print')))
  const none = { 'nothing is printed': never(told('artifact')) }
  const now = { work: printer, version: '2', properties: none }
  await answer(await again({ ...now, earlier: { '1': { work: printer, properties: ONCE } } }), id, 'one more')
  await until(() => violations(log).length > 0)
  const later = await restart({ ...now, earlier: { '1': { work: printer, properties: ONCE } } })
  t.match(violations(log), [{ property: 'one page is printed', taskId: id }])
  t.match(await counted(later), { 'one page is printed': 0, 'nothing is printed': 0, [SILENCE]: 0 })
  await later.sendMessage(say('print'))
  t.match(violations(log)[1], { property: 'nothing is printed' })
  await answer(await restart({ ...now, earlier: { '1': printer } }), id, 'enough')
  t.equal(violations(log).length, 2, 'without own properties, those of the agent are meant, which were violated before')
})

const KEY: ContextKey = { tenant: '', principal: 'anonymous', contextId: 'c1' }

function update(name: string, taskId: string): TaskEvent['update'] {
  const ids = { taskId, contextId: 'c1' }
  if (name === 'artifact') return { artifactUpdate: { ...ids, artifact: { artifactId: 'a1', parts: [{ text: 'a' }] } } }
  return { statusUpdate: { ...ids, status: { state: `TASK_STATE_${name}` as TaskState } } }
}

function eventsOf(names: string, taskId = 't1', first = 1): TaskEvent[] {
  return names.split(' ').map((name, index) => ({ taskId, generation: first + index, update: update(name, taskId) }))
}

/**
 * A watch that is told events as a runtime with a fault might tell them. `stored` are the earlier events of all tasks.
 */
function watching(
  properties: Readonly<Record<string, Property>>,
  stored: () => Promise<TaskEvent[]> = () => Promise.resolve([])
) {
  const { logger, log } = recordingLogger()
  const [clock, counters] = [new TestClock(), new Counters()]
  const agent = defineAgent({ card: { name: 'A' }, work: printer, properties })
  const asked: number[] = []
  const readEvents = async (_: unknown, __: string, after: number, limit: number) => {
    asked.push(limit)
    return (await stored()).filter(({ generation }) => generation > after).slice(0, limit)
  }
  const watch = new PropertyWatch({ agent, store: { readEvents }, clock, logger, counters })
  const tells = (events: readonly TaskEvent[], key = KEY) =>
    watch.committed({ key, log: events } as unknown as Commit, { versionOf: () => agent.version })
  return { watch, tells, log, clock, counters, asked }
}

await t.test('an event after a terminal status is found, in the same turn and in a later one', async t => {
  const earlier = eventsOf('SUBMITTED WORKING COMPLETED')
  const one = watching({}, () => Promise.resolve(earlier))
  one.tells([...earlier, ...eventsOf('artifact', 't1', 4)])
  await rest()
  t.match(violations(one.log), [{ property: SILENCE, event: 'artifact', generation: 4 }])
  one.tells(eventsOf('WORKING', 't1', 5))
  await rest()
  t.equal(violations(one.log).length, 1, 'the store does not have event 4, so nothing is known')
  const other = watching({}, () => Promise.resolve(earlier))
  other.tells(earlier)
  t.strictSame(other.asked, [])
  other.tells(eventsOf('WORKING', 't1', 4))
  await rest()
  t.match(violations(other.log), [{ property: SILENCE, event: 'WORKING', generation: 4 }])
  t.equal(other.counters.violations[SILENCE], 1)
})

await t.test('messages of a client are no updates', t => {
  const { tells, log } = watching({ silent: never(told()) })
  tells([
    {
      message: { messageId: 'm1', role: 'ROLE_USER', parts: [] },
      taskId: 't1',
      generation: 1,
      isNumbered: true
    } as unknown as TaskEvent
  ])
  t.strictSame(log, [])
  t.end()
})

await t.test('tasks of one context are observed one by one, until it leaves memory', async t => {
  const { watch, tells, log, asked } = watching(ONCE)
  tells([...eventsOf('SUBMITTED WORKING artifact', 't1'), ...eventsOf('SUBMITTED WORKING artifact', 't2')])
  tells(eventsOf('COMPLETED', 't1', 4))
  tells(eventsOf('artifact', 't2', 4))
  t.match(violations(log), [{ property: 'one page is printed', taskId: 't2', generation: 4 }])
  watch.left({ key: KEY } as never)
  tells(eventsOf('WORKING', 't2', 5))
  await rest()
  t.strictSame(asked, [4], 'the next time it is read')
})

await t.test('what is told while earlier events are read waits for them', async t => {
  const read = deferred<TaskEvent[]>()
  const { tells, log } = watching(ONCE, () => read.promise)
  tells(eventsOf('WORKING', 't1', 4))
  tells(eventsOf('artifact COMPLETED', 't1', 5))
  t.strictSame(violations(log), [])
  read.resolve(eventsOf('SUBMITTED WORKING artifact'))
  await rest()
  t.match(violations(log), [{ property: 'one page is printed', generation: 5 }])
})

await t.test('nothing is said of a task whose earlier events are lost, too many, or cannot be read', async t => {
  const lost = watching(ONCE, () => Promise.resolve(eventsOf('artifact', 't1', 2)))
  lost.tells(eventsOf('artifact artifact', 't1', 4))
  await rest()
  const many = watching(ONCE)
  many.tells(eventsOf('artifact artifact', 't1', 202))
  await rest()
  const broken = watching(ONCE, () => Promise.reject(new Error('no disk')))
  broken.tells(eventsOf('artifact artifact', 't1', 4))
  await rest()
  broken.tells(eventsOf('artifact artifact', 't1', 6))
  await rest()
  t.strictSame([lost.log, many.log, many.asked, broken.log, broken.asked], [[], [], [], [], [3]])
})

await t.test('a property that throws ends the observation of its task, with a line', async t => {
  const poisoned = {
    'it is readable': never(
      told('artifact', () => {
        throw new Error('mine')
      })
    ),
    'it never fails': never(told('FAILED')),
    'it prints': eventually(told('artifact'))
  }
  const { tells, log } = watching(poisoned, () => Promise.resolve(eventsOf('SUBMITTED WORKING artifact WORKING')))
  tells(eventsOf('SUBMITTED WORKING artifact WORKING FAILED'))
  t.match(log, [
    {
      level: 'error',
      message: 'a property cannot be evaluated, so its task is not observed',
      details: { taskId: 't1', error: { message: 'mine' } }
    }
  ])
  t.equal(log.length, 1)
  tells(eventsOf('SUBMITTED WORKING FAILED', 't2'))
  t.match(violations(log), [
    { property: 'it never fails', taskId: 't2' },
    { property: 'it prints', taskId: 't2' }
  ])
  tells(eventsOf('FAILED', 't3', 5))
  await rest()
  t.match(log.slice(3), [{ details: { taskId: 't3', error: { message: 'mine' } } }])
  t.equal(log.length, 4)
})

await t.test('the log gets at most ten lines a minute, and all violations are counted', t => {
  const { tells, log, clock, counters } = watching({ silent: never(told()) })
  const fail = (count: number) =>
    Array.from({ length: count }, (_, index) => tells(eventsOf('SUBMITTED', `t${index}`), { ...KEY }))
  fail(25)
  t.strictSame([log.length, counters.violations['silent']], [10, 25])
  clock.increment(59_999)
  fail(1)
  t.equal(log.length, 10)
  clock.increment(1)
  fail(2)
  t.strictSame(
    log.slice(10).map(({ details }) => details['unlogged']),
    [16, undefined]
  )
  t.equal(counters.violations['silent'], 28)
  t.end()
})
