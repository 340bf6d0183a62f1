import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  randomBytes,
  type KeyObject
} from 'node:crypto'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import {
  AgentCard as SdkCard,
  canonicalizeAgentCard,
  generateAgentCardSignature,
  verifyAgentCardSignature
} from '@a2a-js/sdk'
import { FlattenedSign, base64url } from 'jose'
import t, { type Test } from 'tap'
import { toRequestHandler, WebSocketTransportFactory } from '../../../adapters/a2a-sdk/index.ts'
import { openVerifier, type CardVerifierOptions } from '../../../adapters/auth/card-verifier.ts'
import { cardSigner, cardVerifier } from '../../../adapters/auth/index.ts'
import type { CardSignerOptions } from '../../../adapters/auth/card-signer.ts'
import { checkCardPeers } from '../../../adapters/auth/canonical-forms.ts'
import { connect } from '../../../adapters/client/connect.ts'
import { withCard03 } from '../../../adapters/v03/card.ts'
import type { AgentCard } from '../../../machines/protocol/card.ts'
import { AGENT_CARD_PATH, WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import { limitsWith } from '../../../runtime/access/limits.ts'
import { SignedCards } from '../../../runtime/agent/signed-cards.ts'
import type { SignCard } from '../../../runtime/index.ts'
import { ask, serveAll } from '../../fixtures/servers/http-agent.ts'
import { recordingLogger, rejection, say, start, stateName, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'
import { obedient } from '../../fixtures/servers/served-agent.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

/** A card with everything that a card may have. */
const card: AgentCard = {
  name: 'Painter',
  description: 'Paints boats.',
  version: '2.0.0',
  documentationUrl: 'https://docs',
  iconUrl: 'https://icon',
  provider: { organization: 'Boats', url: 'https://boats' },
  supportedInterfaces: [
    { url: 'https://a.example/', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: 'blue' },
    { url: 'wss://a.example/', protocolBinding: 'urn:x', protocolVersion: '1.0' }
  ],
  capabilities: {
    streaming: true,
    pushNotifications: true,
    extendedAgentCard: true,
    extensions: [{ uri: 'urn:e', description: 'E', required: true, params: { z: [1, { b: 'ö', a: null }], n: 1.5 } }]
  },
  securitySchemes: {
    key: { apiKeySecurityScheme: { location: 'header', name: 'X-Key', description: 'A key.' } },
    oauth: {
      oauth2SecurityScheme: {
        flows: { clientCredentials: { tokenUrl: 'https://id/', scopes: { read: 'Reads.' } } },
        oauth2MetadataUrl: 'https://id/meta'
      }
    }
  },
  securityRequirements: [{ schemes: { oauth: { list: ['read'] } } }],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['image/png'],
  skills: [
    {
      id: 's',
      name: 'S',
      description: 'D',
      tags: ['t'],
      examples: ['e'],
      inputModes: ['text/plain'],
      outputModes: ['image/png'],
      securityRequirements: [{ schemes: { oauth: { list: ['read'] } } }]
    }
  ]
}

type Pair = { readonly privateKey: KeyObject; readonly publicKey: KeyObject }

const ec: Pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const rsa: Pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
const other: Pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** A key pair's public key as a member of a set. */
const jwkOf = ({ publicKey }: Pair, more: object = {}) => ({ ...publicKey.export({ format: 'jwk' }), ...more })
const trusting = (...keys: object[]): CardVerifierOptions => ({ jwks: { keys } })

const trusted = trusting(jwkOf(ec, { kid: 'k' }))
const signed = await cardSigner({ key: ec.privateKey, kid: 'k' })(card)

/** The same without what is empty, which no signature covers: what is signed. */
const {
  capabilities: { extensions: [extension] = [] }
} = card
const content: AgentCard = {
  ...card,
  capabilities: {
    ...card.capabilities,
    extensions: [{ uri: 'urn:e', ...extension, params: { z: [1, { b: 'ö' }], n: 1.5 } }]
  }
}

/** Why a card cannot be trusted. */
async function why(given: unknown, options: CardVerifierOptions = trusted): Promise<string> {
  const { message } = await rejection(cardVerifier(options)(given, 'https://a.example/'))
  return message
}

const headerOf = ({ signatures = [] }: AgentCard, index = 0): Record<string, unknown> =>
  JSON.parse(String(Buffer.from(signatures[index]?.protected ?? '', 'base64url')))

await t.test('a card is signed by each kind of key, and the official SDK verifies it', async t => {
  const rows: [Pair, Omit<CardSignerOptions, 'key'>, string][] = [
    [ec, {}, 'ES256'],
    [rsa, {}, 'RS256'],
    [rsa, { alg: 'PS512' }, 'PS512'],
    [generateKeyPairSync('ed25519'), {}, 'EdDSA'],
    [generateKeyPairSync('ec', { namedCurve: 'P-384' }), {}, 'ES384'],
    [generateKeyPairSync('ec', { namedCurve: 'P-521' }), {}, 'ES512']
  ]
  for (const [pair, options, alg] of rows) {
    const made = await cardSigner({ key: pair.privateKey, kid: 'k', ...options })(card)
    t.strictSame({ ...made, signatures: undefined }, { ...card, signatures: undefined }, 'the card stays as it is')
    t.strictSame(headerOf(made), { alg, kid: 'k', typ: 'JOSE' })
    for (const form of [SdkCard.fromJSON(JSON.parse(JSON.stringify(made))), JSON.parse(JSON.stringify(made))]) {
      await verifyAgentCardSignature(async kid => (t.equal(kid, 'k'), pair.publicKey))(form)
    }
    t.strictSame(await cardVerifier(trusting(jwkOf(pair, { kid: 'k' })))(JSON.parse(JSON.stringify(made)), ''), content)
    t.strictSame(await cardVerifier({ key: pair.publicKey })(made, ''), content, 'one key, whatever its id')
  }
})

await t.test('a card signed by the official SDK is trusted without its unsigned members', async t => {
  const { securitySchemes: _, ...part } = content
  for (const [pair, alg] of [
    [ec, 'ES256'],
    [rsa, 'RS256']
  ] as const) {
    const sign = generateAgentCardSignature(pair.privateKey, { alg, kid: 'k', typ: 'JOSE' }, { note: 'not protected' })
    const verify = openVerifier(trusting(jwkOf(other, { kid: 'o' }), jwkOf(pair, { kid: 'k' })))
    const made = SdkCard.toJSON(await sign(SdkCard.fromJSON(card))) as Record<string, unknown>
    t.strictSame(
      await verify(made, ''),
      { card: part, kid: 'k', alg, left: ['securitySchemes'] },
      'the signature covers only a part of the card'
    )
    t.notOk(
      'securitySchemes' in (await verify({ ...made, securitySchemes: { evil: { mtlsSecurityScheme: {} } } }, '')).card
    )
    t.strictSame((await verify(await sign(card as unknown as SdkCard), '')).card, content)
    const { securitySchemes: __, ...open } = card
    t.strictSame((await verify(SdkCard.toJSON(await sign(SdkCard.fromJSON(open))), '')).left, [])
  }
})

await t.test('a card has a second signature for the official SDK, which cardVerifier does not accept', async t => {
  t.equal(signed.signatures?.length, 2)
  t.match(headerOf(signed, 1), { kid: 'k', 'urn:taskchart:signature:partial': true })
  t.match(
    await why({ ...signed, signatures: signed.signatures?.slice(1) }),
    /signature 1 is over only a part of the card/
  )
  const { securitySchemes: _, ...open } = card
  t.equal((await cardSigner({ key: ec.privateKey })(open)).signatures?.length, 1)
})

await t.test('a card of both versions has signatures over the document and its 1.0 form', async t => {
  const both = withCard03(card)
  const made = await cardSigner({ key: ec.privateKey, kid: 'k' })(both)
  t.strictSame(
    made.signatures?.map((_, i) => 'urn:taskchart:signature:partial' in headerOf(made, i)),
    [false, true, true],
    'the third is for securitySchemes'
  )
  for (const form of [SdkCard.fromJSON(JSON.parse(JSON.stringify(made))), JSON.parse(JSON.stringify(made))])
    await verifyAgentCardSignature(async () => ec.publicKey)(form)
  const reordered = JSON.parse(JSON.stringify(Object.fromEntries(Object.entries(made).toReversed()))) as AgentCard
  t.strictSame(await openVerifier(trusted)(reordered, ''), {
    card: await cardVerifier(trusted)(made, ''),
    kid: 'k',
    alg: 'ES256',
    left: []
  })
  const skills = both.skills.map(skill => ({ ...skill, security: [] }))
  for (const change of [
    { url: 'https://evil.example/' },
    { protocolVersion: '0.2.0' },
    { additionalInterfaces: [] },
    { security: [] },
    { preferredTransport: undefined },
    { another: 1 },
    { skills }
  ]) {
    const text = JSON.stringify({ ...made, ...change })
    t.match(
      await why(JSON.parse(text)),
      /signature 1 by "k" \(ES256\) does not match: the card was changed/,
      text.slice(0, 80)
    )
    t.match(
      await why({ ...JSON.parse(text), signatures: made.signatures?.slice(1) }),
      /^[^;]*signature 1 is over only a part of the card[^;]*; signature 2 is over only a part of the card/,
      'also if its first signature is removed'
    )
  }
  t.match(await why({ ...made, name: 'Another' }), /does not match/)
  const { capabilities: _, securitySchemes: __, ...plain } = card
  t.equal((await cardSigner({ key: ec.privateKey })(withCard03({ ...plain, capabilities: {} }))).signatures?.length, 2)
})

await t.test('a card signed only over its 1.0 form is trusted in that form', async t => {
  const { privateKey: key } = ec
  const { signatures } = await generateAgentCardSignature(key, { alg: 'ES256', kid: 'k', typ: 'JOSE' })(
    card as unknown as SdkCard
  )
  const both: AgentCard = {
    ...withCard03(card),
    signatures: signatures.map(({ protected: header, signature }) => ({ protected: header, signature }))
  }
  const { card: found, left } = await openVerifier(trusted)({ ...both, url: 'https://evil.example/' }, '')
  t.strictSame(found, content)
  t.strictSame(left.toSorted(), [
    'additionalInterfaces',
    'preferredTransport',
    'protocolVersion',
    'security',
    'supportsAuthenticatedExtendedCard',
    'url'
  ])
})

await t.test('a key id is that of the JWK or its thumbprint, and jku is optional', async t => {
  const jwk = ec.privateKey.export({ format: 'jwk' })
  t.match(headerOf(await cardSigner({ key: { ...jwk, kid: 'named', alg: 'ES256' } })(card)), {
    kid: 'named',
    alg: 'ES256'
  })
  t.match(
    headerOf(
      await cardSigner({ key: { ...jwk, kid: 'named' }, kid: 'other', jku: 'https://a.example/jwks.json' })(card)
    ),
    { kid: 'other', jku: 'https://a.example/jwks.json' }
  )
  t.match(headerOf(await cardSigner({ key: jwk, jku: 'http://localhost:1/' })(card)), {
    kid: /^[\w-]{43}$/,
    jku: 'http://localhost:1/'
  })
})

await t.test('a card may have several signatures, of which one has to be valid', async t => {
  const twice = await cardSigner({ key: other.privateKey, kid: 'new' })(signed)
  t.strictSame(
    [0, 1, 2, 3].map(index => headerOf(twice, index).kid),
    ['k', 'k', 'new', 'new'],
    'those before stay'
  )
  for (const options of [trusted, trusting(jwkOf(other, { kid: 'new' }))])
    t.strictSame(await cardVerifier(options)(twice, ''), content)
  t.equal(
    await why(twice, trusting(jwkOf(rsa, { kid: 'x' }))),
    'The card of Painter at https://a.example/ cannot be trusted: signature 1 is by the key "k" (ES256), which is not trusted; signature 2 is over only a part of the card, for verifiers that do not know the rest; signature 3 is by the key "new" (ES256), which is not trusted; signature 4 is over only a part of the card, for verifiers that do not know the rest.'
  )
})

/** The paths to all values in a JSON value that are no containers. */
function* leaves(value: unknown, path: readonly (string | number)[] = []): Generator<readonly (string | number)[]> {
  if (typeof value !== 'object' || value === null) yield path
  else
    for (const [name, inner] of Object.entries(value))
      yield* leaves(inner, [...path, Array.isArray(value) ? Number(name) : name])
}

/** A copy of a card in which one member is changed, or left out. */
function changed(path: readonly (string | number)[], change: (value: unknown) => unknown): Record<string, unknown> {
  const copy = structuredClone(signed) as unknown as Record<string, unknown>
  // oxlint-disable-next-line typescript/no-explicit-any -- any member of a card
  const parent = path.slice(0, -1).reduce((inner: any, name) => inner[name], copy)
  const last = path.at(-1) ?? ''
  const value = change(parent[last])
  if (value === undefined && Array.isArray(parent)) parent.splice(Number(last), 1)
  else if (value === undefined) delete parent[last]
  else parent[last] = value
  return copy
}

await t.test('a card with a changed or removed member is not trusted', async t => {
  const paths = [...leaves(card)]
  t.ok(paths.length > 40)
  const another = (value: unknown) =>
    typeof value === 'string'
      ? value.startsWith('https:')
        ? `${value}x`
        : value === 'header'
          ? 'query'
          : `${value}x`
      : typeof value === 'boolean'
        ? !value
        : value === null
          ? 1
          : Number(value) + 1
  for (const path of paths) {
    t.match(
      await why(changed(path, another)),
      /by "k" \(ES256\) does not match: the card was changed/,
      `${path.join('.')} changed`
    )
    if (path.at(-1) !== 'a')
      t.match(
        await why(changed(path, () => undefined)),
        /does not match|is required|must/,
        `${path.join('.')} left out`
      )
  }
  t.match(
    await why({ ...signed, skills: [...card.skills, { id: 'evil', name: 'Evil', description: '', tags: [] }] }),
    /does not match/,
    'a skill more'
  )
  t.match(
    await why({
      ...signed,
      supportedInterfaces: [
        { url: 'https://evil.example/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        ...card.supportedInterfaces
      ]
    }),
    /does not match/,
    'an interface more'
  )
  t.match(
    await why({ ...signed, supportedInterfaces: card.supportedInterfaces.toReversed() }),
    /does not match/,
    'another order'
  )
  t.strictSame(
    await cardVerifier(trusted)({ ...signed, unknown: 'x' }, ''),
    content,
    'members unknown to A2A are dropped'
  )
})

/** A card with a signature of the test's own making: this header over the card. */
async function forged(
  header: Record<string, unknown>,
  key: KeyObject = ec.privateKey,
  payload = canonicalizeAgentCard(SdkCard.fromJSON(card))
): Promise<AgentCard> {
  const { protected: made = '', signature } = await new FlattenedSign(new TextEncoder().encode(payload))
    .setProtectedHeader(header)
    .sign(key)
  return { ...card, signatures: [{ protected: made, signature }] }
}

const encoded = (header: unknown) => base64url.encode(JSON.stringify(header))

await t.test('a malformed signature, or one with a forbidden algorithm, is named in the error', async t => {
  const [signature] = signed.signatures ?? []
  const withHeader = (header: unknown, signature = 'AAAA') => ({
    ...card,
    signatures: [{ protected: typeof header === 'string' ? header : encoded(header), signature }]
  })
  const secret = createSecretKey(Buffer.from(ec.publicKey.export({ type: 'spki', format: 'pem' })))
  const rows: [unknown, RegExp][] = [
    [{ ...signed, signatures: undefined }, /it has no signature\.$/],
    [{ ...signed, signatures: [] }, /it has no signature\.$/],
    [{ ...signed, signatures: Array.from({ length: 17 }, () => signature) }, /more than 16 signatures/],
    [
      withHeader({ alg: 'none', kid: 'k', typ: 'JOSE' }, 'x'),
      /signature 1 is made with "none", which is not allowed \(only RS256, .*ES256/
    ],
    [await forged({ alg: 'HS256', kid: 'k', typ: 'JOSE' }, secret), /made with "HS256", which is not allowed/],
    [withHeader('!!'), /an unreadable protected header, or no algorithm/],
    [withHeader(base64url.encode('[]')), /unreadable protected header/],
    [withHeader({ kid: 'k' }), /no algorithm \(alg\) in it/],
    [withHeader({ alg: 5, kid: 'k' }), /no algorithm \(alg\) in it/],
    [await forged({ alg: 'ES256' }), /has no key id \(kid\)/],
    [await forged({ alg: 'ES256', kid: '' }), /has no key id \(kid\)/],
    [await forged({ alg: 'ES256', kid: 'k' }, other.privateKey), /does not match: .* another key signed it/],
    [await forged({ alg: 'ES256', kid: 'k' }, ec.privateKey, '{}'), /does not match/],
    [withHeader({ alg: 'ES256', kid: 'k' }), /does not match/],
    [
      withHeader({ alg: 'ES256', kid: 'k', crit: ['x'], x: 1 }),
      /by "k" \(ES256\) cannot be checked: Extension Header Parameter "x" is not recognized/
    ],
    [await forged({ alg: 'ES256', kid: 'unknown' }), /is by the key "unknown" \(ES256\), which is not trusted/],
    [{ ...card, signatures: [{ ...signature, header: { alg: 'ES256' } }] }, /cannot be checked/]
  ]
  for (const [given, wanted] of rows) t.match(await why(given), wanted)
  t.match(await why({ name: 'x' }), /card\.supportedInterfaces is required/)
  t.match(await why(undefined), /card/)
  t.match(await why(JSON.parse(`{"a":${'['.repeat(100)}${']'.repeat(100)}}`)), /card\.a/)
})

await t.test('a key is used only with its own algorithm and use, unless it is ambiguous', async t => {
  const made = await cardSigner({ key: rsa.privateKey, kid: 'k', alg: 'PS256' })(card)
  t.strictSame(await cardVerifier(trusting(jwkOf(rsa, { kid: 'k' })))(made, ''), content)
  t.match(await why(made, trusting(jwkOf(rsa, { kid: 'k', alg: 'RS256' }))), /which is not trusted/)
  t.match(await why(made, trusting(jwkOf(rsa, { kid: 'k', use: 'enc' }))), /which is not trusted/)
  t.match(
    await why(made, trusting(jwkOf(rsa, { kid: 'k' }), jwkOf(rsa, { kid: 'k' }))),
    /cannot be checked: multiple matching keys/
  )
  t.match(
    await why(made, { ...trusting(jwkOf(rsa, { kid: 'k' })), algorithms: ['RS256'] }),
    /made with "PS256", which is not allowed \(only RS256\)/
  )
  t.match(await why(made, { key: ec.publicKey }), /cannot be checked: /)
})

/** A server of keys, which counts how often it is asked. */
async function keyServer(t: Test, keys: object[], status = 200) {
  const state = { asked: 0 }
  const server = createServer((_, response) => {
    state.asked += 1
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ keys }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json` }
}

await t.test('keys are fetched only from the given address, never from that of the card', async t => {
  const { state, url } = await keyServer(t, [jwkOf(other, { kid: 'k' })])
  const lured = await cardSigner({ key: other.privateKey, kid: 'k', jku: url })(card)
  t.match(await why(lured), /does not match/)
  t.equal(state.asked, 0)
  const verify = cardVerifier({ jwksUrl: url })
  for (const _ of [1, 2]) t.strictSame(await verify(lured, ''), content)
  t.equal(state.asked, 1, 'and are kept')
  const broken = await keyServer(t, [], 500)
  t.match(await rejection(cardVerifier({ jwksUrl: broken.url })(signed, '')), {
    code: 'Overloaded',
    message: 'The keys for cards cannot be fetched now. Retry later.'
  })
})

await t.test('wrong options are refused at once', async t => {
  const jwk = ec.privateKey.export({ format: 'jwk' })
  const signers: [unknown, RegExp][] = [
    [{ key: ec.publicKey }, /private key, not a public one/],
    [{ key: createSecretKey(randomBytes(32)) }, /private key, not a secret one/],
    [{ key: { kty: 'oct', k: 'AAAA' } }, /private key, not a secret one/],
    [{ key: jwkOf(ec) }, /createPrivateKey\(pem\) from node:crypto, or a JWK with its private members/],
    [{ key: {} }, /createPrivateKey/],
    [{ key: generateKeyPairSync('x25519').privateKey }, /of the kind x25519, which cannot sign cards/],
    [{ key: generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey }, /of the kind secp256k1/],
    [{ key: ec.privateKey, alg: 'RS256' }, /alg has to be ES256 for this key, not "RS256"/],
    [{ key: rsa.privateKey, alg: 'HS256' }, /alg has to be RS256 or .*, not "HS256"/],
    [{ key: ec.privateKey, alg: 'none' }, /not "none"/],
    [{ key: { ...jwk, alg: 'HS256' } }, /not "HS256"/],
    [{ key: { ...jwk, alg: 'ES256' }, alg: 'RS256' }, /not "RS256"/],
    [{ key: ec.privateKey, kid: '' }, /kid has to be/],
    [{ key: ec.privateKey, jku: 'http://a.example/' }, /jku has to be an https: URL/],
    [{ key: ec.privateKey, jku: 'nowhere' }, /jku has to be/]
  ]
  for (const [options, wanted] of signers)
    t.throws(() => cardSigner(options as CardSignerOptions), { name: 'TypeError', message: wanted })
  const verifiers: [unknown, RegExp][] = [
    [{}, /Give cardVerifier exactly one of jwksUrl, jwks and key, not none/],
    [{ jwks: { keys: [jwk] } }, /contains a private or secret key/],
    [{ jwksUrl: 'http://a.example/' }, /jwksUrl has to be/],
    [{ key: createSecretKey(randomBytes(32)) }, /public key: a secret that verifies cards can also sign them/],
    [{ key: ec.privateKey }, /key has to be a public key/],
    [{ ...trusted, algorithms: ['none'] }, /algorithms has to name some of/]
  ]
  for (const [options, wanted] of verifiers)
    t.throws(() => cardVerifier(options as CardVerifierOptions), { name: 'TypeError', message: wanted })
  const nothing = () => {
    throw new Error('not there')
  }
  t.throws(() => checkCardPeers(nothing), { name: 'TypeError', message: /npm install @a2a-js\/sdk jose/ })
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 })
  await t.rejects(cardSigner({ key: small.privateKey })(card), /modulusLength to be 2048 bits or larger/)
})

/** A signer that counts. */
function counting(sign: SignCard = cardSigner({ key: ec.privateKey, kid: 'k' })) {
  const state = { signed: 0 }
  const signCard: SignCard = card => ((state.signed += 1), sign(card))
  return { state, signCard }
}

await t.test('a served card is signed once and reused', async t => {
  const { state, signCard } = counting()
  const { url } = await serveAll(t, { work: obedient }, { signCard })
  const at = new URL(AGENT_CARD_PATH, url)
  const [first, second] = await Promise.all([ask(at), ask(at)])
  t.equal(first.text, second.text)
  t.equal(first.headers.get('etag'), second.headers.get('etag'))
  t.equal((await ask(at, { headers: { 'if-none-match': first.headers.get('etag') ?? '' } })).status, 304)
  t.equal(state.signed, 1)
  t.match(await cardVerifier(trusted)(first.json, ''), { name: 'Test' })
  await verifyAgentCardSignature(async () => ec.publicKey)(SdkCard.fromJSON(first.json))
  const renamed = new URL(at)
  renamed.hostname = 'localhost'
  const other = await ask(renamed)
  t.match(
    await cardVerifier(trusted)(other.json, ''),
    { supportedInterfaces: [{ url: /localhost/ }, {}, {}] },
    'another address makes another card'
  )
  t.equal(state.signed, 2)
})

await t.test('a card that cannot be signed is not served, and signing is retried', async t => {
  let isBroken = true
  const sign = cardSigner({ key: ec.privateKey, kid: 'k' })
  const { url, log } = await serveAll(
    t,
    { work: obedient },
    { signCard: card => (isBroken ? Promise.reject(new Error('the key is in the safe')) : sign(card)) }
  )
  const at = new URL(AGENT_CARD_PATH, url)
  const refused = await ask(at)
  t.equal(refused.status, 500)
  t.notMatch(refused.text, /safe/)
  t.match(log, [{ level: 'error', message: 'an operation failed', details: { operation: 'signedCard' } }])
  isBroken = false
  t.match(await ask(at), { status: 200, json: { signatures: [{}] } })
  t.throws(() => start(t, { work: obedient }, { signCard: 5 as unknown as SignCard }), {
    name: 'TypeError',
    message: /signCard has to be a function/
  })
})

await t.test('extended cards and those of official servers are signed, and older versions are not', async t => {
  const { signCard } = counting()
  const { runtime } = start(
    t,
    { work: obedient, extendedCard: { description: 'For those who are known.' } },
    { signCard }
  )
  const interfaces = [{ url: 'https://a.example/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]
  t.match(await cardVerifier(trusted)(await runtime.getExtendedAgentCard({}, { principal: 'ann', interfaces }), ''), {
    description: 'For those who are known.'
  })
  await verifyAgentCardSignature(async () => ec.publicKey)(
    await toRequestHandler(runtime, { interfaces }).getAgentCard()
  )
  t.notOk('signatures' in runtime.agentCard(interfaces))
  const unsigned = start(t, { work: obedient })
  t.notOk('signatures' in (await unsigned.runtime.signedCard(interfaces)))
})

await t.test('a cache holds 64 signed cards, and evicts the least recently used', async t => {
  const { state, signCard } = counting(async card => card)
  const cards = new SignedCards(signCard, {
    limits: limitsWith(),
    clock: new TestClock(),
    logger: recordingLogger().logger
  })
  for (let i = 0; i < 65; i += 1) await cards.of({ ...card, name: `${i}` })
  await cards.of({ ...card, name: '64' })
  await cards.of({ ...card, name: '1' })
  t.equal(state.signed, 65)
  await cards.of({ ...card, name: '0' })
  t.equal(state.signed, 66)
})

await t.test('a verifying client connects only to an agent whose card is trusted', async t => {
  const { url } = await serveAll(t, { work: obedient }, { signCard: cardSigner({ key: ec.privateKey, kid: 'k' }) })
  const verifyCard = cardVerifier(trusted)
  for (const address of [url, url.replace('http', 'ws')]) {
    const client = await connect(address, { verifyCard })
    t.teardown(() => client.close())
    t.equal(client.binding, 'WEBSOCKET')
    t.equal(stateName(taskIn(await client.sendMessage(say('x'))).status.state), 'completed')
  }
  const byHttp = await connect(url, { verifyCard, bindings: ['JSONRPC'] })
  t.equal(byHttp.binding, 'JSONRPC')
  await byHttp.close()
  const transport = await new WebSocketTransportFactory({ verifyCard }).create(url.replace('http', 'ws'))
  await transport.close()

  const doubtful = cardVerifier(trusting(jwkOf(other, { kid: 'o' })))
  const unsigned = await serveAll(t, { work: obedient })
  for (const scheme of ['http', 'ws']) {
    t.match(await rejection(connect(url.replace('http', scheme), { verifyCard: doubtful })), {
      code: 'InvalidAgentResponse',
      message: /cannot be trusted: signature 1 is by the key "k"/
    })
    t.match(await rejection(connect(unsigned.url.replace('http', scheme), { verifyCard })), {
      code: 'InvalidAgentResponse',
      message: /it has no signature/
    })
    t.match(
      await rejection(new WebSocketTransportFactory({ verifyCard }).create(unsigned.url.replace('http', scheme))),
      { code: 'InvalidAgentResponse' }
    )
  }
  const stop = new AbortController()
  const reason = new Error('enough')
  t.equal(
    await rejection(
      connect(url, {
        signal: stop.signal,
        verifyCard: async (given, url) => (stop.abort(reason), verifyCard(given, url))
      })
    ),
    reason
  )
  t.equal(
    WEBSOCKET_BINDING,
    (await verifyCard((await ask(new URL(AGENT_CARD_PATH, url))).json, url)).supportedInterfaces[0]?.protocolBinding
  )
})

await t.test('a PEM private key signs as its JWK does', async t => {
  const pem = String(rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const [one, two] = [
    await cardSigner({ key: createPrivateKey(pem) })(card),
    await cardSigner({ key: rsa.privateKey.export({ format: 'jwk' }) })(card)
  ]
  t.strictSame(one, two)
  t.strictSame(await cardVerifier({ key: createPublicKey(pem) })(one, ''), content)
})
