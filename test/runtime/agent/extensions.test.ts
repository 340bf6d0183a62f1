import t from 'tap'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { AgentExtension } from '../../../machines/protocol/card.ts'
import { accepted, defineAgent, inputRequired, reply, setupWork, type Runtime } from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import {
  collect,
  open,
  reaches,
  rejection,
  say,
  start,
  taskIn,
  textOf
} from '../../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket, obedient, serve } from '../../fixtures/servers/served-agent.ts'

const TIDE = 'https://example.com/ext/tide/v1'
const WIND = 'https://example.com/ext/wind/v1'

const calls: Readonly<Record<string, (runtime: Runtime, extensions: readonly string[]) => Promise<unknown>>> = {
  sendMessage: (runtime, extensions) => runtime.sendMessage(say('x'), { extensions }),
  sendStreamingMessage: (runtime, extensions) => collect(runtime.sendStreamingMessage(say('x'), { extensions })),
  getTask: (runtime, extensions) => runtime.getTask({ id: 'x' }, { extensions }),
  listTasks: (runtime, extensions) => runtime.listTasks({}, { extensions }),
  cancelTask: (runtime, extensions) => runtime.cancelTask({ id: 'x' }, { extensions }),
  subscribeToTask: (runtime, extensions) => collect(runtime.subscribeToTask({ id: 'x' }, { extensions })),
  authorized: (runtime, extensions) => runtime.authorized('x', {}, { extensions }),
  createTaskPushNotificationConfig: (runtime, extensions) =>
    runtime.createTaskPushNotificationConfig({ taskId: 't', url: 'https://example.com' }, { extensions }),
  getTaskPushNotificationConfig: (runtime, extensions) =>
    runtime.getTaskPushNotificationConfig({ taskId: 't', id: 'p' }, { extensions }),
  listTaskPushNotificationConfigs: (runtime, extensions) =>
    runtime.listTaskPushNotificationConfigs({ taskId: 't' }, { extensions }),
  deleteTaskPushNotificationConfig: (runtime, extensions) =>
    runtime.deleteTaskPushNotificationConfig({ taskId: 't', id: 'p' }, { extensions }),
  getExtendedAgentCard: (runtime, extensions) => runtime.getExtendedAgentCard({}, { extensions })
}

await t.test("the card and the settings list the author's extensions beside taskchart's", async t => {
  const extensions = [
    { uri: TIDE, description: 'Knows the tide.', required: true, params: { harbour: 'Kiel' } },
    { uri: WIND }
  ]
  const { runtime } = start(t, { work: echo, extensions })
  const { capabilities } = runtime.agentCard([])
  t.match(capabilities.extensions, [{ uri: RELIABILITY_EXTENSION }, ...extensions])
  t.strictSame(capabilities.extensions?.slice(1), extensions)
  t.strictSame(runtime.settings.extensions, [RELIABILITY_EXTENSION, TIDE, WIND])
  t.strictSame(start(t, { work: echo }).runtime.settings.extensions, [RELIABILITY_EXTENSION])
})

await t.test('a required extension has to be activated for every operation', async t => {
  const { runtime } = start(t, { work: echo, extensions: [{ uri: TIDE, required: true }, { uri: WIND }] })
  for (const [name, call] of Object.entries(calls)) {
    for (const declared of [
      [],
      [WIND],
      [RELIABILITY_EXTENSION],
      [`${TIDE}/`],
      [TIDE.toUpperCase()],
      ['https://example.com/ext/tide']
    ]) {
      t.match(
        await rejection(call(runtime, declared)),
        {
          code: 'ExtensionSupportRequired',
          message: `This agent can be used only with ${TIDE}. Send A2A-Extensions: ${TIDE}, if you support that.`,
          metadata: { requiredExtensions: TIDE }
        },
        name
      )
    }
    const outcome = await call(runtime, ['urn:other', TIDE]).then(
      () => 'answered',
      error => error.code
    )
    t.not(outcome, 'ExtensionSupportRequired', name)
  }
  t.match(
    await rejection(runtime.getTask({ id: '' }, { version: '0.3' })),
    { code: 'VersionNotSupported' },
    'the version is checked first'
  )
  t.match(
    await rejection(runtime.getTask({ id: '' })),
    { code: 'ExtensionSupportRequired' },
    'the parameters are checked afterwards'
  )
})

await t.test('all missing extensions are named', async t => {
  const { runtime } = start(t, {
    work: echo,
    extensions: [
      { uri: TIDE, required: true },
      { uri: WIND, required: true }
    ]
  })
  t.match(await rejection(runtime.listTasks({})), {
    message: `This agent can be used only with ${TIDE} and ${WIND}. Send A2A-Extensions: ${TIDE},${WIND}, if you support that.`,
    metadata: { requiredExtensions: `${TIDE},${WIND}` }
  })
})

