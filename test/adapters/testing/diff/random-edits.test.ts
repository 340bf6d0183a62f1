import t from 'tap'
import { createActor, createMachine, type AnyStateMachine } from 'xstate'
import { partsOf } from '../../../../runtime/work-port.ts'
import { ChartVerdicts, type Surroundings } from '../../../../adapters/testing/diff/verdicts.ts'
import { withStepLimit } from '../../../../runtime/work-port.ts'
import { misfit, type PersistedSnapshot } from '../../../../runtime/xstate/persisted-snapshot.ts'
import { randomFrom, sampleOf, SEED } from '../../../fixtures/sample.ts'

/** A state of a chart that nobody wrote. */
interface RandomState {
  type?: string
  initial?: string
  history?: string
  target?: string
  on?: Record<string, RandomMove[]>
  always?: RandomMove[]
  onDone?: RandomMove[]
  exit?: string
  states?: Record<string, RandomState>
}

interface RandomMove {
  target?: string
  guard?: string
  actions?: string
}

type Random = () => number

const EVENTS = ['A', 'B', 'C']
const IDS = Array.from({ length: 9 }, (_, i) => `s${i}`)

/** The code of all charts. */
const CODE = {
  guards: {
    even: ({ context }: { context: { n: number } }) => context.n % 2 === 0,
    low: ({ context }: { context: { n: number } }) => context.n % 5 < 2
  },
  actions: {}
}

const pick = <T>(random: Random, all: readonly T[]): T => all[Math.floor(random() * all.length)] as T

function randomMove(random: Random): RandomMove {
  return {
    ...(random() < 0.85 && { target: `#${pick(random, IDS)}` }),
    ...(random() < 0.4 && { guard: pick(random, ['even', 'low']) }),
    ...(random() < 0.4 && { actions: 'count' })
  }
}

/** Nine states in a tree, of all types. */
function randomStates(random: Random): Record<string, RandomState> {
  const states = new Map<string, RandomState>(IDS.map(id => [id, {}]))
  const top: Record<string, RandomState> = {}
  for (const [i, id] of IDS.entries()) {
    const state = states.get(id) as RandomState
    Object.assign(state, { id })
    if (random() < 0.8)
      state.on = Object.fromEntries(
        EVENTS.map(event => [event, Array.from({ length: Math.floor(random() * 3) }, () => randomMove(random))])
      )
    if (random() < 0.2) state.always = [{ ...randomMove(random), guard: 'even' }]
    if (random() < 0.2) state.exit = 'count'
    const parent = i >= 3 && random() < 0.6 ? (states.get(pick(random, IDS.slice(0, i))) as RandomState) : undefined
    const siblings = parent && !parent.history && parent.type !== 'final' ? (parent.states ??= {}) : top
    siblings[id] = state
    if (i > 4 && random() < 0.25) Object.assign(state, { type: 'final', on: undefined, always: undefined })
  }
  for (const state of states.values()) {
    const children = Object.keys(state.states ?? {})
    if (children.length === 0) continue
    if (children.length > 1 && random() < 0.4) state.type = 'parallel'
    else Object.assign(state, { type: undefined, initial: pick(random, children) })
    if (random() < 0.5) state.onDone = [randomMove(random)]
    if (random() < 0.5)
      (state.states as Record<string, RandomState>)['past'] = {
        type: 'history',
        history: pick(random, ['shallow', 'deep'])
      }
  }
  return top
}

function allStates(states: Record<string, RandomState>): RandomState[] {
  return Object.values(states).flatMap(state => [state, ...allStates(state.states ?? {})])
}

/** Edits a copy of a chart in one place. */
function edited(random: Random, states: Record<string, RandomState>): Record<string, RandomState> {
  const copy = structuredClone(states)
  const state = pick(
    random,
    allStates(copy).filter(({ history }) => history === undefined)
  )
  const moves = [...Object.values(state.on ?? {}).flat(), ...(state.always ?? []), ...(state.onDone ?? [])]
  const edits = [
    () => void (state.on = { ...state.on, [pick(random, EVENTS)]: [randomMove(random)] }),
    () => void (moves.length > 0 && Object.assign(pick(random, moves), { target: `#${pick(random, IDS)}` })),
    () => void (moves.length > 0 && Object.assign(pick(random, moves), { guard: pick(random, ['even', 'low']) })),
    () => void (moves.length > 0 && Object.assign(pick(random, moves), { actions: 'count' })),
    () => void (state.exit = state.exit ? (undefined as never) : 'count'),
    () => void (state.always = [{ target: `#${pick(random, IDS)}`, guard: 'low' }]),
    () => void delete state.always,
    () => void delete state.on
  ]
  pick(random, edits)()
  return copy
}

