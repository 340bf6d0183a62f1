import t from 'tap'
import { z } from 'zod'
import { webhooks } from '../../../adapters/push/webhooks.ts'
import { AgentCardSchema, type AgentCard } from '../../../machines/protocol/card.ts'
import { decode } from '../../../machines/protocol/codec/decode.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { Authenticate, Caller } from '../../../runtime/access/authentication.ts'
import type { CallContext } from '../../../runtime/access/call-context.ts'
import type { AgentDefinition } from '../../../runtime/agent/define-agent.ts'
import { defineAgent, negotiation, reply } from '../../../runtime/index.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import { rejection, rest, say, start, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket, serve } from '../../fixtures/servers/served-agent.ts'

const interfaces = [{ url: 'wss://agent.example/', protocolBinding: 'urn:x', protocolVersion: '1.0' }]
const anna: CallContext = { principal: 'anna', claims: { role: 'admin' }, tenant: 'acme', interfaces }
const skill = { id: 'paint', name: 'Paint', description: '', tags: [] }

const way: Authenticate = Object.assign(() => undefined, {
  securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
  securityRequirements: [{ schemes: { bearer: { list: ['read'] } } }]
})
const own = { mine: { mtlsSecurityScheme: {} } }

await t.test('the card has the security schemes of authenticate', async t => {
  const { runtime } = start(t, { work: echo }, { authenticate: way })
  const card = runtime.agentCard(interfaces)
  t.strictSame(
    { securitySchemes: card.securitySchemes, securityRequirements: card.securityRequirements },
    { securitySchemes: way.securitySchemes, securityRequirements: way.securityRequirements }
  )
  t.strictSame(decode(AgentCardSchema, JSON.parse(JSON.stringify(card))), card)
  for (const authenticate of [
    undefined,
    () => undefined,
    Object.assign(() => undefined, { securitySchemes: {}, securityRequirements: [] })
  ]) {
    const plain = start(t, { work: echo }, authenticate && { authenticate }).runtime.agentCard(interfaces)
    t.notOk('securitySchemes' in plain || 'securityRequirements' in plain)
  }
})

await t.test("the author's security schemes replace those of authenticate", async t => {
  const cardOf = (card: Partial<AgentCard>) =>
    start(t, { card: { name: 'A', ...card }, work: echo }, { authenticate: way }).runtime.agentCard(interfaces)
  const schemes = cardOf({ securitySchemes: own })
  t.strictSame(schemes.securitySchemes, own)
  t.notOk('securityRequirements' in schemes, "authenticate's requirements name other schemes")
  const requirements = cardOf({ securityRequirements: [{ schemes: { bearer: {} } }] })
  t.strictSame(
    [requirements.securitySchemes, requirements.securityRequirements],
    [way.securitySchemes, [{ schemes: { bearer: {} } }]]
  )
})

await t.test('an authenticate that is no function or has invalid schemes is refused', async t => {
  const wrong: [unknown, RegExp][] = [
    ['yes', /^authenticate has to be a function that identifies the caller/],
    [
      Object.assign(() => undefined, { securitySchemes: { a: {} } }),
      /^authenticate\.securitySchemes.* must have exactly one of apiKeySecurityScheme/
    ],
    [
      Object.assign(() => undefined, { securityRequirements: [{ schemes: { other: {} } }] }),
      /^authenticate\.securityRequirements names other, which is not in its securitySchemes\.$/
    ],
    [
      Object.assign(() => undefined, {
        securitySchemes: own,
        securityRequirements: [{}, { schemes: { toString: {} } }]
      }),
      /names toString/
    ],
    [
      Object.assign(() => undefined, { challenge: 'Bearer\r\nSet-Cookie: a=b' }),
      /^authenticate\.challenge has to be the value of a header, not "Bearer\\r\\n/
    ]
  ]
  for (const [authenticate, message] of wrong)
    t.throws(() => start(t, { work: echo }, { authenticate: authenticate as Authenticate }), {
      name: 'TypeError',
      message
    })
})

