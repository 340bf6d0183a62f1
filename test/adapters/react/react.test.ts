import { createElement, type ReactNode } from 'react'
import t from 'tap'
import { z } from 'zod'
import type { AgentClient } from '../../../adapters/client/agent-client.ts'
import { connect } from '../../../adapters/client/connect.ts'
import { AgentProvider, useAgent, useConversation, useTask } from '../../../adapters/react/index.ts'
import { inputRequired } from '../../../runtime/index.ts'
import { rendered } from '../../fixtures/pages/rendered.ts'
import { refusal } from '../../fixtures/runtime/runtime-helpers.ts'
import { serve } from '../../fixtures/servers/served-agent.ts'

const work = async function* () {
  const { colour } = yield* inputRequired('Which colour?', { schema: z.object({ colour: z.enum(['red', 'blue']) }) })
  return { artifact: { name: 'boat', parts: [{ text: `a ${colour} boat` }] } }
}

/** Resolves when a connection is closed. */
async function closed(agent: AgentClient | undefined): Promise<void> {
  if (agent && agent.state !== 'closed') await new Promise<void>(resolve => agent.on('closed', resolve))
}

await t.test('useAgent connects while its component is mounted', async t => {
  const { url } = await serve(t, { work })
  const other = await serve(t, { work })
  const shown = await rendered(t, ({ url }: { url: string }) => useAgent(url), { url })
  t.match(shown.value(), { agent: undefined, state: 'connecting', error: undefined })
  const { agent } = await shown.until(({ state }) => state === 'open')
  t.equal(agent?.url, url)
  shown.render({ url: other.url })
  const next = await shown.until(({ agent }) => agent?.url === other.url)
  await closed(agent)
  shown.unmount()
  await closed(next.agent)
})

await t.test('useAgent reports why it could not connect, and connects again on request', async t => {
  const { url } = await serve(t, { work })
  let address = 'ws://127.0.0.1:1'
  const shown = await rendered(t, () => useAgent(address, { signal: new AbortController().signal }), {})
  const first = await shown.until(({ error }) => error !== undefined)
  t.match(first, { agent: undefined, state: 'closed', error: { code: 'Overloaded' } })
  shown.value().reconnect()
  const { state } = await shown.until(({ error }) => error !== undefined && error !== first.error)
  t.equal(state, 'closed')
  address = url
  shown.value().reconnect()
  await shown.until(({ state }) => state === 'open')
})

await t.test('a component that unmounts while it connects leaves no connection', async t => {
  const { url, runtime } = await serve(t, { work })
  const shown = await rendered(t, () => useAgent(url), {})
  shown.unmount()
  const late = await rendered(t, () => useAgent('ws://127.0.0.1:1'), {})
  late.unmount()
  const client = await connect(url)
  await client.close()
  t.match(shown.value(), { state: 'connecting' })
  t.ok(runtime)
})

await t.test('useConversation sends, asks and answers, with the agent of the provider', async t => {
  const { url } = await serve(t, { work })
  const agent = await connect(url)
  t.teardown(() => agent.close())
  const around = (node: ReactNode) => createElement(AgentProvider, { agent }, node)
  const shown = await rendered(t, ({ contextId }: { contextId?: string }) => useConversation(contextId), {}, around)
  t.match(shown.value(), { contextId: undefined, messages: [], isBusy: false })
  await shown.value().send('paint')
  const { question, contextId = '', send } = await shown.until(({ question }) => question !== undefined)
  t.match(question, { text: 'Which colour?', schema: { properties: { colour: { enum: ['red', 'blue'] } } } })

  shown.render({ contextId })
  await shown.until(() => true)
  t.equal(shown.value().send, send, 'it continues under the id that it got')
  await send({ data: { colour: 'red' } })
  const { artifacts } = await shown.until(({ tasks }) => tasks[0]?.status.state === 'TASK_STATE_COMPLETED')
  t.match(artifacts.get('boat'), [{ artifact: { parts: [{ text: 'a red boat' }] } }])

  const again = await rendered(t, () => useConversation(contextId, agent), {})
  t.match(await again.until(({ tasks }) => tasks.length > 0), {
    contextId,
    messages: [{ parts: [{ text: 'paint' }] }, {}, {}]
  })
  shown.render({ contextId: 'other' })
  t.match(await shown.until(({ contextId }) => contextId === 'other'), { messages: [] })

  shown.render({})
  await shown.until(({ contextId }) => contextId === undefined)
  await shown.value().send('paint')
  const { contextId: own = '' } = await shown.until(({ question }) => question !== undefined)
  let looks = 0
  shown.render({ contextId: own })
  t.match(await shown.until(() => (looks += 1) > 1), { contextId: own }, 'after the next rendering')
  shown.render({})
  t.match(
    await shown.until(({ messages }) => messages.length === 0),
    { contextId: undefined },
    'a new conversation after its own id'
  )
})

await t.test('useTask shows a task, answers it, and cancels another', async t => {
  const { url } = await serve(t, { work })
  const agent = await connect(url)
  t.teardown(() => agent.close())
  const begin = async () => {
    const answer = await agent.sendMessage({
      message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'paint' }] }
    })
    return 'task' in answer ? answer.task.id : ''
  }
  const [first, second] = [await begin(), await begin()]
  const shown = await rendered(t, ({ id }: { id: string }) => useTask(id, agent), { id: first })
  t.match(await shown.until(({ question }) => question !== undefined), {
    task: { id: first },
    question: { text: 'Which colour?' }
  })
  t.match(await refusal(shown.value().answer({ data: { colour: 'green' } })), { code: 'InvalidParams' })
  await shown.value().answer({ data: { colour: 'blue' } })
  t.match(await shown.until(({ task }) => task?.status.state === 'TASK_STATE_COMPLETED'), {
    question: undefined,
    task: { artifacts: [{ parts: [{ text: 'a blue boat' }] }] }
  })
  shown.render({ id: second })
  await shown.until(({ task }) => task?.id === second)
  await shown.value().cancel()
  await shown.until(({ task }) => task?.status.state === 'TASK_STATE_CANCELED')
})

await t.test('a hook without an agent says where to put it', async t => {
  const caught: unknown[] = []
  await rendered(
    t,
    () => {
      try {
        useTask('t')
      } catch (error) {
        caught.push(error)
      }
    },
    {}
  )
  t.match(caught, [
    {
      name: 'TypeError',
      message:
        'useTask has no agent. Put the component into <AgentProvider agent={agent}>, or pass the agent as the second argument.'
    }
  ])
})
