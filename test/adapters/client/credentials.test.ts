import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import t, { type Test } from 'tap'
import { WebSocketTransportFactory } from '../../../adapters/a2a-sdk/index.ts'
import { anyOf, apiKey } from '../../../adapters/auth/index.ts'
import { fetchCard } from '../../../adapters/client/card/discovery.ts'
import { connect, type ConnectOptions } from '../../../adapters/client/connect.ts'
import { type ClientCredentials, currentAddress, currentHeaders } from '../../../adapters/client/options.ts'
import { afterRefusal, placesIn } from '../../../adapters/client/credentials.ts'
import { delegate, remoteAgent } from '../../../adapters/delegation/index.ts'
import { grpc } from '../../../adapters/grpc/index.ts'
import { dialect03 } from '../../../adapters/legacy/index.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import type { AgentCard } from '../../../machines/protocol/card.ts'
import type { SecurityScheme } from '../../../machines/protocol/security.ts'
import { AGENT_CARD_PATH } from '../../../machines/protocol/uris.ts'
import { reply, textOf } from '../../../runtime/authoring/words.ts'
import type { Authenticate } from '../../../runtime/access/authentication.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { gateway, type Fate } from '../../fixtures/peers/gateway.ts'
import { body, httpAgent, result } from '../../fixtures/peers/scripted-http.ts'
import { refusal, rejection, say, start } from '../../fixtures/runtime/runtime-helpers.ts'

const HTTP_BINDINGS = ['WEBSOCKET', 'JSONRPC', 'HTTP+JSON'] as const

/** Knows anna by her key at this place. */
function byKey(
  read: (headers: Readonly<Record<string, string | undefined>>) => boolean,
  securitySchemes: Record<string, SecurityScheme>
): Authenticate {
  const securityRequirements = Object.keys(securitySchemes).map(name => ({ schemes: { [name]: { list: [] } } }))
  return Object.assign(({ headers }: Parameters<Authenticate>[0]) => (read(headers) ? { id: 'anna' } : undefined), {
    securitySchemes,
    securityRequirements
  })
}

const isBearer = ({ authorization }: Readonly<Record<string, string | undefined>>) =>
  authorization === 'Bearer secret-of-16-chars'
const flows = { clientCredentials: { tokenUrl: 'https://login.example/token', scopes: {} } }

/** Agents by the scheme of their cards, and the place of the key as an error names it. */
const AGENTS: readonly [scheme: string, authenticate: Authenticate, place: string][] = [
  ['an API key in x-api-key', apiKey({ keys: { anna: 'secret-of-16-chars' } }), 'x-api-key'],
  [
    'an API key in another header',
    apiKey({ keys: { anna: 'secret-of-16-chars' }, header: 'X-Team-Key' }),
    'X-Team-Key'
  ],
  [
    'an API key in a cookie',
    byKey(({ cookie }) => cookie === 'session=secret-of-16-chars', {
      key: { apiKeySecurityScheme: { location: 'cookie', name: 'session' } }
    }),
    'the cookie session'
  ],
  ['HTTP Bearer', apiKey({ keys: { anna: 'secret-of-16-chars' }, header: 'authorization' }), 'authorization'],
  ['OAuth 2.0', byKey(isBearer, { oauth: { oauth2SecurityScheme: { flows } } }), 'authorization'],
  [
    'OpenID Connect',
    byKey(isBearer, { login: { openIdConnectSecurityScheme: { openIdConnectUrl: 'https://login.example/' } } }),
    'authorization'
  ],
  ['no scheme', byKey(isBearer, {}), 'authorization'],
  [
    'a token or an API key',
    anyOf(
      byKey(() => false, { bearer: { httpAuthSecurityScheme: { scheme: 'bearer' } } }),
      apiKey({ keys: { anna: 'secret-of-16-chars' } })
    ),
    'x-api-key'
  ]
]

/** Serves an agent that greets those whom it knows, over every binding and in 0.3. */
async function serving(t: Test, authenticate: Authenticate) {
  const started = start(t, { negotiate: ({ message }) => reply(`hi ${textOf(message)}`) }, { authenticate })
  const served = await serve(started.runtime, {
    port: 0,
    grpc: grpc({ port: 0 }),
    dialects: [dialect03(started.runtime)]
  })
  t.teardown(() => served.close())
  const { url: rpc = '' } = served.interfaces.find(({ protocolBinding }) => protocolBinding === 'GRPC') ?? {}
  return { url: served.url, credentialOrigins: [`http://${rpc}`], card: await fetchCard(served.url) }
}

