import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { InTurn } from '../../../adapters/entry/received-requests.ts'
import { Inbox, ReadPause, Refusals } from '../../../adapters/websocket/incoming-frames.ts'
import { Outbox } from '../../../adapters/websocket/outbox.ts'
import type { Authenticate } from '../../../runtime/access/authentication.ts'
import { FairQueue, READING } from '../../../runtime/access/call-scheduler.ts'
import { ask, serveAll } from '../../fixtures/servers/http-agent.ts'
import { frameOf, RawSocket } from '../../fixtures/servers/raw-socket.ts'
import { say, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket, obedient } from '../../fixtures/servers/served-agent.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const byName: Authenticate = ({ headers }) => (headers['x-name'] ? { id: headers['x-name'] } : undefined)

/** A socket that notes whether it is read. */
function pausable() {
  const socket = { isRead: true, pause: () => void (socket.isRead = false), resume: () => void (socket.isRead = true) }
  return socket
}

await t.test('a connection is read again when the last reason to pause it ends', t => {
  const socket = pausable()
  const intake = new ReadPause(socket)
  intake.resume('share')
  intake.pause('quota')
  intake.pause('share')
  intake.pause('share')
  intake.resume('share')
  t.equal(socket.isRead, false)
  t.equal(intake.isPausedFor('quota'), true)
  intake.resume('share')
  intake.resume('quota')
  t.equal(socket.isRead, true)
  t.equal(intake.isPausedFor('quota'), false)
  t.end()
})

await t.test('a client over its quota is not read during its pause, whatever it reads', async t => {
  const clock = new TestClock()
  const socket = { ...pausable(), readyState: 1, OPEN: 1 }
  socket.pause = () => void (socket.isRead = false)
  socket.resume = () => void (socket.isRead = true)
  const listeners: (() => void)[] = []
  const stream = {
    writableLength: 0,
    write: () => (stream.writableLength = 2 ** 21),
    off: () => stream,
    on: (_: string, drained: () => void) => (listeners.push(drained), stream)
  }
  const intake = new ReadPause(socket)
  const outbox = new Outbox(socket as never, stream as never, intake, clock)
  const refusals = new Refusals(intake, clock)
  outbox.send('much')
  await setImmediate()
  for (let i = 0; i < 16; i += 1) refusals.note()
  for (const drained of listeners) drained()
  await setImmediate()
  t.equal(outbox.drained, undefined)
  t.equal(socket.isRead, false)
  clock.increment(2000)
  t.equal(socket.isRead, true)
})

/** An inbox, and what it has read. */
function filled({ reading = new FairQueue(READING), user = 'anna' } = {}) {
  const socket = pausable()
  const reads: string[] = []
  const inbox: Inbox = new Inbox({
    reading,
    connection: {},
    user,
    readPause: new ReadPause(socket),
    read: ({ bytes }) => void reads.push(String(bytes))
  })
  const add = (bytes: number) => inbox.add({ data: Buffer.alloc(bytes), bytes, isBinary: false, rate: 'within' }, true)
  return { socket, reads, inbox, add }
}

