import { getEventListeners } from 'node:events'
import t from 'tap'
import { createActor, fromCallback, fromObservable, fromTransition } from 'xstate'
import { z } from 'zod'
import { defaultLimits, limitsWith } from '../../runtime/access/limits.ts'
import { namedArtifacts } from '../../runtime/authoring/artifact-choices.ts'
import { artifactOf } from '../../runtime/authoring/checked-words.ts'
import { familyOf, hostActors, hostOf, type ActorHost } from '../../runtime/commits/actor-host.ts'
import { gated } from '../../runtime/commits/commit-gate.ts'
import { CommitPipeline, LOST_RACE } from '../../runtime/commits/commit-pipeline.ts'
import { factAtEventLimit } from '../../runtime/commits/task-ledger.ts'
import { Turn, type Effect } from '../../runtime/commits/turn.ts'
import { storedTraces } from '../../runtime/contexts/work-spans.ts'
import { artifact, data, dataOf, defineAgent, file, memoryStore, progress, setupWork, text, textOf as textOfParts } from '../../runtime/index.ts'
import { checkInputModes, inputModesOf } from '../../runtime/operations/send-message.ts'
import { systemClock, timestamp } from '../../runtime/ports/clock.ts'
import { randomIds } from '../../runtime/ports/ids.ts'
import { consoleLogger } from '../../runtime/ports/logger.ts'
import { afterTurns, afterThisTick } from '../../runtime/primitives/event-loop.ts'
import { jsonBytes, contextLoss, jsonLoss } from '../../runtime/primitives/json.ts'
import { ReleasingMap } from '../../runtime/primitives/collections.ts'
import type { Commit, Store, TaskEvent } from '../../runtime/store/store.ts'
import { applyEvent, applyMessage, ArtifactList, newTaskRecord, projectTask } from '../../runtime/store/task-record.ts'
import { TaskSubscriptions } from '../../runtime/streams/subscriptions.ts'
import { eachOf, TaskStream } from '../../runtime/streams/task-stream.ts'
import { TaskTail } from '../../runtime/streams/task-tail.ts'
import { isMachine } from '../../runtime/xstate/persisted-snapshot.ts'
import { echo } from '../fixtures/agents.ts'
import { collect, deferred, recordingLogger, rejection, rest, textOf, until, userMessage } from '../fixtures/runtime-helpers.ts'
import { TestClock } from '../fixtures/test-clock.ts'

const scope = { tenant: '', principal: 'anna' }
const key = { ...scope, contextId: 'c' }

function event(generation: number, state: 'TASK_STATE_WORKING' | 'TASK_STATE_COMPLETED' = 'TASK_STATE_WORKING', taskId = 't'): TaskEvent {
  return { taskId, generation, update: { statusUpdate: { taskId, contextId: 'c', status: { state } } } }
}

await t.test('a list of artifacts has each once, in order of first appearance', async t => {
  for (const count of [1, 8, 9, 30]) {
    const list = new ArtifactList()
    for (const round of ['old', 'new']) for (let n = 1; n <= count; n += 1) list.set({ artifactId: `a${n}`, parts: [{ text: `${round} ${n}` }] })
    t.strictSame(Array.from(list, textOfParts), Array.from({ length: count }, (_, n) => `new ${n + 1}`))
    t.equal(list.get(`a${count}`), [...list].at(-1))
    t.equal(list.get('none'), undefined)
  }
})