/** What an agent answers. */
async function greeting(url: string, options: ConnectOptions): Promise<string> {
  const client = await connect(url, options)
  try {
    const answer = await client.sendMessage(say('there'))
    return 'message' in answer ? textOf(answer.message) : 'a task'
  } finally {
    await client.close()
  }
}

for (const [scheme, authenticate, place] of AGENTS) {
  await t.test(`a key goes where the card says: ${scheme}`, async t => {
    const { url, credentialOrigins, card } = await serving(t, authenticate)
    const good = { apiKey: 'secret-of-16-chars' }
    const bad = { apiKey: 'wrong-key' }
    const refused = { code: 'Unauthenticated', message: `It refused those that were sent in ${place}.` }

    await t.test('of connect, over every binding', async t => {
      for (const binding of [...HTTP_BINDINGS, 'GRPC']) {
        const options = { bindings: [binding], credentialOrigins }
        t.equal(await greeting(url, { ...options, credentials: good }), 'hi there', binding)
        const error = await refusal(greeting(url, { ...options, credentials: bad }))
        t.match(error, refused, binding)
        t.notMatch(error.message, 'wrong-key')
        t.match(
          await refusal(greeting(url, options)),
          { code: 'Unauthenticated', message: "Connect with { credentials: { apiKey: '…' } } or { headers: { … } }." },
          binding
        )
      }
      t.equal(await greeting(url.replace('http', 'ws'), { credentials: good }), 'hi there', 'a ws: address')
    })

    await t.test('of connect, in A2A 0.3', async t => {
      const old = card.supportedInterfaces.filter(({ protocolVersion }) => protocolVersion === '0.3')
      const way = await gateway(t, url)
      way.script(({ url: path }) =>
        path === AGENT_CARD_PATH ? { status: 200, body: JSON.stringify({ ...card, supportedInterfaces: old }) } : 'pass'
      )
      for (const binding of ['JSONRPC', 'HTTP+JSON']) {
        const options = { bindings: [binding], credentialOrigins: [url] }
        t.equal(await greeting(`http://${way.host}`, { ...options, credentials: good }), 'hi there', binding)
        t.match(await refusal(greeting(`http://${way.host}`, { ...options, credentials: bad })), refused, binding)
      }
    })

    await t.test('of remoteAgent', async t => {
      for (const binding of HTTP_BINDINGS) {
        const asks = (credentials: ClientCredentials) =>
          start(t, {
            work: async work => {
              const { message } = await delegate(
                work,
                remoteAgent(url, { bindings: [binding], credentials }),
                work.message
              )
              return { artifact: message ? textOf(message) : 'nothing' }
            }
          }).runtime.sendMessage(say('there'))
        t.match(await asks(good), { task: { artifacts: [{ parts: [{ text: 'hi there' }] }] } }, binding)
        t.match(await asks(bad), { task: { status: { state: 'TASK_STATE_FAILED' } } }, binding)
      }
    })

    await t.test('of each command', async t => {
      const rows = [
        ['send', url, 'there'],
        ['send', url.replace('http', 'ws'), 'there'],
        ...HTTP_BINDINGS.map(binding => ['send', url, 'there', '--binding', binding]),
        ['tasks', 'ls', url],
        ['tasks', 'export', url],
        ['doctor', url]
      ]
      for (const row of rows) {
        const refused = row[0] === 'doctor' ? 1 : 4
        t.match(await runCommand([...row, '--api-key', 'secret-of-16-chars']), { code: 0 }, row.join(' '))
        t.match(
          await runCommand(row, { env: { TASKCHART_API_KEY: 'secret-of-16-chars' } }),
          { code: scheme !== 'no scheme' ? 0 : refused },
          `${row.join(' ')}, from the environment`
        )
        const { code, stdout, stderr } = await runCommand([...row, '--api-key', 'wrong-key'])
        t.equal(code, refused)
        t.match(
          stdout + stderr,
          `refused the key, which was sent in ${place}. Give another with --api-key KEY.`,
          row.join(' ')
        )
        t.notMatch(stdout + stderr, 'wrong-key')
      }
      t.match(
        await runCommand([
          'test',
          url,
          '--api-key',
          'secret-of-16-chars',
          '--credential-origin',
          'https://elsewhere.example',
          '--binding',
          'JSONRPC',
          '--only',
          'JSONRPC: 118 '
        ]),
        { code: 0 }
      )
      t.match(await runCommand(['test', url, '--api-key', 'wrong-key', '--binding', 'JSONRPC']), {
        code: 4,
        stderr: `refused the key, which was sent in ${place}.`
      })
    })
  })
}