await t.test('an inbox', async t => {
  await t.test('parses small messages at once and one large message per round, in order', async t => {
    const { socket, reads, inbox, add } = filled()
    add(5)
    await setImmediate()
    for (const bytes of [10, 20, 1_000_000, 30, 2_000_000, 40]) add(bytes)
    t.strictSame(reads.splice(0, 1), ['5'])
    t.strictSame(reads, ['10', '20', '1000000'])
    t.equal(socket.isRead, false)
    t.equal(inbox.bytes, 2_000_070 + 3 * 128)
    await setImmediate()
    t.strictSame(reads.slice(3), ['30', '2000000'])
    t.equal(inbox.bytes, 40 + 128)
    await setImmediate()
    t.strictSame(reads.slice(5), ['40'])
    t.equal(inbox.bytes, 0)
    t.equal(socket.isRead, true)
  })

  await t.test('drops waiting messages when its connection is closed', async t => {
    const { reads, inbox, add } = filled()
    add(5)
    await setImmediate()
    for (const bytes of [1_000_000, 20]) add(bytes)
    inbox.clear()
    await setImmediate()
    await setImmediate()
    t.strictSame(reads, ['5', '1000000'])
    t.equal(inbox.bytes, 0)
  })

  await t.test('can be read before the end of the round, up to a message that waits for its share', async t => {
    const { reads, inbox, add } = filled()
    for (const bytes of [10, 1_000_000, 2_000_000, 20]) add(bytes)
    inbox.readWaiting()
    t.strictSame(reads, ['10', '1000000'])
    await setImmediate()
    t.strictSame(reads.slice(2), ['2000000'])
    await setImmediate()
    t.strictSame(reads.slice(3), ['20'])
  })

  await t.test('reads the messages of several clients together, each in order and by its share of rounds', async t => {
    const reading = new FairQueue(READING)
    const [anna, bob] = [filled({ reading }), filled({ reading, user: 'bob' })]
    for (const user of ['anna', 'bob']) void reading.next(user, 1)
    await setImmediate()
    for (const bytes of [10, 20]) for (const { add } of [anna, bob]) add(bytes)
    bob.add(30)
    anna.add(1_000_000)
    bob.add(2_000_000)
    t.strictSame([anna.reads, bob.reads], [[], []])
    t.equal(anna.inbox.bytes, 1_000_030 + 3 * 128)
    await setImmediate()
    t.strictSame(
      [anna.reads, bob.reads],
      [
        ['10', '20', '1000000'],
        ['10', '20', '30']
      ]
    )
    t.equal(bob.socket.isRead, false)
    await setImmediate()
    t.strictSame(bob.reads.slice(3), ['2000000'])
    t.equal(anna.inbox.bytes + bob.inbox.bytes, 0)
    t.equal(bob.socket.isRead, true)
  })
})

await t.test('a large message delays only its user, by its cost in rounds', async t => {
  const reading = new FairQueue(READING)
  const begun: string[] = []
  const call = async (user: string, bytes: number, name = user) => {
    await reading.next(user, bytes)
    begun.push(name)
  }
  const rest = async (loops: number) => {
    for (let i = 0; i < loops; i += 1) await setImmediate()
  }
  void call('quiet', 1)
  await rest(1)
  void call('noisy', 10 * READING.each)
  void call('noisy', 1, 'noisy again')
  for (let round = 0; round < 9; round += 1) {
    await rest(1)
    void call('quiet', 1, `quiet ${round}`)
  }
  await rest(1)
  t.equal(begun.indexOf('noisy again'), 10)
  t.equal(begun.indexOf('quiet 7'), 9)
})

await t.test(
  'messages of one user begin in the round in which another has used up its part, one large message in all',
  async t => {
    const reading = new FairQueue(READING)
    const atOnce = (user: string, bytes: number) => reading.next(user, bytes) === undefined
    void reading.next('noisy', 1)
    void reading.next('quiet', 1)
    await setImmediate()
    t.ok(atOnce('noisy', 10 * READING.each))
    t.notOk(atOnce('noisy', 1))
    t.ok(atOnce('quiet', READING.each / 2))
    t.ok(atOnce('quiet', READING.each / 2))
    t.notOk(atOnce('quiet', 1))
    t.notOk(atOnce('third', 10 * READING.each))
    t.equal(
      Array.from({ length: 40 }, (_, user) => atOnce(`user ${user}`, READING.each)).filter(Boolean).length,
      READING.all / READING.each - 2
    )
  }
)

