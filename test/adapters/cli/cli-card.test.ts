import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AddressInfo } from 'node:net'
import { AgentCard as SdkCard, generateAgentCardSignature, verifyAgentCardSignature } from '@a2a-js/sdk'
import t, { type Test } from 'tap'
import { cardSigner, cardVerifier } from '../../../adapters/auth/index.ts'
import { AGENT_CARD_PATH } from '../../../machines/protocol/uris.ts'
import { serveAll } from '../../fixtures/servers/http-agent.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { obedient } from '../../fixtures/servers/served-agent.ts'

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const publicJwk = { ...publicKey.export({ format: 'jwk' }), kid: 'k' }
const pem = (key: typeof privateKey, type: 'pkcs8' | 'spki') => String(key.export({ type, format: 'pem' }))

const card = {
  name: 'Painter',
  description: '',
  version: '1.0.0',
  capabilities: {},
  defaultInputModes: [],
  defaultOutputModes: [],
  skills: [],
  supportedInterfaces: [{ url: 'https://a.example/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]
}

/** A folder with keys, a card and an agent. */
function folder(t: Test): { cwd: string; put: (name: string, content: unknown) => void } {
  const cwd = t.testdir({
    'key.pem': pem(privateKey, 'pkcs8'),
    'key.jwk': JSON.stringify({ ...privateKey.export({ format: 'jwk' }), kid: 'k' }),
    'public.pem': pem(publicKey, 'spki'),
    'jwks.json': JSON.stringify({ keys: [publicJwk] }),
    'jwk.json': JSON.stringify(publicJwk),
    'others.json': JSON.stringify({ keys: [{ ...other.publicKey.export({ format: 'jwk' }), kid: 'k' }] }),
    'card.json': JSON.stringify(card),
    'agent.js':
      'export default { card: { name: "Moduled" }, work: () => {} }\nexport const authenticate = Object.assign(() => undefined, { securitySchemes: { b: { httpAuthSecurityScheme: { scheme: "Bearer" } } } })',
    'empty.txt': '',
    'bad.json': '{bad',
    'list.json': '[]',
    'oct.json': JSON.stringify({ kty: 'oct', k: randomBytes(32).toString('base64url') })
  })
  return {
    cwd,
    put: (name, content) =>
      writeFileSync(join(cwd, name), typeof content === 'string' ? content : JSON.stringify(content))
  }
}

await t.test('a card file is signed, and verified by each form of the public key', async t => {
  const { cwd, put } = folder(t)
  const signed = await runCommand(['card', 'sign', 'card.json', '--key', 'key.jwk'], { cwd })
  t.match(signed, { code: 0, stderr: '' })
  await verifyAgentCardSignature(async kid => (t.equal(kid, 'k'), publicKey))(
    SdkCard.fromJSON(JSON.parse(signed.stdout))
  )
  put('signed.json', signed.stdout)
  for (const keys of ['jwks.json', 'jwk.json', 'public.pem']) {
    t.strictSame(await runCommand(['card', 'verify', 'signed.json', '--keys', keys], { cwd }), {
      code: 0,
      stdout: 'The card of Painter can be trusted: the key "k" (ES256) has signed it.\n',
      stderr: ''
    })
  }
  t.strictSame(
    JSON.parse((await runCommand(['card', 'verify', 'signed.json', '--keys', 'jwks.json', '--json'], { cwd })).stdout),
    { name: 'Painter', kid: 'k', alg: 'ES256', left: [] }
  )
  const named = await runCommand(
    [
      'card',
      'sign',
      'signed.json',
      '--key',
      'key.pem',
      '--kid',
      'new',
      '--alg',
      'ES256',
      '--jku',
      'https://a.example/jwks.json'
    ],
    { cwd }
  )
  const [, second] = (JSON.parse(named.stdout) as { signatures: { protected: string }[] }).signatures
  t.strictSame(JSON.parse(String(Buffer.from(second?.protected ?? '', 'base64url'))), {
    alg: 'ES256',
    kid: 'new',
    typ: 'JOSE',
    jku: 'https://a.example/jwks.json'
  })
})

await t.test('a changed, unsigned or foreign card is not trusted: exit code 1 with the reason', async t => {
  const { cwd, put } = folder(t)
  const signed = await cardSigner({ key: privateKey, kid: 'k' })(card)
  put('changed.json', { ...signed, name: 'Evil' })
  put('signed.json', signed)
  const rows: [string, string, RegExp][] = [
    [
      'changed.json',
      'jwks.json',
      /^taskchart: The card of Evil at changed\.json cannot be trusted: signature 1 by "k" \(ES256\) does not match: the card was changed/
    ],
    ['signed.json', 'others.json', /does not match/],
    ['card.json', 'jwks.json', /it has no signature/]
  ]
  for (const [file, keys, says] of rows) {
    const { code, stdout, stderr } = await runCommand(['card', 'verify', file, '--keys', keys], { cwd })
    t.strictSame([code, stdout], [1, ''])
    t.match(stderr, says)
  }
})

await t.test('unsigned members of a partly signed card are named', async t => {
  const { cwd, put } = folder(t)
  const schemes = {
    securitySchemes: { b: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
    securityRequirements: [{ schemes: { b: {} } }]
  }
  put(
    'partly.json',
    SdkCard.toJSON(
      await generateAgentCardSignature(privateKey, { alg: 'ES256', kid: 'k', typ: 'JOSE' })(
        SdkCard.fromJSON({ ...card, ...schemes })
      )
    )
  )
  t.equal(
    (await runCommand(['card', 'verify', 'partly.json', '--keys', 'jwks.json'], { cwd })).stdout,
    'The card of Painter can be trusted: the key "k" (ES256) has signed it, but for securitySchemes and securityRequirements.\n'
  )
})

await t.test("the card of a module's agent is signed as it is served at an address", async t => {
  const { cwd } = folder(t)
  const { code, stdout } = await runCommand(['card', 'sign', 'agent.js', 'https://a.example/', '--key', 'key.jwk'], {
    cwd
  })
  t.equal(code, 0)
  t.match(await cardVerifier({ jwks: { keys: [publicJwk] } })(JSON.parse(stdout), ''), {
    name: 'Moduled',
    supportedInterfaces: [{ url: 'wss://a.example/' }, { url: 'https://a.example/' }, { url: 'https://a.example' }],
    securitySchemes: { b: {} }
  })
})

await t.test("a served agent's card is verified at its address, by keys at an address", async t => {
  const { url } = await serveAll(t, { work: obedient }, { signCard: cardSigner({ key: privateKey, kid: 'k' }) })
  const keys = createServer((_, response) => response.end(JSON.stringify({ keys: [publicJwk] }))).listen(0, '127.0.0.1')
  t.teardown(() => keys.close())
  await once(keys, 'listening')
  const jwks = `http://127.0.0.1:${(keys.address() as AddressInfo).port}/`
  for (const place of [url, `${url.slice(0, -1)}${AGENT_CARD_PATH}`, url.replace('http', 'ws')]) {
    t.match(
      await runCommand(['card', 'verify', place, '--keys', jwks]),
      { code: 0, stdout: /The card of Test can be trusted/ },
      place
    )
  }
  t.match(await runCommand(['card', 'verify', 'http://127.0.0.1:1', '--keys', jwks]), {
    code: 3,
    stderr: /Nobody answers/
  })
  t.match(await runCommand(['card', 'verify', 'card.json', '--keys', jwks, '--api-key', 'k']), {
    code: 2,
    stderr: /--api-key is for a URL/
  })
})

await t.test('taskchart serve signs the card by the key in a file', async t => {
  const { cwd } = folder(t)
  const stop = new AbortController()
  let printed = ''
  const heard = new Promise<void>(resolve => {
    const serving = runCommand(
      [
        'serve',
        'agent.js',
        '--port',
        '0',
        '--json',
        '--card-key',
        'key.jwk',
        '--card-jku',
        'https://a.example/jwks.json'
      ],
      { cwd, signal: stop.signal, printed: text => ((printed += text), resolve()) }
    )
    t.teardown(async () => (stop.abort(), serving))
  })
  await heard
  const { card: place } = JSON.parse(printed) as { card: string }
  t.match(await runCommand(['card', 'verify', place, '--keys', 'jwks.json'], { cwd }), { code: 0 })
  const { signatures } = (await fetch(place).then(response => response.json())) as {
    signatures: { protected: string }[]
  }
  t.match(JSON.parse(String(Buffer.from(signatures[0]?.protected ?? '', 'base64url'))), {
    kid: 'k',
    jku: 'https://a.example/jwks.json'
  })
  t.match(await runCommand(['serve', 'agent.js', '--card-jku', 'https://a.example/'], { cwd }), {
    code: 2,
    stderr: /--card-jku needs --card-key FILE/
  })
  t.match(await runCommand(['serve', 'agent.js', '--card-key', 'public.pem'], { cwd }), {
    code: 1,
    stderr: /public\.pem holds no private key/
  })
})

await t.test('invalid arguments, files and keys are reported', async t => {
  const { cwd } = folder(t)
  const rows: [string[], number, RegExp][] = [
    [['sign'], 2, /CARD\.json\|AGENT\.ts\|js is missing\.\nUsage: taskchart card/],
    [['sign', 'card.json'], 2, /--key is missing/],
    [['verify'], 2, /URL\|CARD\.json is missing/],
    [['verify', 'card.json'], 2, /--keys is missing/],
    [['sign', 'card.json', 'https://a.example', '--key', 'key.pem'], 2, /URL is for an agent module/],
    [['sign', 'agent.js', '--key', 'key.pem'], 2, /URL is missing/],
    [['sign', 'agent.js', '--key', 'key.pem', 'a'], 2, /URL is missing/],
    [['sign', 'agent.js', '--key', 'key.pem', 'ftp://a'], 2, /URL is missing/],
    [['sign', 'card.json', '--key', 'nowhere'], 1, /nowhere cannot be read: ENOENT/],
    [['sign', 'card.json', '--key', 'empty.txt'], 1, /empty\.txt holds no private key, PEM or JWK/],
    [['sign', 'card.json', '--key', 'bad.json'], 1, /bad\.json is not valid JSON/],
    [['sign', 'card.json', '--key', 'oct.json'], 2, /oct\.json: key has to be a private key, not a secret one/],
    [['sign', 'card.json', '--key', 'jwk.json'], 2, /jwk\.json: key has to be a private key/],
    [['sign', 'card.json', '--key', 'key.pem', '--alg', 'none'], 2, /alg has to be ES256/],
    [['sign', 'card.json', '--key', 'key.pem', '--jku', 'x'], 2, /jku has to be/],
    [
      ['sign', 'list.json', '--key', 'key.pem'],
      1,
      /The JSON at list\.json is not an agent card: card must be an object\./
    ],
    [['sign', 'bad.json', '--key', 'key.pem'], 1, /bad\.json is not valid JSON/],
    [['verify', 'card.json', '--keys', 'key.pem'], 1, /key\.pem holds a private key/],
    [['verify', 'card.json', '--keys', 'key.jwk'], 2, /contains a private or secret key/],
    [['verify', 'card.json', '--keys', 'empty.txt'], 1, /empty\.txt holds no public keys/],
    [['verify', 'card.json', '--keys', 'http://a.example/'], 2, /jwksUrl has to be an https: URL/],
    [['verify', 'nowhere.json', '--keys', 'jwks.json'], 1, /nowhere\.json cannot be read/],
    [
      ['verify', 'list.json', '--keys', 'jwks.json'],
      1,
      /The JSON at list\.json is not an agent card: card must be an object\./
    ],
    [['sign', '--help'], 0, /^$/]
  ]
  for (const [args, code, says] of rows) {
    const ended = await runCommand(['card', ...args], { cwd })
    t.equal(ended.code, code, args.join(' '))
    t.match(ended.stderr, says)
  }
  t.match(
    (await runCommand(['help', 'card'])).stdout,
    /card verify URL\|CARD\.json --keys KEYS[\s\S]*card sign CARD\.json\|AGENT\.ts\|js \[URL\] --key/
  )
})