await t.test('a key in the query is in every request and in no error', async t => {
  const security = {
    securitySchemes: { key: { apiKeySecurityScheme: { location: 'query', name: 'k' } } },
    securityRequirements: [{ schemes: { key: {} } }]
  }
  const credentials = { apiKey: 'se&cret' }
  for (const [binding, version] of [
    ['JSONRPC', '1.0'],
    ['HTTP+JSON', '1.0'],
    ['JSONRPC', '0.3'],
    ['HTTP+JSON', '0.3']
  ] as const) {
    const agent = await httpAgent(t, { binding, version, card: security })
    agent.script(body('', {}, 401))
    const client = await connect(agent.url, { credentials, giveUpAfterMs: 0 })
    const { message } = await refusal(client.getTask({ id: 't' }))
    t.match(agent.asked, [{ path: /[?&]k=se%26cret$/ }], `${binding} ${version}`)
    t.match(message, 'It refused those that were sent in the parameter k.')
    t.notMatch(message, 'cret')
    t.notMatch(client.url, 'cret')
  }
  const socket = await httpAgent(t, { binding: 'WEBSOCKET', card: security })
  t.match(await refusal(connect(socket.url, { credentials, credentialOrigins: [socket.url] })), {
    message: /^((?!cret).)*$/
  })
  const rpc = await httpAgent(t, { binding: 'GRPC', card: security })
  t.match(await refusal(connect(rpc.url, { credentials })), {
    code: 'UnsupportedOperation',
    message: `The agent at ${rpc.url} speaks GRPC, over which this client cannot send a key in the query.`
  })
})

/** An agent whose card needs this header, and the headers of each request for it. */
async function lockedCard(
  t: Test,
  name: string,
  value: string,
  { status = 401, challenge }: { status?: number; challenge?: string } = {}
) {
  const { url, card } = await serving(t, byKey(isBearer, {}))
  const way = await gateway(t, url)
  const body = JSON.stringify(card).replaceAll(new URL(url).host, way.host)
  const asked: IncomingHttpHeaders[] = []
  const decide: Fate = ({ url: path = '', headers }: IncomingMessage) => {
    if (!path.endsWith(AGENT_CARD_PATH)) return 'pass'
    asked.push(headers)
    return headers[name] === value
      ? { status: 200, body }
      : { status, ...(challenge !== undefined && { headers: { 'www-authenticate': challenge } }) }
  }
  way.script(decide)
  return { url: `http://${way.host}/`, asked }
}

await t.test('a card that is refused is asked for once more, with the credentials', async t => {
  const cases: [
    what: string,
    name: string,
    value: string,
    answer: { status?: number; challenge?: string },
    options: ConnectOptions
  ][] = [
    [
      'a key, without a challenge',
      'x-api-key',
      'secret-of-16-chars',
      {},
      { credentials: { apiKey: 'secret-of-16-chars' } }
    ],
    [
      'a key, after 403',
      'x-api-key',
      'secret-of-16-chars',
      { status: 403 },
      { credentials: { apiKey: 'secret-of-16-chars' } }
    ],
    [
      'a key, for another challenge',
      'x-api-key',
      'secret-of-16-chars',
      { challenge: 'ApiKey realm="not Bearer"' },
      { credentials: { apiKey: 'secret-of-16-chars' } }
    ],
    [
      'a key, for Bearer',
      'authorization',
      'Bearer secret-of-16-chars',
      { challenge: 'ApiKey, bearer realm="x"' },
      { credentials: { apiKey: 'secret-of-16-chars' } }
    ],
    ['a token', 'authorization', 'Bearer secret-of-16-chars', {}, { credentials: { bearer: 'secret-of-16-chars' } }],
    [
      'a token and a key, for Bearer',
      'authorization',
      'Bearer secret-of-16-chars',
      { challenge: 'Bearer' },
      { credentials: { bearer: 'secret-of-16-chars', apiKey: 'k' } }
    ],
    [
      'a key of the environment',
      'x-api-key',
      'secret-of-16-chars',
      {},
      {
        credentials: { apiKey: 'secret-of-16-chars', onlyIfAsked: true },
        headers: { authorization: 'Bearer secret-of-16-chars' }
      }
    ],
    [
      'headers',
      'authorization',
      'Bearer secret-of-16-chars',
      {},
      { headers: () => ({ authorization: 'Bearer secret-of-16-chars' }) }
    ],
    [
      'headers before a key',
      'x-api-key',
      'own',
      {},
      {
        headers: { 'X-Api-Key': 'own', authorization: 'Bearer secret-of-16-chars' },
        credentials: { apiKey: 'secret-of-16-chars' }
      }
    ]
  ]
  for (const [what, name, value, answer, options] of cases) {
    const { url, asked } = await lockedCard(t, name, value, answer)
    t.equal(await greeting(url, { ...options, bindings: ['JSONRPC'] }), 'hi there', what)
    t.equal(asked.length, 2, what)
    t.match(asked[0], { authorization: undefined, 'x-api-key': undefined }, `${what}: the first request has none`)
    t.equal(asked[1]?.accept, 'application/json')
  }
  const open = await httpAgent(t, { cardPath: '/none' })
  open.script(body('{}'))
  await refusal(
    connect(open.url, {
      credentials: { apiKey: 'secret-of-16-chars' },
      headers: { authorization: 'Bearer secret-of-16-chars' }
    })
  )
  t.equal(open.asked.length, 1, 'a card that is not refused is asked for once')
  t.match(open.asked[0]?.headers, { authorization: undefined, 'x-api-key': undefined })
})

