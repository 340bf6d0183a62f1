import t, { type Test } from 'tap'
import { originRefusal } from '../../../adapters/entry/admission.ts'
import { dialect01, dialect03 } from '../../../adapters/legacy/index.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import type { SecurityScheme } from '../../../machines/protocol/security.ts'
import type { RuntimeOptions } from '../../../runtime/runtime-options.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import { ask, rpc } from '../../fixtures/servers/http-agent.ts'
import { handshake, RawSocket } from '../../fixtures/servers/raw-socket.ts'
import { start } from '../../fixtures/runtime/runtime-helpers.ts'

async function served(t: Test, options: Partial<RuntimeOptions>, isOld = false) {
  const { runtime } = start(t, { work: echo }, options)
  const server = await serve(runtime, { port: 0, dialects: isOld ? [dialect03(runtime), dialect01(runtime)] : [] })
  t.teardown(server.close)
  return server
}

async function shaken(t: Test, url: string, lines: readonly string[] = []) {
  const raw = await RawSocket.to(t, url)
  raw.write(handshake(url, { more: lines }))
  const { status, headers, body } = await raw.answer()
  return { status, headers, json: JSON.parse(body) }
}

/** The ways to call by REST. */
const rest = [
  ['tasks', ''],
  ['tasks/x', ''],
  ['message:send', '{}'],
  ['message:stream', '{}'],
  ['tasks/x:cancel', '{}'],
  ['tasks/x/pushNotificationConfigs', '{}'],
  ['blue/message:send', '{}'],
  ['nothing', '']
] as const

await t.test('401 and 503 have the body of their binding', async t => {
  for (const [authenticate, status, code, name, reason] of [
    [() => undefined, 401, -31401, 'UNAUTHENTICATED', 'UNAUTHENTICATED'],
    [
      () => {
        throw new A2AError('Overloaded', 'Nobody can tell.', { retryAfterMs: 3000 })
      },
      503,
      -31503,
      'UNAVAILABLE',
      'OVERLOADED'
    ]
  ] as const) {
    for (const isOld of [false, true]) {
      const { url } = await served(t, { authenticate }, isOld)
      const header = status === 401 ? (['www-authenticate', 'Bearer'] as const) : (['retry-after', '3'] as const)
      for (const [path, body] of rest) {
        const answer = await ask(`${url}${path}`, body === '' ? {} : { body })
        t.equal(answer.status, status, path)
        t.equal(answer.headers.get(header[0]), header[1])
        t.match(answer.json, { error: { code: status, status: name, message: /./, details: [{ reason }] } })
      }
      for (const version of ['1.0', '0.3', '0.1', '']) {
        const data = isOld && ['0.1', ''].includes(version) ? { details: [{ reason }] } : [{ reason }]
        const wanted = { jsonrpc: '2.0', id: null, error: { code, message: /./, data } }
        const answer = await rpc(url, 'ListTasks', {}, { 'a2a-version': version })
        t.equal(answer.status, status)
        t.equal(answer.headers.get(header[0]), header[1])
        t.match(answer.json, wanted, `JSON-RPC of ${version}`)
        if (!isOld && !['1.0', ''].includes(version)) continue
        const { headers, ...handshaken } = await shaken(t, url, [`A2A-Version: ${version}`])
        t.match(handshaken, { status, json: wanted }, `a handshake of ${version}`)
        t.equal(headers[header[0]], header[1])
      }
      if (isOld)
        t.match(
          (await ask(`${url}v1/tasks`, { headers: { 'a2a-version': '0.3' } })).json,
          { error: { code: status, status: name } },
          'REST of 0.3'
        )
    }
  }
})

await t.test('responses of a closing or full server have it too', async t => {
  for (const limits of [{}, { connections: 1 }]) {
    const server = await served(t, { limits })
    const { url } = server
    if (limits.connections === undefined) server.drain()
    // A request whose body does not come is under way.
    else {
      const raw = await RawSocket.to(t, url)
      raw.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n')
      while ((await ask(`${url}tasks`)).status !== 503);
    }
    const overloaded = { details: [{ reason: 'OVERLOADED' }, { retryDelay: '1s' }] }
    for (const [path, body] of rest)
      t.match(
        (await ask(`${url}${path}`, body === '' ? {} : { body })).json,
        { error: { code: 503, status: 'UNAVAILABLE', ...overloaded } },
        path
      )
    for (const path of ['', 'blue'])
      t.match((await rpc(`${url}${path}`, 'ListTasks', {})).json, {
        jsonrpc: '2.0',
        id: null,
        error: { code: -31503, data: overloaded.details }
      })
    if (limits.connections === undefined)
      t.match(await shaken(t, url), {
        status: 503,
        headers: { 'retry-after': '1' },
        json: { jsonrpc: '2.0', error: { code: -31503 } }
      })
  }
})

