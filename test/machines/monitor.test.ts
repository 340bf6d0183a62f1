import { createMachine } from 'xstate'
import t from 'tap'
import { isEnd, Monitor, updateNameOf, type TaskUpdate } from '../../machines/properties/monitor.ts'
import type { Property } from '../../machines/properties/properties.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import { propertiesOf } from '../../runtime/index.ts'
import { brokenRules } from '../fixtures/charts/broken-rules.ts'

const { all, always, any, atMostOnce, event, eventually, leadsTo, never, not, precedes, terminal, told } = propertiesOf(
  createMachine({ initial: 'a', states: { a: {} } })
)

function update(name: string): TaskUpdate {
  const ids = { taskId: 't1', contextId: 'c1' }
  if (/^[A-Z_]+$/.test(name)) return { statusUpdate: { ...ids, status: { state: `TASK_STATE_${name}` as TaskState } } }
  return { artifactUpdate: { ...ids, artifact: { artifactId: name, parts: [{ text: name }] } } }
}

function updates(names: string): TaskUpdate[] {
  return names.split(' ').map(update)
}

/** The place of the update that violates a property, counted from 1; 0 if none does. */
function violatedAt(property: Property, names: string): number {
  const monitor = new Monitor({ property })
  let standing = monitor.start
  return (
    updates(names).findIndex(one => {
      const before = standing
      standing = monitor.after(before, one)
      return monitor.violatedBetween(before, standing).includes('property')
    }) + 1
  )
}

await t.test('a property is violated by the first update after which it cannot hold', async t => {
  const silent = never(told(), { after: told('terminal') })
  const rows: readonly [property: Property, names: string, at: number][] = [
    [silent, 'SUBMITTED WORKING boat COMPLETED', 0],
    [silent, 'SUBMITTED WORKING COMPLETED boat WORKING', 4],
    [never(told('AUTH_REQUIRED')), 'SUBMITTED WORKING AUTH_REQUIRED', 3],
    [atMostOnce(told('artifact')), 'WORKING boat WORKING boat', 4],
    [atMostOnce(told('artifact'), { after: told('WORKING') }), 'WORKING boat WORKING boat COMPLETED', 0],
    [precedes(told('artifact'), told('COMPLETED')), 'SUBMITTED WORKING COMPLETED', 3],
    [precedes(told('artifact'), told('COMPLETED')), 'SUBMITTED WORKING boat COMPLETED', 0],
    [precedes(told('WORKING'), told('terminal'), { after: told('interrupted') }), 'WORKING INPUT_REQUIRED FAILED', 3],
    [leadsTo(told('INPUT_REQUIRED'), told('artifact')), 'WORKING INPUT_REQUIRED WORKING COMPLETED', 4],
    [leadsTo(told('INPUT_REQUIRED'), told('artifact')), 'WORKING INPUT_REQUIRED WORKING', 0],
    [leadsTo(told('INPUT_REQUIRED'), told('artifact')), 'WORKING INPUT_REQUIRED boat COMPLETED', 0],
    [leadsTo(told('INPUT_REQUIRED'), told('artifact')), 'WORKING INPUT_REQUIRED CANCELED', 0],
    [eventually(told('artifact')), 'SUBMITTED WORKING FAILED', 3],
    [eventually(told('artifact')), 'SUBMITTED CANCELED', 0],
    [eventually(any(told('artifact'), told('FAILED'))), 'SUBMITTED FAILED', 0]
  ]
  for (const [index, [property, names, at]] of rows.entries())
    t.equal(violatedAt(property, names), at, `${index}: ${names}`)
})