await t.test('a card that stays refused is Unauthenticated or Forbidden, not missing', async t => {
  const { url, asked } = await lockedCard(t, 'x-api-key', 'secret-of-16-chars')
  const place = `${url}${AGENT_CARD_PATH.slice(1)}`
  t.match(await refusal(connect(url)), {
    code: 'Unauthenticated',
    message: `The agent card at ${place} requires credentials (HTTP 401). Connect with { credentials: { apiKey: '…' } } or { headers: { … } }.`
  })
  t.match(await refusal(connect(url, { headers: {} })), { code: 'Unauthenticated', message: 'Connect with' })
  t.equal(asked.length, 2, 'without anything to send it is asked for once')
  t.match(await refusal(connect(url, { credentials: { apiKey: 'wrong' } })), {
    code: 'Unauthenticated',
    message: `The agent card at ${place} requires credentials (HTTP 401). It refused those that were sent in x-api-key.`
  })
  t.match(await refusal(connect(url, { headers: { authorization: 'x', 'x-more': 'y' } })), {
    message: 'sent in authorization and x-more.'
  })
  t.match(await refusal(connect(url, { headers: () => ({ authorization: 'x' }) })), {
    message: 'sent in the given headers.'
  })
  const both = await refusal(connect(`${url}agents/one`))
  t.match(both, { code: 'Unauthenticated', message: `${url}agents/one${AGENT_CARD_PATH} requires credentials` })
  const way = await gateway(t, url)
  way.script({ status: 401 }, { status: 404 })
  t.match(
    await refusal(connect(`http://${way.host}/agents/one`)),
    { code: 'Unauthenticated', message: 'There is no agent card at' },
    'an empty place does not hide a refusal'
  )
  way.script({ status: 404 }, { status: 401 })
  t.match(await refusal(connect(`http://${way.host}/agents/one`)), { code: 'Unauthenticated' })
  const forbidden = await lockedCard(t, 'x-api-key', 'secret-of-16-chars', { status: 403 })
  t.match(await refusal(connect(forbidden.url, { credentials: { apiKey: 'wrong' } })), {
    code: 'Forbidden',
    message: /The agent card at .* may not be read \(HTTP 403\)\./
  })
})

await t.test('every command reads a card that is refused without credentials', async t => {
  const { url } = await lockedCard(t, 'x-api-key', 'secret-of-16-chars')
  const bearer = ['--header', 'Authorization: Bearer secret-of-16-chars']
  const rows = [
    ['card', url],
    ['doctor', url, ...bearer],
    ['send', url, 'there', ...bearer],
    ['tasks', 'ls', url, ...bearer],
    ['test', url, '--binding', 'JSONRPC', '--only', 'JSONRPC: 118 ', ...bearer]
  ]
  for (const row of rows) {
    t.match(await runCommand([...row, '--api-key', 'secret-of-16-chars']), { code: 0 }, row.join(' '))
    t.match(await runCommand(row, { env: { A2ACLI_API_KEY: 'secret-of-16-chars' } }), { code: 0 }, row.join(' '))
    const wrong = await runCommand([...row, '--api-key', 'wrong'])
    t.equal(wrong.code, row[0] === 'doctor' ? 1 : 4)
    t.match(
      wrong.stdout + wrong.stderr,
      `The agent at ${url} refused the key, which was sent in x-api-key. Give another with --api-key KEY.`,
      row.join(' ')
    )
  }
  t.match(await runCommand(['card', url]), {
    code: 4,
    stderr: `taskchart: The agent at ${url} requires a key. Give one with --api-key KEY.\n`
  })
  t.match(await runCommand(['doctor', url]), { code: 1, stdout: `npx taskchart doctor ${url} --api-key KEY\n` })
  t.match(await runCommand(['test', url]), { code: 4, stderr: 'requires a key' })
  const forbidden = await lockedCard(t, 'x-api-key', 'secret-of-16-chars', { status: 403 })
  t.match(await runCommand(['card', forbidden.url]), { code: 4, stderr: 'may not be read (HTTP 403).' })
})

