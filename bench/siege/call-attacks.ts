import { badFrames, badHandshakes, badParams, badTexts } from '../../test/fixtures/protocol/bad-input.ts'
import { closeFrame, frameOf, handshake, OPCODES } from '../../test/fixtures/servers/raw-socket.ts'
import { COSTLY, say } from './documents.ts'
import type { Lane, Attack } from './lane.ts'
import { again, one } from './task-attacks.ts'
import { textFrame } from './wire.ts'

/** Attacks by calls and frames over WebSocket. */
export const callAttacks: Readonly<Record<string, Attack>> = {
  'answers nobody reads': lane =>
    unread(lane, 'GetTask', () => `{"id":"${lane.random.of([lane.prey.large, lane.prey.grown])}"}`, 100),
  'streams nobody reads': lane =>
    unread(
      lane,
      'SubscribeToTask',
      () => `{"id":"${lane.random.of([lane.prey.large, lane.prey.asking, lane.prey.running])}"}`,
      300
    ),
  'pages nobody reads': lane => unread(lane, 'ListTasks', () => '{"pageSize":100,"includeArtifacts":true}', 100),
  'events nobody reads': lane =>
    unread(lane, 'SendStreamingMessage', () => say(lane.random.of(['grow 200', 'tick 5000'])), 20),
  'the largest task, again and again': lane => read(lane, 'GetTask', () => `{"id":"${lane.prey.grown}"}`, 1),
  'pages of the largest tasks': lane =>
    read(
      lane,
      'ListTasks',
      () => `{"pageSize":100,"includeArtifacts":true,"pageToken":"${lane.random.of(['', 'x', 'AAAA'])}"}`,
      2
    ),
  'pages of all tasks': lane =>
    read(
      lane,
      'ListTasks',
      () =>
        `{"pageSize":${lane.random.of([1, 100])},"status":"${lane.random.of(['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED', ''])}"}`,
      20
    ),
  'long polls': lane =>
    read(
      lane,
      'GetTask',
      () =>
        `{"id":"${one(lane)}"},"a2a-service-parameters":{"a2a-extensions":"urn:taskchart:extension:reliability:1","taskchart-current-generation":"${lane.random.of(['1', '99999', '-1', 'x', '1e9'])}"}`,
      100
    ),
  'streams from odd cursors': lane =>
    read(
      lane,
      'SubscribeToTask',
      () =>
        `{"id":"${one(lane)}"},"a2a-service-parameters":{"a2a-extensions":"urn:taskchart:extension:reliability:1","taskchart-after-generation":"${lane.random.of(['0', '1', '9007199254740993', '-1', ''])}"}`,
      100
    ),
  'streams that are canceled': streamsCanceled,
  'stray frames': lane => frames(lane, () => lane.random.of(STRAY)),
  'frames that are bad': lane => frames(lane, () => lane.random.of(badTexts).text),
  'parameters that are bad': lane => frames(lane, () => filled(lane, badCall(lane))),
  'frames that break the protocol': breaks,
  'costly parameters': lane => frames(lane, () => costly(lane), 1),
  pings: lane => floods(lane, frameOf({ opcode: OPCODES.ping, payload: 'a'.repeat(125) }), 2000),
  'empty texts': lane => floods(lane, textFrame(''), 5000),
  'pongs, and a close again and again': lane =>
    floods(lane, Buffer.concat([frameOf({ opcode: OPCODES.pong }), closeFrame(1000)]), 500),
  'half a frame': halfAFrame,
  'empty fragments': fragments,
  'handshakes that are bad': async lane => {
    for (let tries = 0; tries < 20 && !lane.isOver; tries += 1) {
      const wire = await lane.connection()
      await wire.write(handshake(`ws://127.0.0.1:${lane.port}/`, lane.random.of(badHandshakes).given), lane.holdMs)
      await wire.hold(20)
    }
  },
  'connections that come and go': async lane => {
    for (let tries = 0; tries < 200 && !lane.isOver; tries += 1) {
      const wire = await (lane.random.below(2) === 0 ? lane.connection() : lane.webSocket())
      if (lane.random.below(2) === 0) await wire.hold(lane.random.below(5))
    }
  }
}

