import t from 'tap'
import { z } from 'zod'
import type { McpOptions } from '../../../adapters/mcp/index.ts'
import {
  artifact,
  authRequired,
  failed,
  file,
  inputRequired,
  progress,
  rejected,
  reply,
  setupWork,
  textOf,
  type WorkFunction
} from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/work-port.ts'
import { openedTask, questionIn, textsIn, type McpPeer } from '../../fixtures/peers/mcp-peer.ts'
import { deferred, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { servedMcp, sized } from '../../fixtures/servers/mcp-agent.ts'

/** Opens a task and gives its id. */
async function open(peer: McpPeer): Promise<string> {
  const { result } = await peer.call('coffee')
  return openedTask({ result })
}

const answerWith = (taskId: string, key: string, response: unknown) => ({ taskId, inputResponses: { [key]: response } })

await t.test('a client that knows tasks gets a handle, and then what the task is', async t => {
  const go = deferred()
  const { peer, clock } = servedMcp(t, {
    work: async ({ emit }) => {
      emit(progress('Brewing\n  now.'))
      await go.promise
      return { artifact: 'A coffee.' }
    }
  })
  const handle = await peer.call('coffee')
  const taskId = openedTask(handle)
  const createdAt = new Date(clock.now()).toISOString()
  t.match(handle.result, { resultType: 'task', status: 'working', createdAt, ttlMs: null, pollIntervalMs: 1000 })
  t.notOk('result' in handle.result || 'inputRequests' in handle.result)
  clock.increment(70_000)
  t.match((await peer.rpc('tasks/get', { taskId })).result, {
    resultType: 'complete',
    status: 'working',
    statusMessage: 'Brewing now.',
    createdAt,
    ttlMs: null,
    pollIntervalMs: 5000
  })
  go.resolve()
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'completed')
  const { result } = await peer.rpc('tasks/get', { taskId })
  t.match(result, {
    status: 'completed',
    createdAt,
    ttlMs: 70_000 + 30 * 24 * 60 * 60 * 1000,
    result: { resultType: 'complete' }
  })
  t.match(textsIn({ result: result['result'] as Record<string, unknown> }), [
    'A coffee.',
    /^taskId: .*\ncontextId: .*\nstate: completed\nartifacts: /
  ])
})

await t.test('a task for which nothing ends has no ttl, also after its end', async t => {
  const { peer } = servedMcp(t, { work: () => {} }, { retention: { endedTasksMs: Infinity } })
  const { result } = await peer.call('coffee')
  const taskId = openedTask({ result })
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'completed')
  t.match((await peer.rpc('tasks/get', { taskId })).result, { ttlMs: null })
})

await t.test('a question is one form, and its answer goes to the task', async t => {
  const { peer, runtime } = servedMcp(t, { work: sized })
  const taskId = await open(peer)
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'input_required')
  const asked = await peer.rpc('tasks/get', { taskId })
  const { key, params } = questionIn(asked)
  const { status } = await runtime.getTask({ id: taskId })
  t.equal(key, status.message?.messageId)
  t.strictSame(params, {
    mode: 'form',
    message: 'Which size?',
    requestedSchema: {
      type: 'object',
      properties: { size: { type: 'string', enum: ['small', 'large'] } },
      required: ['size']
    }
  })
  t.match(await peer.rpc('tasks/get', { taskId }), { result: { inputRequests: { [key]: {} } } }, 'the key stays')
  t.match((await peer.rpc('tasks/update', answerWith(taskId, 'another', { action: 'accept' }))).result, {
    resultType: 'complete'
  })
  t.match(
    (await peer.rpc('tasks/update', answerWith(taskId, key, { action: 'accept', content: { size: 'large' } }))).result,
    {
      resultType: 'complete'
    }
  )
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'completed')
  const late = await peer.rpc('tasks/update', answerWith(taskId, key, { action: 'accept', content: { size: 'small' } }))
  t.match(late.result, { resultType: 'complete' })
  const { artifacts = [] } = await runtime.getTask({ id: taskId })
  t.match(artifacts, [{ parts: [{ text: 'One large coffee.' }] }])
})

