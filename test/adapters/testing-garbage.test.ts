import t from 'tap'
import { eachEvent, faultyServer, type Json } from '../fixtures/faulty-server.ts'
import { sampleOf } from '../fixtures/sample.ts'
import { ids, tested } from '../fixtures/tested-server.ts'

/** A task that is broken inside. */
const BROKEN = { id: 'x', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [null, { parts: [null] }], history: [null, 5] }

/** What an operation may be answered with by a server that has gone wrong. */
const GARBAGE: readonly Json[] = [
  null, 5, [], {}, { task: 5 }, { task: { id: 'x' } }, { message: 5 }, { tasks: 5 }, { task: { id: 'x', status: { state: 'LOST' } } },
  { statusUpdate: 5, artifactUpdate: { artifact: { artifactId: 'a' } } }, { task: null },
  { message: null }, BROKEN, { task: BROKEN }
]

for (const garbage of sampleOf(t, GARBAGE, 4)) {
  await t.test(`a server that answers ${JSON.stringify(garbage)} gives findings, and stops nothing`, async t => {
    for (const methods of [['SendMessage', 'ListTasks'], ['GetTask', 'CancelTask']]) {
      const url = await faultyServer(t, { answer: ({ method, id }, answer) => (methods.includes(method) ? { jsonrpc: '2.0', id, result: garbage } : answer) })
      t.ok(ids(await tested(url, { texts: ['ask'], bounds: { answerMs: 500 } }), 'failed').length > 0, methods.join(', '))
    }
    const url = await faultyServer(t, eachEvent(event => [{ ...event, result: garbage }]))
    t.ok(ids(await tested(url, { texts: ['ask'], bounds: { answerMs: 500 } }), 'failed').length > 0)
  })
}

await t.test('garbage in the middle of streams gives findings, and stops nothing', async t => {
  const middle: readonly Json[] = [...GARBAGE, { artifactUpdate: { artifact: { artifactId: 'new', parts: [{ text: 'a' }] }, append: true } }]
  const url = await faultyServer(t, eachEvent((event, index) => (index === 2 ? [...middle.map(result => ({ ...event, result })), event] : [event])))
  const result = await tested(url, { texts: ['count 2', 'ask'] })
  for (const id of [5, 54, 64]) t.ok(ids(result, 'failed', 'warning').includes(id), `${id}`)
  for (const id of [33, 69, 80]) t.ok(ids(result, 'passed', 'failed').includes(id), `${id}`)
  t.same(result.notes, [])
})