await t.test("work knows which of its agent's extensions its client activated, also when run again", async t => {
  const store = memoryStore()
  const definition = {
    extensions: [{ uri: TIDE }, { uri: WIND }],
    work: async function* ({ extensions }: { extensions: readonly string[] }) {
      const answer = yield* inputRequired('And?')
      return { artifact: `${extensions.join()} ${textOf(answer)}` }
    }
  }
  const first = start(t, definition, { store: { ...store, close: async () => {} } })
  const call = { extensions: ['urn:other', WIND, RELIABILITY_EXTENSION] }
  const asked = [await open(first.runtime, 'a', {}, call), await open(first.runtime, 'b')]
  asked.push(await open(first.runtime, 'c', { contextId: asked[0]?.contextId ?? '' }, { extensions: [TIDE, WIND] }))
  for (const { id } of asked) await reaches(first.runtime, id, 'input-required')
  const parked = first.runtime.close()
  first.clock.increment(5000)
  await parked
  const { runtime } = start(t, definition, { store })
  const told = await Promise.all(
    asked.map(async ({ id }) => textOf(taskIn(await runtime.sendMessage(say('!', { taskId: id }))).artifacts?.[0]))
  )
  t.strictSame(told, [`${WIND} !`, ' !', `${TIDE},${WIND} !`])
})

await t.test("a chart's input and a negotiation have them too, and no others", async t => {
  const chart = setupWork({ types: { context: {} as { extensions: readonly string[] } } }).createMachine({
    context: ({ input }) => ({ extensions: input.extensions }),
    initial: 'done',
    states: { done: { type: 'final' } },
    output: ({ context }) => ({ artifact: context.extensions.join() })
  })
  const { runtime } = start(t, {
    extensions: [{ uri: TIDE }],
    negotiate: ({ extensions, message }) =>
      textOf(message) === 'work' ? accepted() : reply(extensions.join() || 'none'),
    work: chart
  })
  t.match(await runtime.sendMessage(say('hi'), { extensions: [TIDE, WIND, RELIABILITY_EXTENSION] }), {
    message: { parts: [{ text: TIDE }] }
  })
  t.match(await runtime.sendMessage(say('hi')), { message: { parts: [{ text: 'none' }] } })
  t.equal(textOf(taskIn(await runtime.sendMessage(say('work'), { extensions: [TIDE] })).artifacts?.[0]), TIDE)
})

await t.test('the response names the extensions that the frame or the handshake activated', async t => {
  const { url } = await serve(t, { work: obedient, extensions: [{ uri: TIDE }, { uri: WIND, required: true }] })
  const client = await JsonSocket.open(t, url, {
    headers: { 'a2a-version': '1.0', 'a2a-extensions': `${WIND}, urn:other` }
  })
  const asked = (extensions: string) => ({ 'a2a-service-parameters': { 'a2a-extensions': extensions } })
  t.match(await client.call('ListTasks', {}), { 'a2a-service-parameters': { 'a2a-extensions': WIND } })
  t.match(await client.call('ListTasks', {}, asked(`${RELIABILITY_EXTENSION},${WIND},${TIDE}`)), {
    'a2a-service-parameters': { 'a2a-extensions': `${RELIABILITY_EXTENSION},${TIDE},${WIND}` }
  })
  t.match(await client.call('ListTasks', {}, asked(TIDE)), {
    error: { code: -32008, data: [{ reason: 'EXTENSION_SUPPORT_REQUIRED', metadata: { requiredExtensions: WIND } }] }
  })
})

await t.test('an invalid extension is refused', async t => {
  const cyclic: Record<string, unknown> = {}
  cyclic['self'] = cyclic
  const wrong: [unknown, RegExp][] = [
    ['https://example.com', /^extensions has to be a list/],
    [[{}], /^extensions\[0\]\.uri/],
    [[{ uri: TIDE }, { uri: 'a b' }], /^extensions\[1\]\.uri must be a URI without spaces and commas, not "a b"\.$/],
    [[{ uri: 'a,b' }], /without spaces and commas/],
    [[{ uri: TIDE }, { uri: TIDE }], /names https:\/\/example\.com\/ext\/tide\/v1 twice/],
    [[{ uri: RELIABILITY_EXTENSION }], /one of taskchart's own/],
    [[{ uri: 'urn:taskchart:extension:negotiation:1' }], /one of taskchart's own/],
    [[{ uri: TIDE, params: cyclic }], /^extensions\[0\]\.params\.self is an object that contains itself/]
  ]
  for (const [extensions, message] of wrong)
    t.throws(() => defineAgent({ card: { name: 'A' }, work: echo, extensions: extensions as AgentExtension[] }), {
      name: 'TypeError',
      message
    })
})