await t.test(
  'an answer that the question refuses is asked for again under a new key, also by a later process',
  async t => {
    const store = memoryStore()
    const kept = { ...store, close: async () => {} }
    const first = servedMcp(t, { work: sized }, { store: kept })
    const taskId = await open(first.peer)
    await until(async () => (await first.peer.rpc('tasks/get', { taskId })).result['status'] === 'input_required')
    const { key } = questionIn(await first.peer.rpc('tasks/get', { taskId }))
    await first.peer.rpc('tasks/update', answerWith(taskId, key, { action: 'accept', content: { size: 'huge' } }))
    const again = questionIn(await first.peer.rpc('tasks/get', { taskId }))
    t.equal(again.key, `${key}.2`)
    t.match(again.params, {
      message: /^Not accepted: size Invalid option: expected one of "small"\|"large"\n\nWhich size\?$/
    })
    await first.peer.rpc('tasks/update', answerWith(taskId, key, { action: 'accept', content: { size: 'small' } }))
    t.equal(questionIn(await first.peer.rpc('tasks/get', { taskId })).key, `${key}.2`, 'an old key is ignored')
    await first.runtime.close()
    const { peer } = servedMcp(t, { work: sized }, { store: kept })
    t.equal(questionIn(await peer.rpc('tasks/get', { taskId })).key, `${key}.2`)
    await peer.rpc('tasks/update', answerWith(taskId, `${key}.2`, { action: 'accept', content: { size: 'small' } }))
    await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'completed')
  }
)

await t.test('an answer that the chart does not take is asked for again, as a refused one', async t => {
  const work = setupWork({}).createMachine({
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        meta: { prompt: 'Large?' },
        on: { 'message.received': { guard: ({ event }) => textOf(event.message) === 'yes', target: 'done' } }
      },
      done: { type: 'final' }
    },
    output: { artifact: 'A large coffee.' }
  })
  const { peer } = servedMcp(t, { work })
  const taskId = await open(peer)
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'input_required')
  const { key } = questionIn(await peer.rpc('tasks/get', { taskId }))
  await peer.rpc('tasks/update', answerWith(taskId, key, { action: 'accept', content: { answer: 'no' } }))
  const again = questionIn(await peer.rpc('tasks/get', { taskId }))
  t.match(again, { key: `${key}.2`, params: { message: /^Not accepted: .+\n\nLarge\?$/ } })
  await peer.rpc('tasks/update', answerWith(taskId, again.key, { action: 'accept', content: { answer: 'yes' } }))
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'completed')
})

await t.test('the fifth refused answer cancels the task, with the reason', async t => {
  const { peer } = servedMcp(t, { work: sized })
  const taskId = await open(peer)
  for (let i = 0; i < 5; i += 1) {
    await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'input_required')
    const { key } = questionIn(await peer.rpc('tasks/get', { taskId }))
    await peer.rpc('tasks/update', answerWith(taskId, key, { action: 'accept', content: {} }))
  }
  t.match((await peer.rpc('tasks/get', { taskId })).result, {
    status: 'cancelled',
    statusMessage: /^5 answers were refused, the last one because: size /
  })
})

await t.test('a dismissed question is asked once more, then it is declined', async t => {
  const { peer } = servedMcp(t, { work: sized })
  const taskId = await open(peer)
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'input_required')
  const { key } = questionIn(await peer.rpc('tasks/get', { taskId }))
  await peer.rpc('tasks/update', answerWith(taskId, key, { action: 'cancel' }))
  const again = questionIn(await peer.rpc('tasks/get', { taskId }))
  t.match(again, {
    key: `${key}.2`,
    params: { message: 'The question was dismissed without an answer.\n\nWhich size?' }
  })
  await peer.rpc('tasks/update', answerWith(taskId, again.key, { action: 'cancel' }))
  const { result } = await peer.rpc('tasks/get', { taskId })
  t.match(result, { status: 'cancelled' })
  t.notOk('statusMessage' in result)
})

