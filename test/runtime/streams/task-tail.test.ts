import { getEventListeners } from 'node:events'
import t from 'tap'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store, TaskEntry, TaskEvent } from '../../../runtime/store/store.ts'
import { TaskSubscriptions, TaskTail } from '../../../runtime/streams/task-tail.ts'
import { eachOf, TaskStream } from '../../../runtime/streams/task-stream.ts'
import { collect, deferred, rejection, rest, until } from '../../fixtures/runtime/runtime-helpers.ts'

const scope = { tenant: '', principal: 'anna' }

function event(
  generation: number,
  state: 'TASK_STATE_WORKING' | 'TASK_STATE_COMPLETED' = 'TASK_STATE_WORKING',
  taskId = 't'
): TaskEvent {
  return { taskId, generation, update: { statusUpdate: { taskId, contextId: 'c', status: { state } } } }
}

/** The next event of a tail, as soon as there is one; nothing when no more comes. */
async function taken(tail: TaskTail): Promise<TaskEvent | undefined> {
  for (;;) {
    const event = tail.take()
    const more = event ? undefined : tail.more()
    if (!more) return event
    await more
  }
}

/** What a tail tells until it ends. */
async function* told(tail: TaskTail): AsyncGenerator<TaskEvent, void, undefined> {
  for (let event = await taken(tail); event; event = await taken(tail)) yield event
}

