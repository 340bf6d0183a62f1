import t, { type Test } from 'tap'
import { fromPromise, toPromise } from 'xstate'
import { z } from 'zod'
import { readRecord, replayTask, type TaskReplay } from '../../../runtime/contexts/task-replay.ts'
import {
  artifact,
  defineAgent,
  inputRequired,
  progress,
  setupWork,
  text,
  textOf,
  type AgentDefinition,
  type WorkFunction,
  type WorkGenerator,
  type WorkWords
} from '../../../runtime/index.ts'
import { anyone, failOnLooseErrors, lives, type Lives } from '../../fixtures/runtime/lives.ts'
import { open, rest, say, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

type Definition = Omit<AgentDefinition, 'card'>

const never = new Promise<never>(() => {})

const QUICK = { stuckMs: 20, outsideMs: 40 }

/** The agent that replays. */
const agentOf = (definition: Definition) => defineAgent({ card: { name: 'Test' }, ...definition })

/** Opens a task, with `then` after it, and gives a function that replays it with another agent. */
async function stored(t: Test, definition: Definition, then: (life: Lives, id: string) => Promise<unknown> = rest) {
  const life = lives(t, definition)
  const { id, contextId = '' } = await open(life.runtime)
  await rest()
  await then(life, id)
  await rest()
  const record = await readRecord(life.store, { ...anyone, contextId }, id)
  if (!record) throw new Error('the task has ended')
  const replay = (now: Definition, redacted: readonly string[] = []): Promise<TaskReplay> =>
    replayTask(agentOf(now), { ...record, redacted }, QUICK)
  const pointerOf = (name: string) => `/journal/${record.journal.findIndex(({ key }) => key === name)}/value`
  return Object.assign(replay, { pointerOf, record })
}

const answer = (words: string) => async (life: Lives, taskId: string) => {
  life.runtime.sendMessage(say(words, { taskId })).catch(() => {})
  await rest()
}

const order = (changes: { size?: string; step?: string; between?: boolean; name?: string } = {}): WorkGenerator =>
  async function* ({ step, sleep }) {
    yield progress('Looking.')
    if (changes.between) yield progress('Thinking.')
    const size = textOf(yield* inputRequired(changes.size ?? 'Which size?'))
    const price = await step(changes.step ?? 'price', () => size.length)
    yield artifact({ artifactId: 'cup', name: changes.name ?? 'cup', parts: [text(`${price}`)] })
    await sleep(1000)
    return { message: 'Served.' }
  }

await t.test('a generator comes to where its task stands', async t => {
  const atQuestion = await stored(t, { work: order() })
  t.strictSame(await atQuestion({ work: order() }), { outcome: 'same' })
  const atSleep = await stored(t, { work: order() }, answer('large'))
  t.strictSame(await atSleep({ work: order() }), { outcome: 'same' })
})

await t.test('a difference is found at its word, with both sides', async t => {
  const replay = await stored(t, { work: order() }, answer('large'))
  t.strictSame(await replay({ work: order({ between: true }) }), {
    outcome: 'diverges',
    difference: { at: 'word 2', was: 'question "Which size?"', is: 'progress "Thinking."' },
    consequence: 'fails'
  })
  t.strictSame(await replay({ work: order({ name: 'mug' }) }), {
    outcome: 'otherwise',
    difference: { at: 'word 3', was: 'artifact "cup" "5"', is: 'artifact "mug" "5"' }
  })
  t.strictSame(await replay({ work: async () => {} }), {
    outcome: 'diverges',
    difference: { at: 'word 1', was: 'progress "Looking."', is: 'end of the work' },
    consequence: 'fails'
  })
  t.strictSame(await replay({ work: async () => Promise.reject(new Error('no key')) }), {
    outcome: 'diverges',
    difference: { at: 'word 1', was: 'progress "Looking."', is: 'error "no key"' },
    consequence: 'fails'
  })
})

await t.test('a new step before where the task is really runs after a restart, so nothing is certain', async t => {
  const replay = await stored(t, { work: order() }, answer('large'))
  t.strictSame(await replay({ work: order({ step: 'cost' }) }), {
    outcome: 'cannot say',
    reason: 'it needs step cost, which the record does not have',
    difference: { at: 'word 3', was: 'artifact "cup" "5"', is: 'step cost' }
  })
  const aside: WorkFunction = async ({ step, emit }) => {
    void step('cost', () => 1)
    emit(artifact('x'))
  }
  t.match(await replay({ work: aside }), { outcome: 'diverges', difference: { at: 'word 1' }, consequence: 'fails' })
  const atStep: WorkFunction = async ({ step, emit }) => {
    emit(progress('Looking.'))
    await step('slow', () => never)
  }
  const running = await stored(t, { work: atStep })
  t.strictSame(await running({ work: atStep }), { outcome: 'same' }, 'a step that runs is where the task is')
  const before: WorkFunction = async ({ step, emit }) => {
    emit(progress('Looking.'))
    await step('more', () => 1)
    await step('slow', () => never)
  }
  t.strictSame(await running({ work: before }), { outcome: 'same' }, 'a new step there has all of the record before it')
})

await t.test('what a task does where it diverges: it fails, it ends, or it waits', async t => {
  const replay = await stored(t, { work: order() }, answer('large'))
  const short: WorkGenerator = async function* ({ step }) {
    yield progress('Looking.')
    const size = textOf(yield* inputRequired('Which size?'))
    await step('price', () => size.length)
  }
  t.strictSame(await replay({ work: short }), {
    outcome: 'diverges',
    difference: { at: 'word 3', was: 'artifact "cup" "5"', is: 'end of the work' },
    consequence: 'ends'
  })
  const catching =
    (end: () => Promise<unknown>): WorkFunction =>
    async ({ emit }) => {
      try {
        emit(artifact('x'))
      } catch {
        await end()
      }
    }
  const difference = { at: 'word 1', was: 'progress "Looking."', is: 'artifact "x"' }
  t.match(await replay({ work: catching(async () => {}) }), { outcome: 'diverges', difference, consequence: 'ends' })
  t.match(await replay({ work: catching(() => never) }), { outcome: 'diverges', difference, consequence: 'waits' })
  const atWork = await stored(t, { work: async () => never })
  t.strictSame(await atWork({ work: async () => Promise.reject(new Error('no key')) }), {
    outcome: 'diverges',
    difference: { at: 'where it stands', was: 'work', is: 'error "no key"' },
    consequence: 'fails'
  })
})

const anyAgent = { work: async () => {} }

await t.test('a work that is not there, or of another kind, is not restored', async t => {
  const replay = await stored(t, { work: order() })
  const chart = setupWork({}).createMachine({ id: 'c', initial: 'a', states: { a: {} } })
  t.match(await replay({ work: chart }), { outcome: 'not restored', reason: /was no statechart, and is one now/ })
  const failing = await stored(t, { work: order() }, answer('large'))
  t.match(await failing({ work: order(), recovery: 'fail' }), { outcome: 'not restored' })
  const atWork = await stored(t, { work: async () => never })
  t.match(await atWork({ work: anyAgent.work, recovery: 'fail' }), {
    outcome: 'not restored',
    reason: /this agent does not restart such work/
  })
})

await t.test('a work of an earlier version is replayed with that', async t => {
  const replay = await stored(t, { work: order(), version: '1' })
  t.match(await replay({ work: anyAgent.work, version: '2' }), { outcome: 'diverges' })
  t.strictSame(await replay({ work: anyAgent.work, version: '2', earlier: { '1': order() } }), { outcome: 'same' })
})

await t.test('the schema of the input and of a question is compared', async t => {
  const asking = (schema?: z.ZodType): WorkGenerator =>
    async function* () {
      yield* schema ? inputRequired('Size?', { schema }) : inputRequired('Size?')
    }
  const replay = await stored(t, { work: asking() })
  t.strictSame(await replay({ work: asking(z.enum(['a', 'b'])) }), {
    outcome: 'other answer',
    difference: { at: 'word 1', was: 'question "Size?"', is: 'question "Size?"' }
  })
  t.match(await replay({ work: asking(), input: z.object({ a: z.number() }) }), {
    outcome: 'not restored',
    reason: /does not match the agent's present input schema/
  })
  t.match(await replay({ work: asking(), input: z.object({ a: z.number() }) }, ['/messages/0/message/parts/0/text']), {
    outcome: 'cannot say',
    reason: /its input schema reads redacted values/
  })
})

await t.test('waits and calls that a replay does not start are no certainty', async t => {
  const hidden = await stored(t, { work: order() })
  const outside: WorkFunction = async () => never
  t.match(await hidden({ work: outside }), {
    outcome: 'cannot say',
    reason: 'its code waits for something that taskchart does not see'
  })
  const spawning: WorkFunction = async ({ spawn }) => {
    await toPromise(spawn(fromPromise(async () => 1)))
  }
  t.match(await hidden({ work: spawning }), {
    outcome: 'cannot say',
    reason: /the actor that it spawns/,
    difference: { at: 'word 1', is: 'wait for an actor that it spawned' }
  })
  t.match(await hidden({ work: async ({ completed }) => void (await completed('other')) }), {
    outcome: 'cannot say',
    reason: /task other/,
    difference: { is: 'wait for task other' }
  })
  t.match(await hidden({ work: async ({ readTask }) => void (await readTask('other')) }), { outcome: 'cannot say' })
  const quiet = await stored(t, { work: outside })
  t.strictSame(await quiet({ work: outside }), { outcome: 'same' }, 'the record has no more')
})

await t.test('a work that reads other tasks or messages is no certainty, unless there are none', async t => {
  const reading: WorkGenerator = async function* ({ history, earlierArtifacts, readTask, owner }) {
    const own = await readTask()
    yield progress(`${(await history()).length} ${earlierArtifacts.length} ${own.id.length > 0} ${owner.tenant}`)
    yield* inputRequired('Size?')
  }
  const alone = await stored(t, { work: reading })
  t.strictSame(await alone({ work: reading }), { outcome: 'same' })
  t.match(await alone({ work: reading }, ['/key/principal']), {
    outcome: 'cannot say',
    reason: /its owner and its own task/
  })
  const life = lives(t, { work: reading })
  const first = await open(life.runtime)
  await rest()
  const answered = await life.runtime.sendMessage(say('again', { contextId: String(first.contextId) }))
  const { id, contextId = '' } = taskIn(answered)
  const record = await readRecord(life.store, { ...anyone, contextId }, id)
  t.equal(record?.isAlone, false)
  t.match(record && (await replayTask(agentOf({ work: reading }), record)), {
    outcome: 'cannot say',
    reason: 'it needs other tasks and earlier messages, which the record does not have'
  })
  const store = life.store
  t.strictSame(
    record && (await replayTask(agentOf({ work: reading }), { ...record, store })),
    { outcome: 'same' },
    'a store has them'
  )
})

await t.test(
  'with a store a work reads the other tasks of its context, and waits for those that have not ended',
  async t => {
    const work: WorkGenerator = async function* ({ message, earlierArtifacts }) {
      if (textOf(message) === 'first') {
        yield artifact({ artifactId: 'a', parts: [text('bill')] })
        return
      }
      yield progress(earlierArtifacts.map(({ artifact }) => artifact.artifactId).join())
      yield* inputRequired('Size?')
    }
    const life = lives(t, { work })
    const first = taskIn(await life.runtime.sendMessage(say('first', { contextId: 'c' })))
    const { id } = taskIn(await life.runtime.sendMessage(say('second', { contextId: 'c' })))
    const record = await readRecord(life.store, { ...anyone, contextId: 'c' }, id)
    if (!record) throw new Error('the task has ended')
    const replay = (now: WorkFunction | WorkGenerator) =>
      replayTask(agentOf({ work: now }), { ...record, store: life.store }, QUICK)
    t.strictSame(await replay(work), { outcome: 'same' })
    const reading =
      (read: (given: Parameters<WorkFunction>[0]) => Promise<string>): WorkFunction =>
      async given => {
        given.emit(progress(await read(given)))
        await given.ask(inputRequired('Size?'))
      }
    const said = (is: string) => ({ outcome: 'otherwise', difference: { is: `progress ${JSON.stringify(is)}` } })
    t.match(await replay(reading(async ({ readTask }) => (await readTask(first.id)).id)), said(first.id))
    t.match(await replay(reading(async ({ completed }) => (await completed(first.id)).id)), said(first.id))
    t.match(await replay(reading(async ({ history }) => (await history()).map(textOf).join())), said('first'))
    t.match(await replay(reading(async ({ history }) => `${(await history(1)).length}`)), said('1'))
    for (const other of [id, 'other'])
      t.match(await replay(reading(async ({ completed }) => (await completed(other)).id)), {
        outcome: 'cannot say',
        reason: `it needs task ${other}, which the record does not have`,
        difference: { at: 'word 1', is: `wait for task ${other}` }
      })
  }
)

await t.test('an answer and a result that are redacted are no certainty once they are read', async t => {
  const work: WorkGenerator = async function* ({ message, step, terms, request }) {
    const size = yield* inputRequired('Size?')
    const price = await step('price', () => ({ euros: 3, list: [{ name: 'a' }], is: true }))
    if (terms ?? request.metadata) yield progress(textOf(message))
    yield artifact({ artifactId: 'a', parts: [text(textOf(size))] })
    yield* inputRequired(`${price.is}`)
  }
  const reads: WorkGenerator = async function* ({ step }) {
    yield* inputRequired('Size?')
    const price = await step('price', () => ({ euros: 3, list: [{ name: 'a' }], is: true }))
    yield artifact({ artifactId: 'a', parts: [text(price.list[0]?.name ?? '')] })
    yield progress('other')
  }
  const replay = await stored(t, { work }, answer('large'))
  const result = `${replay.pointerOf('step/price/1')}/result`
  t.strictSame(await replay({ work }), { outcome: 'same' })
  t.match(await replay({ work }, [`${replay.pointerOf('1')}/message/parts/0/text`]), {
    outcome: 'cannot say',
    reason: /the answer to word 1/
  })
  t.strictSame(await replay({ work }, [`${result}/euros`]), {
    outcome: 'cannot say',
    reason: 'it needs its terms and its request, which the record does not have'
  })
  t.match(await replay({ work: reads }, [`${result}/list/0/name`]), {
    outcome: 'cannot say',
    reason: /the result of step price/,
    difference: { at: 'word 3', was: 'question "true"', is: 'progress "other"' }
  })
  t.match(await replay({ work: reads }), { outcome: 'diverges' })
})

await t.test('patches, deadlines, waits and ended sleeps are those of the record', async t => {
  const work: WorkGenerator = async function* ({ patch, sleep, step }) {
    patch('tax')
    await sleep(10)
    await step('one', () => 1)
    await step('one', () => 2)
    yield* inputRequired('Size?', { deadlineMs: 100_000 })
  }
  const replay = await stored(t, { work }, async life => {
    await life.pass(10)
  })
  t.strictSame(await replay({ work }), { outcome: 'same' })
  t.match(
    await replay({
      work: async function* ({ sleep, step }) {
        await sleep(10)
        await step('one', () => 1)
        yield* inputRequired('Size?', { deadlineMs: 100_000 })
      }
    }),
    {
      outcome: 'diverges',
      difference: { at: 'step one, call 2', is: 'wait for an answer to word 2' }
    }
  )
  t.match(
    await replay({
      work: async function* () {
        yield progress('now')
      }
    }),
    {
      outcome: 'diverges',
      difference: { at: 'word 1', was: 'sleep', is: 'progress "now"' }
    }
  )
  t.match(
    await replay({
      work: async ({ sleep }) => {
        await sleep(1)
        await sleep(1)
      }
    }),
    {
      outcome: 'diverges',
      difference: { at: 'word 2', was: 'question "Size?"', is: 'sleep' }
    }
  )
})

await t.test('a sleep that is due ends while the record has more, and another does not', async t => {
  const work: WorkFunction = async ({ ask, sleep, emit }) => {
    await Promise.all([sleep(20), sleep(10)])
    emit(progress('Awake.'))
    await ask(inputRequired('Size?'))
  }
  const { record } = await stored(t, { work }, life => life.pass(30))
  const { taskId } = record.row
  const withSecond = (untilMs: number) => ({
    ...record,
    journal: [
      { taskId, key: '1', value: { untilMs: 1 } },
      { taskId, key: '2', value: { untilMs } }
    ]
  })
  t.strictSame(await replayTask(agentOf({ work }), withSecond(2), QUICK), { outcome: 'same' })
  t.match(await replayTask(agentOf({ work }), withSecond(Number.MAX_SAFE_INTEGER), QUICK), {
    outcome: 'diverges',
    difference: { at: 'word 3', was: 'progress "Awake."', is: 'sleep' },
    consequence: 'waits'
  })
})

await t.test('the texts of words, waits and errors', async t => {
  const long = 'a'.repeat(70)
  const said = await stored(t, {
    work: async function* () {
      yield progress()
      yield progress(long)
      yield artifact({ artifactId: 'a', parts: [{ data: 1 }] })
      yield* inputRequired('Size?')
    }
  })
  const ask: WorkGenerator = async function* () {
    yield* inputRequired('Other?')
  }
  t.match(await said({ work: ask }), { difference: { at: 'word 1', was: 'progress', is: 'question "Other?"' } })
  const two = (word: WorkWords): WorkGenerator =>
    async function* () {
      yield progress()
      yield word
    }
  t.match(await said({ work: two(artifact('x')) }), {
    difference: { was: `progress "${'a'.repeat(60)}…"`, is: 'artifact "x"' }
  })
  t.match(await said({ work: two(progress(long)) }), {
    difference: { at: 'word 3', was: 'artifact', is: 'end of the work' }
  })
  // A rejection need not be an error.
  t.match(await said({ work: () => Promise.reject('no') }), { difference: { is: 'error "no"' } })
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [text('large')] }
  const { row, events } = said.record
  const answered = {
    ...said.record,
    events: events.map(({ taskId, generation, update }) => ({ taskId, generation, update })),
    journal: [{ taskId: row.taskId, key: '1', value: { type: 'message.received', message } }]
  }
  t.match(await replayTask(agentOf({ work: async () => {} }), answered, QUICK), {
    difference: { at: 'word 1', was: 'question' }
  })
  t.strictSame(await replayTask(agentOf({ work: ask }), answered, QUICK), { outcome: 'same' })
  const waiting = {
    ...answered,
    journal: [{ taskId: row.taskId, key: 'needs/t2', value: { untilMs: Number.MAX_SAFE_INTEGER } }]
  }
  t.match(await replayTask(agentOf({ work: async () => {} }), waiting, QUICK), {
    difference: { at: 'wait for task t2', is: 'end of the work' }
  })
  const needs: WorkFunction = async ({ completed }) => void (await completed('t2'))
  t.strictSame(await replayTask(agentOf({ work: needs }), waiting, QUICK), { outcome: 'same' })
})