const STRAY = [
  '{"jsonrpc":"2.0","id":1,"streamEnd":true}',
  '{"jsonrpc":"2.0","id":1,"result":{}}',
  '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}',
  '{"jsonrpc":"2.0","method":"cancelStream","params":{"id":"__proto__"}}',
  '{"jsonrpc":"2.0","method":"cancelStream","params":{"id":1e999}}',
  '{"jsonrpc":"2.0","method":"SendMessage","params":{}}',
  '{"jsonrpc":"2.0","id":"__proto__","method":"ping"}',
  '{"jsonrpc":"2.0","id":"constructor","method":"ListTasks","params":{}}',
  '{"jsonrpc":"2.0","id":1,"method":"ping"}',
  '{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}'
]

function badCall(lane: Lane): string {
  const { methods, params } = lane.random.of(badParams)
  return lane.request(lane.random.of(methods), params)
}

function filled({ prey: { running, large, asking } }: Lane, text: string): string {
  return text
    .replaceAll('$WORKING', running)
    .replaceAll('$DONE', large)
    .replaceAll('$ASKING', asking)
    .replaceAll('$CONTEXT', 'one')
}

function costly(lane: Lane): string {
  return lane.request(
    lane.random.of(['SendMessage', 'SendStreamingMessage', 'GetTask', 'NoSuchMethod']),
    COSTLY[lane.random.of(Object.keys(COSTLY))]?.() ?? ''
  )
}

async function unread(lane: Lane, method: string, params: () => string, count: number): Promise<void> {
  const wire = await lane.webSocket()
  wire.unread()
  await wire.write(
    Buffer.concat(Array.from({ length: count }, () => textFrame(lane.request(method, params())))),
    lane.holdMs
  )
  await wire.hold(lane.holdMs)
}

async function read(lane: Lane, method: string, params: () => string, atOnce: number): Promise<void> {
  const wire = await lane.webSocket()
  await again(lane, wire, () =>
    Buffer.concat(Array.from({ length: atOnce }, () => textFrame(lane.request(method, params()))))
  )
}

async function frames(lane: Lane, text: () => string, atOnce = 50): Promise<void> {
  const until = performance.now() + lane.holdMs
  while (!lane.isOver && performance.now() < until) {
    const wire = await lane.webSocket()
    for (let tries = 0; tries < 20 && !wire.isGone && !lane.isOver && performance.now() < until; tries += 1) {
      await wire.write(Buffer.concat(Array.from({ length: atOnce }, () => textFrame(text()))), lane.holdMs)
      await wire.hold(5)
    }
  }
}

async function breaks(lane: Lane): Promise<void> {
  for (let tries = 0; tries < 20 && !lane.isOver; tries += 1) {
    const wire = await lane.webSocket()
    for (const bytes of lane.random.of(badFrames).bytes) await wire.write(bytes, lane.holdMs)
    await wire.hold(10)
  }
}

async function floods(lane: Lane, frame: Buffer, count: number): Promise<void> {
  const bytes = Buffer.concat(Array.from({ length: count }, () => frame))
  await again(lane, await lane.webSocket(), () => bytes)
}

async function streamsCanceled(lane: Lane): Promise<void> {
  const pairs = () => {
    const subscribe = lane.request('SubscribeToTask', `{"id":"${one(lane)}"}`)
    const cancel = `{"jsonrpc":"2.0","method":"cancelStream","params":{"id":${JSON.parse(subscribe).id}}}`
    return Buffer.concat([textFrame(subscribe), textFrame(cancel)])
  }
  await again(lane, await lane.webSocket(), () => Buffer.concat(Array.from({ length: 50 }, pairs)))
}

/** Promises 4 MiB, and sends nearly all of it a piece at a time. */
async function halfAFrame(lane: Lane): Promise<void> {
  const wire = await lane.webSocket()
  await wire.write(frameOf({ promised: 4 * 1024 * 1024 }), lane.holdMs)
  await again(lane, wire, () => Buffer.alloc(64 * 1024, 0x20))
}

async function fragments(lane: Lane): Promise<void> {
  const wire = await lane.webSocket()
  await wire.write(frameOf({ payload: '{', isLast: false }), lane.holdMs)
  const piece = Buffer.concat(
    Array.from({ length: 100 }, () =>
      frameOf({ opcode: OPCODES.continuation, isLast: false, payload: lane.random.below(2) === 0 ? '' : ' ' })
    )
  )
  await again(lane, wire, () => piece)
}
