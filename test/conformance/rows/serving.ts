import { say } from '../../fixtures/runtime-helpers.ts'
import { exchange } from '../../../adapters/testing/protocol/exchange.ts'
import { except, row, type Row } from '../row.ts'

const OVER_HTTP = except(['WebSocket', '0.3 WebSocket', 'gRPC'], 'a call has no body of its own with a Content-Type')

/** How servers answer as a whole: to requests of HTTP, and with the card of everything that they serve. */
export const serving: readonly Row[] = [
  row(166, 'D', '9.1, 11.1', 'A body of another Content-Type gets HTTP 415; a part of a media type that is not accepted gets its own error', async (t, { address, binding, client, commits }) => {
    const isRest = binding.name.includes('REST')
    const url = `${address}${isRest ? `${binding.version === '0.3' ? '/v1' : ''}/message:send` : ''}`
    const before = commits()
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml', '']) {
      const { response, json } = await exchange(url, { method: 'POST', body: Buffer.from(JSON.stringify(say('x'))), headers: { 'content-type': type, 'a2a-version': binding.version } })
      t.equal(response.status, 415, type)
      t.match(JSON.stringify(json), /CONTENT_TYPE_NOT_SUPPORTED/)
    }
    const { native, reason } = await client.refusal('SendMessage', say('x', { parts: [{ raw: 'AAAA', mediaType: 'video/mp4' }] }))
    t.same({ native, reason }, { native: isRest ? '400 INVALID_ARGUMENT' : '-32005', reason: 'CONTENT_TYPE_NOT_SUPPORTED' })
    t.equal(commits(), before)
  }, OVER_HTTP)
]
