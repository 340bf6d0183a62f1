import t from 'tap'
import { fetchCard } from '../../../adapters/client/card/discovery.ts'
import { readLeniently } from '../../../adapters/client/lenient-reading.ts'
import { connect } from '../../../adapters/client/connect.ts'
import { warnOf } from '../../../adapters/client/warnings.ts'
import { collectOddities, mention } from '../../../adapters/client/warnings.ts'
import { StreamResponseSchema, TaskSchema } from '../../../machines/protocol/objects.ts'
import { collect, refusal } from '../../fixtures/runtime/runtime-helpers.ts'
import { scripted as socketAgent } from '../../fixtures/peers/scripted-agent.ts'
import { body, httpAgent, result, stream } from '../../fixtures/peers/scripted-http.ts'

const own = { url: 'http://127.0.0.1:1/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }

/** The warnings of this process while something runs. */
async function warningsOf(run: () => Promise<unknown>): Promise<string[]> {
  const [texts, { emitWarning }] = [[] as string[], process]
  process.emitWarning = (text: unknown) => void texts.push(String(text))
  try {
    await run()
  } finally {
    process.emitWarning = emitWarning
  }
  return texts
}

await t.test('a card is read without what is odd in it, with one warning for each oddity', async t => {
  for (const [name, card, wanted, warned] of [
    [
      'an unknown security scheme',
      {
        securitySchemes: {
          odd: { voiceSecurityScheme: {} },
          key: { apiKeySecurityScheme: { location: 'header', name: 'x-key' } }
        }
      },
      { securitySchemes: { key: { apiKeySecurityScheme: { name: 'x-key' } } } },
      [/card\.securitySchemes\.odd must have exactly one of .*\. It was left out\.$/]
    ],
    [
      'security in the form of 0.3',
      { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'x-key' } }, security: [{ key: [] }] },
      {
        securitySchemes: { key: { apiKeySecurityScheme: { location: 'header', name: 'x-key' } } },
        securityRequirements: [{ schemes: { key: {} } }]
      },
      []
    ],
    [
      'an interface without a version, one without an address, and one with an unknown binding',
      {
        supportedInterfaces: [
          { url: 'x:1', protocolBinding: 'PIGEON', protocolVersion: '1.0' },
          { protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
          { ...own, protocolVersion: '' }
        ]
      },
      { supportedInterfaces: [{ protocolBinding: 'PIGEON' }, own] },
      [/supportedInterfaces\[1\]\.url is required/, /supportedInterfaces\[2\]\.protocolVersion/]
    ],
    [
      'a version that is a number',
      { supportedInterfaces: [{ ...own, protocolVersion: 7 }] },
      { supportedInterfaces: [own] },
      [/protocolVersion .*left out/, /protocolVersion .*filled in/]
    ],
    [
      'a provider without url',
      { provider: { organization: 'Boats' } },
      { provider: undefined },
      [/card\.provider\.url is required .*left out, with what needs it\.$/]
    ],
    [
      'skills without id',
      { skills: [{ name: 'a' }, { id: 'b', name: 'b', description: '', tags: [] }, { description: 'c' }] },
      { skills: [{ id: 'b' }] },
      [/skills\[0\]\.id is required/]
    ],
    [
      'a card without capabilities, name and version',
      { capabilities: null, name: undefined, version: '' },
      { capabilities: {}, name: 'Unnamed', version: '' },
      [/capabilities/, /name/, /version/]
    ],
    [
      'no interfaces beside the members of 0.3',
      { supportedInterfaces: [], url: 'http://127.0.0.1:1/', protocolVersion: '0.3.0', preferredTransport: 'JSONRPC' },
      { supportedInterfaces: [{ url: 'http://127.0.0.1:1/', protocolBinding: 'JSONRPC', protocolVersion: '0.3' }] },
      []
    ]
  ] as const) {
    await t.test(name, async t => {
      const { url } = await httpAgent(t, { card })
      const warnings = await warningsOf(async () => {
        t.match(await fetchCard(url), wanted)
        await fetchCard(url)
      })
      for (const text of warned) t.equal(warnings.filter(warning => text.test(warning)).length, 1, String(text))
      if (warned.length === 0) t.strictSame(warnings, [])
    })
  }
})

