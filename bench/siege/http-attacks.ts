import { gzipSync } from 'node:zlib'
import { COSTLY, say, sayAtOnce, THREE_MEGABYTES } from './documents.ts'
import type { Lane, Attack } from './lane.ts'
import { again, one } from './task-attacks.ts'

/** Attacks over HTTP: JSON-RPC, REST, server-sent events, headers and targets. */
export const httpAttacks: Readonly<Record<string, Attack>> = {
  'answers over HTTP nobody reads': lane =>
    unread(lane, () => lane.http('GET', `/tasks/${lane.random.of([lane.prey.large, lane.prey.grown])}`), 100),
  'streams over HTTP nobody reads': lane =>
    unread(lane, () => lane.http('POST', '/message:stream', say(lane.random.of(['grow 200', 'tick 5000']))), 1),
  'pages over HTTP nobody reads': lane =>
    unread(lane, () => lane.http('GET', '/tasks?pageSize=100&includeArtifacts=true'), 100),
  'pages by REST': lane =>
    talks(
      lane,
      () =>
        lane.http(
          'GET',
          `/tasks?pageSize=${lane.random.of(['100', '0', '1e3', '-1'])}&includeArtifacts=true&pageToken=${lane.random.of(['', '%00', 'x'])}`
        ),
      5
    ),
  'the largest task by REST': lane => talks(lane, () => lane.http('GET', `/tasks/${lane.prey.grown}`), 1),
  'subscriptions by REST': lane => talks(lane, () => lane.http('GET', `/tasks/${one(lane)}:subscribe`), 5),
  'costly bodies': lane =>
    talks(
      lane,
      () =>
        lane.http('POST', lane.random.of(['/', '/message:send', '/message:stream', '/v1/message:send']), body(lane)),
      1
    ),
  'bodies that never end': bodiesThatNeverEnd,
  'headers that never end': headersThatNeverEnd,
  'more headers than there is room for': lane =>
    talks(
      lane,
      () =>
        lane.http(
          'GET',
          '/',
          '',
          Array.from({ length: 3000 }, (_, i) => `X-${i}: ${'a'.repeat(lane.random.below(20))}`)
        ),
      1
    ),
  'another Upgrade': lane =>
    talks(
      lane,
      () =>
        lane.http('POST', '/', lane.request('SendMessage', say('hello')), [
          'Connection: Upgrade, HTTP2-Settings',
          `Upgrade: ${lane.random.of(['h2c', 'TLS/1.0', 'websocket, h2c', 'x'.repeat(2000), ''])}`,
          'HTTP2-Settings: AAMAAABkAAQAAP__'
        ]),
      3
    ),
  'odd targets': lane => talks(lane, () => lane.http('GET', lane.random.of(TARGETS)), 10),
  'odd hosts': lane =>
    talks(
      lane,
      () =>
        lane.http('GET', lane.random.of(['/tasks', '/.well-known/agent-card.json']), '', [
          `Host: ${lane.random.of(HOSTS)}`
        ]),
      5
    ),
  'bodies labelled as encoded': lane =>
    talks(
      lane,
      () =>
        lane.http('POST', '/', lane.request('SendMessage', say('hello')), [
          `Content-Encoding: ${lane.random.of(['gzip', 'br', 'deflate', 'zstd', 'gzip, gzip', 'identity, gzip'])}`
        ]),
      3
    ),
  'a bomb of gzip': lane =>
    talks(
      lane,
      () =>
        Buffer.concat([lane.http('POST', '/', '', ['Content-Encoding: gzip', `Content-Length: ${BOMB.length}`]), BOMB]),
      1
    ),
  'two lengths for one body': lane =>
    talks(lane, () => lane.http('POST', '/', 'GET /tasks HTTP/1.1\r\n\r\n', lane.random.of(LENGTHS)), 2),
  'chunks of a byte with extensions': lane =>
    talks(
      lane,
      () =>
        lane.http('POST', '/', `${`1;${'x'.repeat(200)}\r\n \r\n`.repeat(2000)}0\r\n\r\n`, [
          'Transfer-Encoding: chunked'
        ]),
      1
    ),
  'HTTP that is none': lane =>
    talks(lane, () => Buffer.from(Array.from({ length: 2000 }, () => lane.random.below(256))), 1),
  'tasks of 3 MB by REST': lane =>
    talks(lane, () => lane.http('POST', '/message:send', sayAtOnce('wait', THREE_MEGABYTES)), 4),
  'older versions': lane =>
    talks(
      lane,
      () =>
        lane.http('POST', '/', lane.request(lane.random.of(OLD), oldParams(lane)), [
          `A2A-Version: ${lane.random.of(['0.3', '0.1', '', '1.0', '9'])}`
        ]),
      10
    )
}

