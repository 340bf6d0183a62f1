import t from 'tap'
import { diffStored, type TaskVerdict } from '../../../../adapters/testing/diff/stored-diff.ts'
import type { OpenTask } from '../../../../adapters/rows/store-reader.ts'
import { A2AError } from '../../../../machines/protocol/errors.ts'
import {
  defineAgent,
  inputRequired,
  progress,
  textOf,
  type WorkFunction,
  type WorkGenerator
} from '../../../../runtime/index.ts'
import type { Store } from '../../../../runtime/store/store.ts'
import { anyone, failOnLooseErrors, lives } from '../../../fixtures/runtime/lives.ts'
import { rest, say, taskIn } from '../../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const asking =
  (word: string): WorkFunction =>
  async ({ ask, emit }) => {
    emit(progress(word))
    await ask(inputRequired('Size?'))
  }

/** The verdict on this open task of a store with a work. */
async function verdictOn(store: Store, task: OpenTask, work: WorkFunction | WorkGenerator): Promise<TaskVerdict> {
  const verdicts: TaskVerdict[] = []
  const reader = {
    ...store,
    openTasks: async () => ({ tasks: [task] }),
    readDefinition: async () => undefined,
    scopes: async () => []
  }
  const agent = defineAgent({ card: { name: 'Test' }, work })
  const onTask = (verdict: TaskVerdict) => void verdicts.push(verdict)
  await diffStored(reader as never, { agent, path: '/agent.ts' }, { signal: new AbortController().signal, onTask })
  return verdicts[0] as TaskVerdict
}

/** An open task as a store has it now. */
async function openTask(store: Store, taskId: string): Promise<OpenTask> {
  const key = { ...anyone, contextId: 'c' }
  const snapshot = await store.readSnapshot(key, taskId)
  return { ...key, taskId, state: 'TASK_STATE_INPUT_REQUIRED', ...(snapshot !== undefined && { snapshot }) }
}

await t.test('a task that ends while it is compared is the same', async t => {
  const life = lives(t, { work: asking('begins') })
  const { id } = taskIn(await life.runtime.sendMessage(say('go', { contextId: 'c' })))
  await rest()
  const task = await openTask(life.store, id)
  t.match(await verdictOn(life.store, task, asking('starts')), { verdict: 'otherwise', word: 1 })
  await life.runtime.cancelTask({ id })
  t.match(await verdictOn(life.store, task, asking('starts')), {
    verdict: 'same',
    reasons: ['it has ended meanwhile']
  })
})

await t.test('a task whose record cannot be read is no certainty', async t => {
  const life = lives(t, { work: asking('begins') })
  const { id } = taskIn(await life.runtime.sendMessage(say('go', { contextId: 'c' })))
  await rest()
  const task = await openTask(life.store, id)
  const readEvents = () => Promise.reject(new A2AError('Overloaded', 'The database is away.'))
  t.match(await verdictOn({ ...life.store, readEvents }, task, asking('starts')), {
    verdict: 'depends',
    reasons: ['The database is away.']
  })
})

await t.test('a function reads the other tasks of its context from the store', async t => {
  const reading = (size: string): WorkGenerator =>
    async function* ({ message, history }) {
      if (textOf(message) === 'first') return
      yield progress((await history()).map(textOf).join())
      yield* inputRequired(size)
    }
  const life = lives(t, { work: reading('Size?') })
  await life.runtime.sendMessage(say('first', { contextId: 'c' }))
  const { id } = taskIn(await life.runtime.sendMessage(say('second', { contextId: 'c' })))
  const task = await openTask(life.store, id)
  t.match(await verdictOn(life.store, task, reading('Size?')), {
    verdict: 'not compared',
    reasons: ['it comes to where it is', 'then it goes on with the new code']
  })
  t.match(await verdictOn(life.store, task, reading('Which size?')), { verdict: 'otherwise', word: 2 })
})