await t.test('a card that lacks what the client needs is InvalidAgentResponse, which names it', async t => {
  for (const [card, wanted] of [
    ['[]', /card must be an object/],
    ['{}', /card\.supportedInterfaces is required/],
    [JSON.stringify({ supportedInterfaces: [{ protocolVersion: '1.0', url: 'x:1' }, 7] }), /card\.supportedInterfaces/],
    [JSON.stringify({ name: 'A', supportedInterfaces: 'none' }), /card\.supportedInterfaces must be a list/]
  ] as const) {
    const { url, script } = await httpAgent(t, { cardPath: '/elsewhere' })
    script(body(card))
    t.match(await refusal(fetchCard(url)), { code: 'InvalidAgentResponse', message: wanted })
  }
})

const LONG_ID = 'i'.repeat(200)
const status = (more: object) => ({ statusUpdate: { taskId: 't', status: { state: 'TASK_STATE_WORKING', ...more } } })
const done = {
  statusUpdate: {
    taskId: 't',
    contextId: '',
    status: {
      state: 'TASK_STATE_COMPLETED',
      message: { role: 'ROLE_AGENT', parts: [] },
      timestamp: '2026-01-02T03:04:05'
    }
  }
}
const EVENTS = [
  {
    task: {
      id: 't',
      contextId: 'c',
      status: { state: 'TASK_STATE_WORKING' },
      history: [
        { role: 'ROLE_USER', parts: [{ text: 'hi' }] },
        { messageId: 'm', role: 'agent', parts: [{ text: 'there' }, { scent: 'lavender' }] },
        null,
        { messageId: 'u', role: 'user' },
        { messageId: 'v', role: 'agent', parts: 'none' }
      ],
      mood: 'good'
    }
  },
  { scent: 'lavender' },
  {},
  7,
  status({ state: 'TASK_STATE_DREAMING' }),
  status({ state: 'input-required', timestamp: 'yesterday' }),
  { artifactUpdate: { taskId: 't', artifact: { artifactId: LONG_ID, parts: [{ text: 'a' }] } } },
  {
    artifactUpdate: {
      taskId: 't',
      context_id: '',
      artifact: { artifact_id: LONG_ID, parts: [] },
      append: true,
      lastChunk: true
    }
  },
  done
]
const READ = [
  {
    task: {
      id: 't',
      contextId: 'c',
      history: [
        { messageId: /^unnamed-\w+$/, parts: [{ text: 'hi' }] },
        { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'there' }] },
        { messageId: 'u', role: 'ROLE_USER', parts: [] },
        { messageId: 'v', role: 'ROLE_AGENT', parts: [] }
      ]
    }
  },
  { statusUpdate: { contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } },
  { statusUpdate: { contextId: 'c', status: { state: 'TASK_STATE_INPUT_REQUIRED', timestamp: undefined } } },
  { artifactUpdate: { contextId: 'c', artifact: { artifactId: LONG_ID, parts: [{ text: 'a' }] } } },
  { artifactUpdate: { contextId: 'c', artifact: { artifactId: LONG_ID, parts: [] }, append: true, lastChunk: true } },
  {
    statusUpdate: {
      contextId: 'c',
      status: {
        state: 'TASK_STATE_COMPLETED',
        message: { messageId: /^unnamed/, parts: [] },
        timestamp: '2026-01-02T03:04:05.000Z'
      }
    }
  }
]

await t.test('a stream with odd events is read to the end of its task, with one warning for each oddity', async t => {
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] }
  const http = await httpAgent(t)
  http.script(stream(EVENTS))
  const ws = await socketAgent(t, {
    SendStreamingMessage: [...EVENTS.map(result => ({ result })), { streamEnd: true }]
  })
  for (const url of [http.url, ws]) {
    const client = await connect(url)
    t.teardown(() => client.close())
    const read = async () => t.match(await collect(client.sendStreamingMessage({ message })), READ, url)
    const warnings = await warningsOf(read)
    for (const text of [
      'contextId is required',
      'contextId must be',
      '.parts[1] must have exactly one of',
      'messageId is required',
      'artifactId must be an id',
      'artifact.parts must be',
      'The event was skipped',
      'timestamp must be',
      'state must be'
    ])
      t.ok(
        warnings.some(warning => warning.includes(text)),
        text
      )
    t.equal(new Set(warnings).size, warnings.length)
    t.strictSame(await warningsOf(read), [], 'the second time nothing is told')
  }
})

