import { generateKeyPairSync } from 'node:crypto'
import { AgentCard as SdkCard, verifyAgentCardSignature } from '@a2a-js/sdk'
import { cardSigner, cardVerifier } from '../../../adapters/auth/index.ts'
import type { CardVerifierOptions } from '../../../adapters/auth/card-verifier.ts'
import { connect } from '../../../adapters/client/connect.ts'
import { AgentCardSchema, type AgentCard } from '../../../machines/protocol/card.ts'
import { decode } from '../../../machines/protocol/codec/decode.ts'
import { AGENT_CARD_PATH, WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import type { Authorize } from '../../../runtime/access/authentication.ts'
import { byName } from '../column.ts'
import { only, row, type Row } from '../row.ts'
import { CARD, pretend } from './pretended-agent.ts'
import { CARD_BY_HTTP, REST_ONLY } from './reasons.ts'

const EXTENDED = { description: 'For those who are known.' }
const onlyAnn: Authorize = ({ principal }) => principal === 'ann'
const OUR_CLIENT = only(['WebSocket'], 'about the client of taskchart, which is tested over WebSocket')

/** §10.8: the agent card. */
export const card: readonly Row[] = [
  row(
    116,
    'M',
    '8.1, 14.3',
    'The card is at its well-known place',
    async (t, { address, binding }) => {
      const response = await read(address)
      t.equal(response.status, 200)
      t.equal(response.headers.get('content-type'), 'application/json')
      const old = await fetch(`${address}/.well-known/agent.json`)
      t.equal(old.status, binding.version === '0.3' ? 200 : 404)
    },
    CARD_BY_HTTP
  ),
  row(
    117,
    'M',
    '4.4.1',
    'The card has its required fields, and none that A2A does not know',
    async (t, { address }) => {
      const card: unknown = await (await read(address)).json()
      t.same(card, decode(AgentCardSchema, card))
    },
    CARD_BY_HTTP
  ),
  row(
    118,
    'M',
    '5.2, 8.3',
    'The card lists every binding that is served, with address, name and version, the preferred first',
    async (t, { address, binding }) => {
      const { supportedInterfaces } = (await (await read(address)).json()) as AgentCard
      const versions = binding.version === '0.3' ? ['1.0', '0.3'] : ['1.0']
      t.same(
        supportedInterfaces,
        versions.flatMap(protocolVersion => [
          { url: `${address.replace('http', 'ws')}/`, protocolBinding: WEBSOCKET_BINDING, protocolVersion },
          { url: `${address}/`, protocolBinding: 'JSONRPC', protocolVersion },
          { url: address, protocolBinding: 'HTTP+JSON', protocolVersion }
        ])
      )
    },
    CARD_BY_HTTP
  ),
  row(
    119,
    'M',
    '8.3.2',
    'The client takes the first interface that it speaks, at its address',
    async t => {
      const [chosen, other] = [await pretend(t), await pretend(t)]
      const own = { protocolBinding: WEBSOCKET_BINDING, protocolVersion: '1.0' }
      const { cardUrl } = await pretend(t, undefined, [
        { url: 'https://example.com/', protocolBinding: 'urn:nobody:speaks', protocolVersion: '1.0' },
        { ...own, url: chosen.url },
        { ...own, url: other.url }
      ])
      const client = await connect(cardUrl)
      t.teardown(() => client.close())
      await client.getTask({ id: 'a' })
      t.ok(chosen.frames.length)
      t.same(other.frames, [])
    },
    OUR_CLIENT
  ),
  row(
    120,
    'S',
    '8.6.1',
    'The card may be cached, and is asked for again by its ETag or date',
    async (t, { address }) => {
      const { headers } = await read(address)
      t.match(headers.get('cache-control'), /max-age=\d+/)
      const etag = headers.get('etag') ?? ''
      t.equal((await read(address, { 'if-none-match': etag })).status, 304)
      t.equal((await read(address, { 'if-none-match': '"another"' })).status, 200)
      t.equal((await read(address, { 'if-modified-since': headers.get('last-modified') ?? '' })).status, 304)
    },
    CARD_BY_HTTP
  ),
  row(
    121,
    'M',
    '3.3.4',
    'Without the capability GetExtendedAgentCard is refused: UnsupportedOperation',
    async (t, { client, runtime, serve }) => {
      const turnedOff = await serve(
        t,
        { authenticate: byName },
        { extendedCard: EXTENDED, capabilities: { extendedAgentCard: false } }
      )
      for (const [to, site] of [
        [client, runtime],
        [await turnedOff.open({ credentials: 'ann' }), turnedOff.runtime]
      ] as const) {
        t.equal(site.agentCard([]).capabilities.extendedAgentCard, false)
        t.equal((await to.refusal('GetExtendedAgentCard', {})).reason, 'UNSUPPORTED_OPERATION')
      }
    }
  ),
  row(122, 'M', '3.3.4', 'Declared, and none for this caller: ExtendedAgentCardNotConfigured', async (t, { serve }) => {
    const { open } = await serve(t, { authenticate: byName }, { extendedCard: () => undefined })
    t.equal(
      (await (await open({ credentials: 'ann' })).refusal('GetExtendedAgentCard', {})).reason,
      'EXTENDED_AGENT_CARD_NOT_CONFIGURED'
    )
  }),
  row(123, 'M', '13.3', 'The extended card is only for authenticated and authorised callers', async (t, { serve }) => {
    const { open, runtime } = await serve(t, { authenticate: byName, authorize: onlyAnn }, { extendedCard: EXTENDED })
    t.ok(runtime.agentCard(CARD.supportedInterfaces).capabilities.extendedAgentCard)
    const { result } = await (await open({ credentials: 'ann' })).call('GetExtendedAgentCard', {})
    t.match(result, { name: 'Obedient', description: 'For those who are known.' })
    await t.rejects((await open({ credentials: 'bob' })).call('GetExtendedAgentCard', {}), /You may not/)
    const openToAll = await serve(t, {}, { extendedCard: EXTENDED })
    await t.rejects((await openToAll.open()).call('GetExtendedAgentCard', {}), /for authenticated callers/)
  }),
  row(
    124,
    'S',
    '13.3',
    'The extended card may be cached privately, but not by proxies',
    async (t, { serve }) => {
      const { address } = await serve(t, { authenticate: byName }, { extendedCard: EXTENDED })
      const { status, headers } = await fetch(`${address}/extendedAgentCard`, {
        headers: { authorization: 'Bearer ann', 'a2a-version': '1.0' }
      })
      t.match({ status, cache: headers.get('cache-control') }, { status: 200, cache: /^private, max-age=\d+$/ })
    },
    REST_ONLY
  ),
  row(
    125,
    'M',
    '8.4',
    'A signature is over the canonical card, and verifies',
    async (t, { serve }) => {
      const { address } = await serve(t, { signCard: cardSigner({ key: privateKey, kid: 'now' }) })
      const card = (await (await read(address)).json()) as AgentCard
      t.match(JSON.parse(String(Buffer.from(card.signatures?.[0]?.protected ?? '', 'base64url'))), {
        alg: 'ES256',
        kid: 'now',
        typ: 'JOSE'
      })
      await verifyAgentCardSignature(async () => publicKey)(SdkCard.fromJSON(card))
    },
    CARD_BY_HTTP
  ),
  row(
    126,
    'M',
    '8.4.3',
    'A verifier rejects changed cards, and keys that are no longer among those that are trusted',
    async t => {
      const verify = cardVerifier(trusted('now'))
      const card = await cardSigner({ key: privateKey, kid: 'now' })(CARD)
      t.match(await verify(card, ''), { name: CARD.name })
      await t.rejects(verify({ ...card, name: 'Another' }, ''), /was changed/)
      await t.rejects(cardVerifier(trusted('later'))(card, ''), /which is not trusted/)
    },
    OUR_CLIENT
  ),
  row(
    127,
    'S',
    '8.4.3',
    'The client can check a signature before it trusts a card',
    async (t, { serve }) => {
      const { address } = await serve(t, { signCard: cardSigner({ key: privateKey, kid: 'now' }) })
      const client = await connect(address, { verifyCard: cardVerifier(trusted('now')) })
      await client.close()
      await t.rejects(connect(address, { verifyCard: cardVerifier(trusted('later')) }), /cannot be trusted/)
    },
    OUR_CLIENT
  )
]

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** Trusts the one key, under this name. */
function trusted(kid: string): CardVerifierOptions {
  return { jwks: { keys: [{ ...publicKey.export({ format: 'jwk' }), kid }] } }
}

/** The card for readers of 1.0. */
function read(address: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${address}${AGENT_CARD_PATH}`, { headers: { 'a2a-version': '1.0', ...headers } })
}