await t.test('a table keeps its entries while others are added and removed', async t => {
  const table = new ReleasingMap<{ readonly n: number }>()
  table.set('stays', { n: 0 })
  for (let n = 1; n <= 1000; n += 1) {
    table.set(`${n}`, { n })
    table.delete(`${n}`)
    table.delete('never there')
  }
  t.strictSame([table.size, table.get('stays'), table.entries()], [1, { n: 0 }, [['stays', { n: 0 }]]])
})

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
  const ends = ({ update }: TaskEvent) => 'statusUpdate' in update && update.statusUpdate.status.state === 'TASK_STATE_COMPLETED'
  const tailed = (log: TaskEvent[] = [], limit = 2, signal?: AbortSignal) => {
    const feeds = new TaskSubscriptions()
    const reads: number[] = []
    const store: Store = { ...memoryStore(), readEvents: async (_, __, after, most) => (reads.push(after), log.filter(({ generation }) => generation > after).slice(0, most)) }
    const tail = new TaskTail({ feeds, store, limits: { bufferedEvents: limit } }, scope, 't', { signal }).until(ends)
    const tell = (...events: TaskEvent[]) => {
      log.push(...events)
      feeds.publish('t', events)
    }
    return { feeds, tail, tell, reads, log }
  }
  const generations = (events: TaskEvent[]) => events.map(({ generation }) => generation)

  await t.test('yields events as they arrive, without reading the log', async t => {
    const { tail, tell, reads, feeds } = tailed()
    const reading = collect(told(tail))
    for (const n of [1, 2, 3]) {
      tell(event(n))
      await rest()
    }
    tell(event(4, 'TASK_STATE_COMPLETED'))
    t.strictSame(generations(await reading), [1, 2, 3, 4])
    t.strictSame(reads, [])
    t.equal(feeds.size, 0)
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
    const { tail, tell, reads, feeds } = tailed()
    feeds.publish('t', [event(3)])
    const reading = collect(told(tail))
    await until(() => reads.length === 1)
    tell(event(1, 'TASK_STATE_COMPLETED'))
    t.strictSame(generations(await reading), [1])
  })

  await t.test("ends without an error, and removes its listener, at its signal or its reader's end", async t => {
    for (const aborts of [true, false]) {
      const stop = new AbortController()
      const { tail, tell, feeds } = tailed([], 2, stop.signal)
      tell(event(1))
      const reading = taken(tail).then(() => taken(tail))
      await rest()
      if (aborts) stop.abort()
      else tail.end()
      t.equal(await reading, undefined)
      tell(event(2))
      t.equal(await taken(tail), undefined)
      tail.end()
      t.equal(feeds.size, 0)
      t.equal(getEventListeners(stop.signal, 'abort').length, 0)
    }
  })

  await t.test('delivers events at once, and buffered ones to a busy reader', async t => {
    const { tail, tell, feeds, reads } = tailed([], 10)
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
    t.equal(feeds.size, 0)
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
      const { tail, tell, feeds } = tailed([], 10)
      if (early) tell(event(1))
      const reading = rejection(tail.each(() => {
        throw new Error('blind')
      }))
      await rest()
      if (!early) t.doesNotThrow(() => tell(event(1)))
      t.equal((await reading).message, 'blind')
      tail.end()
      t.equal(feeds.size, 0)
    }
  })

  await t.test('sends nothing more to a reader that has finished', async t => {
    for (const early of [true, false]) {
      const { tail, tell, feeds } = tailed([], 10)
      if (early) tell(event(1), event(2), event(3))
      const seen: number[] = []
      const reading = tail.each(({ generation }) => (seen.push(generation) === 2 ? false : undefined))
      await rest()
      if (!early) tell(event(1), event(2), event(3))
      await reading
      tell(event(4))
      t.strictSame([seen, feeds.size], [[1, 2], 0])
    }
  })

  await t.test('ends with its signal while it is read', async t => {
    const stop = new AbortController()
    const { tail, tell, feeds } = tailed([], 2, stop.signal)
    const seen: number[] = []
    const reading = tail.each(({ generation }) => void seen.push(generation))
    tell(event(1))
    stop.abort()
    await reading
    tell(event(2))
    t.strictSame([seen, feeds.size], [[1], 0])
  })

  await t.test('ends with the error of the closed feed', async t => {
    const { tail, feeds } = tailed()
    const reading = rejection(taken(tail))
    const following = tailed()
    const seeing = rejection(following.tail.each(() => undefined))
    feeds.close(new Error('closing'))
    following.feeds.close(new Error('closing, too'))
    t.equal((await reading).message, 'closing')
    t.equal((await seeing).message, 'closing, too')
    t.equal(feeds.size, 0)
  })

  await t.test('ends with the error of an unreadable log', async t => {
    const { tail, feeds } = tailed()
    const broken = new TaskTail({ feeds, store: { ...memoryStore(), readEvents: () => Promise.reject(new Error('disk')) }, limits: { bufferedEvents: 1 } }, scope, 't')
    feeds.publish('t', [event(2)])
    t.equal((await rejection(taken(broken))).message, 'disk')
    broken.end()
    tail.end()
    t.equal(feeds.size, 0)
  })
})