/** Notes in which round of the event loop each large text is parsed, until the test ends. */
function parses(t: Test): number[] {
  const rounds: number[] = []
  let round = 0
  let isOver = false
  const count = () => {
    round += 1
    if (!isOver) globalThis.setImmediate(count)
  }
  count()
  const { parse } = JSON
  JSON.parse = (text, ...more) => {
    if (text.length > 500_000 && !text.includes('TASK_STATE')) rounds.push(round)
    return parse(text, ...more)
  }
  t.teardown(() => {
    isOver = true
    JSON.parse = parse
  })
  return rounds
}

const PARAMS = JSON.stringify(
  say('hello', { metadata: { filler: Array.from({ length: 3 }, () => 'x'.repeat(400_000)) } })
)

const LARGE = `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":${PARAMS}}`

await t.test('one large message is parsed per round of the event loop, over all connections', async t => {
  const { url } = await serveAll(t, { work: obedient }, { authenticate: byName })
  const rounds = parses(t)
  const sockets = await Promise.all(['anna', 'anna', 'bob'].map(name => RawSocket.open(t, url, [`X-Name: ${name}`])))
  for (const socket of sockets)
    for (let i = 0; i < 2; i += 1) socket.write(frameOf({ payload: LARGE.replace('"id":1', `"id":${i}`) }))
  const headers = { 'x-name': 'cleo', 'a2a-version': '1.0' }
  const answers = await Promise.all(Array.from({ length: 3 }, () => ask(url, { body: LARGE, headers })))
  t.strictSame(
    answers.map(({ status }) => status),
    [200, 200, 200]
  )
  const rest = await ask(`${url}message:send`, { body: PARAMS, headers })
  t.equal(rest.status, 200, rest.text)
  for (const socket of sockets) for (let i = 0; i < 2; i += 1) t.match(await socket.json(), { result: {} })
  t.equal(rounds.length, 6 + 3 + 1, 'each is parsed once')
  t.equal(new Set(rounds).size, rounds.length, `each in a round of its own: ${rounds.join()}`)
})

for (const way of ['WebSocket', 'HTTP'])
  await t.test(`a message over ${way} counts as unfinished until it is parsed`, async t => {
    const { url, runtime } = await serveAll(t, { work: obedient }, { authenticate: byName })
    const {
      unfinished,
      scheduler: { reading }
    } = runtime.settings
    const headers = { 'x-name': 'anna', 'a2a-version': '1.0' }
    const socket = await JsonSocket.open(t, url, { headers })
    let isOver = false
    // As long as several call she owes for a message that never was.
    const call = () => {
      for (const user of ['bob', 'cleo']) void reading.next(user, 1)
      if (!isOver) globalThis.setImmediate(call)
    }
    call()
    void reading.next('principal anna', 1e15)
    if (way === 'WebSocket') socket.send(LARGE)
    const asked = way === 'HTTP' ? ask(url, { body: LARGE, headers }).then(({ json }) => json) : socket.next(1)
    await until(() => unfinished.used >= LARGE.length, 'the message')
    for (let round = 0; round < 100; round += 1) await setImmediate()
    t.ok(unfinished.used >= LARGE.length)
    isOver = true
    const answer = await asked
    t.equal(answer.error, undefined, JSON.stringify(answer).slice(0, 300))
    await until(() => unfinished.used === 0, 'nothing')
  })

await t.test('pipelined requests pause their connection, though Node resumes it for bodies', async t => {
  const MOST = 10
  const inTurn = new InTurn(MOST)
  let [come, answered, most] = [0, 0, 0]
  const server = createServer((request, response) => {
    come += 1
    most = Math.max(most, come - answered)
    const answer = () => {
      answered += 1
      response.end('x')
    }
    const begin = () => void request.resume().once('end', () => globalThis.setImmediate(answer))
    inTurn.add({ response, socket: request.socket, begin, end() {} })
  })
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  const body = 'x'.repeat(500)
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n${body}`.repeat(3000))
  socket.resume()
  await until(() => answered === 3000, 'all answers')
  t.ok(most <= MOST + 2 * Math.ceil(65_536 / 550), `${most} waited`)
})
