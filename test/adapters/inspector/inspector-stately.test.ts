import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createWebSocketReceiver, type StatelyInspectionEvent } from '@statelyai/inspect'
import { createInspectorServer } from '@statelyai/inspect/server'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { fromPromise } from 'xstate'
import { loadStately, statelyScript, WAITING_BYTES } from '../../../adapters/inspector/stately.ts'
import { setupWork } from '../../../runtime/authoring/setup-work.ts'
import { TOKEN } from '../../fixtures/pages/feed-reader.ts'
import { inspected, type InspectedAgent } from '../../fixtures/pages/inspected-agent.ts'
import { say, taskIn, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { obedient } from '../../fixtures/servers/served-agent.ts'
import { unusedPort } from '../../fixtures/network/unused-port.ts'

/** The events that Stately's own receiver gets from an address. */
function received(server: string): StatelyInspectionEvent[] {
  const events: StatelyInspectionEvent[] = []
  createWebSocketReceiver({ server }).subscribe(event => events.push(event))
  return events
}

/** A receiver that is not Stately's. */
async function listeningReceiver(t: Test): Promise<{ receiver: WebSocketServer; port: number }> {
  const receiver = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.teardown(() => {
    for (const client of receiver.clients) client.terminate()
    receiver.close()
  })
  await once(receiver, 'listening')
  return { receiver, port: (receiver.address() as AddressInfo).port }
}

const wire = ({ url }: InspectedAgent) => `${url.replace('http', 'ws')}inspector/stately?token=${TOKEN}`

/** Each event, shortly. */
function brief(event: StatelyInspectionEvent): string {
  if (event.type === '@xstate.actor') return `actor ${event.name}`
  return event.type === '@xstate.event'
    ? `event ${event.event.type}`
    : `snapshot ${event.event.type} ${event.snapshot.status}`
}

/** Checks what a receiver got of one task from its beginning to its end. */
function checkWhole(t: Test, events: readonly StatelyInspectionEvent[], taskId: string): void {
  const actors = events.filter(event => event.type === '@xstate.actor')
  t.strictSame(
    actors.map(({ name }) => name),
    ['context', taskId, 'work']
  )
  const [context, task, work] = actors
  t.strictSame(
    [context?.parentId, task?.parentId, work?.parentId],
    [undefined, context?.sessionId, task?.sessionId],
    'each has its parent'
  )
  t.match(
    actors.map(({ definition = '{}' }) => JSON.parse(definition)),
    [
      { id: 'context', states: { idle: {} } },
      { id: 'task', states: { active: {} } },
      { initial: 'choosing', states: { asking: { tags: 'input-required' } } }
    ]
  )
  t.match(
    actors.map(({ snapshot }) => snapshot),
    [
      { status: 'active', value: 'idle' },
      { status: 'active', value: { active: 'submitted' } },
      { status: 'active', value: 'asking' }
    ],
    'in its initial state'
  )
  const of = (sessionId = '') => events.filter(event => event.sessionId === sessionId).map(brief)
  t.strictSame(of(work?.sessionId), [
    'actor work',
    'event xstate.init',
    'snapshot xstate.init active',
    'event message.received',
    'snapshot message.received done'
  ])
  t.strictSame(
    of(task?.sessionId).filter(line => line.startsWith('event')),
    ['xstate.init', 'task.start', 'work.asked', 'message.received', 'work.resumed', 'xstate.done.actor.work'].map(
      type => `event ${type}`
    )
  )
  t.equal(of(task?.sessionId).at(-1), 'snapshot xstate.done.actor.work done')
  t.match(events.filter(event => event.type === '@xstate.snapshot' && event.sessionId === task?.sessionId).at(-1), {
    snapshot: { value: 'completed' }
  })
}

/** Has a task ask and end. */
async function wholeTask({ runtime }: InspectedAgent): Promise<string> {
  const { id } = taskIn(await runtime.sendMessage(say('ask', { contextId: 'c', metadata: { apiKey: 'sesame' } })))
  await runtime.sendMessage(say('password=hunter2', { taskId: id }))
  return id
}

await t.test(
  "Stately's receiver gets every actor with definition, events and snapshots, ordered and without secrets",
  async t => {
    const agent = await inspected(t, { work: obedient })
    const events = received(wire(agent))
    await until(() => agent.observers() === 1)
    const taskId = await wholeTask(agent)
    await until(() => events.some(event => brief(event) === 'snapshot xstate.done.actor.work done'))
    checkWhole(t, events, taskId)
    t.notMatch(JSON.stringify(events), /hunter2|sesame/)
  }
)

await t.test("Stately's own server gets the same after reconnects, without keeping the process alive", async t => {
  const port = await unusedPort()
  const agent = await inspected(t, { work: obedient }, { stately: `ws://127.0.0.1:${port}` })
  // By then the first try has failed.
  const vain = new WebSocket(`ws://127.0.0.1:${port}`)
  await once(vain, 'error')
  const relay = createInspectorServer({ port, autoOpen: false })
  t.teardown(() => relay.stop())
  // The events for its receiver, by a socket that can be closed.
  const socket = new WebSocket(`ws://127.0.0.1:${port}`)
  t.teardown(() => socket.terminate())
  const events: StatelyInspectionEvent[] = []
  socket.on('message', (data: Buffer) => events.push(JSON.parse(data.toString('utf8')) as StatelyInspectionEvent))
  await once(socket, 'open')
  await until(() => agent.observers() === 1)
  const taskId = await wholeTask(agent)
  await until(() => events.some(event => brief(event) === 'snapshot xstate.done.actor.work done'))
  checkWhole(t, events, taskId)
  await agent.close()
  await until(() => agent.observers() === 0)
})

await t.test('a receiver that disconnects is removed, and gets the current actors when it returns', async t => {
  const { receiver, port } = await listeningReceiver(t)
  const texts: string[] = []
  receiver.on('connection', socket => socket.on('message', (data: Buffer) => texts.push(data.toString('utf8'))))
  const agent = await inspected(t, { work: obedient }, { stately: `ws://127.0.0.1:${port}` })
  await until(() => agent.observers() === 1)
  await agent.runtime.sendMessage(say('ask', { contextId: 'c' }))
  const page = await agent.page()
  await page.frame('hello')
  for (const client of receiver.clients) client.terminate()
  texts.splice(0)
  await until(() => texts.length >= 3)
  t.match(
    texts.slice(0, 3).map(text => JSON.parse(text)),
    [
      { type: '@xstate.actor', name: 'context' },
      { type: '@xstate.actor' },
      { type: '@xstate.actor', name: 'work', snapshot: { value: 'asking' } }
    ]
  )
})

await t.test('an error in the redact hook is logged, and does not affect the actors', async t => {
  const agent = await inspected(
    t,
    { work: obedient },
    {
      redact: value => {
        if (JSON.stringify(value)?.includes('boom')) throw new Error('no')
        return value
      }
    }
  )
  const socket = new WebSocket(wire(agent))
  t.teardown(() => socket.terminate())
  await once(socket, 'open')
  await until(() => agent.observers() === 1)
  t.match(await agent.runtime.sendMessage(say('boom', { contextId: 'c' })), {
    task: { status: { state: 'TASK_STATE_COMPLETED' } }
  })
  t.ok(agent.log.some(({ message }) => message === 'the inspector failed'))
})

await t.test('a receiver gets nothing of passivated contexts', async t => {
  const agent = await inspected(t, { work: obedient }, {}, { limits: { advanced: { idleContexts: 1 } } })
  const page = await agent.page()
  await page.frame('hello')
  for (const contextId of ['a', 'b']) await agent.runtime.sendMessage(say('x', { contextId }))
  const texts: string[] = []
  const socket = new WebSocket(wire(agent))
  t.teardown(() => socket.terminate())
  socket.on('message', (data: Buffer) => texts.push(data.toString('utf8')))
  await until(() => texts.length > 0)
  t.match(
    texts.map(text => JSON.parse(text)),
    [{ type: '@xstate.actor', snapshot: { context: { contextId: 'b' } } }]
  )
})

await t.test('a receiver that reads too slowly is closed, and nothing waits for it', async t => {
  const { receiver, port } = await listeningReceiver(t)
  const gone: unknown[] = []
  receiver.on('connection', socket => {
    socket.pause()
    socket.on('close', () => gone.push(socket))
  })
  const agent = await inspected(
    t,
    { work: obedient },
    {
      stately: `ws://127.0.0.1:${port}`,
      redact: value => ({ ...(value as object), bulk: 'x'.repeat(WAITING_BYTES / 4) })
    }
  )
  const direct = new WebSocket(wire(agent))
  t.teardown(() => direct.terminate())
  await once(direct, 'open')
  direct.pause()
  await until(() => agent.observers() === 1)
  await until(async () => {
    await agent.runtime.sendMessage(say('x', { contextId: 'c' }))
    return agent.observers() === 0
  })
  t.pass('both were closed')
})

await t.test("an actor's values are shown where possible: definition data, errors, no chart", async t => {
  const work = setupWork({
    types: { context: {} as { token: string } },
    actors: { paint: fromPromise(() => Promise.reject(new Error('no paint'))) }
  }).createMachine({
    context: { token: 'sesame' },
    initial: 'on',
    states: { on: { invoke: { id: 'paint', src: 'paint', onError: 'off' } }, off: { type: 'final' } }
  })
  const agent = await inspected(t, { work })
  const events = received(wire(agent))
  await until(() => agent.observers() === 1)
  await agent.runtime.sendMessage(say('x', { contextId: 'c' }))
  await until(() =>
    events.some(event => event.type === '@xstate.event' && event.event.type === 'xstate.done.actor.work')
  )
  const definitions = events.flatMap(event => (event.type === '@xstate.actor' ? [event.definition] : []))
  t.ok(definitions.includes('{"id":"paint"}'))
  t.ok(definitions.some(text => text?.includes('"context":{"token":"[redacted]"}')))
  t.notMatch(JSON.stringify(events), 'sesame')
})

await t.test(
  "the page at /stately forwards everything to Stately's inspector, and loads nothing else there",
  async t => {
    const { url } = await inspected(t, { work: obedient })
    const page = await fetch(`${url}stately`)
    t.match(page.headers.get('content-security-policy'), 'frame-src https://stately.ai')
    const html = await page.text()
    t.match(html, `<body data-token="${TOKEN}">`)
    t.match(html, '<iframe title="Stately Inspector" src="https://stately.ai/inspect">')
    t.notMatch(html, /<script>/)
    const script = await fetch(`${url}inspector/stately.js`)
    t.match(script.headers.get('content-type'), 'text/javascript')
    t.equal(await script.text(), statelyScript)
  }
)

await t.test("the wire and its option are refused without Stately's package, with what to install", async t => {
  const missing = () => Promise.reject(new Error('Cannot find package'))
  await t.rejects(loadStately(missing), { name: 'TypeError', message: /npm install --save-dev @statelyai\/inspect/ })
  const agent = await inspected(t, { work: obedient }, { loadStately: () => loadStately(missing) })
  const socket = new WebSocket(wire(agent))
  const [code, reason] = await once(socket, 'close')
  t.match([code, String(reason)], [1008, /npm install/])
  t.equal(agent.observers(), 0)
  await t.rejects(
    inspected(t, { work: obedient }, { stately: 'ws://127.0.0.1:9', loadStately: () => loadStately(missing) }),
    { message: /npm install/ }
  )
})