await t.test('credentials that are sent only if asked for forbid nothing', async t => {
  const target = await httpAgent(t)
  target.script(result({ id: 't', status: { state: 'TASK_STATE_WORKING' } }))
  const scheme = { securitySchemes: { key: { apiKeySecurityScheme: { location: 'header', name: 'x-key' } } } }
  const credentials = { apiKey: 'secret-of-16-chars', onlyIfAsked: true }
  const sent = async (card: object, options: ConnectOptions) => {
    const { url } = await httpAgent(t, { address: `${target.url}/agent`, card })
    await (await connect(url, options)).getTask({ id: 't' })
    return target.asked.at(-1)?.headers
  }
  t.match(
    await sent(scheme, { credentials }),
    { 'x-key': undefined, authorization: undefined },
    'another origin gets none'
  )
  t.match(await sent(scheme, { credentials, credentialOrigins: [target.url] }), { 'x-key': 'secret-of-16-chars' })
  t.match(
    await sent({}, { credentials, credentialOrigins: [target.url] }),
    { 'x-key': undefined, authorization: undefined },
    'nor an agent whose card has no scheme'
  )
  const { url: strict } = await httpAgent(t, { address: target.url, card: scheme })
  t.match(await refusal(connect(strict, { credentials: { apiKey: 'secret-of-16-chars' } })), {
    code: 'Forbidden',
    message: `To send it your credentials, give that address itself, or name ${target.url} in credentialOrigins.`
  })

  const own = await httpAgent(t, { cardPath: '/none' })
  const { host } = new URL((await httpAgent(t)).url)
  const interfaces = [
    { url: host, protocolBinding: 'GRPC', protocolVersion: '1.0' },
    { url: own.url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }
  ]
  const card = { name: 'Both', version: '1', capabilities: {}, supportedInterfaces: interfaces }
  own.script(body(JSON.stringify({ ...card, ...scheme })), body(JSON.stringify(card)))
  t.equal(
    (await connect(own.url, { credentials })).binding,
    'JSONRPC',
    'an interface that may receive them is preferred'
  )
  t.equal((await connect(own.url, { credentials })).binding, 'GRPC', 'if there are some to send')
})

await t.test('for a ws: address without a readable card there is no scheme', async t => {
  const { url } = await serving(t, byKey(isBearer, {}))
  const way = await gateway(t, url)
  way.script(({ url: path }) => (path === AGENT_CARD_PATH ? { status: 404 } : 'pass'))
  t.equal(await greeting(`ws://${way.host}/`, { credentials: { apiKey: 'secret-of-16-chars' } }), 'hi there')
  const stop = new AbortController()
  const reason = new TypeError('enough')
  stop.abort(reason)
  t.equal(
    await rejection(
      connect(`ws://${way.host}/`, { credentials: { apiKey: 'secret-of-16-chars' }, signal: stop.signal })
    ),
    reason
  )
})

