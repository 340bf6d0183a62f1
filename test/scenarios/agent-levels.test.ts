import t, { type Test } from 'tap'
import { z } from 'zod'
import type { AgentClient } from '../../adapters/client/agent-client.ts'
import { negotiate as negotiatePart, connect, offerIn } from '../../adapters/client/connect.ts'
import type { AgentDefinition } from '../../runtime/agent/define-agent.ts'
import {
  accepted,
  declined,
  negotiation,
  offer,
  rejected,
  reply,
  text,
  textOf as textIn,
  type NegotiateFunction
} from '../../runtime/index.ts'
import { echo, painter } from '../fixtures/runtime/agents.ts'
import { serveAll } from '../fixtures/servers/http-agent.ts'
import {
  collect,
  messageIn,
  refusal,
  say,
  stateName,
  taskIn,
  textOf,
  type Logged
} from '../fixtures/runtime/runtime-helpers.ts'

/** A client of an agent over each binding that has a network under it, and what the agent logged. */
async function clients(
  t: Test,
  agent: Omit<AgentDefinition, 'card'>
): Promise<{ client: AgentClient; name: string; log: Logged[] }[]> {
  const { url, log } = await serveAll(t, agent)
  return Promise.all(
    ['WEBSOCKET', 'JSONRPC', 'HTTP+JSON'].map(async name => {
      const client = await connect(url.replace('ws:', 'http:'), { bindings: [name] })
      t.teardown(() => client.close())
      return { client, name, log }
    })
  )
}

/** What kinds of things a stream gave. */
const kindsOf = (events: readonly object[]) => events.map(event => Object.keys(event)[0])
const noTasks = async (t: Test, client: AgentClient) => t.strictSame((await client.listTasks({})).tasks, [])

await t.test('a message-only agent', async t => {
  await t.test('answers only with messages, which share a contextId, and has no tasks', async t => {
    const heard: string[] = []
    for (const { client, name } of await clients(t, {
      negotiate: async ({ message, history }) => (
        heard.push(...(await history()).map(textIn)),
        reply(`You said ${textOf(message)}.`)
      )
    })) {
      heard.length = 0
      const first = messageIn(await client.sendMessage(say('hello')))
      const { contextId = '' } = first
      t.match(first, { role: 'ROLE_AGENT', parts: [{ text: 'You said hello.' }] }, name)
      t.notOk(first.taskId)
      const events = await collect(client.sendStreamingMessage(say('and', { contextId })))
      t.strictSame(kindsOf(events), ['message'], 'a stream is that message')
      t.equal(messageIn(events[0]).contextId, contextId)
      t.strictSame(heard, ['hello', 'You said hello.'], 'it knows the earlier messages')
      await noTasks(t, client)
    }
  })

  await t.test('fails a message whose code tries to open a task, and logs the reason', async t => {
    for (const wrong of [accepted({ euros: 1 }), accepted(), rejected('no')]) {
      for (const { client, name, log } of await clients(t, { negotiate: () => wrong })) {
        log.length = 0
        t.match(await refusal(client.sendMessage(say('x'))), { code: 'InternalError' }, name)
        t.match(await refusal(collect(client.sendStreamingMessage(say('x')))), { code: 'InternalError' })
        t.match(String(log[0]?.details.error), /answer reply\(…\), for the agent has no work/)
        await noTasks(t, client)
      }
    }
  })

  await t.test('refuses a message that names a task', async t => {
    for (const { client } of await clients(t, { negotiate: () => reply('hi') })) {
      t.match(await refusal(client.sendMessage(say('x', { taskId: 'T1' }))), { code: 'TaskNotFound' })
    }
  })
})

