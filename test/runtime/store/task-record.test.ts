import t from 'tap'
import { text, textOf as textOfParts } from '../../../runtime/index.ts'
import {
  applyEvent,
  applyMessage,
  ArtifactList,
  newTaskRecord,
  projectTask
} from '../../../runtime/store/task-record.ts'
import { textOf, userMessage } from '../../fixtures/runtime/runtime-helpers.ts'

const key = { tenant: '', principal: 'anna', contextId: 'c' }

await t.test('a list of artifacts has each once, in order of first appearance', async t => {
  for (const count of [1, 8, 9, 30]) {
    const list = new ArtifactList()
    for (const round of ['old', 'new'])
      for (let n = 1; n <= count; n += 1) list.set({ artifactId: `a${n}`, parts: [{ text: `${round} ${n}` }] })
    t.strictSame(
      list.copies().map(textOfParts),
      Array.from({ length: count }, (_, n) => `new ${n + 1}`)
    )
    t.strictSame(list.get(`a${count}`), list.copies().at(-1))
    t.equal(list.get('none'), undefined)
  }
})

await t.test('a projection is a copy for the caller, and counts from the newest', async t => {
  const record = newTaskRecord(key, 't')
  t.strictSame(projectTask(record), {
    task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' } },
    generation: 0
  })
  for (const word of ['a', 'b', 'c']) applyMessage(record, { message: userMessage(word), taskId: 't', generation: 0 })
  applyEvent(record, {
    taskId: 't',
    generation: 1,
    update: { artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'x', parts: [text('1')] } } }
  })
  const { task } = projectTask(record)
  task.artifacts?.[0]?.parts.push(text('spoilt'))
  task.history?.pop()
  t.strictSame(projectTask(record).task.artifacts?.map(textOf), ['1'])
  t.strictSame(projectTask(record, { historyLength: 2, artifacts: false }).task.history?.map(textOf), ['b', 'c'])
  t.equal(projectTask(record, { artifacts: false }).task.artifacts, undefined)
  t.equal(projectTask(record, { historyLength: 0 }).task.history, undefined)
})