await t.test('a 401 names the schemes of the card, unless authenticate has its own challenge', async t => {
  const oauth2: SecurityScheme = {
    oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl: 'https://issuer.example/token', scopes: {} } } }
  }
  const cases: readonly (readonly [Record<string, SecurityScheme>, string])[] = [
    [{}, 'Bearer'],
    [{ key: { apiKeySecurityScheme: { location: 'header', name: 'X-Key' } } }, 'ApiKey header="X-Key"'],
    [{ basic: { httpAuthSecurityScheme: { scheme: 'Basic' } } }, 'Basic realm="agent"'],
    [
      {
        a: { httpAuthSecurityScheme: { scheme: 'DPoP' } },
        b: oauth2,
        c: { openIdConnectSecurityScheme: { openIdConnectUrl: 'https://issuer.example' } }
      },
      'DPoP, Bearer'
    ],
    [{ a: { mtlsSecurityScheme: {} } }, 'Bearer'],
    [{ a: { apiKeySecurityScheme: { location: 'header', name: 'X-Schlüssel\r\n' } } }, 'Bearer']
  ]
  const nobody: RuntimeOptions['authenticate'] = () => undefined
  for (const [securitySchemes, challenge] of cases) {
    for (const given of [
      { definition: { card: { name: 'A', securitySchemes } }, authenticate: nobody },
      { definition: {}, authenticate: Object.assign(() => undefined, { securitySchemes }) }
    ]) {
      const { runtime } = start(t, { work: echo, ...given.definition }, { authenticate: given.authenticate })
      t.equal(runtime.settings.challenge, challenge)
    }
    const own = start(
      t,
      { work: echo, card: { name: 'A', securitySchemes } },
      { authenticate: Object.assign(() => undefined, { challenge: 'Own' }) }
    )
    t.equal(own.runtime.settings.challenge, 'Own')
  }
  const { url } = await served(t, {
    authenticate: Object.assign(() => undefined, {
      securitySchemes: { key: { apiKeySecurityScheme: { location: 'header', name: 'X-Key' } } }
    })
  })
  t.match((await ask(`${url}tasks`)).json, {
    error: { message: 'Connect with credentials that this agent knows: ApiKey header="X-Key".' }
  })
})

await t.test('a refused origin is logged once with what allows it, at most a hundred', async t => {
  const { runtime, log } = start(t, { work: echo })
  const refused = (origin: string) => originRefusal(origin, 'agent.example', runtime.settings)
  const message =
    'Pages of https://app.example may not connect. Allow the origin with the option origins, or with --origin.'
  t.match(refused('https://app.example'), { status: 403, message })
  t.match(refused('https://app.example'), { status: 403, message })
  t.match(log, [
    {
      message: 'a page may not connect, because its origin is not allowed',
      details: {
        origin: 'https://app.example',
        allow: '--origin https://app.example, or origins: ["https://app.example"]'
      }
    }
  ])
  for (let port = 1; port <= 200; port += 1) refused(`https://app.example:${port}`)
  t.equal(log.length, 100)
})

await t.test('origins have the form that browsers send, and loopback means pages of this machine', async t => {
  const { runtime } = start(t, { work: echo }, { origins: ['loopback', 'https://app.example'] })
  const isAllowed = (origin: string) => originRefusal(origin, 'agent.example', runtime.settings) === undefined
  for (const origin of [
    'http://localhost:5173',
    'https://localhost',
    'http://127.0.0.1:8080',
    'http://[::1]:3000',
    'https://app.example'
  ])
    t.ok(isAllowed(origin), origin)
  for (const origin of [
    'http://localhost.evil.example',
    'http://evil.example',
    'null',
    'http://app.example',
    'http://192.168.0.1'
  ])
    t.notOk(isAllowed(origin), origin)
  for (const origin of [
    'https://app.example/',
    'https://APP.example',
    'https://app.example:443',
    'http://localhost:5173/page'
  ]) {
    t.throws(
      () => start(t, { work: echo }, { origins: [origin] }),
      new TypeError(`origins has ${JSON.stringify(origin)}, which is not an origin. Write ${new URL(origin).origin}.`)
    )
  }
  for (const origin of ['app.example', 'localhost:5173', '*', 'ws://app.example', 'null', '']) {
    t.throws(() => start(t, { work: echo }, { origins: [origin] }), {
      name: 'TypeError',
      message: /which is not an origin\. Write scheme, host and port of a page/
    })
  }
})

await t.test('a page is refused under an invalid host', async t => {
  const { settings } = start(t, { work: echo }).runtime
  t.match(originRefusal('http://a b', 'a b', settings), { status: 403 })
})