await t.test('a card that times out is Overloaded, and the next request builds it again', async t => {
  let made = 0
  const makers = {
    extendedCard: (never: Promise<never>) => ({
      definition: { extendedCard: () => ((made += 1) === 1 ? never : { description: 'Now.' }) },
      options: {}
    }),
    signCard: (never: Promise<never>) => ({
      definition: { extendedCard: { description: 'Now.' } },
      options: { signCard: async (card: AgentCard) => ((made += 1) === 1 ? never : card) }
    })
  }
  for (const [name, make] of Object.entries(makers)) {
    made = 0
    const { definition, options } = make(new Promise<never>(() => {}))
    const { runtime, clock, log } = start(
      t,
      { work: echo, ...definition },
      { ...options, limits: { advanced: { accessMs: 500 } } }
    )
    const refused = rejection(runtime.getExtendedAgentCard({}, anna))
    await rest()
    clock.increment(499)
    await rest()
    t.equal(log.length, 0, name)
    clock.increment(1)
    t.match(await refused, {
      code: 'Overloaded',
      retryAfterMs: 1000,
      message: 'The agent cannot give its card now. Send the request again later.'
    })
    t.match(log, [
      { message: `${name} failed`, details: { error: { cause: { message: `${name} gave no answer within 500 ms` } } } }
    ])
    t.match(await runtime.getExtendedAgentCard({}, anna), { description: 'Now.' })
  }
})

/** An agent with an extended card. */
function extended(definition: Pick<AgentDefinition, 'extendedCard'>) {
  return {
    card: { name: 'Public', description: 'For all.', skills: [skill] },
    work: echo,
    ...definition
  } satisfies AgentDefinition
}

await t.test("the extended card is the public one with its overrides and the call's interfaces", async t => {
  const { runtime } = start(
    t,
    extended({ extendedCard: { description: 'For you.', skills: [skill, { ...skill, id: 'erase', name: 'Erase' }] } }),
    { authenticate: way }
  )
  const card = await runtime.getExtendedAgentCard({}, anna)
  t.strictSame(card, {
    ...runtime.agentCard(interfaces),
    description: 'For you.',
    skills: [skill, { ...skill, id: 'erase', name: 'Erase' }]
  })
  t.match(card, {
    name: 'Public',
    securitySchemes: way.securitySchemes,
    supportedInterfaces: interfaces,
    capabilities: { extendedAgentCard: true }
  })
  t.match(runtime.agentCard(interfaces), { description: 'For all.', capabilities: { extendedAgentCard: true } })
  t.strictSame(
    (await runtime.getExtendedAgentCard({}, { principal: 'anna' })).supportedInterfaces,
    [],
    'a call in process has none'
  )
})

await t.test('a function builds the extended card for each caller', async t => {
  const callers: Caller[] = []
  const extendedCard = async (caller: Caller) => (
    callers.push(caller),
    caller.claims['role'] === 'admin' ? { name: `For ${caller.principal}`, securitySchemes: own } : undefined
  )
  const { runtime, log } = start(t, extended({ extendedCard }), { authenticate: way })
  t.match(await runtime.getExtendedAgentCard({}, anna), {
    name: 'For anna',
    description: 'For all.',
    securitySchemes: own
  })
  t.match(await rejection(runtime.getExtendedAgentCard({}, { principal: 'bob' })), {
    code: 'ExtendedAgentCardNotConfigured'
  })
  t.strictSame(callers, [
    { principal: 'anna', claims: { role: 'admin' }, tenant: 'acme' },
    { principal: 'bob', claims: {}, tenant: '' }
  ])
  t.strictSame(log, [])
})

