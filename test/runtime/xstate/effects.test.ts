import t from 'tap'
import { cancel, emit, fromCallback, log, raise, sendTo, setup, spawnChild, stopChild } from 'xstate'
import { emitOf } from '../../../runtime/xstate/effects.ts'
import { pureStart, pureStep } from '../../../runtime/xstate/pure-step.ts'

const machine = setup({
  actors: { ear: fromCallback(() => {}) },
  actions: { note: () => {} }
}).createMachine({
  entry: [emit({ type: 'hello' }), spawnChild('ear', { id: 'ear' }), 'note', log('begun')],
  on: {
    go: {
      actions: [
        raise({ type: 'late' }, { delay: 5, id: 'timer' }),
        sendTo('ear', { type: 'hear' }),
        sendTo('ear', { type: 'hear' }, { delay: 7 }),
        cancel('timer'),
        stopChild('ear')
      ]
    }
  }
})

await t.test('a step of a chart gives its snapshot, and its effects as data', t => {
  const begun = pureStart(machine, undefined)
  t.equal(begun.snapshot.status, 'active')
  t.strictSame(
    begun.effects.map(({ kind }) => kind),
    ['emit', 'spawn', 'custom', 'log']
  )
  t.match(begun.effects, [{ event: { type: 'hello' } }, { actor: { id: 'ear' } }])
  const { effects } = pureStep(machine, begun.snapshot, { type: 'go' }, () => false)
  const { ear } = begun.snapshot.children
  t.match(effects, [
    { kind: 'raise', event: { type: 'late' }, delayMs: 5, id: 'timer' },
    { kind: 'send', event: { type: 'hear' }, delayMs: undefined },
    { kind: 'send', event: { type: 'hear' }, delayMs: 7 },
    { kind: 'cancel', id: 'timer' },
    { kind: 'stop' }
  ])
  t.ok(effects.every(effect => !('to' in effect) || effect.to === ear))
  t.ok(effects.every(effect => effect.kind !== 'stop' || effect.actor === ear))
  t.end()
})

await t.test('of the actions of XState only emit emits', t => {
  const event = { type: 'hello' }
  t.strictSame(emitOf({ type: 'xstate.emit', params: { event } }), { event })
  t.equal(emitOf({ type: 'xstate.raise', params: { event } }), undefined)
  t.end()
})
