import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulateReadableStream } from 'ai'
import { MockLanguageModelV3 } from 'ai/test'
import { createRuntime, text, textOf } from 'taskchart'
import { agentTests } from 'taskchart/testing'
import { ticketAgent } from './agent.ts'

/** A model without a key: it says what it is given, and calls no tool. */
function modelThatSays(words: string) {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 }
  }
  return new MockLanguageModelV3({
    doStream: async () => ({
      stream: simulateReadableStream({
        chunks: [
          { type: 'text-start', id: '1' },
          { type: 'text-delta', id: '1', delta: words },
          { type: 'text-end', id: '1' },
          { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage }
        ]
      })
    })
  })
}

const agent = ticketAgent(modelThatSays('It is 29 euros.'))

test('the text of the model is the artifact of the task', async () => {
  const runtime = createRuntime({ agent })
  const answer = await runtime.sendMessage({
    message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [text('a ticket to Rome')] }
  })
  assert('task' in answer)
  assert.equal(answer.task.status.state, 'TASK_STATE_COMPLETED')
  assert.deepEqual(answer.task.artifacts?.map(textOf), ['It is 29 euros.'])
  await runtime.close()
})

// Each course that a task of this agent can take, a cancel too, in this process and over WebSocket.
const { tests } = await agentTests(agent, { drivers: ['in process', 'over WebSocket'] })
for (const { driver, name, run } of tests) test(`${driver}: ${name}`, run)