await t.test('the extended card needs an identified caller, and an agent that declares one', async t => {
  const { runtime } = start(t, extended({ extendedCard: () => t.fail('nobody was to be asked') as never }))
  for (const call of [{}, { interfaces }, { claims: { sub: 'anna' } }])
    t.match(await rejection(runtime.getExtendedAgentCard({}, call)), { code: 'Unauthenticated' })
  t.match(await rejection(runtime.getExtendedAgentCard({})), { code: 'Unauthenticated' })
  const plain = start(t, extended({})).runtime
  t.match(await rejection(plain.getExtendedAgentCard({}, anna)), { code: 'UnsupportedOperation' })
  t.equal(plain.agentCard(interfaces).capabilities.extendedAgentCard, false)
})

await t.test('an extended card that fails or is invalid is an internal error, which is logged', async t => {
  const wrong: [AgentDefinition['extendedCard'], RegExp][] = [
    [
      () => {
        throw new Error('secret plan')
      },
      /secret plan/
    ],
    [() => Promise.reject(new A2AError('Forbidden', 'secret plan')), /secret plan/],
    [() => ({ name: '' }), /extendedCard\.name/],
    [async () => ({ skills: [{ id: 'secret plan' }] }) as never, /extendedCard\.skills\[0\]\.name/]
  ]
  for (const [extendedCard, why] of wrong) {
    const { runtime, log } = start(t, extended(extendedCard ? { extendedCard } : {}))
    const error = await rejection(runtime.getExtendedAgentCard({}, anna))
    t.match(error, { code: 'InternalError', message: 'Internal error' })
    t.match(log, [{ level: 'error', message: 'an operation failed', details: { operation: 'getExtendedAgentCard' } }])
    const logged = log[0]?.details['error'] as Error & { cause?: Error }
    t.match(`${logged.message} ${logged.cause?.message}`, why)
  }
})

await t.test('a static extended card is validated when the agent is defined', async t => {
  const { card, work } = extended({})
  t.throws(() => defineAgent({ card, work, extendedCard: { name: '' } }), {
    name: 'TypeError',
    message: /^extendedCard\.name/
  })
  for (const wrong of [true, 'x', null, []]) {
    t.throws(
      () => defineAgent({ card, work, extendedCard: wrong as never }),
      { name: 'TypeError', message: /^extendedCard has to be an object with the members for authenticated callers/ },
      String(wrong)
    )
  }
  const agent = defineAgent({ card, work, extendedCard: { description: 'x' } })
  t.strictSame(defineAgent(agent), agent, 'an agent may be defined again')
})

await t.test("the extended card over WebSocket has the connection's claims and the server's address", async t => {
  const authenticate: Authenticate = ({ headers }) =>
    headers['x-me'] ? { id: headers['x-me'], claims: { role: headers['x-role'] } } : undefined
  const extendedCard = ({ principal, claims }: Caller) => (claims['role'] === 'admin' ? { name: principal } : undefined)
  const { url } = await serve(t, extended({ extendedCard }), { authenticate })
  const admin = await JsonSocket.open(t, url, { headers: { 'a2a-version': '1.0', 'x-me': 'anna', 'x-role': 'admin' } })
  const { result } = await admin.call('GetExtendedAgentCard', undefined)
  t.match(result, { name: 'anna', supportedInterfaces: [{ url, protocolVersion: '1.0' }] })
  t.strictSame(decode(AgentCardSchema, result), result)
  const other = await JsonSocket.open(t, url, { headers: { 'a2a-version': '1.0', 'x-me': 'bob' } })
  t.match(await other.call('GetExtendedAgentCard', {}), { error: { code: -32007 } })
  const open = await serve(t, extended({ extendedCard }), { publicUrl: 'wss://agent.example/' })
  t.match(await (await JsonSocket.open(t, open.url)).call('GetExtendedAgentCard', {}), { error: { code: -31401 } })
})

const NOTHING = { streaming: false, pushNotifications: false, extendedAgentCard: false, extensions: false }
const RELIABLE: CallContext = { extensions: [RELIABILITY_EXTENSION] }

