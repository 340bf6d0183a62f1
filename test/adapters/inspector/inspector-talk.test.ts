import t from 'tap'
import { createActor, createMachine, emit } from 'xstate'
import { z } from 'zod'
import {
  ContextIndex,
  KNOWN_CONTEXTS,
  type ListedContext,
  TalkRecord
} from '../../../adapters/inspector/recorder/context-index.ts'
import { negotiate as negotiatePart, offerIn } from '../../../adapters/client/connect.ts'
import { accepted, declined, offer, reply, textOf } from '../../../runtime/authoring/words.ts'
import type { LiveActors } from '../../../runtime/contexts/observers.ts'
import { negotiation } from '../../../runtime/negotiation/negotiation.ts'
import { setupNegotiation } from '../../../runtime/negotiation/respond-chart.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { contextName, type Commit, type MessageRow } from '../../../runtime/store/store.ts'
import { statesOfValue } from '../../../runtime/xstate/persisted-snapshot.ts'
import { inspected } from '../../fixtures/pages/inspected-agent.ts'
import { rest, say, taskIn, userMessage } from '../../fixtures/runtime/runtime-helpers.ts'

const negotiate = negotiation({
  terms: z.object({ euros: z.number().meta({ title: 'Price' }), day: z.string() }),
  offerMs: 60_000,
  respond: ({ message }) => {
    if (textOf(message) === 'hello') return reply('Hello, token=secret.')
    return textOf(message) === 'no' ? declined('A pity.') : offer({ euros: 50, day: 'friday' })
  }
})

