import t from 'tap'
import type { ClientKey, KeyTarget } from '../../../runtime/access/call-context.ts'
import { accepted, inputRequired, reply, type WorkFunction } from '../../../runtime/index.ts'
import {
  collect,
  deferred,
  messageIn,
  refusal,
  say,
  start,
  taskIn,
  textOf,
  until
} from '../../fixtures/runtime/runtime-helpers.ts'

/** Asks once. */
const work: WorkFunction = async ({ ask }) => ({ artifact: textOf(await ask(inputRequired('Well?'))) ?? '' })

const negotiate = ({ message }: { readonly message: Parameters<typeof textOf>[0] }) =>
  textOf(message) === 'hello' ? reply('hi') : accepted()

/** A key whose messages go to its task, and in its context if it has none. */
function keyOf(name: string, seen: (KeyTarget | undefined)[] = []): ClientKey {
  return {
    name,
    storedMs: 1000,
    address: target => {
      seen.push(target)
      if (!target) return {}
      return 'taskId' in target ? { taskId: target.taskId } : { contextId: target.contextId }
    }
  }
}

await t.test('a message with a key goes where its adapter says, which gets what the key refers to', async t => {
  const { runtime } = start(t, { work, negotiate })
  const seen: (KeyTarget | undefined)[] = []
  const key = keyOf('boat', seen)
  const answer = messageIn(await runtime.sendMessage(say('hello'), { key }))
  t.match(await runtime.findByKey('boat'), { reply: answer })
  const task = taskIn(await runtime.sendMessage(say('ask'), { key }))
  t.equal(task.contextId, answer.contextId)
  t.match(await runtime.findByKey('boat'), { taskId: task.id })
  const [first] = await collect(runtime.sendStreamingMessage(say('this'), { key }))
  t.equal(taskIn(first).id, task.id)
  t.match(seen, [
    undefined,
    { reply: answer, contextId: answer.contextId },
    { taskId: task.id, contextId: task.contextId, state: 'TASK_STATE_INPUT_REQUIRED' }
  ])
  t.match(await refusal(runtime.sendMessage(say('more'), { key })), { code: 'UnsupportedOperation' })
})

await t.test('each caller has its own keys, and a key expires after its last message', async t => {
  const { runtime, clock } = start(t, { work, negotiate })
  const { id } = taskIn(await runtime.sendMessage(say('ask'), { key: keyOf('boat') }))
  t.equal(await runtime.findByKey('boat', { principal: 'bob' }), undefined)
  clock.increment(600)
  await runtime.sendMessage(say('this'), { key: keyOf('boat') })
  clock.increment(600)
  t.match(await runtime.findByKey('boat'), { taskId: id })
  clock.increment(401)
  t.equal(await runtime.findByKey('boat'), undefined)
})

await t.test('the id of a task is its key, and is not stored', async t => {
  const { runtime } = start(t, { work })
  const { id } = taskIn(await runtime.sendMessage(say('ask')))
  t.equal(taskIn(await runtime.sendMessage(say('this'), { key: keyOf(id) })).id, id)
  t.equal(await runtime.findByKey(id), undefined)
})

await t.test('messages with one key are processed one at a time, and a cancellation waits for them', async t => {
  const asked = deferred()
  const answer = deferred()
  const heard: unknown[] = []
  const { runtime } = start(t, {
    work,
    negotiate: async ({ message }) => {
      heard.push(textOf(message))
      asked.resolve()
      await answer.promise
      return reply('hi')
    }
  })
  const first = runtime.sendMessage(say('a'), { key: keyOf('boat') })
  await asked.promise
  t.match(await runtime.findByKey('boat'), { isPending: true })
  const second = runtime.sendMessage(say('b'), { key: keyOf('boat') })
  const keyToCancel = { name: 'boat', storedMs: 1000, ...say('never mind') }
  const canceled = runtime.cancelTask({ id: 'boat' }, { keyToCancel })
  await until(async () => runtime.findByKey('boat'))
  t.strictSame(heard, ['a'])
  answer.resolve()
  t.match(messageIn(await second).contextId, messageIn(await first).contextId)
  t.strictSame(heard, ['a', 'b'])
  t.match(await canceled, {
    contextId: messageIn(await first).contextId,
    status: { state: 'TASK_STATE_CANCELED' },
    history: [{ parts: [{ text: 'never mind' }] }]
  })
  t.match(await runtime.findByKey('boat'), { taskId: (await canceled).id })
  t.match(await runtime.cancelTask({ id: 'boat' }, { keyToCancel }), await canceled)
  t.match(await refusal(runtime.cancelTask({ id: 'ship' }, { keyToCancel: { ...keyToCancel, name: 'ship' } })), {
    code: 'TaskNotFound'
  })
})
