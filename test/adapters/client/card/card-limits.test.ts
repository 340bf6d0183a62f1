import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { defaultCardLimits } from '../../../../adapters/client/card/card-limits.ts'
import { fetchCard } from '../../../../adapters/client/card/discovery.ts'
import { connect } from '../../../../adapters/client/connect.ts'
import { refusal, rejection, until } from '../../../fixtures/runtime/runtime-helpers.ts'
import { httpAgent, result } from '../../../fixtures/peers/scripted-http.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'

const card = {
  name: 'A',
  version: '1',
  capabilities: {},
  supportedInterfaces: [{ url: 'http://127.0.0.1:1/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]
}
const skill = (description = '') => ({ id: 's', name: 'S', description, tags: [] })

/** A server on a free port; gives its address. */
async function server(t: Test, answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const served = createServer(answer).listen(0, '127.0.0.1')
  await once(served, 'listening')
  t.teardown(() => {
    served.closeAllConnections()
    served.close()
  })
  return `http://127.0.0.1:${(served.address() as AddressInfo).port}`
}

await t.test('a card within the limits is read, and one over a limit is refused', async t => {
  let given: object = card
  const url = await server(t, (_, response) => void response.end(JSON.stringify(given)))
  const deep = Array.from({ length: 200 }).reduce<unknown>(inner => [inner], 1)
  const {
    supportedInterfaces: [one]
  } = card
  for (const [more, wanted] of [
    [
      { skills: Array.from({ length: 501 }, () => skill()) },
      { code: 'InvalidAgentResponse', message: /has 501 skills\. At most 500 are read: cardLimits\.skills\./ }
    ],
    [
      { supportedInterfaces: Array.from({ length: 65 }, () => one) },
      { code: 'InvalidAgentResponse', message: /has 65 interfaces\. At most 64 are read: cardLimits\.interfaces\./ }
    ],
    [
      { skills: [skill(), skill('x'.repeat(65_536))] },
      {
        code: 'InvalidAgentResponse',
        message: /skill number 2 has 65\d{3} bytes\. At most 65536 are read: cardLimits\.skillBytes/
      }
    ],
    [
      { supportedInterfaces: [{ ...one, tenant: 'x'.repeat(9000) }] },
      { code: 'InvalidAgentResponse', message: /interface number 1 has 9\d{3} bytes\. At most 8192/ }
    ],
    [{ description: 'x'.repeat(2 ** 20) }, { code: 'InvalidAgentResponse', message: /longer than 1048576 bytes/ }],
    [{ skills: [deep] }, { code: 'InvalidAgentResponse', message: /card/ }]
  ] as const) {
    given = { ...card, ...more }
    t.match(await refusal(fetchCard(url)), wanted)
  }
  given = {
    ...card,
    skills: Array.from({ length: 500 }, () => skill()),
    supportedInterfaces: Array.from({ length: 64 }, () => one)
  }
  t.equal((await fetchCard(url)).skills.length, 500)
  t.match(await refusal(fetchCard(url, { cardLimits: { skills: 499 } })), { message: /At most 499/ })
  given = { ...card, skills: 'none', supportedInterfaces: 7 }
  t.match(
    await refusal(fetchCard(url)),
    { code: 'InvalidAgentResponse' },
    'a member that is no list makes the card invalid'
  )
})

await t.test('limits have known names and are above 0', async t => {
  t.match(await rejection(fetchCard('http://127.0.0.1:1', { cardLimits: { skills: 0 } })), {
    name: 'RangeError',
    message: 'cardLimits.skills has to be a number above 0, not 0. Leave it out for the default.'
  })
  t.match(await rejection(connect('ws://127.0.0.1:1', { cardLimits: { bites: 1 } as never })), {
    name: 'TypeError',
    message: /bites/
  })
  t.strictSame(defaultCardLimits, {
    waitMs: 10_000,
    bytes: 1_048_576,
    skills: 500,
    skillBytes: 65_536,
    interfaces: 64,
    interfaceBytes: 8192
  })
})

await t.test('reading a card has a time limit, at each stage of the response', async t => {
  for (const answer of [() => {}, (_: IncomingMessage, response: ServerResponse) => void response.write('{')]) {
    const clock = new TestClock()
    let asked = 0
    const url = await server(t, (...both) => ((asked += 1), answer(...both)))
    const reading = refusal(fetchCard(url, { clock }))
    await until(() => asked === 1)
    clock.increment(10_000)
    t.match(await reading, {
      code: 'Overloaded',
      message: `The card at ${url} was not read within 10000 ms: cardLimits.waitMs.`
    })
    t.equal(clock.pending, 0)
  }
})

await t.test('redirects are followed only within the origin', async t => {
  let strange = 0
  const other = await server(t, (_, response) => {
    strange += 1
    response.end(JSON.stringify(card))
  })
  let asked = 0
  const url = await server(t, ({ url: path = '' }, response) => {
    asked += 1
    const [, kind, left] = /^\/(\w+)\/?(\d*)/.exec(path) ?? []
    const to =
      kind === 'out'
        ? other
        : kind === 'up'
          ? 'https://127.0.0.1/card.json'
          : kind === 'bad'
            ? 'http://'
            : kind === 'none'
              ? undefined
              : Number(left) > 0
                ? `/in/${Number(left) - 1}.json`
                : ''
    if (to === '') response.end(JSON.stringify(card))
    else response.writeHead(302, to === undefined ? {} : { location: to }).end('moved')
  })
  t.equal((await fetchCard(`${url}/in/5.json`)).name, 'A')
  t.match(await refusal(fetchCard(`${url}/in/6.json`)), {
    code: 'InvalidAgentResponse',
    message: /At most 5 redirects within one origin are followed/
  })
  t.equal(asked, 12)
  for (const [kind, to] of [
    ['out', other],
    ['up', 'https://127.0.0.1/card.json'],
    ['bad', 'http://'],
    ['none', '']
  ] as const) {
    t.match(await refusal(fetchCard(`${url}/${kind}/1.json`)), {
      code: 'InvalidAgentResponse',
      message: `redirects to ${JSON.stringify(to)}.`
    })
  }
  t.equal(strange, 0)
})

await t.test('the limits apply to the extended card too', async t => {
  const agent = await httpAgent(t)
  const client = await connect(agent.url, { cardLimits: { skills: 2 } })
  t.teardown(() => client.close())
  agent.script(
    result({ ...card, skills: [skill(), skill()] }),
    result({ ...card, skills: [skill(), skill(), skill()] })
  )
  t.equal((await client.getExtendedAgentCard()).skills.length, 2)
  t.match(await refusal(client.getExtendedAgentCard()), { code: 'InvalidAgentResponse', message: /has 3 skills/ })
})