await t.test('the places of credentials follow the requirements of the card', t => {
  const header = { apiKeySecurityScheme: { location: 'Header', name: 'X-Key' } }
  const other = { apiKeySecurityScheme: { location: 'query', name: 'q' } }
  const bearer = { httpAuthSecurityScheme: { scheme: 'BEARER' } }
  const basic = { httpAuthSecurityScheme: { scheme: 'Basic' } }
  const mtls = { mtlsSecurityScheme: {} }
  const securitySchemes = { header, other, bearer, basic, mtls }
  const needs = (...alternatives: string[][]) => ({
    securitySchemes,
    securityRequirements: alternatives.map(names => ({ schemes: Object.fromEntries(names.map(name => [name, {}])) }))
  })
  const key = { apiKey: 'k' }
  const cases: [
    what: string,
    card: Pick<AgentCard, 'securitySchemes' | 'securityRequirements'>,
    credentials: ClientCredentials,
    places: string[]
  ][] = [
    ['an API key prefers its own schemes', needs(['bearer'], ['header']), key, ['X-Key']],
    ['else it is a token', needs(['mtls'], ['bearer']), key, ['authorization']],
    ['all of a requirement', needs(['header', 'other']), key, ['X-Key', 'q']],
    ['both kinds', needs(['header', 'bearer']), { ...key, bearer: 't' }, ['X-Key', 'authorization']],
    ['a key for both', needs(['header', 'bearer']), key, ['X-Key', 'authorization']],
    ['a token is no API key', needs(['header'], ['bearer']), { bearer: 't' }, ['authorization']],
    [
      'a requirement without schemes counts as none',
      { securitySchemes: { other }, securityRequirements: [{ schemes: {} }, {}] },
      key,
      ['q']
    ],
    ['the first scheme without requirements', { securitySchemes }, key, ['X-Key']],
    ['a scheme that is not declared', needs(['none']), key, ['authorization']],
    ['Basic, and certificates', needs(['basic', 'mtls']), key, ['authorization']],
    [
      'a name that no header may have',
      { securitySchemes: { a: { apiKeySecurityScheme: { location: 'header', name: 'a b' } } } },
      key,
      ['authorization']
    ],
    [
      'an unknown location',
      { securitySchemes: { a: { apiKeySecurityScheme: { location: 'body', name: 'a' } } } },
      key,
      ['authorization']
    ]
  ]
  for (const [what, card, credentials, places] of cases)
    t.strictSame(
      placesIn(card, credentials).map(({ name }) => name),
      places,
      what
    )
  for (const card of [{}, needs(['none']), needs(['basic'], ['mtls']), { securitySchemes: { header } }]) {
    t.strictSame(placesIn(card, { bearer: 't', onlyIfAsked: true }), [], 'only if asked')
  }
  t.end()
})

await t.test('credentials are placed in headers, cookies and the query', t => {
  const place = (carrier: 'header' | 'query' | 'cookie', name: string, value = 'k') => ({ carrier, name, value })
  t.strictSame(
    currentHeaders({ places: [place('header', 'X-Key'), place('cookie', 'a', 'x;y'), place('cookie', 'b')] }),
    { 'x-key': 'k', cookie: 'a=x%3By; b=k' }
  )
  t.strictSame(
    currentHeaders({ headers: { 'X-KEY': 'own' }, places: [place('header', 'x-key')] }),
    { 'X-KEY': 'own' },
    "the caller's own header takes precedence"
  )
  t.equal(
    currentAddress('http://a.example/x?b=1', { places: [place('query', 'k', '&')] }),
    'http://a.example/x?b=1&k=%26'
  )
  t.equal(afterRefusal(new Response(null, { status: 404 }), { credentials: { apiKey: 'k' } }), undefined)
  t.end()
})

await t.test('invalid credentials throw a TypeError at once, which does not show them', async t => {
  const cases: [unknown, RegExp][] = [
    ['secret-of-16-chars', /credentials has to be an object such as \{ apiKey: '…' \}, not a string\./],
    [{}, /credentials has no secret\. Give \{ apiKey: '…' \} or \{ bearer: '…' \}, or leave credentials out\./],
    [{ apikey: 'secret-of-16-chars' }, /credentials has no apikey\. Is apiKey meant\?/],
    [{ apiKey: 'two secrets' }, /credentials\.apiKey has to be a text of printable ASCII characters without spaces\./],
    [{ bearer: 7 }, /credentials\.bearer has to be a text/]
  ]
  for (const [credentials, message] of cases) {
    const options = { credentials } as ConnectOptions
    t.match(await rejection(connect('http://127.0.0.1:1', options)), { name: 'TypeError', message })
    t.throws(() => remoteAgent('http://127.0.0.1:1', options), { name: 'TypeError', message })
    t.throws(() => new WebSocketTransportFactory({ ...options, credentialOrigins: [] }), { name: 'TypeError', message })
  }
  const credentials = { apiKey: 'secret-of-16-chars' }
  t.throws(() => new WebSocketTransportFactory({ credentials }), {
    name: 'TypeError',
    message: /^credentials need credentialOrigins/
  })
  t.match(
    await refusal(new WebSocketTransportFactory({ credentials, credentialOrigins: [] }).create('ws://127.0.0.1:1')),
    { code: 'Forbidden', message: 'may not receive your credentials' }
  )
})
