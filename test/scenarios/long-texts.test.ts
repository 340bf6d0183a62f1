import t from 'tap'
import { safeFileName } from '../../adapters/cli/talk/artifacts.ts'
import { cardAddresses } from '../../adapters/client/card/discovery.ts'
import { parsedAddress } from '../../adapters/push/webhook-address.ts'
import { isNewer } from '../../runtime/contexts/newer-tasks.ts'
import { redactedText } from '../../runtime/ports/logger.ts'

const MANY = 1_000_000

// In quadratic time each of these takes longer than a test may.
await t.test('a long text of somebody else takes time in proportion to its length', async t => {
  const rules = { allowLoopback: false, resolve: async () => [] }
  const results: Readonly<Record<string, () => unknown>> = {
    'dots within a file name': () => t.ok(safeFileName(`a${'.'.repeat(MANY)}b`).length < 256),
    'spaces within a file name': () => t.ok(safeFileName(`a${' '.repeat(MANY)}b`).length < 256),
    'a long file name, which keeps its end': () => t.match(safeFileName(`${'é'.repeat(MANY)}.png`), /^é{98}\.png$/),
    'dots in the host of a webhook': () => parsedAddress(`https://${'.'.repeat(MANY)}a/`, rules),
    'slashes in the URL of a card': () => t.equal(cardAddresses(`http://a/${'/'.repeat(MANY)}b`).length, 3),
    'zeros in the version of a task': () => t.ok(isNewer(`0${'.0.0'.repeat(20_000)}.0.7.0.0`, '0'))
  }
  for (const [name, result] of Object.entries(results)) {
    result()
    t.pass(name)
  }
})

await t.test('every token within a text is redacted', async t => {
  t.equal(redactedText('a eyJhbGci.eyJzdWIi.c2ln-x b, x-eyJhbGci.b.c'), 'a [redacted] b, x-[redacted]')
  t.equal(redactedText(`${'eyJ-'.repeat(1500)}eyJa.b.c`), `${'eyJ-'.repeat(1500)}[redacted]`)
})