await t.test('a tail', async t => {
  const ends = ({ update }: TaskEvent) =>
    'statusUpdate' in update && update.statusUpdate.status.state === 'TASK_STATE_COMPLETED'
  const tailed = (log: TaskEvent[] = [], limit = 2, signal?: AbortSignal) => {
    const subscriptions = new TaskSubscriptions()
    const reads: number[] = []
    const store: Store = {
      ...memoryStore(),
      readEvents: async (_, __, after, most) => (
        reads.push(after),
        log.filter(({ generation }) => generation > after).slice(0, most)
      )
    }
    const tail = new TaskTail({ subscriptions, store, limits: { bufferedEvents: limit } }, scope, 't', {
      signal
    }).until(ends)
    const tell = (...events: TaskEvent[]) => {
      log.push(...events)
      subscriptions.publish('t', events)
    }
    return { subscriptions, tail, tell, reads, log }
  }
  const generations = (events: TaskEvent[]) => events.map(({ generation }) => generation)

  await t.test('yields events as they arrive, without reading the log', async t => {
    const { tail, tell, reads, subscriptions } = tailed()
    const reading = collect(told(tail))
    for (const n of [1, 2, 3]) {
      tell(event(n))
      await rest()
    }
    tell(event(4, 'TASK_STATE_COMPLETED'))
    t.strictSame(generations(await reading), [1, 2, 3, 4])
    t.strictSame(reads, [])
    t.equal(subscriptions.size, 0)
  })

  await t.test("skips the reader's known events, whether sent before or after", async t => {
    const { tail, tell } = tailed([], 10)
    tell(event(1), event(2), event(3))
    const reading = collect(told(tail.startAfter(2)))
    tell(event(4, 'TASK_STATE_COMPLETED'))
    t.strictSame(generations(await reading), [3, 4])
  })

  await t.test('reads the events before its start from the log', async t => {
    const { tail, tell } = tailed([event(1), event(2), event(3)])
    const reading = collect(told(tail.startAfter(1)))
    tell(event(4), event(5, 'TASK_STATE_COMPLETED'))
    t.strictSame(generations(await reading), [2, 3, 4, 5])
  })

  await t.test('over its limit continues from the log, also while more events arrive', async t => {
    const { tail, tell, reads } = tailed()
    for (let n = 1; n <= 7; n += 1) tell(event(n))
    const heard: number[] = []
    for await (const { generation } of told(tail)) {
      heard.push(generation)
      if (generation === 4) tell(event(8), event(9))
      if (generation === 9) tell(event(10, 'TASK_STATE_COMPLETED'))
    }
    t.strictSame(heard, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    t.ok(reads.length > 0)
  })

  await t.test('waits for the next event when the log has none of the announced ones', async t => {
    const { tail, tell, reads, subscriptions } = tailed()
    subscriptions.publish('t', [event(3)])
    const reading = collect(told(tail))
    await until(() => reads.length === 1)
    tell(event(1, 'TASK_STATE_COMPLETED'))
    t.strictSame(generations(await reading), [1])
  })

  await t.test('delivers an event that is published while the log is read without a result', async t => {
    const subscriptions = new TaskSubscriptions()
    const log: TaskEvent[] = []
    const slow = deferred()
    const store: Store = {
      ...memoryStore(),
      readEvents: async (_, __, after) => {
        const found = log.filter(({ generation }) => generation > after)
        await slow.promise
        return found
      }
    }
    const tail = new TaskTail({ subscriptions, store, limits: { bufferedEvents: 2 } }, scope, 't').until(ends)
    const reading = collect(told(tail))
    subscriptions.publish('t', [event(1)])
    await rest()
    subscriptions.advance('t', 2)
    await rest()
    const last = event(3, 'TASK_STATE_COMPLETED')
    log.push(last)
    subscriptions.publish('t', [last])
    slow.resolve()
    t.strictSame(generations(await reading), [1, 3])
  })

  await t.test('passes messages over, in their place, also where the log was read', async t => {
    const { tail, tell, reads, subscriptions } = tailed([], 10)
    const message = (generation: number) => subscriptions.publish('t', [{ taskId: 't', generation }])
    const reading = collect(told(tail))
    message(1)
    tell(event(2))
    message(3)
    await rest()
    t.notOk(reads.length, 'they leave no gap')
    t.ok(tail.mayHaveMessages)
    tail.onGap(4)
    await until(() => reads.length === 1)
    tell(event(5, 'TASK_STATE_COMPLETED'))
    t.strictSame(generations(await reading), [2, 5])
  })

  await t.test('that ends with the next entry ends at a message, published or not', async t => {
    for (const isPublished of [true, false]) {
      const { tail, reads, subscriptions } = tailed()
      const ended = tail.untilNext().startAfter(2).drain()
      if (isPublished) subscriptions.publish('t', [{ taskId: 't', generation: 3 }])
      else subscriptions.advance('t', 3)
      await ended
      t.equal(reads.length, isPublished ? 0 : 1)
      t.equal(subscriptions.size, 0)
    }
  })

  await t.test("ends without an error, and removes its listener, at its signal or its reader's end", async t => {
    for (const aborts of [true, false]) {
      const stop = new AbortController()
      const { tail, tell, subscriptions } = tailed([], 2, stop.signal)
      tell(event(1))
      const reading = taken(tail).then(() => taken(tail))
      await rest()
      if (aborts) stop.abort()
      else tail.end()
      t.equal(await reading, undefined)
      tell(event(2))
      t.equal(await taken(tail), undefined)
      tail.end()
      t.equal(subscriptions.size, 0)
      t.equal(getEventListeners(stop.signal, 'abort').length, 0)
    }
  })

  await t.test('delivers events at once, and buffered ones to a busy reader', async t => {
    const { tail, tell, subscriptions, reads } = tailed([], 10)
    tell(event(1))
    const seen: number[] = []
    const gate = deferred()
    const reading = tail.each(({ generation }) => {
      seen.push(generation)
      return generation === 3 ? gate.promise : undefined
    })
    t.strictSame(seen, [1])
    tell(event(2))
    t.strictSame(seen, [1, 2], 'before anything else can happen')
    tell(event(3), event(4))
    tell(event(5))
    await rest()
    t.strictSame(seen, [1, 2, 3])
    gate.resolve()
    await rest()
    t.strictSame(seen, [1, 2, 3, 4, 5])
    tell(event(6), event(7, 'TASK_STATE_COMPLETED'))
    t.strictSame(seen, [1, 2, 3, 4, 5, 6, 7])
    await reading
    t.strictSame(reads, [])
    t.equal(subscriptions.size, 0)
  })

  await t.test('continues from the log for a reader that was busy too long', async t => {
    const { tail, tell, reads } = tailed([], 2)
    const seen: number[] = []
    const gate = deferred()
    const reading = tail.each(({ generation }) => {
      seen.push(generation)
      return generation === 1 ? gate.promise : undefined
    })
    for (let n = 1; n <= 6; n += 1) tell(event(n))
    gate.resolve()
    await until(() => seen.length === 6)
    tell(event(7))
    tell(event(8, 'TASK_STATE_COMPLETED'))
    await reading
    t.strictSame(seen, [1, 2, 3, 4, 5, 6, 7, 8])
    t.ok(reads.length > 0)
  })

  await t.test("reports a reader's error to the reader, not to the sender", async t => {
    for (const early of [true, false]) {
      const { tail, tell, subscriptions } = tailed([], 10)
      if (early) tell(event(1))
      const reading = rejection(
        tail.each(() => {
          throw new Error('blind')
        })
      )
      await rest()
      if (!early) t.doesNotThrow(() => tell(event(1)))
      t.equal((await reading).message, 'blind')
      tail.end()
      t.equal(subscriptions.size, 0)
    }
  })

  await t.test('sends nothing more to a reader that has finished', async t => {
    for (const early of [true, false]) {
      const { tail, tell, subscriptions } = tailed([], 10)
      if (early) tell(event(1), event(2), event(3))
      const seen: number[] = []
      const reading = tail.each(({ generation }) => (seen.push(generation) === 2 ? false : undefined))
      await rest()
      if (!early) tell(event(1), event(2), event(3))
      await reading
      tell(event(4))
      t.strictSame([seen, subscriptions.size], [[1, 2], 0])
    }
  })

  await t.test('ends with its signal while it is read', async t => {
    const stop = new AbortController()
    const { tail, tell, subscriptions } = tailed([], 2, stop.signal)
    const seen: number[] = []
    const reading = tail.each(({ generation }) => void seen.push(generation))
    tell(event(1))
    stop.abort()
    await reading
    tell(event(2))
    t.strictSame([seen, subscriptions.size], [[1], 0])
  })

  await t.test('ends with the error of the closed feed', async t => {
    const { tail, subscriptions } = tailed()
    const reading = rejection(taken(tail))
    const following = tailed()
    const seeing = rejection(following.tail.each(() => undefined))
    subscriptions.close(new Error('closing'))
    following.subscriptions.close(new Error('closing, too'))
    t.equal((await reading).message, 'closing')
    t.equal((await seeing).message, 'closing, too')
    t.equal(subscriptions.size, 0)
  })

  await t.test('ends with the error of an unreadable log', async t => {
    const { tail, subscriptions } = tailed()
    const broken = new TaskTail(
      {
        subscriptions,
        store: { ...memoryStore(), readEvents: () => Promise.reject(new Error('disk')) },
        limits: { bufferedEvents: 1 }
      },
      scope,
      't'
    )
    subscriptions.publish('t', [event(2)])
    t.equal((await rejection(taken(broken))).message, 'disk')
    broken.end()
    tail.end()
    t.equal(subscriptions.size, 0)
  })
})

await t.test('a consumed stream ends with its reader, and maps its errors like its steps', async t => {
  const first = { message: { messageId: 'm', role: 'ROLE_AGENT' as const, parts: [{ text: 'hello' }] } }
  const failure = (error: unknown) => new Error('for its client', { cause: error })
  const tail = () =>
    new TaskTail(
      { subscriptions: new TaskSubscriptions(), store: memoryStore(), limits: { bufferedEvents: 2 } },
      scope,
      't'
    )
  for (const enough of [true, false]) {
    const following = { tail: tail(), call: { version: '1.0' as const, reliable: false, onGeneration: undefined } }
    const stream = new TaskStream(() => (enough ? { first, following } : { first }), failure)
    const seen: object[] = []
    await eachOf(stream, told => (seen.push(told), enough ? false : undefined))
    t.strictSame(seen, [first])
    if (enough) t.equal(following.tail.more(), undefined, 'the listener is removed')
    following.tail.end()
  }
  const broken = new TaskStream(() => Promise.reject(new Error('closed')), failure)
  t.match(await rejection(eachOf(broken, () => undefined)), { message: 'for its client', cause: { message: 'closed' } })
})

await t.test('a feed informs only its listeners, and a listener may be removed twice', async t => {
  const subscriptions = new TaskSubscriptions()
  const heard: string[] = []
  const listener = (name: string) => ({
    scope: { tenant: '', principal: 'anna' },
    onEntries: (entries: readonly TaskEntry[]) => void heard.push(`${name} ${entries.length}`),
    onGap: () => {},
    onClosed: () => void heard.push(`${name} closed`)
  })
  const [one, two, three, other] = [listener('one'), listener('two'), listener('three'), listener('other')]
  for (const each of [one, two, three]) subscriptions.listen('t', each)
  subscriptions.listen('u', other)
  subscriptions.publish('t', [event(1)])
  for (const each of [one, one, three, three]) subscriptions.leave('t', each)
  subscriptions.leave('u', one)
  subscriptions.leave('nobody', one)
  subscriptions.publish('t', [event(2), event(3)])
  subscriptions.publish('nobody', [event(1)])
  subscriptions.close(new Error('x'))
  t.strictSame(heard, ['one 1', 'two 1', 'three 1', 'two 2', 'two closed', 'other closed'])
  subscriptions.leave('t', two)
  subscriptions.leave('u', other)
  t.equal(subscriptions.size, 0)
})