await t.test(
  'a new patch is not taken, sleeps end in the order of their times, and a whole redacted result counts',
  async t => {
    const work: WorkFunction = async ({ ask, sleep, step, emit }) => {
      await Promise.all([sleep(20), sleep(10)])
      emit(progress('Awake.'))
      await step('name', () => 'Ada')
      await ask(inputRequired('Size?'))
    }
    const replay = await stored(t, { work }, life => life.pass(30))
    const patched: WorkFunction = async given => {
      if (given.patch('new')) given.emit(progress('new'))
      await work(given)
    }
    t.strictSame(await replay({ work: patched }), { outcome: 'same' })
    t.match(await replay({ work }, [`${replay.pointerOf('step/name/1')}/result`]), {
      outcome: 'cannot say',
      reason: /step name/
    })
  }
)

await t.test('a task that refers to others is not alone', async t => {
  const life = lives(t, { work: order() })
  const [first, second] = [await open(life.runtime), await open(life.runtime)]
  for (const more of [
    { referenceTaskIds: [first.id] },
    { parts: [{ text: 'x', metadata: { taskId: second.id, artifactId: 'a' } }] }
  ]) {
    const { id, contextId = '' } = taskIn(
      await life.runtime.sendMessage(say('go', { contextId: `of ${Object.keys(more).join()}`, ...more }))
    )
    const record = await readRecord(life.store, { ...anyone, contextId }, id)
    if ('referenceTaskIds' in more) t.equal(record?.isAlone, false)
  }
})