await t.test('a stream without one readable event fails, unless GetTask has the end of its task', async t => {
  const agent = await httpAgent(t)
  const client = await connect(agent.url, { giveUpAfterMs: 0 })
  agent.script(stream([{ scent: 'lavender' }]))
  t.match(
    await refusal(
      collect(client.sendStreamingMessage({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] } }))
    ),
    { code: 'InvalidAgentResponse', message: /exactly one of/ }
  )
  t.equal(agent.asked.length, 1)
  const ended = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } }
  agent.script(stream([{ scent: 'lavender' }]), result(ended))
  t.match(await collect(client.subscribeToTask({ id: 't' })), [{ task: ended }])
  t.match(agent.asked.at(-1), { method: 'GetTask', params: { id: 't' } })
  agent.script(
    ({ id }, response) =>
      void response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .end(
          `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { task: { ...ended, status: { state: 'TASK_STATE_WORKING' } } } })}\n\ndata: nonsense\n\n`
        ),
    result(ended)
  )
  t.match(
    await collect(
      client.sendStreamingMessage({ message: { messageId: 'n', role: 'ROLE_USER', parts: [{ text: 'hi' }] } })
    ),
    [{ task: {} }, { task: ended }],
    'also after an event that is no JSON'
  )
})

await t.test('an odd answer is read as an odd event is', async t => {
  const agent = await httpAgent(t)
  const client = await connect(agent.url)
  agent.script(
    result({ status: {}, artifacts: [{ artifactId: 'a', parts: [] }, { parts: [{ text: 'nobody can name it' }] }] }),
    result({ tasks: [{ id: 't' }, { id: 'u', status: { state: 2 } }] })
  )
  t.match(await client.getTask({ id: LONG_ID }), {
    id: LONG_ID,
    status: { state: 'TASK_STATE_WORKING' },
    artifacts: [{ artifactId: 'a', parts: [] }]
  })
  t.match(await client.listTasks({}), { tasks: [{ id: 'u' }] })
})

await t.test('without a process the console gets the warnings', async t => {
  const [{ emitWarning }, { warn }] = [process, console]
  t.teardown(() => Object.assign(process, { emitWarning }) && Object.assign(console, { warn }))
  const told: unknown[] = []
  Object.assign(process, { emitWarning: undefined })
  Object.assign(console, { warn: (text: unknown) => told.push(text) })
  warnOf('http://a.example/')('It is odd.')
  t.strictSame(told, ['The agent at http://a.example/: It is odd.'])
})

await t.test('equal messages without an id get equal ids, and others get others', async t => {
  const read = (text: string) =>
    readLeniently(
      TaskSchema,
      { id: 't', status: { state: 1 }, history: [{ role: 'ROLE_USER', parts: [{ text }] }] },
      () => {}
    ).value?.history?.[0]?.messageId
  t.equal(read('a'), read('a'))
  t.not(read('a'), read('b'))
})

await t.test('what is invalid again and again is given up after a bounded time', async t => {
  const parts = Array.from({ length: 5000 }, () => ({ scent: 1 }))
  const read = readLeniently(StreamResponseSchema, { message: { messageId: 'm', role: 'ROLE_USER', parts } }, () =>
    t.fail('nothing was read')
  )
  t.match(read.violations?.[0], { field: 'result.message.parts[0]' })
})

await t.test('oddities are collected once each, in place of warnings, until that stops', t => {
  const oddities = collectOddities()
  for (const oddity of ['a[0] is odd', 'a[1] is odd', 'b is odd']) mention(oddity)
  t.strictSame(oddities.take(), ['a[0] is odd', 'b is odd'])
  mention('a[2] is odd')
  mention('c is odd')
  t.strictSame(oddities.take(), ['c is odd'])
  oddities.stop()
  mention('d is odd')
  t.strictSame(oddities.take(), [])
  t.end()
})
