import { createPublicKey, createSecretKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT, type CryptoKey, type JWK, type JWTPayload } from 'jose'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { anyOf, apiKey, bearerJwt } from '../../../adapters/auth/index.ts'
import type { BearerJwtOptions } from '../../../adapters/auth/jwt-options.ts'
import { checkJose } from '../../../adapters/auth/jwt-keys.ts'
import { fetchCard } from '../../../adapters/client/card/discovery.ts'
import type { Authenticate, Principal } from '../../../runtime/access/authentication.ts'
import { A2AError } from '../../../runtime/index.ts'
import { rejection, say, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket, obedient, serve } from '../../fixtures/servers/served-agent.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'
import { unusedPort } from '../../fixtures/network/unused-port.ts'

const clock = new TestClock()
const [A_KEY, B_KEY, OLD_KEY, NEW_KEY] = [
  'a-key-of-16-chars',
  'b-key-of-16-chars',
  'old-key-of-16-chars',
  'new-key-of-16-chars'
]
const nowS = Math.floor(clock.now() / 1000)
const ours = { issuer: 'https://issuer.example', audience: 'https://agent.example', clock }

interface Signer {
  readonly privateKey: CryptoKey
  readonly jwk: JWK
  readonly alg: string
}

/** A key pair of an issuer. */
async function signer(kid: string, alg = 'ES256'): Promise<Signer> {
  const { privateKey, publicKey } = await generateKeyPair(alg)
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg }, alg }
}

const first = await signer('first')

/** A token of the issuer; good unless something is changed. */
function token(
  changes: { [Claim in keyof JWTPayload]?: unknown } = {},
  { privateKey, jwk, alg }: Signer = first,
  header: Record<string, unknown> = {}
): Promise<string> {
  const claims = { iss: ours.issuer, aud: ours.audience, sub: 'anna', exp: nowS + 60, scope: 'tasks:read', ...changes }
  return new SignJWT(Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined)))
    .setProtectedHeader({ alg, ...(jwk.kid && { kid: jwk.kid }), ...header })
    .sign(privateKey)
}

/** Who has this in the Authorization header. */
async function who(authenticate: Authenticate, authorization: string | undefined): Promise<Principal | undefined> {
  return authenticate({ headers: { authorization } })
}

/** What is told of a token. */
function bearing(authenticate: Authenticate, token: string): Promise<Principal | undefined> {
  return who(authenticate, `Bearer ${token}`)
}

