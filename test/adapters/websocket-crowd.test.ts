import t from 'tap'
import { WebSocket } from 'ws'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from '../../adapters/client/connect.ts'
import { collect, open, reaches, say, taskIn, until } from '../fixtures/runtime-helpers.ts'
import { frameOf, OPCODES, RawSocket } from '../fixtures/raw-socket.ts'
import { obedient, serve } from '../fixtures/served-agent.ts'

await t.test('with 1,000 streams on one connection every call is answered, and no stream is left out', async t => {
  const { url, runtime } = await serve(t, { work: obedient })
  const client = await connect(url)
  t.teardown(() => client.close())
  const task = await open(runtime, 'ask')
  await reaches(runtime, task.id, 'input-required')
  const streams = Array.from({ length: 1000 }, () => client.subscribeToTask({ id: task.id }))
  const firsts = await Promise.all(streams.map(stream => stream.next()))
  t.ok(firsts.every(({ value }) => value && 'task' in value))
  const rest = streams.map(stream => collect(stream))
  for (let round = 0; round < 4; round += 1) {
    if (round === 2) await runtime.sendMessage(say('over', { taskId: task.id }))
    const answers = await Promise.all(Array.from({ length: 90 }, () => client.getTask({ id: task.id })))
    t.ok(answers.every(({ id }) => id === task.id), `round ${round}`)
  }
  const told = await Promise.all(rest)
  t.same(new Set(told.map(events => JSON.stringify(events))).size, 1, 'each stream tells the same')
  t.match(told[0]?.at(-1), { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } })
})

await t.test('50 clients that vanish without a word leave nothing behind, and their tasks go on', async t => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { url, runtime, clock } = await serve(t, { work: obedient }, {}, { server })
  const timers = clock.pending
  const listeners = process.getActiveResourcesInfo().length
  const task = await open(runtime, 'ask')
  await reaches(runtime, task.id, 'input-required')

  const sockets = await Promise.all(Array.from({ length: 50 }, async () => {
    const socket = new WebSocket(url, { headers: { 'a2a-version': '1.0' } })
    await once(socket, 'open')
    socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: task.id } }))
    socket.send(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'SendMessage', params: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'ask' }] } } }))
    await once(socket, 'message')
    return socket
  }))
  for (const socket of sockets) socket.terminate()
  const connections = () => new Promise<number>(resolve => server.getConnections((_, count) => resolve(count)))
  await until(async () => (await connections()) === 0)
  await until(() => process.getActiveResourcesInfo().length <= listeners)
  t.equal(clock.pending, timers)
  t.match(taskIn(await runtime.sendMessage(say('over', { taskId: task.id }))), { status: { state: 'TASK_STATE_COMPLETED' } })
})

await t.test('a frame that was begun and not finished closes the connection with 4408 after 30 seconds of silence', async t => {
  const { url, clock } = await serve(t, { work: obedient })
  const timers = clock.pending
  const raw = await RawSocket.open(t, url)
  const request = frameOf({ payload: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { filler: 'x'.repeat(300) } }) })
  for (const end of [1, 3, 7, 100]) {
    raw.write(request.subarray(0, end))
    await until(() => clock.pending === timers + 1)
    clock.increment(20_000)
    raw.write(request.subarray(end))
    t.match(await raw.json(), { id: 1, result: {} }, `begun with ${end} bytes, and finished in time`)
    t.equal(clock.pending, timers)
  }
  raw.write(Buffer.concat([frameOf({ payload: 'x', opcode: OPCODES.pong }), frameOf({ payload: 'x', promised: 70_000 })]))
  await until(() => clock.pending === timers + 1)
  clock.increment(30_000)
  let last = await raw.frame()
  while (last && last.opcode !== OPCODES.close) last = await raw.frame()
  t.equal(last?.payload.readUInt16BE(0), 4408)
  raw.socket.destroy()
  await until(() => clock.pending === timers)
})