await t.test(
  'a no is a message where the question takes one, else it cancels the task, or as the author says',
  async t => {
    const heard: string[] = []
    const open_ =
      (work: WorkFunction, settings: McpOptions = {}) =>
      async () => {
        const { peer } = servedMcp(t, { work }, {}, settings)
        const taskId = await open(peer)
        await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'input_required')
        const { key } = questionIn(await peer.rpc('tasks/get', { taskId }))
        await peer.rpc('tasks/update', answerWith(taskId, key, { action: 'decline' }))
        await until(async () =>
          ['completed', 'cancelled'].includes(String((await peer.rpc('tasks/get', { taskId })).result['status']))
        )
        return (await peer.rpc('tasks/get', { taskId })).result['status']
      }
    const words: WorkFunction = async ({ ask }) => {
      const { parts } = await ask(inputRequired('Why?'))
      heard.push(JSON.stringify(parts))
    }
    const approval: WorkFunction = async ({ ask }) => {
      const schema = z.object({ approved: z.boolean(), reason: z.string().optional() })
      heard.push(JSON.stringify(await ask(inputRequired('May I?', { schema }))))
    }
    t.equal(await open_(words)(), 'completed')
    t.equal(await open_(approval)(), 'completed')
    t.equal(await open_(sized)(), 'cancelled')
    t.equal(await open_(words, { declined: 'cancel' })(), 'cancelled')
    const { peer } = servedMcp(t, { work: sized }, {}, { declined: 'message' })
    const taskId = await open(peer)
    await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'input_required')
    const { key } = questionIn(await peer.rpc('tasks/get', { taskId }))
    await peer.rpc('tasks/update', answerWith(taskId, key, { action: 'decline' }))
    t.equal(questionIn(await peer.rpc('tasks/get', { taskId })).key, `${key}.2`, 'it is asked again')
    t.strictSame(heard, ['[{"text":"declined"}]', '{"approved":false,"reason":"declined"}'])
  }
)

await t.test('an authorization is a URL that the user opens, and stays until it has arrived', async t => {
  const { peer, as, runtime } = servedMcp(t, {
    work: async ({ ask }) => {
      const given = await ask(
        authRequired({ parts: [{ text: 'Log in.' }, { url: 'https://login.example/?id=1' }] }, { schema: z.string() })
      )
      return { artifact: JSON.stringify(given) }
    }
  })
  const taskId = await open(peer)
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'input_required')
  const { key, params } = questionIn(await peer.rpc('tasks/get', { taskId }))
  t.strictSame(params, {
    mode: 'url',
    message: 'Log in.\nhttps://login.example/?id=1',
    url: 'https://login.example/?id=1'
  })
  await peer.rpc('tasks/update', answerWith(taskId, key, { action: 'accept' }))
  t.equal(questionIn(await peer.rpc('tasks/get', { taskId })).key, key)
  const forms = as({ tasks: true, form: true })
  t.match(questionIn(await forms.rpc('tasks/get', { taskId })).params, {
    mode: 'form',
    requestedSchema: { properties: { answer: { type: 'string' } } }
  })
  await forms.rpc('tasks/update', answerWith(taskId, key, { action: 'accept', content: {} }))
  t.equal(questionIn(await forms.rpc('tasks/get', { taskId })).key, key, 'no words are no answer')
  t.match((await as({ tasks: true }).rpc('tasks/get', { taskId })).result, {
    status: 'working',
    statusMessage: 'Log in. https://login.example/?id=1'
  })
  await runtime.authorized(taskId, 'token')
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'completed')
})

