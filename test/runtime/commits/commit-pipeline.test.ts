import t from 'tap'
import { answerToFailed, CommitPipeline, LOST_RACE, Turn } from '../../../runtime/commits/commit-pipeline.ts'
import { factAtEventLimit } from '../../../runtime/commits/task-ledger.ts'
import { type MessageRow, NOT_OWNER, type TaskEvent } from '../../../runtime/store/store.ts'
import { deferred, rest, userMessage } from '../../fixtures/runtime/runtime-helpers.ts'

function event(
  generation: number,
  state: 'TASK_STATE_WORKING' | 'TASK_STATE_COMPLETED' = 'TASK_STATE_WORKING',
  taskId = 't'
): TaskEvent {
  return { taskId, generation, update: { statusUpdate: { taskId, contextId: 'c', status: { state } } } }
}

await t.test('a commit pipeline', async t => {
  /** A pipeline that commits and publishes its turns as a context does. */
  const piped = (write: () => Promise<boolean> = async () => true) => {
    const published: Turn[] = []
    const broke: unknown[] = []
    const settled: number[] = []
    const end = (error: unknown) => {
      if (pipeline.isOver) return
      broke.push(answerToFailed(error))
      pipeline.end(answerToFailed(error))
    }
    const settle = (written: Turn, isWritten: boolean) => {
      written.isWritten = isWritten
      for (let turn = pipeline.takeWritten(); turn; turn = pipeline.takeWritten()) {
        published.push(turn)
        for (const waiting of turn.waiting) waiting.onPublished(turn)
        if (pipeline.isSettled) settled.push(published.length)
      }
      if (pipeline.hasLostRace) end(LOST_RACE)
    }
    const pipeline = new CommitPipeline(0, turn => {
      pipeline.closeTurn()
      if (turn.log.length === 0) settle(turn, true)
      else write().then(isWritten => settle(turn, isWritten), end)
    })
    return { pipeline, told: published, broke, settled }
  }

  await t.test('groups one turn of the event loop, and opens another for the next', async t => {
    const { pipeline, told } = piped()
    t.ok(pipeline.isSettled)
    const { turn } = pipeline
    t.equal(pipeline.turn, turn)
    t.notOk(pipeline.isSettled)
    await rest()
    t.not(pipeline.turn, turn)
    await rest()
    t.equal(told.length, 2)
    t.ok(pipeline.isSettled)
  })

  await t.test('reports when all decided turns are told, and not before', async t => {
    const gates = [deferred<boolean>(), deferred<boolean>()]
    const commits = [...gates]
    const { pipeline, settled } = piped(() => commits.shift()?.promise ?? Promise.resolve(true))
    for (const n of [1, 2]) {
      pipeline.turn.log = [event(n)]
      await Promise.resolve()
    }
    gates[0]?.resolve(true)
    await rest()
    t.strictSame(settled, [])
    gates[1]?.resolve(true)
    await rest()
    t.strictSame(settled, [2])
    const { turn } = pipeline
    turn.waiting = [{ onPublished: () => void (pipeline.turn.log = [event(3)]), onFailed: () => {} }]
    await rest()
    t.strictSame(settled, [2, 4])
  })

  await t.test('that has ended tells nothing and opens no turn, and may end twice', async t => {
    const gate = deferred<boolean>()
    const { pipeline, told, broke } = piped(() => gate.promise)
    const heard: unknown[] = []
    const waiting = { onPublished: () => void heard.push('told'), onFailed: (error: unknown) => void heard.push(error) }
    pipeline.turn.log = [event(1)]
    pipeline.turn.waiting = [waiting]
    await rest()
    pipeline.turn.log = [event(2)]
    pipeline.turn.waiting = [waiting]
    pipeline.end('over')
    pipeline.end('over again')
    gate.resolve(true)
    await rest()
    t.strictSame(heard, ['over', 'over'])
    t.strictSame([told, broke], [[], []])
    t.ok(pipeline.isOver)
    t.ok(pipeline.isSettled)
    t.throws(() => pipeline.turn)
    t.ok(pipeline.isLeaving)
  })

  await t.test('breaks once with the first failure, and all later turns fail', async t => {
    for (const [commit, is] of [
      [async () => false, (error: unknown) => error === LOST_RACE],
      [() => Promise.reject(new Error('disk')), (error: unknown) => error instanceof Error]
    ] as const) {
      const { pipeline, told, broke } = piped(commit)
      const failed: unknown[] = []
      for (const n of [1, 2]) {
        pipeline.turn.log = [event(n)]
        pipeline.turn.waiting = [{ onPublished: () => {}, onFailed: error => void failed.push(error) }]
        await Promise.resolve()
      }
      await rest()
      t.equal(broke.length, 1)
      t.ok(is(broke[0]))
      t.equal(failed.length, 2)
      t.ok(failed.every(is))
      t.equal(told.length, 0)
    }
  })
})

await t.test('a call whose turn is not stored gets an error that says what to do', t => {
  t.equal(answerToFailed(LOST_RACE), LOST_RACE)
  t.equal(answerToFailed(NOT_OWNER), NOT_OWNER)
  t.match(answerToFailed(new Error('disk')), { code: 'Overloaded', retryAfterMs: 1000, cause: { message: 'disk' } })
  t.end()
})

await t.test('a turn returns its entries by task: events, and of messages the generations', async t => {
  const turn = new Turn()
  const [a1, b1, a3] = [event(1, undefined, 'a'), event(1, undefined, 'b'), event(3, undefined, 'a')]
  const message: MessageRow = { message: userMessage('y'), taskId: 'a', generation: 2, isNumbered: true }
  turn.log = [{ message: userMessage('x') }, a1, b1, message, a3]
  t.strictSame(
    [turn.entriesOf('a'), turn.entriesOf('b'), turn.entriesOf('c')],
    [[a1, { taskId: 'a', generation: 2 }, a3], [b1], []]
  )
})

await t.test('a task at its limit of events sends only its end; completion becomes failure', async t => {
  t.equal(factAtEventLimit({ type: 'artifact.produced', artifact: { parts: [] } }, 'why', true), undefined)
  for (const state of ['TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'] as const)
    t.equal(factAtEventLimit({ type: 'status.changed', state }, 'why', true), undefined)
  for (const state of ['TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED'] as const) {
    const fact = { type: 'status.changed', state } as const
    t.equal(factAtEventLimit(fact, 'why', true), fact)
  }
  t.strictSame(
    factAtEventLimit(
      { type: 'status.changed', state: 'TASK_STATE_COMPLETED', message: { parts: [{ text: 'done' }] } },
      'why',
      true
    ),
    {
      type: 'status.changed',
      state: 'TASK_STATE_FAILED',
      message: { parts: [{ text: 'why' }] }
    }
  )
  t.strictSame(
    factAtEventLimit(
      { type: 'status.changed', state: 'TASK_STATE_REJECTED', message: { parts: [{ text: 'too long' }] } },
      'why',
      false
    ),
    {
      type: 'status.changed',
      state: 'TASK_STATE_REJECTED',
      message: { parts: [{ text: 'why' }] }
    },
    'without room also the words of another end'
  )
})