/** An issuer that serves its keys on loopback, or whatever it is told to, and counts how often it is asked. */
async function issuer(t: Test, signers: readonly Signer[] = [first]) {
  const state = { answer: { status: 200, body: JSON.stringify({ keys: signers.map(({ jwk }) => jwk) }) }, asked: 0 }
  const server = createServer((_, response) => {
    state.asked += 1
    response.writeHead(state.answer.status, { location: '/elsewhere' }).end(state.answer.body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`
  const serveKeys = (signers: readonly Signer[]) =>
    (state.answer = { status: 200, body: JSON.stringify({ keys: signers.map(({ jwk }) => jwk) }) })
  return { state, jwksUrl, serveKeys }
}

const withSet: BearerJwtOptions = { ...ours, jwks: { keys: [first.jwk] } }

await t.test('a valid token gives its subject, its claims and its expiry', async t => {
  const { jwksUrl } = await issuer(t)
  for (const authenticate of [
    bearerJwt({ ...ours, jwksUrl }),
    bearerJwt({ ...ours, jwksUrl: new URL(jwksUrl) }),
    bearerJwt(withSet),
    bearerJwt({ ...ours, key: createPublicKey({ key: first.jwk as never, format: 'jwk' }) })
  ]) {
    const principal = await bearing(authenticate, await token({ role: 'admin' }))
    t.strictSame(principal, {
      id: 'anna',
      claims: { iss: ours.issuer, aud: ours.audience, sub: 'anna', exp: nowS + 60, scope: 'tasks:read', role: 'admin' },
      expiresAtMs: (nowS + 120) * 1000
    })
  }
  t.match(
    await bearing(
      bearerJwt({ ...withSet, audience: ['x', ours.audience] }),
      await token({ aud: ['y', ours.audience] })
    ),
    { id: 'anna' }
  )
  t.match(await who(bearerJwt(withSet), `bearer  ${await token()}`), { id: 'anna' }, 'the scheme is not case-sensitive')
  t.match(
    await bearing(bearerJwt({ ...withSet, principal: ({ iss, sub }) => `${iss}#${String(sub)}` }), await token()),
    { id: `${ours.issuer}#anna` }
  )
})

await t.test('an invalid token identifies nobody', async t => {
  const { jwksUrl } = await issuer(t)
  const other = await signer('first')
  const parts = (await token()).split('.')
  const secretOf = (text: string): Signer => ({
    privateKey: createSecretKey(Buffer.from(text)) as never,
    jwk: { kty: 'oct', kid: 'first' },
    alg: 'HS256'
  })
  const pem = createPublicKey({ key: first.jwk as never, format: 'jwk' }).export({
    type: 'spki',
    format: 'pem'
  }) as string
  const bad: Record<string, string> = {
    expired: await token({ exp: nowS - 61 }),
    'expired this second, with a minute of leeway': await token({ exp: nowS - 60 }),
    'without an expiry': await token({ exp: undefined }),
    'with an expiry that is no number': await token({ exp: 'tomorrow' }),
    'not valid yet': await token({ nbf: nowS + 61 }),
    'of another issuer': await token({ iss: 'https://issuer.example/' }),
    'without an issuer': await token({ iss: undefined }),
    'for another audience': await token({ aud: 'https://agent.example.evil' }),
    'for nobody': await token({ aud: undefined }),
    'for an empty list': await token({ aud: [] }),
    'without a subject': await token({ sub: undefined }),
    'with an empty subject': await token({ sub: '' }),
    'with a subject that is no text': await token({ sub: 7 }),
    'signed with another key under the same name': await token({}, other),
    'signed with a key of another name': await token({}, { ...other, jwk: { ...other.jwk, kid: 'other' } }),
    'not signed': new UnsecuredJWT({ sub: 'anna' })
      .setIssuer(ours.issuer)
      .setAudience(ours.audience)
      .setExpirationTime(nowS + 60)
      .encode(),
    'whose signature is left out': `${parts[0]}.${parts[1]}.`,
    'whose claims were changed': `${parts[0]}.${Buffer.from(JSON.stringify({ iss: ours.issuer, aud: ours.audience, sub: 'root', exp: nowS + 60 })).toString('base64url')}.${parts[2]}`,
    'signed with the public key as a secret': await token({}, secretOf(pem)),
    'signed with the set of keys as a secret': await token({}, secretOf(JSON.stringify(first.jwk))),
    'that says none with a signature': `${Buffer.from('{"alg":"none"}').toString('base64url')}.${parts[1]}.${parts[2]}`,
    'that brings its own key': await token({}, other, { jwk: other.jwk, jku: 'https://evil.example', kid: 'first' }),
    'that is no token': 'hello',
    'that is empty': '..'
  }
  for (const authenticate of [
    bearerJwt({ ...ours, jwksUrl }),
    bearerJwt(withSet),
    bearerJwt({ ...ours, key: createPublicKey(pem) })
  ]) {
    for (const [what, text] of Object.entries(bad)) t.equal(await bearing(authenticate, text), undefined, what)
    for (const header of [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      `Basic ${await token()}`,
      await token(),
      `Bearer ${await token()} ${await token()}`
    ])
      t.equal(await who(authenticate, header), undefined, String(header))
  }
})

await t.test('clock skew is tolerated up to the given limit', async t => {
  const authenticate = bearerJwt({ ...withSet, clockToleranceS: 5 })
  t.match(await bearing(authenticate, await token({ exp: nowS - 4, nbf: nowS + 5 })), {
    expiresAtMs: (nowS + 1) * 1000
  })
  t.equal(await bearing(authenticate, await token({ exp: nowS - 5 })), undefined)
  t.equal(await bearing(authenticate, await token({ nbf: nowS + 6 })), undefined)
  t.match(
    await bearing(bearerJwt(withSet), await token({ exp: nowS - 59, nbf: nowS + 60 })),
    { expiresAtMs: (nowS + 1) * 1000 },
    'a minute by default'
  )
  t.equal(await bearing(bearerJwt({ ...withSet, clockToleranceS: 0 }), await token({ exp: nowS })), undefined)
})

await t.test('expiry uses the system clock by default, and an invalid principal refuses the token', async t => {
  const { clock: _, ...real } = withSet
  t.match(await bearing(bearerJwt(real), await token({ exp: Math.ceil(Date.now() / 1000) + 60 })), { id: 'anna' })
  t.equal(await bearing(bearerJwt(real), await token({ exp: 1 })), undefined)
  for (const principal of [() => undefined, () => '', () => 7 as never])
    t.equal(await bearing(bearerJwt({ ...withSet, principal }), await token()), undefined)
})

await t.test('only the listed algorithms are accepted', async t => {
  const rsa = await signer('rsa', 'RS256')
  const { alg: _, ...jwk } = rsa.jwk
  const keys: BearerJwtOptions = { ...ours, jwks: { keys: [first.jwk, jwk] } }
  for (const [algorithms, counts] of [
    [['RS256'], [rsa]],
    [['ES256'], [first]],
    [['PS256', 'ES256'], [first]],
    [
      ['RS256', 'ES256'],
      [rsa, first]
    ],
    [undefined, [rsa, first]]
  ] as const) {
    const authenticate = bearerJwt({ ...keys, ...(algorithms && { algorithms }) })
    for (const one of [rsa, first])
      t.equal(
        (await bearing(authenticate, await token({}, one)))?.id,
        (counts as readonly Signer[]).includes(one) ? 'anna' : undefined,
        `${String(algorithms)}: ${one.alg}`
      )
  }
})

await t.test('a shared secret verifies its signatures, and public keys are not accepted beside it', async t => {
  const key = createSecretKey(randomBytes(32))
  const shared: Signer = { privateKey: key as never, jwk: { kty: 'oct' }, alg: 'HS256' }
  t.match(await bearing(bearerJwt({ ...ours, key }), await token({}, shared)), { id: 'anna' })
  t.equal(await bearing(bearerJwt({ ...ours, key, algorithms: ['HS512'] }), await token({}, shared)), undefined)
  t.equal(
    await bearing(
      bearerJwt({ ...ours, key }),
      await token({}, { ...shared, privateKey: createSecretKey(randomBytes(32)) as never })
    ),
    undefined
  )
  t.equal(await bearing(bearerJwt({ ...ours, key }), await token()), undefined)
})

await t.test('a key set larger than 1 MiB is not read', async t => {
  const { state, jwksUrl, serveKeys } = await issuer(t)
  serveKeys([first])
  const { body } = state.answer
  state.answer = { status: 200, body: `${body}${' '.repeat(2 ** 20 - body.length)}` }
  t.match(await bearing(bearerJwt({ ...ours, jwksUrl }), await token()), { id: 'anna' })
  state.answer = { status: 200, body: `${state.answer.body} ` }
  await t.rejects(bearing(bearerJwt({ ...ours, jwksUrl }), await token()), {
    code: 'Overloaded',
    cause: { message: /longer than 1048576 bytes/ }
  })
})

await t.test('a new key is fetched when a token needs it; a removed one is refused', async t => {
  const { state, jwksUrl, serveKeys } = await issuer(t)
  const second = await signer('second')
  const authenticate = bearerJwt({ ...ours, jwksUrl, keysCooldownMs: 0 })
  t.match(await bearing(authenticate, await token()), { id: 'anna' })
  t.equal(await bearing(authenticate, await token({}, second)), undefined)
  t.equal(state.asked, 2, 'it was looked up')
  serveKeys([second])
  t.match(await bearing(authenticate, await token({ sub: 'bob' }, second)), { id: 'bob' })
  t.equal(await bearing(authenticate, await token()), undefined)
})

await t.test('keys are fetched once for many tokens, and not again for unknown key ids', async t => {
  const { state, jwksUrl } = await issuer(t)
  const authenticate = bearerJwt({ ...ours, jwksUrl })
  t.equal(await who(authenticate, 'Basic YTpi'), undefined)
  t.equal(state.asked, 0, 'nothing is fetched before the first token')
  await Promise.all(
    Array.from({ length: 20 }, async () => t.match(await bearing(authenticate, await token()), { id: 'anna' }))
  )
  const stranger = await signer('stranger')
  for (let i = 0; i < 20; i += 1)
    t.equal(await bearing(authenticate, await token({}, { ...stranger, jwk: { kid: `k${i}` } })), undefined)
  t.equal(state.asked, 1)
  const forgetful = bearerJwt({ ...ours, jwksUrl, keysMaxAgeMs: Number.MIN_VALUE })
  for (let i = 0; i < 3; i += 1) t.match(await bearing(forgetful, await token()), { id: 'anna' })
  t.equal(state.asked, 4)
})

await t.test('unavailable keys refuse tokens with Overloaded, and are fetched again after 5 seconds', async t => {
  const wrong = [
    { status: 500, body: 'secret' },
    { status: 200, body: 'secret' },
    { status: 200, body: '{"keys":7}' },
    { status: 302, body: '' }
  ]
  for (const answer of wrong) {
    const clock = new TestClock()
    const { state, jwksUrl, serveKeys } = await issuer(t)
    const authenticate = bearerJwt({ ...ours, jwksUrl, clock })
    state.answer = answer
    for (let i = 0; i < 3; i += 1) {
      const error = await rejection(bearing(authenticate, await token()))
      t.match(error, {
        code: 'Overloaded',
        message: 'The keys for tokens cannot be fetched now. Retry later.',
        retryAfterMs: 5000
      })
      clock.increment(1000)
    }
    t.equal(state.asked, 1)
    serveKeys([first])
    clock.increment(1999)
    t.match(await rejection(bearing(authenticate, await token())), { code: 'Overloaded' })
    clock.increment(1)
    t.match(await bearing(authenticate, await token()), { id: 'anna' })
    t.equal(state.asked, 2)
  }
})

await t.test('an unreachable issuer gives Overloaded', async t => {
  const authenticate = bearerJwt({ ...ours, jwksUrl: `http://127.0.0.1:${await unusedPort()}/` })
  t.match(await rejection(bearing(authenticate, await token())), {
    code: 'Overloaded',
    cause: { message: 'fetch failed' }
  })
})

await t.test('cached keys are used while new ones cannot be fetched', async t => {
  const { state, jwksUrl } = await issuer(t)
  const authenticate = bearerJwt({ ...ours, jwksUrl, keysCooldownMs: 0 })
  const stranger = await signer('stranger')
  t.match(await bearing(authenticate, await token()), { id: 'anna' })
  state.answer = { status: 503, body: '' }
  for (let i = 0; i < 3; i += 1)
    t.match(await rejection(bearing(authenticate, await token({}, stranger))), { code: 'Overloaded' })
  t.equal(state.asked, 2)
  t.match(await bearing(authenticate, await token()), { id: 'anna' })
})

await t.test('invalid options for tokens are refused at once', async t => {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwks = { keys: [first.jwk] }
  const wrong: [Record<string, unknown>, 'TypeError' | 'RangeError', RegExp][] = [
    [{}, 'TypeError', /exactly one of jwksUrl, jwks and key, not none/],
    [{ jwks, key: pair.publicKey }, 'TypeError', /not jwks and key/],
    [{ jwks, issuer: '' }, 'TypeError', /^issuer/],
    [{ jwks, issuer: undefined }, 'TypeError', /^issuer/],
    [{ jwks, audience: [] }, 'TypeError', /^audience/],
    [{ jwks, audience: undefined }, 'TypeError', /^audience/],
    [{ jwks, audience: ['x', ''] }, 'TypeError', /^audience/],
    [{ jwks, clockToleranceS: -1 }, 'RangeError', /^clockToleranceS .* not -1/],
    [{ jwks, clockToleranceS: Infinity }, 'RangeError', /^clockToleranceS/],
    [
      { jwks, algorithms: ['none'] },
      'TypeError',
      /^algorithms has to name some of RS256.* for a public key, not "none"\.$/
    ],
    [{ jwks, algorithms: ['ES256', 'HS256'] }, 'TypeError', /not "HS256"/],
    [{ jwks, algorithms: [] }, 'TypeError', /for a public key\.$/],
    [{ key: pair.publicKey, algorithms: ['HS256'] }, 'TypeError', /not "HS256"/],
    [
      { key: createSecretKey(randomBytes(32)), algorithms: ['RS256'] },
      'TypeError',
      /HS512, the algorithms for a secret key, not "RS256"/
    ],
    [{ key: createSecretKey(randomBytes(31)) }, 'RangeError', /^key has 31 bytes/],
    [{ key: pair.privateKey }, 'TypeError', /^key has to be a public key/],
    [{ key: 'secret' }, 'TypeError', /^key has to be a public key/],
    [{ jwks: { keys: [] } }, 'TypeError', /^jwks has to be a public key set/],
    [{ jwks: { keys: [7] } }, 'TypeError', /^jwks has to be a public key set/],
    [{ jwks: [] }, 'TypeError', /^jwks has to be a public key set/],
    [
      { jwks: { keys: [pair.privateKey.export({ format: 'jwk' })] } },
      'TypeError',
      /^jwks contains a private or secret key/
    ],
    [{ jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } }, 'TypeError', /^jwks contains a private or secret key/],
    [
      { jwksUrl: 'http://issuer.example/jwks' },
      'TypeError',
      /^jwksUrl has to be an https: URL.*not "http:\/\/issuer\.example\/jwks"/
    ],
    [{ jwksUrl: 'file:///etc/passwd' }, 'TypeError', /^jwksUrl/],
    [{ jwksUrl: 'jwks' }, 'TypeError', /^jwksUrl/],
    [{ jwksUrl: 'https://issuer.example', keysCooldownMs: -1 }, 'RangeError', /^keysCooldownMs/],
    [{ jwksUrl: 'https://issuer.example', keysMaxAgeMs: 0 }, 'RangeError', /^keysMaxAgeMs/],
    [{ jwks, scopes: ['a b'] }, 'TypeError', /^scopes holds "a b"/],
    [{ jwks, scopes: ['a"b'] }, 'TypeError', /^scopes holds "a\\"b"/]
  ]
  for (const [options, name, message] of wrong)
    t.throws(() => bearerJwt({ ...ours, ...options } as never), { name, message }, String(message))
  t.doesNotThrow(() => bearerJwt({ ...ours, jwksUrl: 'https://issuer.example/jwks' }))
})

await t.test('an error says how to install jose where it is missing', async t => {
  t.doesNotThrow(() => checkJose())
  t.throws(
    () =>
      checkJose(() => {
        throw new Error('not found')
      }),
    { name: 'TypeError', message: 'bearerJwt verifies tokens with jose. Install it: npm install jose' }
  )
})

await t.test('an API key in the configured header identifies its caller', async t => {
  const authenticate = apiKey({ keys: { anna: A_KEY, bob: [OLD_KEY, NEW_KEY] } })
  const given = async (headers: Record<string, string | undefined>, way = authenticate) => way({ headers })
  t.strictSame(await given({ 'x-api-key': A_KEY }), { id: 'anna' })
  for (const key of [OLD_KEY, NEW_KEY]) t.strictSame(await given({ 'x-api-key': key }), { id: 'bob' })
  for (const key of [
    undefined,
    '',
    A_KEY.toUpperCase(),
    A_KEY.slice(0, -1),
    `${A_KEY} `,
    `${A_KEY}, ${A_KEY}`,
    'constructor'
  ])
    t.equal(await given({ 'x-api-key': key }), undefined)
  t.equal(await given({ authorization: `Bearer ${A_KEY}` }), undefined)
  const bearer = apiKey({ keys: { anna: A_KEY }, header: 'Authorization' })
  t.strictSame(await given({ authorization: `Bearer ${A_KEY}` }, bearer), { id: 'anna' })
  for (const headers of [{ authorization: A_KEY }, { authorization: `Basic ${A_KEY}` }, { 'x-api-key': A_KEY }, {}])
    t.equal(await given(headers, bearer), undefined)
  t.strictSame(await given({ 'x-key': A_KEY }, apiKey({ keys: { anna: A_KEY }, header: 'X-Key' })), { id: 'anna' })
})

await t.test('a function may look up API keys', async t => {
  const asked: string[] = []
  const authenticate = apiKey({
    keys: async key => (
      asked.push(key),
      key === 'k' ? { id: 'anna', claims: { plan: 'free' }, expiresAtMs: 7 } : undefined
    )
  })
  t.strictSame(await authenticate({ headers: { 'x-api-key': 'k' } }), {
    id: 'anna',
    claims: { plan: 'free' },
    expiresAtMs: 7
  })
  t.equal(await authenticate({ headers: { 'x-api-key': 'x' } }), undefined)
  for (const headers of [{}, { 'x-api-key': '' }]) t.equal(await authenticate({ headers }), undefined)
  t.strictSame(asked, ['k', 'x'])
})

await t.test('invalid API keys are refused at once, and the message contains none', async t => {
  const wrong: [unknown, RegExp][] = [
    [{ keys: {} }, /^keys holds no key/],
    [{ keys: { anna: [] } }, /^keys holds no key/],
    [{ keys: { '': 'secret' } }, /^keys has a principal with an empty id/],
    [{ keys: { anna: '' } }, /^The key of anna has to be printable ASCII/],
    [{ keys: { anna: 'se cret' } }, /^The key of anna has to be printable ASCII/],
    [{ keys: { anna: 'secrèt' } }, /^The key of anna has to be printable ASCII/],
    [{ keys: { anna: undefined } }, /^The key of anna has to be printable ASCII/],
    [
      { keys: { anna: 's' } },
      /^The key of anna is too short\. It needs at least 16 characters, or it can be guessed\. Make one with: openssl rand -base64 24$/
    ],
    [{ keys: { anna: ['secret-of-16-chars', 'secret-of-15-ch'] } }, /^The key of anna is too short\./],
    [
      { keys: { anna: 'secret-of-16-chars', bob: ['another-of-16-chars', 'secret-of-16-chars'] } },
      /^A key of bob is given twice/
    ],
    [{ keys: { anna: 'secret' }, header: 'x key' }, /^header has to be a header name, not "x key"/],
    [{ keys: { anna: 'secret' }, header: '' }, /^header/]
  ]
  for (const [options, message] of wrong) {
    const error = await rejection((async () => apiKey(options as never))())
    t.match(error, { name: 'TypeError', message })
    t.notMatch(error.message, /se ?cr/)
  }
})

await t.test('anyOf accepts a caller if one authenticator does, and the first match wins', async t => {
  const authenticate = anyOf(bearerJwt(withSet), apiKey({ keys: { bob: B_KEY } }))
  t.match(await bearing(authenticate, await token()), { id: 'anna' })
  t.match(await authenticate({ headers: { 'x-api-key': B_KEY } }), { id: 'bob' })
  t.match(await authenticate({ headers: { 'x-api-key': B_KEY, authorization: `Bearer ${await token()}` } }), {
    id: 'anna'
  })
  t.equal(await authenticate({ headers: { 'x-api-key': 'x', authorization: 'Bearer x' } }), undefined)
})

await t.test('anyOf skips an authenticator that fails, and reports its error if no other matches', async t => {
  const broken: Authenticate = () => {
    throw new A2AError('Overloaded', 'later')
  }
  const other: Authenticate = () => Promise.reject(new Error('other'))
  const keys = apiKey({ keys: { bob: B_KEY } })
  for (const ways of [
    [broken, keys, other],
    [other, broken, keys]
  ] as const) {
    const authenticate = anyOf(...ways)
    t.match(await authenticate({ headers: { 'x-api-key': B_KEY } }), { id: 'bob' })
    t.match(await rejection(Promise.resolve(authenticate({ headers: {} }))), { code: 'Overloaded', message: 'later' })
  }
  t.match(await rejection(Promise.resolve(anyOf(keys, other)({ headers: {} }))), { message: 'other' })
})

await t.test('conflicting authenticators are refused', async t => {
  const keys = { anna: A_KEY }
  t.throws(() => anyOf(apiKey({ keys }), apiKey({ keys, header: 'x-other' })), {
    name: 'TypeError',
    message: "Two schemes are called apiKey. Give one another name: { scheme: '…' }."
  })
  t.doesNotThrow(() => anyOf(apiKey({ keys }), apiKey({ keys: { bob: B_KEY } })))
  t.doesNotThrow(() => anyOf(apiKey({ keys }), apiKey({ keys, header: 'x-other', scheme: 'other' })))
  for (const ways of [[], [undefined], [apiKey({ keys }), {}]])
    t.throws(() => anyOf(...(ways as never as [Authenticate])), {
      name: 'TypeError',
      message: /^anyOf takes authenticate functions/
    })
})

await t.test('each authenticator gives its security scheme and its challenge', async t => {
  const jwt = bearerJwt({ ...withSet, scopes: ['tasks:read', 'tasks:write'] })
  const oidc = bearerJwt({
    ...withSet,
    scheme: 'login',
    openIdConnectUrl: 'https://issuer.example/.well-known/openid-configuration'
  })
  const key = apiKey({ keys: { anna: A_KEY }, header: 'X-Key' })
  const bearerKey = apiKey({ keys: { anna: A_KEY }, header: 'authorization', scheme: 'key' })
  const said = ({ securitySchemes, securityRequirements, challenge }: Authenticate) => ({
    securitySchemes,
    securityRequirements,
    challenge
  })
  t.strictSame(said(jwt), {
    securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer', bearerFormat: 'JWT' } } },
    securityRequirements: [{ schemes: { bearer: { list: ['tasks:read', 'tasks:write'] } } }],
    challenge: 'Bearer scope="tasks:read tasks:write"'
  })
  t.strictSame(said(oidc), {
    securitySchemes: {
      login: {
        openIdConnectSecurityScheme: { openIdConnectUrl: 'https://issuer.example/.well-known/openid-configuration' }
      }
    },
    securityRequirements: [{ schemes: { login: {} } }],
    challenge: 'Bearer'
  })
  t.strictSame(said(key), {
    securitySchemes: { apiKey: { apiKeySecurityScheme: { location: 'header', name: 'X-Key' } } },
    securityRequirements: [{ schemes: { apiKey: {} } }],
    challenge: 'ApiKey header="X-Key"'
  })
  t.strictSame(said(bearerKey), {
    securitySchemes: { key: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
    securityRequirements: [{ schemes: { key: {} } }],
    challenge: 'Bearer'
  })
  t.strictSame(said(anyOf(oidc, key, bearerKey, () => undefined)), {
    securitySchemes: { ...oidc.securitySchemes, ...key.securitySchemes, ...bearerKey.securitySchemes },
    securityRequirements: [{ schemes: { login: {} } }, { schemes: { apiKey: {} } }, { schemes: { key: {} } }],
    challenge: 'Bearer, ApiKey header="X-Key"'
  })
})

/** How a handshake with these headers is answered. */
async function shaken(t: Test, url: string, headers: Record<string, string>) {
  const socket = new WebSocket(url, { headers })
  t.teardown(() => socket.terminate())
  socket.on('error', () => {})
  const answered = once(socket, 'unexpected-response').then(([, response]) => response)
  const response = await Promise.race([answered, once(socket, 'open').then(() => undefined)])
  if (!response) return { status: 101, headers: {}, body: undefined }
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  return { status: response.statusCode, headers: response.headers, body: JSON.parse(Buffer.concat(chunks).toString()) }
}

await t.test('a server accepts a valid token, and names its scheme in refusals and the card', async t => {
  const { jwksUrl } = await issuer(t)
  const authenticate = anyOf(bearerJwt({ ...ours, jwksUrl, scopes: ['tasks:read'] }), apiKey({ keys: { bob: B_KEY } }))
  const { url, runtime, log } = await serve(t, { work: obedient }, { authenticate })
  for (const headers of [
    {},
    { authorization: `Bearer ${await token({ exp: nowS - 60 })}` },
    { authorization: 'Bearer x' },
    { 'x-api-key': 'x' }
  ]) {
    const { status, headers: answered, body } = await shaken(t, url, headers)
    t.equal(status, 401)
    t.equal(answered['www-authenticate'], 'Bearer scope="tasks:read", ApiKey header="x-api-key"')
    t.match(body, { error: { code: -31401 } })
  }
  const client = await JsonSocket.open(t, url, {
    headers: { 'a2a-version': '1.0', authorization: `Bearer ${await token()}` }
  })
  const { result } = await client.call('SendMessage', say('x'))
  const { id } = taskIn(result as never)
  t.match(await runtime.getTask({ id }, { principal: 'anna' }), { id })
  t.equal((await shaken(t, url, { 'x-api-key': B_KEY })).status, 101)
  const { securitySchemes, securityRequirements } = await fetchCard(url)
  t.strictSame(
    { securitySchemes, securityRequirements },
    { securitySchemes: authenticate.securitySchemes, securityRequirements: authenticate.securityRequirements }
  )
  t.strictSame(log, [])
})

await t.test('a connection closes with 4401 when its token expires, after its calls receive an error', async t => {
  const clock = new TestClock()
  const { url } = await serve(
    t,
    { work: obedient },
    { clock, authenticate: bearerJwt({ ...withSet, clock, clockToleranceS: 0 }) }
  )
  const client = await JsonSocket.open(t, url, {
    headers: { 'a2a-version': '1.0', authorization: `Bearer ${await token()}` }
  })
  const waiting = client.request('SendMessage', say('wait'))
  t.match(await client.call('ListTasks', {}), { result: {} })
  clock.increment((nowS + 60) * 1000 - clock.now())
  t.match(await client.next(waiting), { error: { code: -31401 } })
  t.match(await client.closed(), { code: 4401 })
  t.equal((await shaken(t, url, { authorization: `Bearer ${await token()}` })).status, 401)
})

await t.test('a server answers 503 and logs the reason while tokens cannot be checked', async t => {
  const { state, jwksUrl } = await issuer(t)
  state.answer = { status: 500, body: 'secret' }
  const { url, log } = await serve(t, { work: obedient }, { authenticate: bearerJwt({ ...ours, jwksUrl }) })
  const sent = await token()
  const { status, headers, body } = await shaken(t, url, { authorization: `Bearer ${sent}` })
  t.equal(status, 503)
  t.equal(headers['retry-after'], '5')
  t.match(body, {
    error: {
      code: -31503,
      message: 'The keys for tokens cannot be fetched now. Retry later.',
      data: [{ reason: 'OVERLOADED' }, { retryDelay: '5s' }]
    }
  })
  t.notMatch(JSON.stringify(body), /127\.0\.0\.1|jwks|secret/)
  t.match(log, [
    {
      level: 'error',
      message: 'authenticate failed',
      details: { error: { code: 'Overloaded', cause: { message: /200 OK/ } } }
    }
  ])
  t.notMatch(JSON.stringify(log), sent)
  t.equal((await shaken(t, url, {})).status, 401, 'a caller without credentials is refused anyway')
  const { url: other } = await serve(
    t,
    { work: obedient },
    {
      authenticate: () => {
        throw new A2AError('Overloaded')
      }
    }
  )
  t.equal((await shaken(t, other, {})).headers['retry-after'], '1')
})

await t.test('a principal without an id is not accepted', async t => {
  for (const principal of [{}, { id: '' }, { id: 7 }]) {
    const { url, log } = await serve(t, { work: obedient }, { authenticate: () => principal as never })
    t.equal((await shaken(t, url, {})).status, 401)
    t.match(log, [
      { message: 'authenticate failed', details: { error: { message: 'authenticate gave a principal without an id' } } }
    ])
  }
})
