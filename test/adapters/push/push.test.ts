import type { ServerResponse } from 'node:http'
import { createServer, getDefaultAutoSelectFamily, setDefaultAutoSelectFamily, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { isLoopbackAddress, isPublicAddress } from '../../../adapters/push/webhook-address.ts'
import { webhooks, type WebhooksOptions } from '../../../adapters/push/webhooks.ts'
import { inputRequired } from '../../../runtime/authoring/questions.ts'
import type { WebhookAnswer } from '../../../runtime/ports/webhook-sender.ts'
import { httpReceiver, listening } from '../../fixtures/peers/http-receiver.ts'
import { deferred, rest, say, start, taskIn, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { unusedPort } from '../../fixtures/network/unused-port.ts'

const BODY = JSON.stringify({ statusUpdate: { taskId: 't' } })
const never = new AbortController().signal
const PUBLIC = '93.184.216.34'

/** A receiver that speaks bytes. */
async function rawReceiver(t: Test, met: (socket: Socket) => void): Promise<string> {
  const server = createServer(socket => {
    socket.on('error', () => {})
    met(socket)
  })
  return `http://127.0.0.1:${await listening(t, server)}/`
}

function post(
  url: string,
  { signal = never, ...options }: WebhooksOptions & { signal?: AbortSignal } = {}
): Promise<WebhookAnswer> {
  return webhooks({ allowLoopback: true, ...options }).post(
    { url, headers: { 'Content-Type': 'application/a2a+json', 'X-Test': 'yes' }, body: BODY },
    signal
  )
}

await t.test('only addresses of the public internet are public', t => {
  for (const address of [
    PUBLIC,
    '1.1.1.1',
    '11.0.0.1',
    '100.63.255.255',
    '100.128.0.1',
    '172.15.0.1',
    '172.32.0.1',
    '192.167.0.1',
    '223.255.255.255',
    '2606:4700::1111',
    '2001:4860:4860::8888',
    '2a00::1'
  ]) {
    t.equal(isPublicAddress(address), true, address)
  }
  for (const address of [
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '10.255.255.255',
    '100.64.0.1',
    '100.127.255.255',
    '127.0.0.1',
    '127.9.9.9',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.8',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.0.1',
    '198.18.0.1',
    '198.19.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.1.1.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '::7f00:1',
    '64:ff9b::7f00:1',
    '64:ff9b::808:808',
    '64:ff9b:1::1',
    '100::1',
    '2001::1',
    '2001:db8::1',
    '2002:7f00:1::',
    '3fff::1',
    '5f00::1',
    'fc00::1',
    'fd12::1',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
    '2a00::1%eth0',
    'localhost',
    '',
    '1.1.1',
    'x'
  ])
    t.equal(isPublicAddress(address), false, address)
  t.strictSame(
    ['127.0.0.1', '127.255.0.1', '::1', '128.0.0.1', '::2', '::ffff:127.0.0.1', '10.0.0.1'].map(isLoopbackAddress),
    [true, true, true, false, false, false, false]
  )
  t.end()
})

await t.test('an address outside the public internet is refused in every spelling', async t => {
  const looked: string[] = []
  const names: Record<string, string[]> = {
    'public.example': [PUBLIC, '2606:4700::1111'],
    'private.example': ['10.1.2.3'],
    'mixed.example': [PUBLIC, '192.168.1.1'],
    'metadata.example': ['169.254.169.254'],
    'nowhere.example': []
  }
  const resolve = async (host: string) => {
    looked.push(host)
    const found = names[host]
    if (found) return found
    throw new TypeError('ENOTFOUND')
  }
  const sender = webhooks({ resolve })
  const refused = [
    'file:///etc/passwd',
    'gopher://public.example/',
    'ftp://public.example/',
    'ws://public.example/',
    'data:text/plain,x',
    'http://public.example/',
    'HTTP://public.example/',
    'public.example',
    '',
    '/x',
    'https://',
    'https:///',
    'https://user@public.example/',
    'https://user:password@public.example/',
    'https://:password@public.example/',
    'https://public.example:22/',
    'https://public.example:80/',
    'https://public.example:25/',
    'https://public.example:1023/',
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0177.0.0.1/',
    'https://0x7f.1/',
    'https://127.1/',
    'https://１２７.０.０.１/',
    'https://①②⑦.⓪.⓪.①/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::1]/',
    'https://[::]/',
    'https://localhost/',
    'https://localhost./',
    'https://LOCALHOST/',
    'https://a.localhost/',
    'https://0/',
    'https://169.254.169.254/latest/meta-data/',
    'https://100.64.0.1/',
    'https://10.0.0.1/',
    'https://172.16.0.1/',
    'https://192.168.0.1/',
    'https://[fc00::1]/',
    'https://[fe80::1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://127.0.0.1.:8443/',
    'https://private.example/',
    'https://mixed.example/',
    'https://metadata.example/',
    'https://nowhere.example/',
    'https://private.example./',
    'https://public.example/\r\nx',
    'https://pub\nlic.example/',
    'https://public.example/a\tb',
    ' https://public.example/',
    'https://public.example/ ',
    'https://public.example/#part',
    'https://public.example/#'
  ]
  for (const url of refused) {
    t.type(await sender.faultOf(url, never), 'string', url)
    const answer = await sender.post({ url, headers: {}, body: BODY }, never)
    t.match(answer, { failure: /^the address must /, isRefused: true }, `nothing is dialled: ${url}`)
  }
  for (const url of [
    'https://public.example/',
    'https://public.example:8443/x?y',
    `https://${PUBLIC}/`,
    'https://[2606:4700::1111]/',
    'https://PUBLIC.example./'
  ])
    t.equal(await sender.faultOf(url, never), undefined, url)
  t.equal(await sender.faultOf('https://unknown.example/', never), undefined, 'an unknown name may exist later')
  t.strictSame(await sender.post({ url: 'https://unknown.example/', headers: {}, body: '' }, never), {
    failure: 'the host name cannot be resolved'
  })
  t.ok(looked.every(host => !host.endsWith('.')))
})

await t.test('only loopback receivers may be allowed, also without encryption', async t => {
  const sender = webhooks({
    allowLoopback: true,
    resolve: async host =>
      host === 'home.example' ? ['127.0.0.1', '::1'] : host === 'half.example' ? ['127.0.0.1', PUBLIC] : [PUBLIC]
  })
  for (const url of [
    'http://127.0.0.1:4242/',
    'http://[::1]:4242/',
    'https://127.0.0.1/',
    'http://home.example:9000/',
    'https://public.example/'
  ])
    t.equal(await sender.faultOf(url, never), undefined, url)
  for (const url of [
    'http://public.example/',
    'http://half.example/',
    'https://half.example/',
    'http://10.0.0.1/',
    'https://10.0.0.1/',
    'http://127.0.0.1:22/'
  ])
    t.type(await sender.faultOf(url, never), 'string', url)
  t.equal(
    await webhooks({ allowLoopback: true }).faultOf('http://localhost:4242/', never),
    undefined,
    'by its name too'
  )
})

await t.test('a name that resolves differently later is refused; only the checked address is dialled', async t => {
  const { port, got } = await httpReceiver(t, (_, response) => response.end())
  let answers = [[PUBLIC], ['127.0.0.1']]
  const rebinding = webhooks({ resolve: async () => answers.shift() ?? [] })
  const url = `https://rebind.example:${port}/`
  t.equal(await rebinding.faultOf(url, never), undefined)
  t.match(await rebinding.post({ url, headers: {}, body: BODY }, never), { isRefused: true })
  answers = [['127.0.0.1']]
  let lookups = 0
  const resolve = async () => {
    lookups += 1
    return ['127.0.0.1']
  }
  t.strictSame(await post(`http://pinned.example:${port}/`, { resolve }), { status: 200, retryAfter: undefined })
  t.equal(lookups, 1, 'a name is looked up once for each post')
  const before = getDefaultAutoSelectFamily()
  setDefaultAutoSelectFamily(false)
  t.match(
    await post(`http://pinned.example:${port}/`, { resolve }),
    { status: 200 },
    'also where one address at a time is tried'
  )
  setDefaultAutoSelectFamily(before)
  t.equal(got.length, 2)
  t.match(got[0], {
    headers: {
      host: `pinned.example:${port}`,
      'content-type': 'application/a2a+json',
      'x-test': 'yes',
      'content-length': `${BODY.length}`,
      'user-agent': 'taskchart'
    },
    body: BODY
  })
})

await t.test('TLS verifies the name of the address, not the dialled IP address', async t => {
  const hello = deferred<string>()
  const url = await rawReceiver(t, socket =>
    socket.once('data', bytes => {
      hello.resolve(bytes.toString('latin1'))
      socket.destroy()
    })
  )
  const answer = await post(`https://secure.example:${new URL(url).port}/`, { resolve: async () => ['127.0.0.1'] })
  t.match(answer, { failure: /^no connection/ })
  t.match(await hello.promise, 'secure.example')
})

await t.test("a receiver's response is returned, and redirects are not followed", async t => {
  const target = await httpReceiver(t, (_, response) => response.end())
  const { url, got } = await httpReceiver(t, ({ headers }, response) => {
    const status = [200, 500, 410, 302, 429][got.length - 1] ?? 204
    response
      .writeHead(status, {
        ...(status === 302 && { Location: target.url }),
        ...(status === 429 && { 'Retry-After': '7' })
      })
      .end(headers.host)
  })
  for (const status of [200, 500, 410, 302]) t.strictSame(await post(url), { status, retryAfter: undefined })
  t.strictSame(await post(url), { status: 429, retryAfter: '7' })
  t.strictSame(await post(url), { status: 204, retryAfter: undefined })
  t.equal(target.got.length, 0)
})

await t.test('a receiver that sends without end is closed, and its status counts', async t => {
  let sent = 0
  let answered: ServerResponse | undefined
  const { url } = await httpReceiver(t, (_, response) => {
    const chunk = Buffer.alloc(16 * 1024)
    const more = () => {
      for (let hasRoom = true; hasRoom && !response.destroyed; sent += chunk.length) hasRoom = response.write(chunk)
    }
    response.on('drain', more)
    answered = response
    more()
  })
  t.match(await post(url), { status: 200 })
  await until(() => answered?.destroyed)
  t.ok(sent < 32 * 1024 * 1024, `${sent} bytes`)
})

await t.test('receivers that hang, trickle or close early end with their aborted post', async t => {
  const givenUp = async (url: string, begun: () => boolean) => {
    const late = new AbortController()
    const answer = post(url, { signal: late.signal })
    await until(begun)
    await rest()
    late.abort()
    return answer
  }
  let met = 0
  const hangs = await rawReceiver(t, () => (met += 1))
  t.match(await givenUp(hangs, () => met === 1), { failure: 'no connection (ABORT_ERR)' })
  const trickles = await rawReceiver(t, socket => {
    met += 1
    socket.write('HTTP/1.1 200 OK\r\nX-Slo')
  })
  t.match(await givenUp(trickles, () => met === 2), { failure: 'no connection (ABORT_ERR)' })
  const tricklesOn = await rawReceiver(t, socket => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx', () => (met += 1))
  })
  t.match(await givenUp(tricklesOn, () => met === 3), { status: 200 }, 'the first response counts')
  t.match(await post(await rawReceiver(t, socket => socket.destroy())), { failure: /^no connection \(/ })
  t.match(await post(await rawReceiver(t, socket => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx'))), {
    status: 200
  })
  t.match(await post(await rawReceiver(t, socket => socket.end('SSH-2.0-OpenSSH_9\r\n'))), {
    failure: /^no connection \(HPE_/
  })
  t.match(
    await post(
      await rawReceiver(t, socket => socket.end(`HTTP/1.1 200 OK\r\nX-Large: ${'x'.repeat(100_000)}\r\n\r\n`))
    ),
    { failure: /^no connection \(HPE_/ }
  )
  t.match(
    await post(
      await rawReceiver(t, socket =>
        socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n')
      )
    ),
    { failure: /^(?:no connection|the connection)/ }
  )
  t.strictSame(
    await post(await rawReceiver(t, socket => socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(1000)))),
    { failure: 'no connection' },
    'nor may it send interim responses forever'
  )
  t.match(
    await post(
      await rawReceiver(t, socket =>
        socket.end('HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n')
      )
    ),
    { status: 202 }
  )
  t.strictSame(await post(`http://127.0.0.1:${await unusedPort()}/`), { failure: 'no connection (ECONNREFUSED)' })
})

await t.test('a slow lookup waits no longer than the post or its validation may take', async t => {
  const resolve = () => new Promise<string[]>(() => {})
  const late = new AbortController()
  const sender = webhooks({ resolve })
  const [looked, posted] = [
    sender.faultOf('https://slow.example/', late.signal),
    sender.post({ url: 'https://slow.example/', headers: {}, body: '' }, late.signal)
  ]
  late.abort()
  t.equal(await looked, undefined)
  t.strictSame(await posted, { failure: 'the host name cannot be resolved' })
  t.equal(await sender.faultOf('https://slow.example/', late.signal), undefined, 'nor if it is aborted before')
})

await t.test('a hundred hanging receivers slow down neither the agent nor the others', async t => {
  const url = await rawReceiver(t, () => {})
  const { url: good, got } = await httpReceiver(t, (_, response) => response.end())
  const { runtime, clock } = start(
    t,
    { work: async ({ ask }) => ({ artifact: JSON.stringify(await ask(inputRequired('Which?'))) }) },
    { push: webhooks({ allowLoopback: true }), limits: { advanced: { webhooksPerTask: 200 } } }
  )
  const { id: taskId } = taskIn(await runtime.sendMessage(say('go', {}, { taskPushNotificationConfig: { url: good } })))
  for (let n = 0; n < 100; n += 1)
    await runtime.createTaskPushNotificationConfig({ taskId, id: `${n}`, url: `${url}${n}` })
  await runtime.sendMessage(say('this', { taskId }))
  await until(() => got.length === 6)
  t.match(got.at(-1)?.body, 'TASK_STATE_COMPLETED')
  clock.increment(15_000)
  await rest()
  t.match(await runtime.getTask({ id: taskId }), { status: { state: 'TASK_STATE_COMPLETED' } })
})
