import { once } from 'node:events'
import t from 'tap'
import { createMachine, fromTransition, type AnyStateMachine } from 'xstate'
import { compileMachine } from '../../../runtime/xstate/compiled-machine.ts'
import { isTrusted, TESTED_MINOR, packageVersionIn } from '../../../runtime/xstate/self-check.ts'

type Compile = (machine: AnyStateMachine) => AnyStateMachine

const NEWER = `5.${TESTED_MINOR + 1}.0`

/** Forms of a chart that are wrong in one thing each. */
const WRONG: Record<string, Compile> = {
  'is not made': () => {
    throw new TypeError('XState has no such thing.')
  },
  'has an action do nothing': machine => machine.provide({ actions: { add: () => {} } }),
  'judges a guard otherwise': machine => machine.provide({ guards: { isEven: () => true } }),
  'has another actor': machine =>
    machine.provide({ actors: { counter: fromTransition((count: number) => count + 2, 0) } }),
  'ends otherwise': machine =>
    withMethod(machine, 'transition', (...given) => ({ ...machine.transition(...given), output: 'another' })),
  'persists otherwise': machine =>
    withMethod(machine, 'getPersistedSnapshot', (...given) => ({
      ...machine.getPersistedSnapshot(...given),
      historyValue: {},
      more: 1
    }))
}

function withMethod<Name extends 'transition' | 'getPersistedSnapshot'>(
  machine: AnyStateMachine,
  name: Name,
  method: (...given: Parameters<AnyStateMachine[Name]>) => unknown
): AnyStateMachine {
  return Object.assign(Object.create(Object.getPrototypeOf(machine)), machine, { [name]: method })
}

await t.test('the installed minor is the tested one, and its patch releases are not checked', t => {
  t.match(packageVersionIn('xstate/package.json'), new RegExp(`^5\\.${TESTED_MINOR}\\.`))
  t.ok(isTrusted(WRONG['is not made'] as Compile, `5.${TESTED_MINOR}.99`))
  t.equal(packageVersionIn('xstate/no-such-file.json'), undefined)
  t.end()
})

await t.test('under other versions of XState charts are compiled if both forms agree', t => {
  const warned = t.capture(process, 'emitWarning')
  for (const version of [NEWER, `${NEWER}-beta.1`, '6.0.0', undefined]) {
    let count = 0
    const counted: Compile = machine => {
      count += 1
      return compileMachine(machine)
    }
    t.ok(isTrusted(counted, version), `with ${version}`)
    t.equal(count, 1, 'it is checked')
  }
  t.strictSame(warned(), [])
  t.end()
})

await t.test('charts are not compiled where compilation is not trusted', t => {
  const machine = createMachine({ initial: 'on', states: { on: { on: { next: 'off' } }, off: {} } })
  t.equal(compileMachine(machine, false), machine)
  t.not(compileMachine(machine, true), machine)
  t.end()
})

for (const [name, compile] of Object.entries(WRONG)) {
  await t.test(`charts run uncompiled, with a warning, if the compiled one ${name}`, async t => {
    const warned = once(process, 'warning')
    t.notOk(isTrusted(compile, NEWER))
    t.match((await warned)[0], {
      code: 'TASKCHART_XSTATE',
      message: `compiled charts differ from those of XState ${NEWER}. Install xstate@5.${TESTED_MINOR} or a newer taskchart.`
    })
  })
}
