import t from 'tap'
import { and, type AnyStateMachine, not } from 'xstate'
import { z } from 'zod'
import { DefinitionWriter } from '../../../runtime/definitions/definition-writer.ts'
import { agentOutline, outlineText, parseOutline } from '../../../runtime/definitions/agent-outline.ts'
import { createRuntime, defineAgent, rejected, setupWork } from '../../../runtime/index.ts'
import { type StandardSchema, validateValue } from '../../../runtime/ports/standard-schema.ts'
import { createNode } from '../../../runtime/runtime.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { definitionOfSnapshot } from '../../../runtime/store/rows.ts'
import type { Store } from '../../../runtime/store/store.ts'
import type { WrittenState } from '../../../runtime/xstate/written-chart.ts'
import { anyone } from '../../fixtures/runtime/lives.ts'
import { recordingLogger, rest, say, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const question = (name: string): AnyStateMachine =>
  setupWork({}).createMachine({
    id: 'work',
    initial: name,
    states: {
      [name]: { tags: 'input-required', on: { 'message.received': 'done' } },
      done: { tags: 'input-required', on: { 'message.received': name } }
    }
  })

/** A store that counts the definitions that it gets, and refuses the first ones. */
function counting(refused = 0) {
  const written: string[] = []
  const inner = memoryStore()
  const store: Store = {
    ...inner,
    writeDefinition: async (digest, text, atMs) => {
      if (written.push(digest) <= refused) throw new Error('disk full')
      await inner.writeDefinition?.(digest, text, atMs)
    }
  }
  return { written, store }
}

const digestOf = async (store: Store, taskId: string) =>
  definitionOfSnapshot((await store.readSnapshot(anyone, taskId)) ?? '')

await t.test('a stored task names the definition of its agent, which is stored once', async t => {
  const { store, written } = counting()
  const agent = defineAgent({ card: { name: 'A' }, version: '1 "', work: question('a') })
  const runtime = createRuntime({ agent, store })
  t.teardown(() => runtime.close())
  const ids = [taskIn(await runtime.sendMessage(say('one'))).id, taskIn(await runtime.sendMessage(say('two'))).id]
  await runtime.sendMessage(say('on', { taskId: ids[1] ?? '' }))
  const digests = await Promise.all(ids.map(id => digestOf(store, id)))
  t.equal(new Set(digests).size, 1)
  t.strictSame(written, digests.slice(0, 1))
  const outline = parseOutline((await store.readDefinition?.(digests[0] ?? '')) ?? '')
  t.strictSame([outline.version, outline.work.kind, outline.modules], ['1 "', 'chart', undefined])
})

await t.test('the modules of an agent are part of its definition, if its file is known', async t => {
  const { store, written } = counting()
  const modules = { others: new Map([['b.ts', 'x']]), charts: ['a.ts'], chartText: 'y', packages: ['zod'] }
  const runtime = createNode({
    agent: defineAgent({ card: { name: 'A' }, work: question('a') }),
    store,
    localModules: () => ({ ...modules, readsOf: () => new Map() })
  })
  t.teardown(() => runtime.close())
  await runtime.sendMessage(say('one'))
  const outline = parseOutline((await store.readDefinition?.(written[0] ?? '')) ?? '')
  t.match(outline.modules, { charts: ['a.ts'], packages: ['zod'], others: { 'b.ts': /^[\w-]{22}$/ } })
})

await t.test('a task that goes on with earlier work names the definition of that', async t => {
  const { store, written } = counting()
  const [one, two] = [question('a'), question('b')]
  const first = createRuntime({ agent: defineAgent({ card: { name: 'A' }, version: '1', work: one }), store })
  const { id } = taskIn(await first.sendMessage(say('one')))
  const agent = defineAgent({ card: { name: 'A' }, version: '2', work: two, earlier: { '1': one } })
  const second = createRuntime({ agent, store: { ...store, close: async () => {} } })
  t.teardown(() => second.close())
  await second.sendMessage(say('two'))
  await second.sendMessage(say('on', { taskId: id }))
  const versions = await Promise.all(
    [...new Set(written)].map(async digest => parseOutline((await store.readDefinition?.(digest)) ?? '').version)
  )
  t.strictSame(versions.toSorted(), ['1', '2'])
  t.equal(parseOutline((await store.readDefinition?.((await digestOf(store, id)) ?? '')) ?? '').version, '1')
})

await t.test('a store without definitions goes on to work, and its tasks name none', async t => {
  const { writeDefinition: _, readDefinition: __, ...store } = memoryStore()
  const runtime = createRuntime({ agent: defineAgent({ card: { name: 'A' }, work: question('a') }), store })
  t.teardown(() => runtime.close())
  const { id } = taskIn(await runtime.sendMessage(say('one')))
  t.match(await store.readSnapshot(anyone, id), /^\{"format":1,"version":"[^"]*","status"/)
})

await t.test('a definition that the store refuses is logged, and stored a minute later', async t => {
  const { store, written } = counting(1)
  const { logger, log } = recordingLogger()
  const clock = new TestClock()
  const runtime = createRuntime({
    agent: defineAgent({ card: { name: 'A' }, work: question('a') }),
    store,
    logger,
    clock
  })
  t.teardown(() => runtime.close())
  await runtime.sendMessage(say('one'))
  await runtime.sendMessage(say('two'))
  t.strictSame(
    [log.map(({ message }) => message), written.length],
    [['the definition of this agent could not be stored'], 1]
  )
  clock.increment(60_000)
  await rest()
  t.strictSame([log.length, written.length], [1, 2])
  t.ok(await store.readDefinition?.(written[0] ?? ''))
})

await t.test('a definition that cannot be read, or is too large, ends no task', async t => {
  const large = (text: string) =>
    setupWork({}).createMachine({
      id: 'work',
      initial: 'a',
      states: {
        a: { tags: 'input-required', description: text, on: { 'message.received': 'b' } },
        b: { type: 'final' }
      }
    })
  const rows = {
    'the definition of this agent is too large to be stored, so no comparison can read it': {
      agent: defineAgent({ card: { name: 'A' }, work: large('x'.repeat(5_000_000)) })
    },
    'the definition of this agent cannot be read, so it is not stored': {
      agent: defineAgent({ card: { name: 'A' }, work: question('a') }),
      localModules: () => {
        throw new Error('the file is gone')
      }
    }
  }
  for (const [message, given] of Object.entries(rows)) {
    const { store, written } = counting()
    const { logger, log } = recordingLogger()
    const runtime = createNode({ ...given, store, logger })
    const { id } = taskIn(await runtime.sendMessage(say('one')))
    t.strictSame([log.map(one => one.message), written, await digestOf(store, id)], [[message], [], undefined])
    await runtime.close()
  }
})

await t.test('an outline of an agent is the same after it was stored', t => {
  const work = setupWork({}).createMachine({
    id: 'work',
    initial: 'a',
    states: {
      a: {
        tags: 'input-required',
        meta: { prompt: () => 'A?', schema: z.object({ n: z.number() }) },
        on: {
          'message.received': [
            { target: 'b', guard: { type: 'is', params: { of: [1], than: 2, by: null } } },
            { target: 'b', guard: { type: 'is', params: [1, () => 2] } },
            { target: 'b', guard: { type: 'is', params: 3 } },
            { target: 'b', guard: { type: 'is', params: () => ({}) } },
            { target: 'c', guard: and(['is', not(() => true)]) },
            { target: 'c', guard: () => false }
          ]
        }
      },
      b: { type: 'history', target: 'a' },
      c: { type: 'final' }
    }
  } as never) as unknown as AnyStateMachine
  const agents = [
    defineAgent({ card: { name: 'A' }, work }),
    defineAgent({ card: { name: 'A' }, work: async () => {} }),
    defineAgent({ card: { name: 'A' }, negotiate: () => rejected('no') })
  ]
  for (const agent of agents) {
    const text = outlineText(agentOutline(agent))
    t.equal(outlineText(parseOutline(text)), text)
  }
  t.throws(() => parseOutline('{"format":2}'), { code: 'InternalError', message: /in form 2, .* reads form 1/ })
  t.end()
})

await t.test('where a chart has code, its stored definition has code that decides nothing', t => {
  const work = setupWork({}).createMachine({
    id: 'work',
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        meta: { prompt: () => 'How many?', schema: z.number() },
        on: { 'message.received': { guard: () => false, target: 'done' } }
      },
      done: { type: 'final' }
    }
  })
  const outline = parseOutline(outlineText(agentOutline(defineAgent({ card: { name: 'A' }, work }))))
  const chart = outline.work.kind === 'chart' ? outline.work.chart.chart : undefined
  const asking = chart?.states.find(({ key }) => key === 'asking') as WrittenState
  const { prompt, schema } = asking.meta as { prompt: () => string; schema: StandardSchema<unknown> }
  const [guard] = asking.transitions.map(({ guard }) => guard as { run: () => boolean } | undefined)
  t.strictSame(
    [prompt(), validateValue(schema, 'not a number', 'answer'), guard?.run()],
    ['', { value: 'not a number' }, true]
  )
  t.end()
})

await t.test('a runtime that closes does not try again', async t => {
  const { store, written } = counting(9)
  const clock = new TestClock()
  const { logger } = recordingLogger()
  const agent = defineAgent({ card: { name: 'A' }, work: question('a') })
  const runtime = createRuntime({ agent, store, logger, clock })
  await runtime.sendMessage(say('one'))
  await runtime.close()
  clock.increment(60_000)
  t.equal(written.length, 1)
  const late = new DefinitionWriter({ agent, store, logger, clock, modules: undefined })
  const closing = (late.store('1'), late.close())
  await closing
  clock.increment(60_000)
  t.equal(written.length, 2)
})