await t.test('a consumed stream ends with its reader, and maps its errors like its steps', async t => {
  const first = { message: { messageId: 'm', role: 'ROLE_AGENT' as const, parts: [{ text: 'hello' }] } }
  const failure = (error: unknown) => new Error('for its client', { cause: error })
  const tail = () => new TaskTail({ feeds: new TaskSubscriptions(), store: memoryStore(), limits: { bufferedEvents: 2 } }, scope, 't')
  for (const enough of [true, false]) {
    const following = { tail: tail(), call: { reliable: false, numbered: undefined } }
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
  const feeds = new TaskSubscriptions()
  const heard: string[] = []
  const listener = (name: string) => ({ scope: { tenant: '', principal: 'anna' }, told: (events: readonly TaskEvent[]) => void heard.push(`${name} ${events.length}`), advanced: () => {}, closed: () => void heard.push(`${name} closed`) })
  const [one, two] = [feeds.listen('t', listener('one')), feeds.listen('t', listener('two'))]
  const other = feeds.listen('u', listener('other'))
  feeds.publish('t', [event(1)])
  one()
  one()
  feeds.publish('t', [event(2), event(3)])
  feeds.publish('nobody', [event(1)])
  feeds.close(new Error('x'))
  t.strictSame(heard, ['one 1', 'two 1', 'two 2', 'two closed', 'other closed'])
  two()
  other()
  t.equal(feeds.size, 0)
})

await t.test('a commit pipeline', async t => {
  const piped = (commit: Store['commit'] = async () => true) => {
    const told: Turn[] = []
    const ran: Effect[] = []
    const broke: unknown[] = []
    const settled: number[] = []
    let number = 0
    const commitOf = (turn: Turn): Commit | undefined => (turn.log.length > 0 ? ({ key, expected: number++, atMs: 0, snapshot: '', tasks: [], log: turn.log, journal: [], sends: [], webhooks: [] }) : undefined)
    const store: Store = { ...memoryStore(), commit }
    return { pipeline: new CommitPipeline(store, { commitOf, tell: turn => void told.push(turn), run: effect => void ran.push(effect), rested: () => void settled.push(told.length), broke: error => void broke.push(error) }), told, ran, broke, settled }
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
    turn.waiting = [{ told: () => void (pipeline.turn.log = [event(3)]), failed: () => {} }]
    await rest()
    t.strictSame(settled, [2, 4])
  })

  await t.test('runs effects in order after informing waiting calls', async t => {
    const { pipeline, ran } = piped()
    const { turn } = pipeline
    const order: string[] = []
    turn.waiting = [{ told: () => void order.push(`told, ${ran.length} ran`), failed: () => {} }]
    turn.effects = [{ taskId: 's', run: () => {} }, { taskId: 't', run: () => {} }]
    await rest()
    t.strictSame(order, ['told, 0 ran'])
    t.strictSame(ran, turn.effects)
  })

  await t.test('that has ended tells nothing and opens no turn, and may end twice', async t => {
    const gate = deferred<boolean>()
    const { pipeline, told, broke } = piped(() => gate.promise)
    const heard: unknown[] = []
    const waiting = { told: () => void heard.push('told'), failed: (error: unknown) => void heard.push(error) }
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
  })

  await t.test('breaks once with the first failure, and all later turns fail', async t => {
    for (const [commit, is] of [[async () => false, (error: unknown) => error === LOST_RACE], [() => Promise.reject(new Error('disk')), (error: unknown) => error instanceof Error]] as const) {
      const { pipeline, told, broke } = piped(commit)
      const failed: unknown[] = []
      for (const n of [1, 2]) {
        pipeline.turn.log = [event(n)]
        pipeline.turn.waiting = [{ told: () => {}, failed: error => void failed.push(error) }]
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

await t.test('a turn returns its events by task', async t => {
  const turn = new Turn()
  const [a1, b1, a2] = [event(1, undefined, 'a'), event(1, undefined, 'b'), event(2, undefined, 'a')]
  turn.log = [{ message: userMessage('x') }, a1, b1, { message: userMessage('y'), taskId: 'a', generation: 1 }, a2]
  t.strictSame([turn.eventsOf('a'), turn.eventsOf('b'), turn.eventsOf('c')], [[a1, a2], [b1], []])
})

await t.test('a projection is a copy for the caller, and counts from the newest', async t => {
  const record = newTaskRecord(key, 't')
  t.strictSame(projectTask(record), { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' } }, generation: 0 })
  for (const word of ['a', 'b', 'c']) applyMessage(record, { message: userMessage(word), taskId: 't', generation: 0 })
  applyEvent(record, { taskId: 't', generation: 1, update: { artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'x', parts: [text('1')] } } } })
  const { task } = projectTask(record)
  task.artifacts?.[0]?.parts.push(text('spoilt'))
  task.history?.pop()
  t.strictSame(projectTask(record).task.artifacts?.map(textOf), ['1'])
  t.strictSame(projectTask(record, { historyLength: 2, artifacts: false }).task.history?.map(textOf), ['b', 'c'])
  t.equal(projectTask(record, { artifacts: false }).task.artifacts, undefined)
  t.equal(projectTask(record, { historyLength: 0 }).task.history, undefined)
})

await t.test('part metadata names artifacts in two forms, and anything else names none', async t => {
  const named = (...metadata: (Record<string, unknown> | undefined)[]) => namedArtifacts({ ...userMessage(''), parts: metadata.map(each => ({ text: '', ...(each && { metadata: each }) })) })
  t.strictSame(named({ taskId: 't', artifactId: 'a', extra: 1 }), [{ taskId: 't', artifactId: 'a' }])
  t.strictSame(named({ referenceArtifacts: [{ taskId: 't', artifactId: 'a' }, null, 'x', { taskId: 't' }, { taskId: 1, artifactId: 'a' }, { taskId: 't', artifactId: 2 }] }), [{ taskId: 't', artifactId: 'a' }])
  t.strictSame(named({ referenceArtifacts: 'x', taskId: 't', artifactId: 'a' }, undefined, {}), [{ taskId: 't', artifactId: 'a' }])
  t.strictSame(named({ taskId: 't' }, { artifactId: 'a' }, { referenceArtifacts: [] }), [])
})

await t.test('input modes are compared without case and parameters, with the agent’s wildcards', async t => {
  const skill = (inputModes?: string[]) => ({ id: 's', name: 's', description: '', tags: [], ...(inputModes && { inputModes }) })
  const modes = inputModesOf({ defaultInputModes: ['Text/Plain; charset=utf-8'], skills: [skill(), skill(['image/*'])] })
  t.strictSame([...modes], ['text/plain', 'image/*'])
  const check = (mediaType: string | undefined, of = modes) => () => checkInputModes({ ...userMessage(''), parts: [{ text: '', ...(mediaType !== undefined && { mediaType }) }] }, of)
  for (const taken of [undefined, 'text/plain', 'IMAGE/PNG ; q=1', 'image/svg+xml']) t.doesNotThrow(check(taken))
  for (const refused of ['text/html', '', 'imagery/png']) t.throws(check(refused), { code: 'ContentTypeNotSupported' })
  t.doesNotThrow(check('anything/else', new Set(['*/*'])))
})

await t.test('values that JSON loses are detected at any depth, unless they define toJSON', async t => {
  class Ticket {
    readonly day = new Date(0)
  }
  const shared: Record<string, unknown> = { list: [] }
  shared['self'] = shared
  const actor = createActor(fromTransition(() => 0, 0))
  for (const kept of [1, null, 'x', new URL('http://a.example/'), { actor }, shared, Object.create(null), { toJSON: () => new Map() }]) t.equal(jsonLoss(kept, 'it'), undefined)
  t.equal(jsonLoss({ ticket: new Ticket() }, 'it'), 'it.ticket.day is a Date, which JSON does not keep. Write a text: date.toISOString().')
  t.equal(jsonLoss([shared, { ...shared, set: new Set() }], 'it'), 'it[1].set is a Set, which JSON does not keep. Write a list: [...set].')
  const before = { old: new Map(), same: 1 }
  t.equal(contextLoss({ ...before, same: 2 }, before), undefined, 'only values that a step changed are checked')
  t.match(contextLoss({ ...before, same: /x/ }, before), 'context.same is a RegExp')
  t.equal(contextLoss(undefined, undefined), undefined)
})

await t.test('words', async t => {
  t.strictSame(text('x'), { text: 'x' })
  t.strictSame(data(null), { data: null })
  t.strictSame(file(new Uint8Array([1, 2, 3]).subarray(1)), { raw: 'AgM=' })
  t.strictSame(file(new Uint8Array(), { filename: 'f', mediaType: 'image/png' }), { raw: '', filename: 'f', mediaType: 'image/png' })
  t.equal(textOfParts({ parts: [text('a'), data(1), text('b')] }), 'a\nb')
  const promised = Promise.resolve({ parts: [] })
  t.throws(() => textOfParts(promised as never), new TypeError('textOf takes a message or an artifact, not a promise. Await it: textOf(await …).'))
  t.throws(() => dataOf(promised as never, z.string()), new TypeError('dataOf takes a message or an artifact, not a promise. Await it: dataOf(await …).'))
  t.throws(() => textOfParts('x' as never), new TypeError('textOf takes a message or an artifact, not a string. A task has them in status.message, history and artifacts.'))
  t.throws(() => textOfParts({ id: 'a task' } as never), { name: 'TypeError', message: /^textOf takes a message or an artifact, not an object/ })
  t.strictSame(progress(), { type: 'progress' })
  t.strictSame(progress(''), { type: 'progress', message: '' })
  t.strictSame(artifact('x', { append: true, lastChunk: false }), { type: 'artifact', artifact: 'x', append: true, lastChunk: false })
})

await t.test('an agent is validated when it is defined', async t => {
  const card = { name: 'A' }
  const chart = setupWork({}).createMachine({ initial: 'a', states: { a: { type: 'final' } } })

  await t.test('with defaults in its description, and the given members', async t => {
    t.strictSame(defineAgent({ card, work: echo }).card, {
      name: 'A', description: '', version: '1.0.0', defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'], skills: []
    })
    t.match(defineAgent({ card: { ...card, version: '2', description: 'd' }, work: chart }).card, { version: '2', description: 'd' })
  })

  await t.test('with a TypeError for invalid members that says what to write', async t => {
    const inline = fromCallback(() => {})
    const nested = chart.provide({})
    const withConfig = (config: object) => setupWork({}).createMachine({ id: 'chart', initial: 'a', ...config } as never)
    const bad: [definition: object, says: RegExp][] = [
      [{ card }, /needs work, negotiate or both/],
      [{ card, work: 'x' }, /work has to be an async function, an async generator, or a statechart/],
      [{ card, work: {} }, /work has to be/],
      [{ card, work: inline }, /work has to be/],
      [{ card, work: function* () {} }, /work has to be/],
      [{ card, work: nested, negotiate: 'x' }, /negotiate has to be a function/],
      [{ card: { name: '' }, work: echo }, /card\.name/],
      [{ card: {}, work: echo }, /card\.name/],
      [{ card: { ...card, skills: [{ id: 's' }] }, work: echo }, /card\.skills\[0\]\.name/],
      [{ card, work: withConfig({ invoke: { src: inline }, states: { a: {} } }) }, /The state chart invokes logic without a name/],
      [{ card, work: withConfig({ states: { a: { initial: 'b', states: { b: { invoke: [{ src: 'x' }, { src: inline }] } } } } }) }, /The state chart\.a\.b invokes/]
    ]
    for (const [definition, says] of bad) t.throws(() => defineAgent(definition as never), { name: 'TypeError', message: says })
    t.doesNotThrow(() => defineAgent({ card, negotiate: () => ({ type: 'accepted' }) }))
  })
})

await t.test('the defaults are the system clock, random ids and the console', async t => {
  const before = Date.now()
  t.ok(systemClock.now() >= before)
  const fired = deferred()
  const never = systemClock.setTimeout(() => t.fail('was cleared'), 0)
  systemClock.clearTimeout(never)
  systemClock.setTimeout(fired.resolve, 0)
  await fired.promise
  t.match(timestamp(systemClock), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  const many = Array.from({ length: 10_000 }, () => randomIds())
  t.equal(new Set(many).size, many.length)
  t.ok(many.every(id => /^[0-9A-Za-z]{22}$/.test(id)), 'each has 22 letters and digits')
  t.equal(new Set(many.join('')).size, 62, 'all letters and digits occur')
  for (const level of ['warn', 'error'] as const) {
    const written = t.capture(console, level, () => {})
    consoleLogger[level]('it happened', { taskId: 't' })
    t.strictSame(written.args(), [['taskchart: it happened', { taskId: 't' }]])
  }
})

await t.test('a test clock fires timers in order, including those set meanwhile', async t => {
  const clock = new TestClock('2026-01-01T00:00:00.000Z')
  const fired: string[] = []
  const note = (name: string) => () => void fired.push(`${name}@${clock.now() - Date.parse('2026-01-01T00:00:00.000Z')}`)
  clock.setTimeout(note('late'), 100)
  clock.setTimeout(() => {
    note('first')()
    clock.setTimeout(note('chained'), 30)
  }, 50)
  const cleared = clock.setTimeout(note('never'), 60)
  clock.clearTimeout(cleared)
  clock.setTimeout(note('far'), 101)
  clock.increment(100)
  t.strictSame(fired, ['first@50', 'chained@80', 'late@100'])
  t.equal(clock.pending, 1)
})

await t.test('runtime logic runs only in a context of the runtime', async t => {
  const actor = createActor(fromCallback(() => {}))
  t.throws(() => hostOf(actor.system), { name: 'TypeError', message: /runs only in a context/ })
  t.equal(familyOf(actor), actor.id)
})

await t.test('leaf logic without a start, and observing logic, wait for the commit as promises do', async t => {
  const held: Effect[] = []
  const host = { key, noteMove: () => {}, afterCommit: (effect: Effect) => void held.push(effect), logger: recordingLogger().logger } as unknown as ActorHost
  const count = gated(fromTransition((n: number, e: { type: string }) => (e.type === 'add' ? n + 1 : n), 0))
  t.notOk(isMachine(count))
  const counter = createActor(count)
  hostActors(counter.system, host)
  counter.start()
  counter.send({ type: 'add' })
  t.match(counter.getSnapshot(), { context: 1 })
  let subscribed = 0
  const ticks = createActor(gated(fromObservable(() => ({ subscribe: () => ((subscribed += 1), { unsubscribe: () => {} }) }))))
  hostActors(ticks.system, host)
  ticks.start()
  t.equal(subscribed, 0)
  for (const effect of held.splice(0)) effect.run()
  t.equal(subscribed, 1)
  ticks.stop()
  for (const effect of held.splice(0)) effect.run()
})

await t.test('a limit that is not above 0 is refused at once, by its name', t => {
  t.same(limitsWith(), defaultLimits)
  t.equal(limitsWith({ jsonDepth: 3 }).jsonDepth, 3)
  t.throws(() => limitsWith({ messageByte: 3 } as never), { name: 'TypeError', message: 'limits has no messageByte. Is messageBytes meant?' })
  t.throws(() => limitsWith({ size: 3 } as never), { name: 'TypeError', message: /^limits has no size\. There are tasksPerContext, eventsPerTask, / })
  for (const wrong of [0, -1, NaN]) t.throws(() => limitsWith({ messageBytes: wrong }), { name: 'RangeError', message: /limits\.messageBytes has to be a number above 0/ })
  t.end()
})

await t.test('the size of a value is about that of its JSON text', async t => {
  for (const value of ['', 'é€😀', null, true, 123, [], {}, { text: 'x'.repeat(1000) }, { a: [{ b: 'c' }, 'd', null], metadata: { e: { f: 'g' } } }]) {
    const exact = Buffer.byteLength(JSON.stringify(value))
    t.ok(Math.abs(jsonBytes(value) - exact) <= 4 + exact / 2, `${JSON.stringify(value).slice(0, 40)}: ${jsonBytes(value)} for ${exact}`)
  }
  let deep: unknown = 'end'
  for (let depth = 0; depth < 100_000; depth += 1) deep = [deep]
  t.ok(jsonBytes(deep) > 100_000, 'at any depth')
})

await t.test('a task at its limit of events sends only its end; completion becomes failure', async t => {
  t.equal(factAtEventLimit({ type: 'artifact.produced', artifact: { parts: [] } }, 'why', true), undefined)
  for (const state of ['TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'] as const) t.equal(factAtEventLimit({ type: 'status.changed', state }, 'why', true), undefined)
  for (const state of ['TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED'] as const) {
    const fact = { type: 'status.changed', state } as const
    t.equal(factAtEventLimit(fact, 'why', true), fact)
  }
  t.strictSame(factAtEventLimit({ type: 'status.changed', state: 'TASK_STATE_COMPLETED', message: { parts: [{ text: 'done' }] } }, 'why', true), {
    type: 'status.changed', state: 'TASK_STATE_FAILED', message: { parts: [{ text: 'why' }] }
  })
  t.strictSame(factAtEventLimit({ type: 'status.changed', state: 'TASK_STATE_REJECTED', message: { parts: [{ text: 'too long' }] } }, 'why', false), {
    type: 'status.changed', state: 'TASK_STATE_REJECTED', message: { parts: [{ text: 'why' }] }
  }, 'without room also the words of another end')
})

await t.test('a callback after some turns waits only while others arrive', async t => {
  for (const [company, waited] of [[0, 2], [2, 3], [9, 5]] as const) {
    let turns = 0
    const called: number[] = []
    afterTurns(5, () => called.push(turns))
    while (called.length === 0) {
      if (turns < company) afterThisTick(() => {})
      await new Promise(resolve => setImmediate(resolve))
      turns += 1
    }
    t.equal(turns, waited, `${company} turns with others`)
  }
})

await t.test('callbacks for the end of a turn run in order, and nested ones later', async t => {
  const called: string[] = []
  const ended = new Promise<void>(resolve => afterTurns(3, resolve))
  afterTurns(2, () => called.push('second turn'))
  afterThisTick(() => {
    called.push('first')
    afterThisTick(() => called.push('of the first'))
  })
  afterThisTick(() => called.push('after it'))
  t.strictSame(called, [])
  await ended
  t.strictSame(called, ['first', 'after it', 'second turn', 'of the first'])
  await new Promise<void>(afterThisTick)
  t.equal(called.length, 4, 'each once')
})

await t.test("an agent's messages have the JSON limits of clients, and toJSON results are JSON", async t => {
  const nothing = { toJSON: () => {} } as unknown as Record<string, never>
  const text = { toJSON: () => 'x' } as unknown as Record<string, never>
  const nested = (depth: number): [] => JSON.parse('['.repeat(depth) + ']'.repeat(depth))
  const crowd = (members: number) => Object.fromEntries(Array.from({ length: members }, (_, i) => [`k${i}`, i]))
  const rows: [unknown, RegExp][] = [
    [{ data: nothing }, /artifact\.parts\[0\]\.data must be JSON: not a function, a symbol, or an object whose toJSON returns undefined/],
    [{ text: 'x', metadata: nothing }, /artifact\.parts\[0\]\.metadata must be JSON: not a function/],
    [{ text: 'x', metadata: text }, /artifact\.parts\[0\]\.metadata must be an object, also after its toJSON/],
    [{ parts: [{ text: 'x' }], metadata: nothing }, /artifact\.metadata must be JSON: not a function/],
    [{ data: nested(65) }, /artifact\.parts\[0\]\.data\S+ must not be nested more than 64 deep/],
    [{ data: crowd(10_001) }, /artifact\.parts\[0\]\.data must not bring the total to more than 10000 members/],
    [{ data: [1n] }, /artifact\.parts\[0\]\.data must be JSON: without cycles and BigInt/]
  ]
  for (const [words, message] of rows) t.throws(() => artifactOf(words), { code: 'InvalidAgentResponse', message })
  const good = { parts: [{ data: { at: new Date(0), deep: nested(63), long: 'x'.repeat(600_000) }, metadata: crowd(10_000) }] }
  t.strictSame(artifactOf(good), JSON.parse(JSON.stringify(good)))
})

await t.test("a task's trace is not read from a journal that is too large", async t => {
  const key = { tenant: '', principal: 'anonymous', contextId: 'c' }
  const store: Store = {
    ...memoryStore(),
    measureTasks: async () => [{ taskId: 'small', bytes: 0, journalBytes: 5 }, { taskId: 'large', bytes: 0, journalBytes: 6 }],
    readJournal: async (_, taskId) => [{ taskId, key: 'trace', value: { traceparent: taskId } }]
  }
  const traces = await storedTraces(store, key, { tasks: [{ taskId: 'small' }, { taskId: 'large' }] } as never, { restoredBytes: 5 })
  t.strictSame([...traces], [['small', { traceparent: 'small' }], ['large', {}]])
})
