import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime, text, textOf, type Runtime } from 'taskchart'
import { agentTests } from 'taskchart/testing'
import agent, { cases } from './agent.ts'

test('it asks for the size and makes a coffee', async () => {
  const runtime = createRuntime({ agent })
  const asked = await send(runtime, 'a coffee')
  assert.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED')
  const task = await send(runtime, 'large', asked.id)
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED')
  assert.deepEqual(task.artifacts?.map(textOf), ['a large coffee'])
  await runtime.close()
})

// Every path through the chart, alone, killed before every step, and over WebSocket.
const { tests } = await agentTests(agent, {
  cases,
  drivers: ['the chart', 'in process, killed before every step', 'over WebSocket']
})
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