await t.test('a property may read the data of an update, as a proof gives them', async t => {
  const boat = told(
    'artifact',
    ({ artifact, append }: { artifact: { artifactId: string }; append: boolean }) =>
      artifact.artifactId === 'boat' && !append
  )
  t.equal(violatedAt(never(boat), 'WORKING car boat'), 3)
  t.equal(violatedAt(never(all(told('artifact'), not(boat))), 'WORKING boat car'), 3)
  const said = told('WORKING', ({ message }: { message?: { messageId: string } }) => message?.messageId === 'm1')
  const monitor = new Monitor({ said: never(said) })
  const message = { messageId: 'm1', role: 'ROLE_AGENT' as const, parts: [{ text: 'x' }] }
  const ids = { taskId: 't1', contextId: 'c1' }
  const after = monitor.after(monitor.start, {
    statusUpdate: { ...ids, status: { state: 'TASK_STATE_WORKING', message } }
  })
  t.strictSame(monitor.violatedBetween(monitor.start, after), ['said'])
  t.strictSame(monitor.violatedBetween(monitor.start, monitor.after(monitor.start, update('WORKING'))), [])
})

await t.test('only properties that updates decide are observed', async t => {
  const observed = {
    never: never(told('x')),
    never2: never(all(told('x'), not(told('y')))),
    once: atMostOnce(any(told('x'), told('y'))),
    not: never(not(any(told('x'), not(told('y')))))
  }
  const others = {
    state: never('a'),
    event: never(event('x')),
    end: precedes(told('artifact'), terminal),
    always: always(told('x')),
    mixed: never(all(told('x'), 'a')),
    elsewhere: never(not(told('x'))),
    any: never(any(told('x'), not(told('y')))),
    after: never(told('x'), { after: 'a' }),
    leads: leadsTo(told('x'), 'a'),
    eventually: eventually('a')
  }
  t.strictSame(new Monitor({ ...observed, ...others }).names, Object.keys(observed))
})

await t.test('tasks of which the same was told share where the properties stand, up to a bound', async t => {
  const ids = Array.from({ length: 10 }, (_, index) => `artifact${index}`)
  const once = (id: string) =>
    atMostOnce(told('artifact', ({ artifact }: { artifact: { artifactId: string } }) => artifact.artifactId === id))
  const monitor = new Monitor(Object.fromEntries(ids.map(id => [id, once(id)])))
  const afterAll = (chosen: readonly string[]) =>
    chosen.reduce((standing, id) => monitor.after(standing, update(id)), monitor.start)
  const subset = (mask: number) => ids.filter((_, index) => mask & (1 << index))
  t.equal(afterAll(subset(3)), afterAll(subset(3)))
  const distinct = new Set(Array.from({ length: 1024 }, (_, mask) => afterAll(subset(mask))))
  t.equal(distinct.size > 1000, true)
  t.equal(afterAll(subset(3)), afterAll(subset(3)))
  const last = subset(1023)
  t.not(afterAll(last), afterAll(last), 'it is computed again')
  t.strictSame(monitor.violatedBetween(afterAll(last), afterAll([...last, 'artifact4'])), ['artifact4'])
})

await t.test('the rules of A2A name what a task must not tell', async t => {
  const rows: Record<string, readonly string[]> = {
    'SUBMITTED WORKING boat INPUT_REQUIRED WORKING COMPLETED': [],
    'SUBMITTED REJECTED': [],
    'WORKING boat COMPLETED': ['a task begins as SUBMITTED (§4.1.3)'],
    'SUBMITTED WORKING SUBMITTED': ['it is SUBMITTED once (§4.1.3)'],
    'SUBMITTED boat': ['it is WORKING before it asks, produces or completes (§4.1.3)'],
    'SUBMITTED COMPLETED': ['it is WORKING before it asks, produces or completes (§4.1.3)'],
    'SUBMITTED WORKING CANCELED boat': ['nothing is told after a terminal status (§3.1.2, §4.1.3)']
  }
  for (const [names, broken] of Object.entries(rows)) t.strictSame(brokenRules(updates(names)), broken, names)
  t.strictSame(
    updates('FAILED WORKING boat').map(one => [updateNameOf(one), isEnd(one)]),
    [
      ['FAILED', true],
      ['WORKING', false],
      ['artifact', false]
    ]
  )
})
