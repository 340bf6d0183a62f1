import t from 'tap'
import { defineAgent, inputRequired } from '../../../runtime/index.ts'
import { testCluster } from '../../fixtures/cluster/cluster-nodes.ts'
import { open, rejection, start } from '../../fixtures/runtime/runtime-helpers.ts'
import type { NoteChange } from '../../../runtime/operations/notes.ts'

const note = (value: NoteChange['value'], before?: NoteChange['before']): NoteChange => ({
  name: 'count',
  contextId: 'c1',
  before,
  value,
  storedMs: 1000
})

await t.test('a note is written if it still has the value on which the change is based', async t => {
  const { runtime } = start(t, { work: () => {} })
  t.equal(await runtime.readNote('count', {}), undefined)
  t.strictSame(await runtime.writeNote(note({ n: 1 }), {}), { n: 1 })
  t.strictSame(await runtime.writeNote(note({ n: 9 }), {}), { n: 1 }, 'another was faster')
  t.strictSame(await runtime.writeNote(note({ n: 2 }, { n: 1 }), {}), { n: 2 })
  t.strictSame(await runtime.readNote('count', {}), { n: 2 })
})

await t.test('of changes at once, one is written, and all get it', async t => {
  const { runtime } = start(t, { work: () => {} })
  const written = await Promise.all([1, 2, 3].map(n => runtime.writeNote(note(n), {})))
  t.equal(new Set(written).size, 1)
  t.equal(await runtime.readNote('count', {}), written[0])
})

await t.test('notes belong to their caller, expire, and are erased with their context', async t => {
  const { runtime, clock } = start(t, { work: () => {} })
  const anna = { principal: 'anna' }
  await runtime.writeNote(note(1), anna)
  t.equal(await runtime.readNote('count', {}), undefined)
  t.equal(await runtime.readNote('count', { ...anna, tenant: 'blue' }), undefined)
  clock.increment(1001)
  t.equal(await runtime.readNote('count', anna), undefined)
  await runtime.writeNote(note(2), anna)
  t.equal(await runtime.erase({ principal: 'anna', contextId: 'c1' }), true)
  t.equal(await runtime.readNote('count', anna), undefined)
})

await t.test('a note changes no task of its context', async t => {
  const { runtime } = start(t, {
    work: async ({ ask }) => {
      await ask(inputRequired('Well?'))
    }
  })
  const { id } = await open(runtime, 'go', { contextId: 'c1' })
  const before = await runtime.getTask({ id })
  await runtime.writeNote(note(1), {})
  t.strictSame(await runtime.getTask({ id }), before)
})

await t.test('a note whose commit fails is not written', async t => {
  const { runtime, store } = start(t, { work: () => {} })
  const { commit } = store
  Object.assign(store, { commit: () => Promise.reject(new Error('disk full')) })
  t.match(await rejection(runtime.writeNote(note(1), {})), { code: 'Overloaded' })
  Object.assign(store, { commit })
  t.equal(await runtime.readNote('count', {}), undefined)
})

await t.test('every node of a cluster reads a note, and the owner of its context writes it', async t => {
  const cluster = testCluster(t, defineAgent({ card: { name: 'A' }, work: () => {} }))
  const nodes = [await cluster.add(), await cluster.add()]
  const written = await Promise.all(nodes.map(({ runtime }, i) => runtime.writeNote(note(i), {})))
  t.equal(new Set(written).size, 1)
  for (const { runtime } of nodes) t.equal(await runtime.readNote('count', {}), written[0])
})