function machineOf(states: Record<string, RandomState>): AnyStateMachine | undefined {
  try {
    const count = ({ context }: { context: { n: number } }) => void (context.n += 1)
    const machine = createMachine(
      { id: 'work', context: () => ({ n: 0 }), initial: Object.keys(states)[0], states } as never,
      { ...CODE, actions: { count } } as never
    ) as unknown as AnyStateMachine
    createActor(withStepLimit(machine)).getSnapshot()
    return withStepLimit(machine)
  } catch {
    return undefined
  }
}

/** A stored snapshot, and what follows when a machine restores it and gets these events. */
function walked(machine: AnyStateMachine, snapshot: unknown, events: readonly string[]): string[] {
  const actor = createActor(machine, { snapshot: structuredClone(snapshot) as never, input: undefined })
  actor.subscribe({ error: () => {} })
  actor.start()
  return events.map(type => {
    actor.send({ type })
    const { status, value, context } = actor.getSnapshot() as { status: string; value: unknown; context: unknown }
    return JSON.stringify([status, value, context])
  })
}

/** Snapshots that a machine reaches by random events. */
function reached(random: Random, machine: AnyStateMachine): PersistedSnapshot[] {
  const found: PersistedSnapshot[] = []
  for (let walk = 0; walk < 4; walk += 1) {
    const actor = createActor(machine)
    actor.subscribe({ error: () => {} })
    actor.start()
    for (let step = 0; step < 6 && actor.getSnapshot().status === 'active'; step += 1) {
      found.push(JSON.parse(JSON.stringify(actor.getPersistedSnapshot())) as PersistedSnapshot)
      actor.send({ type: pick(random, EVENTS) })
    }
  }
  return found
}

const AROUND: Surroundings = {
  isSameVersion: true,
  isMigrated: false,
  mayRestart: false,
  options: [],
  modules: []
}

await t.test('of random edits of random charts, no verdict is a wrong certainty', t => {
  const counts = new Map<string, number>()
  const seeds = Array.from({ length: 2000 }, (_, i) => i)
  for (const seed of sampleOf(t, seeds, 12, 40)) {
    const random = randomFrom((SEED + seed) * 7919)
    const states = randomStates(random)
    const [before, after] = [machineOf(states), machineOf(edited(random, states))]
    if (!before || !after) continue
    const found = new ChartVerdicts(partsOf(before), partsOf(after), AROUND, 60).all
    const isWhole = found.every(({ verdict }) => verdict !== 'unknown')
    const verdicts = new Map(found.map(one => [JSON.stringify([one.state, one.history ?? {}]), one]))
    for (const snapshot of reached(random, before)) {
      const history = Object.fromEntries(
        Object.entries(snapshot.historyValue ?? {}).map(([id, states]) => [id, states.map(({ id }) => id).toSorted()])
      )
      const place = JSON.stringify([snapshot.value, history])
      const verdict = verdicts.get(place)?.verdict
      if (verdict === undefined) {
        if (!isWhole) continue
        t.fail(`seed ${seed}: no verdict for ${place}`)
        continue
      }
      counts.set(verdict, (counts.get(verdict) ?? 0) + 1)
      const lost = misfit(after, snapshot)
      if ((verdict === 'not restored') !== (lost !== undefined))
        t.fail(`seed ${seed}: ${place} is ${verdict}, and ${lost}`)
      if (lost !== undefined) continue
      const events = Array.from({ length: 8 }, () => pick(random, EVENTS))
      const [old, next] = [walked(before, snapshot, events), walked(after, snapshot, events)]
      if (verdict === 'same' && old.join() !== next.join())
        t.strictSame(next, old, `seed ${seed}: ${place} goes on the same way`)
      if (verdict === 'never ends' && next.some(line => line.startsWith('["done"')))
        t.fail(`seed ${seed}: ${place} never ends`)
    }
  }
  t.comment(Array.from(counts, ([verdict, count]) => `${count} ${verdict}`).join(', '))
  t.ok(Number(counts.get('same')) > 50 && Number(counts.get('otherwise')) > 50, 'both were given')
  t.end()
})