await t.test('an agent with every capability turned off declares nothing, and activates no extension', async t => {
  const definition = { work: echo, input: z.string(), extendedCard: { description: 'For you.' }, capabilities: NOTHING }
  const { runtime } = start(t, definition, { authenticate: way, push: webhooks() })
  const off = { streaming: false, pushNotifications: false, extendedAgentCard: false }
  t.strictSame(runtime.agentCard(interfaces).capabilities, { ...off, extensions: [] })
  t.strictSame([runtime.settings.capabilities, runtime.settings.extensions], [off, []])
  const { id, metadata } = taskIn(await runtime.sendMessage(say('x'), RELIABLE))
  t.notOk(metadata, 'no generation is shown')
  t.match(await rejection(runtime.sendStreamingMessage(say('x')).next()), {
    code: 'UnsupportedOperation',
    message: /^This agent does not stream\./
  })
  t.match(await rejection(runtime.subscribeToTask({ id }).next()), { code: 'UnsupportedOperation' })
  t.match(await rejection(runtime.getExtendedAgentCard({}, anna)), { code: 'UnsupportedOperation' })
  t.match(await rejection(runtime.listTaskPushNotificationConfigs({ taskId: id })), {
    code: 'PushNotificationNotSupported',
    message: /Poll the task with GetTask\.$/
  })
  t.match(
    await rejection(runtime.subscribeToTask({ id: '' }).next()),
    { code: 'InvalidParams' },
    'parameters are validated before'
  )
})

await t.test("the author's extensions stay on the card when those of taskchart are turned off", async t => {
  const { runtime } = start(t, { work: echo, extensions: [{ uri: 'urn:mine' }], capabilities: { extensions: false } })
  t.match(runtime.agentCard([]).capabilities, {
    streaming: true,
    pushNotifications: false,
    extendedAgentCard: false,
    extensions: [{ uri: 'urn:mine' }]
  })
  t.strictSame(runtime.settings.extensions, ['urn:mine'])
})

await t.test('an enabled capability needs its prerequisites', async t => {
  const all = { streaming: true, pushNotifications: true, extendedAgentCard: true, extensions: true }
  const { runtime } = start(
    t,
    { work: echo, extendedCard: { description: 'x' }, capabilities: all },
    { push: webhooks() }
  )
  t.match(runtime.agentCard([]).capabilities, {
    streaming: true,
    pushNotifications: true,
    extendedAgentCard: true,
    extensions: [{ uri: RELIABILITY_EXTENSION }]
  })
  t.throws(() => start(t, { work: echo, capabilities: { pushNotifications: true } }), {
    name: 'TypeError',
    message:
      /^capabilities\.pushNotifications is true, but nothing sends webhooks\. Add createRuntime\(\{ push: webhooks\(\) \}\)/
  })
})

await t.test('invalid capabilities are refused when the agent is defined', async t => {
  const wrong: [unknown, RegExp][] = [
    [null, /^capabilities has to be an object such as \{ streaming: false \}\.$/],
    ['streaming', /^capabilities has to be an object/],
    [
      { streams: false },
      /^capabilities has no streams\. There are streaming, pushNotifications, extendedAgentCard, extensions\.$/
    ],
    [{ streaming: 'no' }, /^capabilities\.streaming has to be true or false, not "no"\.$/],
    [
      { extendedAgentCard: true },
      /^capabilities\.extendedAgentCard is true, but there is no extended card\. Add extendedCard/
    ]
  ]
  for (const [capabilities, message] of wrong)
    t.throws(() => defineAgent({ card: { name: 'A' }, work: echo, capabilities: capabilities as never }), {
      name: 'TypeError',
      message
    })
  const bargains = negotiation({ terms: z.object({ price: z.number() }), respond: () => reply('No.') })
  t.throws(
    () => defineAgent({ card: { name: 'A' }, work: echo, negotiate: bargains, capabilities: { extensions: false } }),
    { name: 'TypeError', message: /^capabilities\.extensions cannot be false with a negotiation/ }
  )
  t.doesNotThrow(() =>
    defineAgent({ card: { name: 'A' }, work: echo, capabilities: { streaming: undefined as never } })
  )
})
