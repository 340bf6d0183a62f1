import { exchange } from '../../../adapters/conformance/callers/exchange.ts'
import { grpc } from '../../../adapters/grpc/index.ts'
import { dialect03 } from '../../../adapters/legacy/index.ts'
import { cardHandler, serve } from '../../../adapters/serve/serve.ts'
import { AGENT_CARD_PATH } from '../../../machines/protocol/uris.ts'
import { say, start } from '../../fixtures/runtime/runtime-helpers.ts'
import { obedientAgent } from '../agent.ts'
import type { Binding } from '../binding.ts'
import { grpcBinding } from '../bindings/grpc.ts'
import { clientOf } from '../client.ts'
import { byName, type Test } from '../column.ts'
import { except, only, row, type Row } from '../row.ts'

const OVER_HTTP = except(['WebSocket', '0.3 WebSocket', 'gRPC'], 'a call has no body of its own with a Content-Type')

/** How servers answer as a whole: to requests of HTTP, and with the card of everything that they serve. */
export const serving: readonly Row[] = [
  row(
    166,
    'D',
    '9.1, 11.1',
    'A body of another Content-Type gets HTTP 415; a part of a media type that is not accepted gets its own error',
    async (t, { address, binding, client, commits }) => {
      const isRest = binding.name.includes('REST')
      const url = `${address}${isRest ? `${binding.version === '0.3' ? '/v1' : ''}/message:send` : ''}`
      const before = commits()
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml', '']) {
        const { response, json } = await exchange(url, {
          method: 'POST',
          body: Buffer.from(JSON.stringify(say('x'))),
          headers: { 'content-type': type, 'a2a-version': binding.version }
        })
        t.equal(response.status, 415, type)
        t.match(JSON.stringify(json), /CONTENT_TYPE_NOT_SUPPORTED/)
      }
      const { native, reason } = await client.refusal(
        'SendMessage',
        say('x', { parts: [{ raw: 'AAAA', mediaType: 'video/mp4' }] })
      )
      t.same(
        { native, reason },
        { native: isRest ? '400 INVALID_ARGUMENT' : '-32005', reason: 'CONTENT_TYPE_NOT_SUPPORTED' }
      )
      t.equal(commits(), before)
    },
    OVER_HTTP
  ),
  row(
    171,
    'D',
    '5.2, 13.3',
    'Cards list every binding that one server has, on any of its ports, and the extended card lists the same',
    async (t, { binding }) => {
      const { origin, address, rpc } = await everywhere(t, binding)
      const { result } = await (await binding.open(t, address, { credentials: 'ann' })).call('GetExtendedAgentCard', {})
      const card: unknown = await (
        await fetch(`${origin}${AGENT_CARD_PATH}`, { headers: { 'a2a-version': binding.version } })
      ).json()
      t.strictSame(placesIn(result), placesIn(card))
      t.equal(
        placesIn(card).some(({ url }) => url === rpc),
        binding.version === '1.0',
        'gRPC is of 1.0'
      )
    }
  ),
  row(
    172,
    'D',
    '5.1',
    'One server has every binding: a task opened here is read over gRPC, and the other way round',
    async (t, { binding }) => {
      const { address, rpc } = await everywhere(t, binding)
      const here = clientOf(await binding.open(t, address, { credentials: 'ann' }), [])
      const there = clientOf(await grpcBinding.open(t, rpc, { credentials: 'ann' }), [])
      const [own, other] = [await here.task('x'), await there.task('y')]
      t.match(await there.get(own.id), { id: own.id, artifacts: [{ parts: [{ text: 'x' }] }] })
      t.match(await here.get(other.id), { id: other.id, artifacts: [{ parts: [{ text: 'y' }] }] })
    }
  ),
  row(
    173,
    'D',
    '8.6.1',
    'Beside servers that are not of taskchart the card is served with the same caching headers',
    async (t, { runtime, address }) => {
      const interfaces = [{ url: address, protocolBinding: 'GRPC', protocolVersion: '1.0' }]
      const answer = cardHandler(runtime, { interfaces })
      const { status, headers } = await answer(new Request('http://agent.example/.well-known/agent-card.json'))
      t.match(
        { status, cache: headers.get('cache-control'), date: headers.get('last-modified') },
        { status: 200, cache: /max-age=\d+/, date: /GMT$/ }
      )
      t.equal(
        (
          await answer(
            new Request('http://agent.example/', { headers: { 'if-none-match': headers.get('etag') ?? '' } })
          )
        ).status,
        304
      )
    },
    only(['gRPC'], 'served by taskchart: see 120')
  )
]

/**
 * An agent that one server serves over every binding, to callers that show who they are. `address` is that of the
 * binding.
 */
async function everywhere(t: Test, { name }: Binding) {
  const { runtime } = start(
    t,
    { ...obedientAgent().definition, extendedCard: { description: 'For callers who are known.' } },
    { authenticate: byName }
  )
  const served = await serve(runtime, { port: 0, grpc: grpc({ port: 0 }), dialects: [dialect03(runtime)] })
  t.teardown(() => served.close())
  const { origin } = new URL(served.url)
  const rpc = served.interfaces.find(({ protocolBinding }) => protocolBinding === 'GRPC')?.url ?? ''
  return { origin, rpc, address: name === 'gRPC' ? rpc : origin }
}

/** Where a card of 1.0, or of 0.3, says that its agent is. */
function placesIn(card: unknown): readonly { readonly url?: string }[] {
  const {
    supportedInterfaces,
    url,
    additionalInterfaces = []
  } = card as { supportedInterfaces?: { url: string }[]; url?: string; additionalInterfaces?: { url: string }[] }
  return supportedInterfaces ?? [{ url: String(url) }, ...additionalInterfaces]
}