const BOMB = gzipSync(Buffer.alloc(200 * 1024 * 1024, 0x20))

const TARGETS = [
  '/tasks/%2e%2e',
  '/tasks/%2e',
  '/tasks/..',
  '/../../etc/passwd',
  '//',
  '/./tasks',
  '/tasks/%',
  '/tasks/%00',
  '/tasks/%ff',
  '/tasks/%2f%2e%2e%2f',
  '*',
  'http://evil.example/tasks',
  'http://127.0.0.1@evil.example/tasks',
  'http://',
  'https://[::1',
  '/tasks?pageSize=1&pageSize=2',
  '/tasks?__proto__=1',
  '/tasks?constructor[prototype]=1',
  `/tasks/${'a'.repeat(15_000)}`,
  `/${'a/'.repeat(7000)}`,
  `/tasks?${'a=1&'.repeat(3500)}`,
  '/tasks/x:cancel',
  '/tasks/x:subscribe:subscribe',
  '/tasks/__proto__',
  '/.well-known/agent.json'
]

const HOSTS = [
  'localhost:99999',
  '[localhost]',
  'localhost:',
  '[::1',
  '127.0.0.1:0',
  'evil.example',
  '',
  ' ',
  'a'.repeat(8000),
  '127.0.0.1, evil.example',
  'localhost#',
  'localhost?'
]

const LENGTHS = [
  ['Content-Length: 5', 'Transfer-Encoding: chunked'],
  ['Content-Length: 5', 'Content-Length: 6'],
  ['Content-Length: -1'],
  ['Content-Length: 99999999999999999999'],
  ['Content-Length: 0x10'],
  ['Transfer-Encoding: chunked, identity'],
  ['Transfer-Encoding: xchunked'],
  ['Content-Length: 5000000']
]

const OLD = [
  'message/send',
  'message/stream',
  'tasks/get',
  'tasks/cancel',
  'tasks/resubscribe',
  'tasks/send',
  'tasks/sendSubscribe',
  'tasks/pushNotificationConfig/set',
  'agent/getAuthenticatedExtendedCard'
]

function oldParams(lane: Lane): string {
  const message = `{"kind":"message","messageId":"o-${lane.random.below(1e9)}","role":"user","parts":[{"kind":"text","type":"text","text":"${lane.random.of(['hello', 'sleep', 'ask'])}"}]}`
  return lane.random.of([
    `{"message":${message}}`,
    `{"id":"old-${lane.random.below(5)}","message":${message}}`,
    `{"id":"${one(lane)}"}`,
    `{"message":${message},"metadata":{"a":[${'1,'.repeat(200_000)}1]}}`
  ])
}

/** Costly parameters as a body of JSON-RPC or of REST. */
function body(lane: Lane): string {
  const params = COSTLY[lane.random.of(Object.keys(COSTLY))]?.() ?? ''
  return lane.random.below(2) === 0 ? params : lane.request('SendMessage', params)
}

async function talks(lane: Lane, bytes: () => Buffer, atOnce: number): Promise<void> {
  const until = performance.now() + lane.holdMs
  while (!lane.isOver && performance.now() < until) {
    const wire = await lane.connection()
    for (let tries = 0; tries < 20 && !wire.isGone && !lane.isOver && performance.now() < until; tries += 1) {
      await wire.write(Buffer.concat(Array.from({ length: atOnce }, bytes)), lane.holdMs)
      await wire.hold(10)
    }
  }
}

async function unread(lane: Lane, bytes: () => Buffer, count: number): Promise<void> {
  const wire = await lane.connection()
  wire.unread()
  await wire.write(Buffer.concat(Array.from({ length: count }, bytes)), lane.holdMs)
  await wire.hold(lane.holdMs)
}

/** Sends all of a body but its end. */
async function bodiesThatNeverEnd(lane: Lane): Promise<void> {
  const wire = await lane.connection()
  await wire.write(lane.http('POST', '/', ' '.repeat(4_000_000), ['Content-Length: 4100000']), lane.holdMs)
  await again(lane, wire, () => Buffer.from(' '))
}

async function headersThatNeverEnd(lane: Lane): Promise<void> {
  const wire = await lane.connection()
  await wire.write('GET / HTTP/1.1\r\n', lane.holdMs)
  await again(lane, wire, () => Buffer.from(`X-${lane.random.below(1e9)}: a\r\n`))
}
