import { createRequire } from 'node:module'
import {
  assign,
  cancel,
  createActor,
  emit,
  enqueueActions,
  fromTransition,
  raise,
  sendTo,
  setup,
  spawnChild,
  stopChild,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventObject
} from 'xstate'
import { delayType } from '../../machines/xstate-names.ts'

/** The newest minor of XState 5 that compiled charts are tested with. Its patch releases count as tested. */
export const TESTED_MINOR = 33

type Compile = (machine: AnyStateMachine) => AnyStateMachine

let verdict: boolean | undefined

/** Whether charts may be compiled with the installed XState. Decided once per process. */
export function mayCompile(compile: Compile): boolean {
  return (verdict ??= isTrusted(compile, packageVersionIn('xstate/package.json')))
}

/** The version in a package.json; `undefined` if the file is missing, as in a bundle. */
export function packageVersionIn(file: string): string | undefined {
  try {
    return (createRequire(import.meta.url)(file) as { readonly version: string }).version
  } catch {
    return undefined
  }
}

/**
 * Whether compiled charts agree with a version of XState. For an untested version a small chart runs compiled and
 * uncompiled, which takes 16 ms (Node 24). If they differ, a warning says that charts run uncompiled.
 */
export function isTrusted(compile: Compile, version = 'of an unknown version'): boolean {
  const minor = Number(/^5\.(\d+)\.\d+$/.exec(version)?.[1])
  if (minor <= TESTED_MINOR || behavesAlike(compile)) return true
  process.emitWarning(
    `Charts run uncompiled, which is slower: compiled charts differ from those of XState ${version}. Install xstate@5.${TESTED_MINOR} or a newer taskchart.`,
    { code: 'TASKCHART_XSTATE' }
  )
  return false
}

/** Whether the small chart behaves and persists equally in both forms, even if each restores snapshots of the other. */
function behavesAlike(compile: Compile): boolean {
  try {
    const compiled = compile(probe)
    const wanted = traceOf([probe])
    return [[compiled], [probe, compiled], [compiled, probe]].every(forms => traceOf(forms) === wanted)
  } catch {
    return false
  }
}

/**
 * Observable behaviour of the small chart's actor, as text. Before each event the actor is restored with the next form.
 */
function traceOf(forms: readonly AnyStateMachine[]): string {
  const seen: unknown[] = []
  let snapshot: AnyMachineSnapshot | undefined
  for (const [n, event] of EVENTS.entries()) {
    const actor = createActor(forms[n % forms.length] as AnyStateMachine, {
      id: 'probe',
      input: { n: 1 },
      clock: { setTimeout: () => 0, clearTimeout: () => {} },
      inspect: seeing =>
        seen.push([seeing.type, (seeing.actorRef as { readonly id?: string }).id, Reflect.get(seeing, 'event')]),
      ...(snapshot && { snapshot })
    })
    actor.on('*', emitted => seen.push(emitted))
    actor.subscribe({ error: error => seen.push(String(error)), complete: () => seen.push('complete') })
    actor.start()
    if (event) actor.send(event)
    const { status, value, context, output, tags, children } = actor.getSnapshot()
    seen.push(
      status,
      value,
      context,
      output,
      [...tags],
      Object.keys(children),
      EVENTS.map(next => next && actor.getSnapshot().can(next))
    )
    const text = JSON.stringify(actor.getPersistedSnapshot())
    seen.push(text)
    snapshot = JSON.parse(text)
    actor.stop()
  }
  return JSON.stringify(seen)
}

/** `undefined` is the start without an event. */
const EVENTS: readonly (EventObject | undefined)[] = [
  undefined,
  ...['add', 'go.inner', 'many', 'go', delayType(5, 'probe.timed'), 'unknown', 'end'].map(type => ({ type }))
]

/**
 * A flat chart with every feature that compiled charts replace: all actions, guards, nested states, actors, raised
 * events, an end.
 */
const probe: AnyStateMachine = setup({
  types: { context: {} as { n: number; log: string[] }, input: {} as { n: number } },
  actors: { counter: fromTransition((count: number) => count + 1, 0) },
  guards: { isEven: ({ context }) => context.n % 2 === 0 },
  actions: {
    note: assign({ log: ({ context }, word: string) => [...context.log, word] }),
    add: assign(({ context }) => ({ n: context.n + 1 }))
  }
}).createMachine({
  id: 'probe',
  options: { maxIterations: 100 },
  context: ({ input }) => ({ n: input.n, log: [] }),
  entry: [{ type: 'note', params: 'in' }, spawnChild('counter', { id: 'spawned' })],
  exit: emit({ type: 'over' }),
  output: ({ context, event }) => ({ ...context, by: event.output }),
  initial: 'outer',
  on: {
    add: [{ guard: 'isEven', actions: raise({ type: 'raised' }) }, { actions: ['add', raise({ type: 'add' })] }],
    'go.*': '.outer.inner',
    many: {
      actions: enqueueActions(({ enqueue, check }) => {
        if (check('isEven')) enqueue('add')
        enqueue.sendTo('spawned', { type: 'count' })
        enqueue.emit({ type: 'emitted' })
      })
    }
  },
  states: {
    outer: {
      initial: 'first',
      exit: { type: 'note', params: 'out' },
      states: {
        first: {
          tags: 'first',
          meta: { word: 'first' },
          on: { raised: { actions: { type: 'note', params: 'raised' } } }
        },
        inner: {
          invoke: { src: 'counter', id: 'invoked' },
          entry: sendTo('invoked', { type: 'count' }),
          on: { go: '#probe.timed' }
        }
      }
    },
    timed: {
      entry: [raise({ type: 'late' }, { delay: 9, id: 'late' }), stopChild('spawned')],
      exit: cancel('late'),
      after: { 5: 'idle' }
    },
    idle: { always: { guard: 'isEven', target: 'last' }, on: { '*': { actions: 'add' } } },
    last: { on: { end: 'over' } },
    over: { type: 'final', output: 'the end' }
  }
})