await t.test('a task-generating agent', async t => {
  await t.test('always answers with a task, which has completed if the answer is trivial', async t => {
    for (const { client, name } of await clients(t, { work: echo })) {
      const task = taskIn(await client.sendMessage(say('hello')))
      t.match([stateName(task.status.state), task.artifacts?.map(textOf)], ['completed', ['hello']], name)
      t.strictSame(
        kindsOf(await collect(client.sendStreamingMessage(say('hello', { contextId: task.contextId ?? '' })))).slice(
          0,
          1
        ),
        ['task']
      )
      const again = taskIn(
        await client.sendMessage(say('again', { contextId: task.contextId ?? '', referenceTaskIds: [task.id] }))
      )
      t.not(again.id, task.id, 'a follow-up is another task')
    }
  })

  await t.test("never answers with a message: work that returns a negotiation's answer fails its task", async t => {
    for (const word of [reply('hello'), accepted(), offer({ euros: 1 }), declined('no')]) {
      for (const { client, name } of await clients(t, { work: () => word as never })) {
        const task = taskIn(await client.sendMessage(say('hello')))
        t.equal(stateName(task.status.state), 'failed', name)
        t.match(textOf(task.status.message), `result must not be ${word.type}(…), which a negotiation answers`)
      }
    }
    for (const { client } of await clients(t, {
      work: () => {
        throw new Error('secret')
      }
    })) {
      t.equal(stateName(taskIn(await client.sendMessage(say('hello'))).status.state), 'failed', 'nor when it throws')
    }
  })

  await t.test('rejects by a task with the reason', async t => {
    for (const { client } of await clients(t, { work: () => rejected('too busy') })) {
      const task = taskIn(await client.sendMessage(say('hello')))
      t.match([stateName(task.status.state), textOf(task.status.message)], ['rejected', 'too busy'])
    }
  })
})

await t.test('a hybrid agent', async t => {
  const negotiate: NegotiateFunction = ({ message }) =>
    /boat/.test(textIn(message)) ? accepted() : reply('What shall I paint?')

  await t.test('answers with messages until it opens a task, and then with that task', async t => {
    let negotiated = 0
    for (const { client, name } of await clients(t, {
      negotiate: given => ((negotiated += 1), negotiate(given)),
      work: painter()
    })) {
      negotiated = 0
      const { contextId = '' } = messageIn(await client.sendMessage(say('hello')))
      const asked = taskIn(await client.sendMessage(say('a boat', { contextId })))
      t.match([asked.contextId, stateName(asked.status.state)], [contextId, 'input-required'], name)
      const unclear = client.sendMessage(say('hello', { taskId: asked.id }))
      t.match(
        await refusal(unclear),
        { code: 'UnsupportedOperation' },
        'a free message counts as an answer here, and is refused'
      )
      t.equal(taskIn(await client.sendMessage(say('red', { taskId: asked.id }))).id, asked.id)
      t.equal(negotiated, 2)
      t.match(
        await refusal(client.sendMessage(say('blue', { taskId: asked.id }))),
        { code: 'UnsupportedOperation' },
        'an ended task stays ended'
      )
      t.equal(
        textOf(messageIn(await client.sendMessage(say('hello', { contextId })))),
        'What shall I paint?',
        'other messages are answered with messages again'
      )
    }
  })

  await t.test('sends offers as messages, and opens a task when one is accepted', async t => {
    const bargain = negotiation({ terms: z.object({ euros: z.number() }), respond: () => offer({ euros: 40 }) })
    for (const { client, name } of await clients(t, {
      negotiate: bargain,
      work: ({ terms }) => ({ artifact: JSON.stringify(terms) })
    })) {
      const answer = messageIn(await client.sendMessage(say('hello')))
      const { contextId = '' } = answer
      const made = offerIn(answer)
      t.match(made, { round: 1, terms: { euros: 40 } }, name)
      const accepting = say('', { contextId, parts: [text('ok'), negotiatePart({ accept: made ?? { offerId: '' } })] })
      const events = await collect(client.sendStreamingMessage(accepting))
      t.strictSame(kindsOf(events), ['task', 'statusUpdate', 'artifactUpdate', 'statusUpdate'])
      t.match(taskIn(events[0]).metadata, { 'urn:taskchart:extension:negotiation:1': { terms: { euros: 40 } } })
      t.notOk(
        offerIn(
          messageIn(
            await client.sendMessage(
              say('', { contextId, parts: [negotiatePart({ accept: made ?? { offerId: '' } })] })
            )
          )
        ),
        'once'
      )
    }
  })

  await t.test('fails clearly if its negotiation gives an artifact or its work an offer', async t => {
    for (const { client, log } of await clients(t, { negotiate: () => ({ artifact: 'x' }) as never, work: echo })) {
      log.length = 0
      t.match(await refusal(client.sendMessage(say('x'))), { code: 'InternalError' })
      t.match(String(log[0]?.details.error), /answer reply\(…\), accepted\(…\) or rejected\(…\)/)
    }
    for (const { client, log } of await clients(t, { negotiate: () => offer({ euros: 1 }) as never, work: echo })) {
      log.length = 0
      t.match(
        await refusal(client.sendMessage(say('x'))),
        { code: 'InternalError' },
        'only a negotiation makes offers, not a function'
      )
      t.match(String(log[0]?.details.error), /answer reply/)
    }
  })
})