await t.test('contexts and their messages', async t => {
  await t.test('a context without a task is told, with what it is about and its standing offer', async t => {
    const { runtime, page } = await inspected(t, { negotiate, work: () => ({ artifact: 'Mown.' }) })
    const reader = await page()
    t.match((await reader.frame('hello')).agent.terms, { properties: { euros: { title: 'Price' } } })
    await runtime.sendMessage(say('hello', { contextId: 'c' }))
    const { rows } = await reader.frame('contexts', ({ rows }) => rows[0]?.title === 'hello')
    t.match(rows, [
      {
        contextId: 'c',
        owner: { tenant: '', principal: 'anonymous' },
        title: 'hello',
        openedMs: Number,
        changedMs: Number,
        offer: undefined
      }
    ])
    const answer = await runtime.sendMessage(say('Mow my lawn', { contextId: 'c' }))
    const made = 'message' in answer ? offerIn(answer.message) : undefined
    const {
      rows: [standing]
    } = await reader.frame('contexts', ({ rows }) => rows[0]?.offer !== undefined)
    t.match(standing, {
      title: 'hello',
      offer: { offerId: made?.offerId, expiresMs: Date.parse(made?.expiresAt ?? ''), states: [] }
    })
    await runtime.sendMessage({
      message: {
        ...userMessage(''),
        messageId: 'decline',
        contextId: 'c',
        parts: [negotiatePart({ decline: { offerId: made?.offerId ?? '' } })]
      }
    })
    await reader.frame(
      'contexts',
      ({ rows }) => rows[0] !== undefined && rows[0].offer === undefined,
      reader.frames.findIndex(frame => frame.type === 'contexts' && frame.rows[0]?.offer) + 1
    )
    await runtime.erase({ contextId: 'c' })
    t.strictSame((await reader.frame('contexts', ({ removed }) => removed.length > 0)).removed, ['c'])
  })

  await t.test("an offer of an author's chart is told with the states of that chart", async t => {
    const respond = setupNegotiation({}).createMachine({
      id: 'haggling',
      initial: 'opening',
      states: {
        opening: { on: { 'message.received': { target: 'bargaining', actions: emit(() => offer({ euros: 2 })) } } },
        bargaining: {
          initial: 'high',
          states: { high: {} },
          on: { 'message.received': { actions: emit(() => offer({ euros: 1 })) } }
        }
      }
    })
    const { runtime, page } = await inspected(t, {
      negotiate: negotiation({ terms: z.object({ euros: z.number() }), respond }),
      work: () => ({ artifact: 'Moved.' })
    })
    const reader = await page()
    t.match(
      (await reader.frame('hello')).charts.map(({ id }) => id),
      ['respond', 'negotiation', 'task', 'context']
    )
    await runtime.sendMessage(say('Move me', { contextId: 'c' }))
    const { rows } = await reader.frame('contexts', ({ rows }) => rows[0]?.offer !== undefined)
    t.strictSame(rows[0]?.offer?.states, ['haggling', 'haggling.bargaining', 'haggling.bargaining.high'])
    t.strictSame(statesOfValue(respond, 'sold'), [], 'a chart that has no such states any more has none')
  })

  await t.test(
    'a context that is in memory when the recording begins is told, with what it is about and its standing offer',
    async t => {
      const { runtime, page } = await inspected(t, { negotiate, work: () => ({ artifact: 'Mown.' }) })
      await runtime.sendMessage(say('hello', { contextId: 'c' }))
      await runtime.sendMessage(say('Mow my lawn', { contextId: 'd' }))
      const reader = await page()
      const {
        rows: [first]
      } = await reader.frame('contexts', ({ rows }) => rows.some(({ contextId }) => contextId === 'c'))
      t.match(first, { contextId: 'c', title: 'hello', openedMs: Number })
      const { rows } = await reader.frame('contexts', ({ rows }) => rows.some(({ contextId }) => contextId === 'd'))
      t.match(
        rows.find(({ contextId }) => contextId === 'd'),
        { title: 'Mow my lawn', offer: { expiresMs: Number } }
      )
      const { rows: again } = await (await page()).frame('contexts', ({ rows }) => rows.length > 1)
      t.equal(again.length, 2)
    }
  )

  await t.test('a task with agreed terms is called by them', async t => {
    const { runtime, page } = await inspected(t, { negotiate, work: () => ({ artifact: 'Mown.' }) })
    const answer = await runtime.sendMessage(say('Mow my lawn', { contextId: 'c' }))
    const made = 'message' in answer ? offerIn(answer.message) : undefined
    await runtime.sendMessage({
      message: {
        ...userMessage(''),
        messageId: 'accept',
        contextId: 'c',
        parts: [negotiatePart({ accept: { offerId: made?.offerId ?? '' } })]
      }
    })
    const stored = await (await page()).frame('tasks', ({ rows }) => rows.length > 0)
    t.equal(stored.rows[0]?.title, 'euros 50, day friday', 'one that is read from the store')
    const reader = await page()
    const next = await runtime.sendMessage(say('Again', { contextId: 'd' }))
    const again = 'message' in next ? offerIn(next.message) : undefined
    const task = taskIn(
      await runtime.sendMessage({
        message: {
          ...userMessage('Deal'),
          messageId: 'deal',
          contextId: 'd',
          parts: [{ text: 'Deal' }, negotiatePart({ accept: { offerId: again?.offerId ?? '' } })]
        }
      })
    )
    const { rows } = await reader.frame('tasks', ({ rows }) => rows.some(({ taskId }) => taskId === task.id))
    t.equal(
      rows.find(({ taskId }) => taskId === task.id)?.title,
      'Deal · euros 50, day friday',
      'and one that opens meanwhile'
    )
  })

  await t.test(
    'the messages of a watched context come in their order, whole without a task, and without secrets',
    async t => {
      const { runtime, page } = await inspected(t, {
        negotiate: ({ message }) => (textOf(message) === 'hello' ? reply('Hello, token=secret.') : accepted()),
        work: () => ({ artifact: 'Done.' })
      })
      await runtime.sendMessage(say('hello', { contextId: 'c' }))
      const task = taskIn(await runtime.sendMessage(say('work', { contextId: 'c' })))
      const reader = await page()
      await reader.frame('hello')
      reader.ask({ type: 'watch', contextId: 'c' })
      const { rows } = await reader.frame('talk')
      t.match(rows, [
        { message: { role: 'ROLE_USER', parts: [{ text: 'hello' }] } },
        { message: { role: 'ROLE_AGENT', parts: [{ text: 'Hello, token=[redacted]' }] } },
        { taskId: task.id, generation: 1 }
      ])
      t.equal(rows[2]?.message, undefined, 'a message of a task is in its history')
      t.equal(rows[0]?.atMs, undefined, 'its time was not seen')
      const file = { raw: Buffer.from('token=abc').toString('base64'), filename: 'a.txt' }
      await runtime.sendMessage({
        message: { ...userMessage('hello'), messageId: 'file', contextId: 'c', parts: [{ text: 'hello' }, file] }
      })
      const { rows: more } = await reader.frame('talk', ({ rows }) => rows[0]?.messageId === 'file')
      t.match(more[0], { atMs: Number, message: { parts: [{ text: 'hello' }, file] } }, 'a file stays as it is')
      const {
        rows: [row]
      } = await reader.frame('contexts', ({ rows }) => rows[0]?.title === 'hello')
      t.match(row, { contextId: 'c' }, 'its first message was read from the store')
    }
  )

  await t.test('messages that cannot be read are logged', async t => {
    const store = { ...memoryStore(), readMessages: () => Promise.reject(new Error('no disk')) }
    const { runtime, page, log } = await inspected(t, { negotiate: () => reply('Hello.') }, {}, { store })
    const reader = await page()
    await reader.frame('hello')
    reader.ask({ type: 'watch', contextId: 'c' })
    await runtime.sendMessage(say('hello', { contextId: 'c' }))
    await reader.frame('contexts', ({ rows }) => rows.length > 0)
    t.equal(reader.all('talk').length, 0)
    t.match(log, [{ message: 'the messages of a context could not be read' }])
  })
})