await t.test('an authorization takes words too, and its no cancels the task', async t => {
  const work: WorkFunction = async ({ ask }) => {
    const given = await ask(authRequired('Log in.'))
    return { artifact: 'message' in given ? 'words' : 'data' }
  }
  for (const [response, status] of [
    [{ action: 'accept', content: { answer: 'I did.' } }, 'completed'],
    [{ action: 'decline' }, 'cancelled']
  ] as const) {
    const { peer } = servedMcp(t, { work })
    const taskId = await open(peer)
    await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'input_required')
    const { key } = questionIn(await peer.rpc('tasks/get', { taskId }))
    await peer.rpc('tasks/update', answerWith(taskId, key, response))
    await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === status)
  }
})

await t.test(
  'a client that knows tasks and shows no forms sees a question as words, and answers by the follow-up tool',
  async t => {
    const { as } = servedMcp(t, { work: sized })
    const peer = as({ tasks: true })
    const taskId = await open(peer)
    await until(async () => (await peer.rpc('tasks/get', { taskId })).result['statusMessage'] === 'Which size?')
    t.match((await peer.rpc('tasks/get', { taskId })).result, { status: 'working' })
    const answered = await peer.call('task_followup', { taskId, data: { size: 'small' } })
    t.match(textsIn(answered), ['One small coffee.', /state: completed/])
    t.match((await peer.rpc('tasks/get', { taskId })).result, { status: 'completed' })
  }
)

await t.test('a failed and a rejected task are results that are errors, a canceled one is cancelled', async t => {
  for (const [work, text, state] of [
    [(() => failed('No beans.')) as WorkFunction, 'No beans.', 'failed'],
    [(() => rejected('Closed.')) as WorkFunction, 'Closed.', 'rejected']
  ] as const) {
    const { peer, as } = servedMcp(t, { work })
    const { result } = await peer.call('coffee')
    const ended = result['resultType'] === 'task' ? openedTask({ result }) : undefined
    if (ended !== undefined)
      await until(async () => (await peer.rpc('tasks/get', { taskId: ended })).result['status'] === 'completed')
    const shown = ended === undefined ? result : (await peer.rpc('tasks/get', { taskId: ended })).result['result']
    t.match(shown, { isError: true, content: [{ text }, { text: new RegExp(`state: ${state}`) }] })
    t.match((await as({}).call('coffee')).result, { isError: true, content: [{ text }, {}] })
  }
  const { peer } = servedMcp(t, {
    work: async ({ signal }) => new Promise(resolve => signal.addEventListener('abort', () => resolve()))
  })
  const taskId = await open(peer)
  t.match((await peer.rpc('tasks/cancel', { taskId })).result, { resultType: 'complete' })
  t.match((await peer.rpc('tasks/get', { taskId })).result, { status: 'cancelled' })
  t.match((await peer.rpc('tasks/cancel', { taskId })).result, { resultType: 'complete' }, 'twice')
})

await t.test('an agent that answers with a message gives a result, and no task', async t => {
  const { peer } = servedMcp(t, { work: undefined as never, negotiate: () => reply('No coffee today.') })
  t.match(await peer.call('coffee'), {
    result: { resultType: 'complete', content: [{ text: 'No coffee today.' }, { text: /^contextId: / }] }
  })
  t.notOk('extensions' in ((await peer.rpc('server/discover')).result['capabilities'] as object))
  t.match(await peer.rpc('tasks/get', { taskId: 'x' }), { error: { code: -32601 } })
})

await t.test('the methods of tasks need a client that knows tasks, and a task of its caller', async t => {
  const { as, peer } = servedMcp(t, { work: sized })
  const taskId = await open(peer)
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    const params = { inputResponses: {} }
    const missing = await as({ form: true }).rpc(method, { taskId, ...params })
    t.match(missing, { status: 400, error: { code: -32021, data: { requiredCapabilities: { extensions: {} } } } })
    const unknown = await peer.rpc(method, { taskId: 'nothing', ...params })
    t.match(unknown, { status: 200, error: { code: -32602, message: 'There is no such task.' } })
  }
  t.match((await peer.rpc('tasks/update', { taskId })).error, {
    code: -32602,
    message: /inputResponses must be an object/
  })
  for (const method of ['tasks/list', 'tasks/result', 'prompts/list', 'nothing'])
    t.match(await peer.rpc(method, { taskId }), { status: 404, error: { code: -32601 } })
})

