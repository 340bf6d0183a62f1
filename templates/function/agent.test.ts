import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime, text, textOf } from 'taskchart'
import { agentTests } from 'taskchart/testing'
import agent from './agent.ts'

test('it greets by name', async () => {
  const runtime = createRuntime({ agent })
  const answer = await runtime.sendMessage({
    message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [text('Ada')] }
  })
  assert('task' in answer)
  assert.equal(answer.task.status.state, 'TASK_STATE_COMPLETED')
  assert.deepEqual(answer.task.artifacts?.map(textOf), ['Hello, Ada!'])
  await runtime.close()
})

// Each course that a task of this agent can take, a cancel too, in this process and over WebSocket.
const { tests } = await agentTests(agent, { drivers: ['in process', 'over WebSocket'] })
for (const { driver, name, run } of tests) test(`${driver}: ${name}`, run)