const key = { tenant: '', principal: 'ann', contextId: 'c' }

function commit(contextId: string, log: readonly MessageRow[], expected = 1): Commit {
  return {
    key: { ...key, contextId },
    expected,
    atMs: 5,
    snapshot: '',
    tasks: [],
    log,
    journal: [],
    sends: [],
    webhooks: []
  }
}

const root = createActor(createMachine({}))

function actorsOf(contextId: string): LiveActors {
  const own = { ...key, contextId }
  return { key: own, name: contextName(own), root, versionOf: () => '1' }
}

await t.test('the index of contexts', async t => {
  await t.test('is bounded, and reads the beginning of a context that it saw late', async t => {
    const changed: string[] = []
    const removed: string[] = []
    const troubles: unknown[] = []
    let isBroken = false
    const readMessages = async () => {
      if (isBroken) throw new Error('no disk')
      return [{ message: userMessage('the first') }]
    }
    const listener = {
      changedContext: ({ words }: ListedContext) => changed.push(words),
      removedContext: ({ key }: ListedContext) => removed.push(key.contextId),
      onMessages: () => {}
    }
    const index = new ContextIndex(value => value, listener)
    const committed = (...given: Parameters<typeof commit>) => index.committed(commit(...given), actorsOf(given[0]))
    committed('early', [{ message: userMessage('x') }], 0)
    committed('earlier', [])
    await index.readLive(1)
    const children = { bargaining: { getSnapshot: () => ({ context: { standing: { offerId: 'o' } } }) } }
    index.committed(commit('offer', []), { ...actorsOf('offer'), root: { getSnapshot: () => ({ children }) } as never })
    t.match(
      index.newest.map(context => index.rowOf(context)).find(({ contextId }) => contextId === 'offer'),
      {
        offer: { offerId: 'o', states: [] }
      }
    )
    index.erased({ tenant: '', principal: 'ann' })
    removed.length = 0
    changed.length = 0
    const live: LiveActors[] = []
    index.readFrom({
      live: { live, liveOf: () => undefined },
      readMessages,
      statesOf: () => [],
      troubled: error => troubles.push(error)
    })
    committed('c', [{ message: userMessage('a later one') }])
    await rest()
    t.strictSame(changed, ['', 'the first'])
    isBroken = true
    committed('d', [])
    await rest()
    t.match(troubles, [{ message: 'no disk' }])
    committed('d', [])
    committed('d', [{ message: userMessage('after all') }])
    t.strictSame(
      changed.slice(2),
      ['', '', 'after all'],
      'a context of which nothing could be read is called by its next message'
    )
    isBroken = false
    committed('gone', [])
    index.erased({ tenant: '', principal: 'ann', contextId: 'gone' })
    await rest()
    t.equal(changed.length, 6, 'nothing is told of an erased context')
    removed.length = 0
    isBroken = true
    live.push(actorsOf('e'))
    await index.readLive(7)
    t.equal(index.keyOf('e'), undefined, 'a context in memory that cannot be read is not told')
    for (let i = 0; i < KNOWN_CONTEXTS; i += 1) committed(`many-${i}`, [], 0)
    committed('last', [], 0)
    t.strictSame(removed, ['c', 'many-0', 'many-1'], 'one that has changed stays for another round')
    t.equal(index.newest.length, KNOWN_CONTEXTS)
    index.erased({ tenant: '', principal: 'ann', contextId: 'many-2' })
    index.erased({ tenant: '', principal: 'bob' })
    t.strictSame(removed, ['c', 'many-0', 'many-1', 'many-2'])
  })
})

await t.test('the messages for a page', async t => {
  await t.test('begin with those that are stored, each once, and leave out what is too large', async t => {
    const first = userMessage('first')
    const large = { ...userMessage(''), messageId: 'large', parts: [{ text: 'x'.repeat(2_000_000) }] }
    const record = new TalkRecord('c', {
      readMessages: async () => [{ message: first }, { message: large }],
      redact: value => value,
      timesOf: () => new Map([[first.messageId, 7]])
    })
    t.equal(record.take(), undefined, 'before they are read there are none')
    record.committed(commit('c', [{ message: first }, { message: userMessage('second'), taskId: 't' }]))
    await record.read(key)
    const taken = record.take()
    t.match(taken, [
      { messageId: first.messageId, atMs: 7 },
      { messageId: 'large', message: { parts: [{ text: /larger than 1 MB/ }] } },
      { taskId: 't', generation: 0 }
    ])
    t.equal(taken?.length, 3)
    t.equal(record.take(), undefined)
    record.committed(commit('c', [{ message: { ...first, messageId: 'third' } }]))
    t.match(record.take(), [{ messageId: 'third' }])
  })
})
