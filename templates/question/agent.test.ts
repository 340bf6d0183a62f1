import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime, text, textOf, type Runtime } from 'taskchart'
import { agentTests } from 'taskchart/testing'
import agent from './agent.ts'

test('it asks for the day and the guests, and reserves a table', async () => {
  const runtime = createRuntime({ agent })
  const asked = await send(runtime, 'a table')
  assert.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED')
  await assert.rejects(send(runtime, 'tomorrow', asked.id), /has to be a day/)
  await send(runtime, '2027-05-01', asked.id)
  const task = await send(runtime, '4', asked.id)
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED')
  assert.equal(task.status.message && textOf(task.status.message), 'A table for 4 on 2027-05-01.')
  assert.deepEqual(task.artifacts?.[0]?.parts, [{ data: { day: '2027-05-01', guests: 4 } }])
  await runtime.close()
})

// Each course that a task of this agent can take, a cancel too, in this process and over WebSocket.
const { tests } = await agentTests(agent, { drivers: ['in process', 'over WebSocket'] })
for (const { driver, name, run } of tests) test(`${driver}: ${name}`, run)

/** Sends a message and resolves with its task. */
async function send(runtime: Runtime, words: string, taskId?: string) {
  const message = {
    messageId: crypto.randomUUID(),
    role: 'ROLE_USER' as const,
    parts: [text(words)],
    ...(taskId && { taskId })
  }
  const answer = await runtime.sendMessage({ message })
  assert('task' in answer)
  return answer.task
}
