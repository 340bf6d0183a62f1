import t from 'tap'
import { faultsOf, searchFaults, streamFaults, valuesAt } from './expectations.ts'

/** What is expected, values that are as expected, and values that are not. */
const ROWS: readonly (readonly [expected: unknown, good: readonly unknown[], bad: readonly unknown[]])[] = [
  ['a', ['a'], ['b', undefined, null, {}]],
  [{ type: 'string' }, ['', 'a'], [1, undefined, null]],
  [{ type: 'number' }, [1, 1.5], ['1', undefined]],
  [{ type: 'integer' }, [1], [1.5, '1']],
  [{ type: 'boolean' }, [false], [0, undefined]],
  [{ type: 'object' }, [{}], [[], null, 'a']],
  [{ type: 'array' }, [[]], [{}, undefined]],
  [{ type: 'null' }, [null], [undefined, {}]],
  [{ exists: true }, [null, '', 0], [undefined]],
  [{ absent: true }, [undefined], [null, '']],
  [{ contains: 'b' }, ['abc'], ['ac', ['b'], undefined]],
  [{ matches: '^a.c$' }, ['abc', 'a\nc'], ['abcd', undefined]],
  [{ starts_with: 'a' }, ['ab'], ['ba', undefined]],
  [{ ends_with: 'a' }, ['ba'], ['ab', undefined]],
  [{ gte: 2 }, [2, 3], [1, '3', undefined]],
  [{ lte: 2 }, [2, 1], [3, undefined]],
  [{ gt: 2 }, [3], [2, undefined]],
  [{ lt: 2 }, [1], [2, undefined]],
  [{ count: 1 }, [['a']], [[], 'a', undefined]],
  [{ count_gte: 1 }, [['a'], ['a', 'b']], [[], undefined]],
  [{ count_lte: 1 }, [[], ['a']], [['a', 'b'], undefined]],
  [{ one_of: ['a', { absent: true }] }, ['a', undefined], ['b']],
  [{ any_of: ['a', { type: 'array', count: 0 }] }, ['a', []], [['a'], undefined]],
  [{ all_of: [{ type: 'string' }, { contains: 'a' }] }, ['a'], ['b', ['a']]],
  [{ not: { contains: 'a' } }, ['b', undefined], ['a']],
  [{ items: { id: { exists: true } } }, [[], [{ id: 1 }]], [[{ id: 1 }, {}], {}]],
  [{ items: ['a', { type: 'number' }] }, [['a', 1, 'b']], [['a'], [1], undefined]],
  [{ a: { b: 'c' } }, [{ a: { b: 'c', d: 1 } }], [{ a: {} }, {}, undefined, 'a']],
  // Names of operators whose argument has another type are members.
  [{ type: { type: 'string' } }, [{ type: 'a' }], ['a', {}]],
  [{ count: { gte: 1 } }, [{ count: 1 }], [{ count: 0 }, ['a']]]
]

await t.test('each operator holds for what is as expected, and for nothing else', async t => {
  for (const [expected, good, bad] of ROWS) {
    for (const value of good) t.strictSame(faultsOf(expected, value, 'it'), [], JSON.stringify(expected))
    for (const value of bad)
      t.not(faultsOf(expected, value, 'it').length, 0, `${JSON.stringify(expected)}, not ${JSON.stringify(value)}`)
  }
})

await t.test('a fault says where it is, what was expected and what came', async t => {
  t.strictSame(faultsOf({ task: { id: { type: 'string' } } }, { task: { id: 1 } }, 'the answer'), [
    'the answer.task.id has to be of the type "string", and is 1'
  ])
})

await t.test('a path gives the values at its end, in every element for a star', async t => {
  const root = { a: [{ b: [1, 2] }, { b: [3] }, {}] }
  t.strictSame(valuesAt(root, 'a[*].b[*]'), [1, 2, 3])
  t.strictSame(valuesAt(root, 'a[1].b'), [[3]])
  t.strictSame(valuesAt(root, 'a[*].c'), [])
  t.strictSame(valuesAt(root, 'a.b'), [])
})

await t.test('a search wants any, all or none of the values to match', async t => {
  const source = { a: [1, 2] }
  const path = 'a[*]'
  const found = (search: object) => searchFaults({ source, ...search }).length === 0
  t.ok(found({ any: { path, match: 2 } }))
  t.notOk(found({ any: { path, match: 3 } }))
  t.ok(found({ all: { path, match: { gte: 1 } } }))
  t.notOk(found({ all: { path, match: 1 } }))
  t.ok(found({ none: { path, match: 3 } }))
  t.notOk(found({ none: { path, match: 1 } }))
})

await t.test('the events of a stream are counted, compared and in order', async t => {
  const event = (state: string) => ({ statusUpdate: { taskId: 't', status: { state: `TASK_STATE_${state}` } } })
  const events = [
    { task: { id: 't', status: { state: 'TASK_STATE_SUBMITTED' } } },
    event('WORKING'),
    event('COMPLETED')
  ]
  const holds = (expected: object, given: readonly unknown[] = events) => streamFaults(expected, given).length === 0
  t.ok(holds({ min_count: 3, ordering: 'monotonic_state' }))
  t.notOk(holds({ min_count: 4 }))
  t.notOk(holds({}, []))
  t.notOk(holds({ ordering: 'monotonic_state' }, events.toReversed()))
  t.ok(holds({ final_event: { status: { state: 'TASK_STATE_COMPLETED' } } }))
  t.notOk(holds({ final_event: { status: { state: 'TASK_STATE_FAILED' } } }))
  t.ok(holds({ each_event: { status: { exists: true } } }))
  t.notOk(holds({ each_event: { taskId: 't' } }))
  t.ok(holds({ events: [{ description: 'a status', match: 'any_position', status_update: { task_id: 't' } }] }))
  t.notOk(holds({ events: [{ description: 'an artifact', match: 'any_position', artifact: { exists: true } }] }))
  t.ok(holds({ events: [{ index: 0, one_of: [{ task: { id: 't' } }, { message: { exists: true } }] }] }))
  t.notOk(holds({ events: [{ index: 1, task: { exists: true } }] }))
})
