import t from 'tap'
import { getInitialSnapshot } from 'xstate'
import { MOVES } from '../../../adapters/conformance/explore.ts'
import { ObservedTask } from '../../../adapters/conformance/binding-test.ts'
import { protocolMachine } from '../../../adapters/conformance/protocol.machine.ts'
import { TASK_STATES, type TaskState } from '../../../machines/protocol/states.ts'

const STATES = Object.keys(TASK_STATES) as TaskState[]

function at(state: TaskState): ObservedTask {
  const course = new ObservedTask()
  course.see(state)
  return course
}

await t.test('a task may be found in any state, and each state has moves to try', async t => {
  t.equal(getInitialSnapshot(protocolMachine).value, 'unopened')
  for (const state of STATES) {
    const course = at(state)
    t.equal(course.state, TASK_STATES[state].chart)
    t.equal(course.isOver, TASK_STATES[state].class === 'terminal')
    t.ok('read' in course.moves, state)
    for (const name of Object.keys(course.moves)) t.type(Reflect.get(MOVES, name), 'function', name)
  }
})

await t.test('every move has a state in which it is made', async t => {
  const replied = new ObservedTask()
  replied.see('reply')
  const made = new Set([new ObservedTask(), replied, ...STATES.map(at)].flatMap(({ moves }) => Object.keys(moves)))
  t.same([...made].toSorted(), Object.keys(MOVES).toSorted())
})

await t.test('a task moves only as A2A allows, and is observed on every read', async t => {
  for (const from of STATES) {
    for (const to of STATES) {
      const wrong = at(from).see(to)
      const mayBe = from === to || (TASK_STATES[from].class !== 'terminal' && to !== 'TASK_STATE_SUBMITTED')
      t.equal(
        wrong,
        mayBe ? undefined : `the task went from ${TASK_STATES[from].chart} to ${TASK_STATES[to].chart}`,
        `${from} to ${to}`
      )
    }
    t.type(at(from).see('reply'), 'string')
  }
})

await t.test('an illegal move is not observed: the model continues from the previous state', async t => {
  const course = at('TASK_STATE_COMPLETED')
  course.see('TASK_STATE_WORKING')
  t.equal(course.state, 'completed')
})
