import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime, text, textOf } from 'taskchart'
import { agentTests } from 'taskchart/testing'
import agent from './agent.ts'

test('it agrees on a price and mows the lawn', async () => {
  const runtime = createRuntime({ agent })
  const message = (words: string, contextId?: string) => ({
    message: {
      messageId: crypto.randomUUID(),
      role: 'ROLE_USER' as const,
      parts: [text(words)],
      ...(contextId && { contextId })
    }
  })
  const offered = await runtime.sendMessage(message('Mow my lawn for 20 euros'))
  assert('message' in offered)
  assert.match(textOf(offered.message), /Not for 20 euros/)
  const answer = await runtime.sendMessage(message('Deal', offered.message.contextId))
  assert('task' in answer)
  assert.deepEqual(answer.task.artifacts?.map(textOf), ['One lawn, mown for 45 euros.'])
  await runtime.close()
})

// Each course of a negotiation, and of the task after it, in this process and over WebSocket.
const { tests } = await agentTests(agent, { drivers: ['in process', 'over WebSocket'] })
for (const { driver, name, run } of tests) test(`${driver}: ${name}`, run)