await t.test('artifacts are content and resources: text, data, images, files, and links to large ones', async t => {
  const large = Buffer.alloc(1024 * 1024, 1).toString('base64')
  const { peer, runtime } = servedMcp(t, {
    work: ({ emit }) => {
      emit(artifact({ name: 'note', parts: [{ text: 'a' }, { text: 'b' }] }))
      emit(artifact({ name: 'mix', parts: [{ data: { x: 1 } }, { url: 'https://files.example/a.pdf' }] }))
      emit(artifact({ name: 'picture', parts: [file(new Uint8Array([1, 2]), { mediaType: 'image/png' })] }))
      emit(artifact({ name: 'csv', parts: [file(new TextEncoder().encode('a,b'), { mediaType: 'text/csv' })] }))
      emit(artifact({ name: 'zip', parts: [{ raw: 'AQI=' }] }))
      emit(artifact({ name: 'book', parts: [{ text: '語'.repeat(350_000) }] }))
      emit(artifact({ name: 'film', description: 'Long.', parts: [{ raw: large, mediaType: 'video/mp4' }] }))
    }
  })
  const { result } = await peer.call('coffee')
  const taskId = openedTask({ result })
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'completed')
  const shown = (await peer.rpc('tasks/get', { taskId })).result['result'] as { content: object[] }
  const { artifacts = [] } = await runtime.getTask({ id: taskId })
  const uriOf = (name: string) => {
    const artifactId = artifacts.find(each => each.name === name)?.artifactId ?? ''
    return `taskchart://tasks/${taskId}/artifacts/${artifactId}`
  }
  t.match(shown.content, [
    { type: 'text', text: 'ab' },
    { type: 'text', text: '{"x":1}' },
    { type: 'resource_link', uri: 'https://files.example/a.pdf', name: 'mix' },
    { type: 'image', data: 'AQI=', mimeType: 'image/png' },
    { type: 'resource', resource: { uri: uriOf('csv'), text: 'a,b', mimeType: 'text/csv' } },
    { type: 'resource', resource: { blob: 'AQI=', mimeType: 'application/octet-stream' } },
    { type: 'resource_link', uri: uriOf('book'), name: 'book', mimeType: 'text/plain' },
    { type: 'resource_link', uri: uriOf('film'), name: 'film', description: 'Long.', mimeType: 'video/mp4' },
    { type: 'text', text: /artifacts: note, mix, picture, csv, zip, book, film$/ }
  ])
  t.match((await peer.rpc('resources/read', { uri: uriOf('film') })).result, {
    ttlMs: 0,
    cacheScope: 'private',
    contents: [{ blob: large }]
  })
  t.match((await peer.rpc('resources/read', { uri: uriOf('mix') })).result['contents'], [
    { text: '{"x":1}', mimeType: 'application/json' },
    { text: 'https://files.example/a.pdf', mimeType: 'text/uri-list' }
  ])
  t.match((await peer.rpc('resources/read', { uri: uriOf('note') })).result['contents'], [
    { text: 'ab', mimeType: 'text/plain' }
  ])
  t.strictSame((await peer.rpc('resources/list')).result['resources'], [])
  t.match((await peer.rpc('resources/templates/list')).result['resourceTemplates'], [
    { uriTemplate: 'taskchart://tasks/{taskId}/artifacts/{artifactId}' }
  ])
  for (const uri of [
    `taskchart://tasks/${taskId}/artifacts/x`,
    'taskchart://tasks/x/artifacts/x',
    'file:///etc/passwd',
    'taskchart://tasks/%ZZ/artifacts/x'
  ])
    t.match(await peer.rpc('resources/read', { uri }), { error: { code: -32602 } }, uri)
})
