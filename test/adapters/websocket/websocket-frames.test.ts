import { EventEmitter } from 'node:events'
import type { Writable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import * as ws from 'ws'
import { FrameWatch, ReadPause, readWholeFrames } from '../../../adapters/websocket/incoming-frames.ts'
import { framesOf, Outbox } from '../../../adapters/websocket/outbox.ts'
import { afterRound } from '../../../runtime/primitives/event-loop.ts'
import { closeFrame, frameOf, OPCODES, RawSocket, textsIn } from '../../fixtures/servers/raw-socket.ts'
import { obedient, serve } from '../../fixtures/servers/served-agent.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const MEBIBYTE = 1024 * 1024

/** The parser of ws, which is missing in its types. */
const { Receiver } = ws as unknown as { readonly Receiver: new (options: object) => Writable }

await t.test('a deferrable frame leaves with the next round, or with an urgent one', async t => {
  const flushes: string[][] = []
  const stream = { writableLength: 0, write: (bytes: Buffer) => flushes.push(textsIn(bytes)) }
  const socket = { readyState: 1, OPEN: 1 }
  const outbox = new Outbox(socket as never, stream as never, new ReadPause(socket as never), new TestClock())
  const turn = () => new Promise<void>(afterRound)
  outbox.send('event', 'next round')
  await turn()
  t.strictSame(flushes, [])
  await turn()
  t.strictSame(flushes, [['event']])
  outbox.send('event 2', 'next round')
  outbox.send('answer')
  outbox.send('event 3', 'next round')
  await turn()
  t.strictSame(flushes, [['event'], ['event 2', 'answer', 'event 3']])
  await turn()
  await turn()
  t.equal(flushes.length, 2)
})

await t.test('what waits for the end of the turn is not written to a connection that has closed meanwhile', async t => {
  const written: Buffer[] = []
  const socket = { readyState: 1, OPEN: 1 }
  const outbox = new Outbox(
    socket as never,
    { writableLength: 0, write: (bytes: Buffer) => written.push(bytes) } as never,
    new ReadPause(socket as never),
    new TestClock()
  )
  outbox.send('late')
  socket.readyState = 3
  await new Promise<void>(afterRound)
  t.strictSame(written, [])
})

await t.test('answers of a turn are read before the close frame that follows in it, of either side', async t => {
  const { url } = await serve(t, { work: obedient })
  const ping = frameOf({ payload: '{"jsonrpc":"2.0","id":1,"method":"ping"}' })
  for (const [frame, code] of [
    [frameOf({ opcode: OPCODES.binary, payload: 'x' }), 1003],
    [closeFrame(1000), 1000],
    [frameOf({ opcode: 5 }), 1002]
  ] as const) {
    const raw = await RawSocket.open(t, url)
    raw.write(Buffer.concat([ping, frame]))
    t.match(await raw.json(), { id: 1, result: {} })
    const close = await raw.frame()
    t.strictSame([close?.opcode, close?.payload.readUInt16BE(0)], [OPCODES.close, code])
  }
})

await t.test('messages are read however their frames are split, mixed and fragmented', async t => {
  const text = (payload: string | Buffer, more: Partial<Parameters<typeof frameOf>[0]> = {}) =>
    frameOf({ payload, ...more })
  const long = '€'.repeat(100)
  const bytes = Buffer.concat([
    text('a'),
    text(long),
    text('kept \uFFFD'),
    frameOf({ opcode: OPCODES.ping, payload: 'p' }),
    text('b'),
    text('c1', { isLast: false }),
    frameOf({ opcode: OPCODES.ping }),
    text('c2', { opcode: OPCODES.continuation }),
    text(''),
    text('', { isLast: false }),
    text('d', { opcode: OPCODES.continuation }),
    text('e'),
    text('x'.repeat(126)),
    text('f'),
    text(Buffer.from([0xc3])),
    text('never read')
  ])
  const read = async (chunks: readonly Buffer[]): Promise<string[]> => {
    const seen: string[] = []
    const stream = new EventEmitter()
    const receiver = new Receiver({ isServer: true, maxPayload: MEBIBYTE })
    const forward = (chunk: Buffer) => void receiver.write(chunk)
    receiver
      .on('message', (data: Buffer) => seen.push(`ws ${data.toString().slice(0, 9)}`))
      .on('ping', () => seen.push('ping'))
    receiver.on('error', ({ message }: Error) => {
      seen.push(message)
      stream.removeListener('data', forward)
    })
    stream.on('data', forward)
    const watch = new FrameWatch()
    readWholeFrames(stream as never, {
      watch,
      most: MEBIBYTE,
      read: text => seen.push(text.slice(0, 9)),
      before() {},
      fail: error => {
        throw error
      },
      arrived: rest => rest && watch.follow(rest)
    })
    for (const chunk of chunks) {
      stream.emit('data', Buffer.from(chunk))
      await setImmediate()
    }
    return seen.map(one => one.replace('ws ', ''))
  }
  const whole = ['a', long.slice(0, 9), 'kept \uFFFD', 'ping', 'b', 'ping', 'c1c2', '', 'd', 'e', 'x'.repeat(9), 'f']
  for (let at = 0; at <= bytes.length; at += 1)
    t.match(await read([bytes.subarray(0, at), bytes.subarray(at)]), [...whole, /UTF-8/], `split at ${at}`)
  t.match(await read(Array.from(bytes, byte => Buffer.from([byte]))), [...whole, /UTF-8/], 'byte by byte')
  t.match(await read([bytes.subarray(0, -20)]), whole)
  t.match(await read([text('a'), text('b', { isMasked: false })]), ['a', /MASK must be set/])
  t.match(await read([text('x'.repeat(2 * MEBIBYTE))]), [/Max payload size/])
  t.match(await read([text('x'.repeat(70_000)), text('a')]), ['x'.repeat(9), 'a'])
})

await t.test(
  'frames of any length and of any characters follow one another, also when they fill the memory for them',
  t => {
    const texts = [
      '',
      'a'.repeat(125),
      'ä'.repeat(63),
      'a'.repeat(126),
      '€'.repeat(21_845),
      '€'.repeat(21_846),
      '𐍈'.repeat(40),
      'a'.repeat(200_000),
      '€'.repeat(100_000)
    ]
    for (const text of [...texts, ...texts]) {
      const joined = [text.slice(0, 2), text.slice(2, 4), text.slice(4)]
      t.strictSame(
        textsIn(framesOf(['', 'before', '', ...joined, 'af', 'te', 'r'])),
        ['before', text, 'after'],
        `${text.length} characters`
      )
    }
    for (let i = 0; i < 100; i += 1) t.strictSame(textsIn(framesOf(['', 'x'.repeat(40_000), ''])), ['x'.repeat(40_000)])
    t.end()
  }
)
