import { getEventListeners } from 'node:events'
import t from 'tap'
import { z } from 'zod'
import {
  A2AError,
  authRequired,
  negotiation,
  offer,
  progress,
  rejected,
  reply,
  textOf,
  type WorkFunction
} from '../../../runtime/index.ts'
import { openedTask, questionIn, taskIdIn, textsIn, type McpAnswer } from '../../fixtures/peers/mcp-peer.ts'
import { deferred, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { servedMcp, sized } from '../../fixtures/servers/mcp-agent.ts'

/** The next round of a call: the same arguments, with the response of the user and the state. */
const round = ({ result }: McpAnswer, key: string, response: unknown) => ({
  requestState: result['requestState'],
  inputResponses: { [key]: response }
})

await t.test('a call of a client without tasks waits for the result', async t => {
  const { as } = servedMcp(t, { work: ({ message }) => ({ artifact: `Made: ${textOf(message)}` }) })
  const { result } = await as({}).call('coffee', { message: 'a coffee' })
  t.match(result, { resultType: 'complete', content: [{ text: 'Made: a coffee' }, { text: /state: completed/ }] })
  t.notOk('isError' in result)
})

await t.test('a call asks the user of a client that shows forms, round by round', async t => {
  const { as, runtime } = servedMcp(t, { work: sized })
  const peer = as({ form: true })
  const asked = await peer.call('coffee')
  const { key, params } = questionIn(asked)
  t.match(asked.result, { resultType: 'input_required', requestState: String })
  t.match(params, { mode: 'form', message: 'Which size?' })
  const refused = await peer.call(
    'coffee',
    undefined,
    round(asked, key, { action: 'accept', content: { size: 'huge' } })
  )
  const again = questionIn(refused)
  t.match(again, { key: `${key}.2`, params: { message: /^Not accepted: size / } })
  const missing = await peer.call('coffee', undefined, { requestState: refused.result['requestState'] })
  t.equal(questionIn(missing).key, again.key, 'without a response it asks again')
  const done = await peer.call(
    'coffee',
    undefined,
    round(missing, again.key, { action: 'accept', content: { size: 'large' } })
  )
  t.match(textsIn(done), ['One large coffee.', /state: completed/])
  t.equal((await runtime.listTasks({})).totalSize, 1)
  const repeated = await peer.call(
    'coffee',
    undefined,
    round(missing, again.key, { action: 'accept', content: { size: 'small' } })
  )
  t.match(textsIn(repeated), ['One large coffee.', /state: completed/], 'a repeated round reads the task')
})

await t.test('a state that was not sealed for this caller and this call is refused', async t => {
  const { as } = servedMcp(
    t,
    { work: sized },
    { authenticate: ({ headers }) => (headers['x-id'] === undefined ? undefined : { id: headers['x-id'] }) }
  )
  const anna = as({ form: true, headers: { 'x-id': 'anna' } })
  const asked = await anna.call('coffee')
  const { key } = questionIn(asked)
  const more = round(asked, key, { action: 'accept', content: { size: 'small' } })
  const wrong = { code: -32602, message: 'Invalid or expired requestState', data: { reason: 'invalid_request_state' } }
  t.match((await as({ form: true, headers: { 'x-id': 'ben' } }).call('coffee', undefined, more)).error, wrong)
  t.match((await anna.call('coffee', { message: 'other' }, more)).error, wrong)
  t.match((await anna.call('task_followup', { message: 'go' }, more)).error, wrong)
  for (const requestState of ['', 'x', 'AAAA'.repeat(30), `${String(more.requestState).slice(0, -4)}AAAA`])
    t.match((await anna.call('coffee', undefined, { ...more, requestState })).error, wrong)
  t.match(textsIn(await anna.call('coffee', undefined, more)), ['One small coffee.', /completed/])
})

await t.test('a client that cannot ask gets the question in words, and goes on by the follow-up tool', async t => {
  const { as } = servedMcp(t, { work: sized })
  const peer = as({})
  const asked = await peer.call('coffee')
  const taskId = taskIdIn(asked)
  t.notOk('isError' in asked.result)
  t.match(textsIn(asked), [
    'Which size?',
    /^The task waits for an answer\. Call task_followup with taskId and data that fits this JSON Schema: \{.*"small".*\n/
  ])
  const refused = await peer.call('task_followup', { taskId, data: { size: 'huge' } })
  t.match(refused.result, { isError: true, content: [{ text: /^Not accepted: size Invalid option/ }] })
  t.match(textsIn(await peer.call('task_followup', { taskId })), ['Which size?', /waits for an answer/])
  t.match(textsIn(await peer.call('task_followup', { taskId, data: { size: 'small' } })), [
    'One small coffee.',
    /completed/
  ])
  t.match((await peer.call('task_followup', { taskId, message: 'more' })).result, {
    isError: true,
    content: [{ text: /takes no more messages/ }]
  })
})

await t.test('a refused answer of a form shows in words with its reason', async t => {
  const { as, peer } = servedMcp(t, { work: sized })
  const { result } = await peer.call('coffee')
  const taskId = openedTask({ result })
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'input_required')
  const { key } = questionIn(await peer.rpc('tasks/get', { taskId }))
  await peer.rpc('tasks/update', { taskId, inputResponses: { [key]: { action: 'accept' } } })
  t.match(textsIn(await as({}).call('task_followup', { taskId })), [
    'Which size?',
    /^Not accepted: size .*\nThe task waits/
  ])
})

await t.test('a call waits for waitMs at most, and then gives the state', async t => {
  const go = deferred()
  const work: WorkFunction = async ({ emit }) => {
    emit(progress('Grinding.'))
    await go.promise
    return { artifact: 'A coffee.' }
  }
  const { as, clock } = servedMcp(t, { work }, {}, { waitMs: 1000 })
  const peer = as({})
  const waiting = peer.call('coffee')
  const stop = setInterval(() => clock.increment(500), 1)
  const answer = await waiting.finally(() => clearInterval(stop))
  t.match(textsIn(answer), [
    'Grinding.',
    /^The task is still working\. Call task_followup with taskId \S+ to wait for it\.\n/
  ])
  const taskId = taskIdIn(answer)
  const read = peer.call('task_followup', { taskId })
  go.resolve()
  t.match(textsIn(await read), ['A coffee.', /completed/])
})

await t.test('the follow-up tool cancels a task, and says so', async t => {
  const { as } = servedMcp(t, { work: sized })
  const peer = as({})
  const taskId = taskIdIn(await peer.call('coffee'))
  const canceled = await peer.call('task_followup', { taskId, cancel: true })
  t.match(canceled.result, { isError: true, content: [{ text: /^The task was canceled\.\n.*state: canceled/s }] })
  t.match((await peer.call('task_followup', { taskId, cancel: true })).result, { isError: true }, 'twice')
})

await t.test('the arguments of tools are checked, and what is wrong with them is a result for the model', async t => {
  const { as, runtime } = servedMcp(t, { work: sized })
  const peer = as({ form: true })
  const bad: [name: string, given: unknown, text: RegExp][] = [
    ['coffee', {}, /^Not accepted: message must be a string/],
    ['coffee', { message: 5 }, /^Not accepted: message must be a string/],
    ['coffee', { message: 'x', contextId: 5 }, /contextId must be a string/],
    ['coffee', { message: 'x', referenceTaskIds: 'a' }, /referenceTaskIds must be a list of strings/],
    ['coffee', { message: 'x', referenceTaskIds: [5] }, /referenceTaskIds must be a list of strings/],
    ['coffee', { message: 'x', negotiation: 5 }, /negotiation must be an object/],
    ['coffee', { message: 'x', negotiation: {} }, /negotiation must have exactly one of propose, accept, decline/],
    [
      'coffee',
      { message: 'x', negotiation: { accept: 'o', decline: 'o' } },
      /negotiation must have exactly one of propose, accept, decline/
    ],
    ['task_followup', {}, /taskId must be the taskId of an earlier result/],
    ['task_followup', { taskId: '' }, /taskId must be the taskId of an earlier result/],
    ['task_followup', { taskId: 'x', message: 5 }, /message must be a string/],
    ['task_followup', { taskId: 'x', cancel: 'yes' }, /cancel must be true or false/],
    ['task_followup', { taskId: 'nothing' }, /There is no such task/],
    ['task_followup', { taskId: 'nothing', cancel: true }, /There is no such task/]
  ]
  for (const [name, given, text] of bad)
    t.match((await peer.call(name, given)).result, { isError: true, content: [{ text }] }, JSON.stringify(given))
  t.match((await peer.call('tea')).error, { code: -32602, message: 'There is no tool "tea". List the tools.' })
  t.equal((await runtime.listTasks({})).totalSize, 0)
})

await t.test('an agent with an input schema validates the arguments', async t => {
  const { as } = servedMcp(t, {
    input: z.object({ size: z.enum(['small', 'large']) }),
    work: ({ input }) => ({ artifact: `One ${(input as { size: string }).size}` })
  })
  const peer = as({})
  t.match((await peer.call('coffee', { size: 'huge' })).result, {
    isError: true,
    content: [{ text: /^Not accepted: size / }]
  })
  t.match(textsIn(await peer.call('coffee', { size: 'small', contextId: 'mine' })), ['One small', /contextId: mine/])
})

await t.test('progress goes to a client that has given a token, on the stream of its call', async t => {
  const followed = deferred()
  const { as, runtime } = servedMcp(t, {
    work: async ({ emit }) => {
      emit(progress('Grinding.'))
      await followed.promise
      emit(progress('Brewing.'))
      return { artifact: 'A coffee.' }
    }
  })
  const subscribe = runtime.subscribeToTask
  Object.assign(runtime, {
    subscribeToTask: (...given: Parameters<typeof subscribe>) => {
      setImmediate(() => followed.resolve())
      return subscribe(...given)
    }
  })
  const answer = await as({ meta: { progressToken: 'p1' } }).call('coffee')
  t.equal(answer.headers.get('x-accel-buffering'), 'no')
  t.match(answer.messages, [
    { method: 'notifications/progress', params: { progressToken: 'p1', progress: 1, message: 'Grinding.' } },
    { method: 'notifications/progress', params: { progress: 2, message: 'Brewing.' } },
    { result: { content: [{ text: 'A coffee.' }, {}] } }
  ])
})

await t.test('an agent that does not stream is read again and again', async t => {
  const go = deferred()
  const work: WorkFunction = async () => (await go.promise, { artifact: 'A coffee.' })
  const { as, clock } = servedMcp(t, { work, capabilities: { streaming: false } })
  const waiting = as({}).call('coffee')
  const stop = setInterval(() => clock.increment(500), 1)
  setTimeout(() => go.resolve(), 20)
  t.match(textsIn(await waiting.finally(() => clearInterval(stop))), ['A coffee.', /completed/])
  const { as: quick, clock: other } = servedMcp(
    t,
    { work: () => new Promise(() => {}), capabilities: { streaming: false } },
    {},
    { waitMs: 1500 }
  )
  const slow = quick({}).call('coffee')
  const stopOther = setInterval(() => other.increment(500), 1)
  t.match(textsIn(await slow.finally(() => clearInterval(stopOther))), [/still working/])
})

await t.test('each read of a task leaves no listener behind', async t => {
  const work: WorkFunction = () => new Promise(() => {})
  const { as, runtime, clock } = servedMcp(t, { work, capabilities: { streaming: false } }, {}, { waitMs: 5500 })
  const listeners: number[] = []
  const { getTask } = runtime
  Object.assign(runtime, {
    getTask: (...given: Parameters<typeof getTask>) => {
      const [, call] = given
      if (call?.signal) listeners.push(getEventListeners(call.signal, 'abort').length)
      return getTask(...given)
    }
  })
  const waiting = as({}).call('coffee')
  const stop = setInterval(() => clock.increment(500), 1)
  t.match(textsIn(await waiting.finally(() => clearInterval(stop))), [/still working/])
  t.ok(listeners.length > 4)
  t.strictSame(new Set(listeners.slice(0, -1)), new Set([0]))
})

await t.test('a client that disconnects before it has an id cancels its task, unless the author keeps it', async t => {
  for (const closed of ['cancel', 'keep'] as const) {
    const began = deferred()
    const work = async () => (began.resolve(), new Promise<never>(() => {}))
    const { as, runtime, log } = servedMcp(t, { work }, {}, { closed })
    const gone = new AbortController()
    const call = as({}).rpc('tools/call', { name: 'coffee', arguments: { message: 'x' } }, gone.signal)
    await began.promise
    gone.abort()
    await call
    const stateOf = async () => (await runtime.listTasks({})).tasks[0]?.status.state
    if (closed === 'cancel') await until(async () => (await stateOf()) === 'TASK_STATE_CANCELED')
    else t.equal(await stateOf(), 'TASK_STATE_WORKING')
    t.strictSame(log, [], 'a client that leaves is no failure')
  }
})

await t.test('an authorization is a round with its URL, and the call waits for it then', async t => {
  const { as, runtime } = servedMcp(t, {
    work: async ({ ask }) => {
      await ask(authRequired({ parts: [{ text: 'Log in.' }, { url: 'https://login.example/' }] }))
      return { artifact: 'Welcome.' }
    }
  })
  const peer = as({ url: true })
  const asked = await peer.call('coffee')
  const { key, params } = questionIn(asked)
  t.match(params, { mode: 'url', url: 'https://login.example/' })
  const waiting = peer.call('coffee', undefined, round(asked, key, { action: 'accept' }))
  const [task] = (await runtime.listTasks({})).tasks
  await runtime.authorized(task?.id ?? '', 'token')
  t.match(textsIn(await waiting), ['Welcome.', /completed/])
  t.match(
    textsIn(await as({}).call('coffee')),
    ['Log in.', 'https://login.example/', /waits for an answer/].slice(0, 1)
  )
})

const terms = z.object({ euros: z.number().positive() })
const gardener = {
  negotiate: negotiation({
    terms,
    respond: ({ proposal }) =>
      proposal && proposal.euros < 10
        ? rejected('Too little.')
        : offer({ euros: proposal ? 40 : 50 }, { message: 'With a mower.' })
  }),
  work: ({ terms: { euros } }: { readonly terms: { readonly euros: number } }) => ({
    artifact: `Mown, for ${euros} euros.`
  })
} as never

await t.test('an offer is a form with the terms, and the user decides before there is a task', async t => {
  const { as, runtime } = servedMcp(t, gardener)
  const peer = as({ form: true, tasks: true })
  const offered = await peer.call('coffee')
  const { key, params } = questionIn(offered)
  t.match(params, {
    mode: 'form',
    message: 'With a mower.\nTerms: {"euros":50}',
    requestedSchema: {
      properties: { decision: { enum: ['accept', 'decline', 'propose'] }, euros: { type: 'number', default: 50 } },
      required: ['decision']
    }
  })
  t.equal((await runtime.listTasks({})).totalSize, 0)
  const second = await peer.call(
    'coffee',
    undefined,
    round(offered, key, { action: 'accept', content: { decision: 'propose', euros: 30 } })
  )
  const other = questionIn(second)
  t.match(other.params, { message: /Terms: \{"euros":40\}/ })
  const accepted = await peer.call(
    'coffee',
    undefined,
    round(second, other.key, { action: 'accept', content: { decision: 'accept' } })
  )
  const taskId = openedTask(accepted)
  const again = await peer.call(
    'coffee',
    undefined,
    round(second, other.key, { action: 'accept', content: { decision: 'accept' } })
  )
  t.equal(openedTask(again), taskId, 'a repeated round opens one task')
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'completed')
  t.equal((await runtime.listTasks({})).totalSize, 1)
})

await t.test('a declined, a dismissed and an expired offer open no task', async t => {
  const { as, runtime, clock } = servedMcp(t, gardener)
  const peer = as({ form: true })
  for (const [response, isError] of [
    [{ action: 'decline' }, false],
    [{ action: 'accept', content: { decision: 'never' } }, false],
    [{ action: 'accept' }, false],
    [{ action: 'cancel' }, true],
    [undefined, true]
  ] as const) {
    const offered = await peer.call('coffee')
    const { result } = await peer.call('coffee', undefined, round(offered, questionIn(offered).key, response))
    t.equal('isError' in result, isError)
  }
  const offered = await peer.call('coffee')
  clock.increment(11 * 60 * 1000)
  const late = await peer.call(
    'coffee',
    undefined,
    round(offered, questionIn(offered).key, { action: 'accept', content: { decision: 'accept' } })
  )
  t.match(late.error, { code: -32602, message: 'Invalid or expired requestState' })
  t.equal((await runtime.listTasks({})).totalSize, 0)
})

await t.test('terms that are no JSON object are refused, and the offer stays open', async t => {
  const { as, runtime } = servedMcp(t, {
    negotiate: negotiation({ terms: z.record(z.string(), z.number()), respond: () => offer({ euros: 50 }) }),
    work: () => {}
  })
  const peer = as({ form: true })
  const offered = await peer.call('coffee')
  const { key } = questionIn(offered)
  const propose = { decision: 'propose', terms: 'forty euros' }
  const { result } = await peer.call('coffee', undefined, round(offered, key, { action: 'accept', content: propose }))
  t.match(result, {
    isError: true,
    content: [{ text: /^Not accepted: terms must be a JSON object\. The offer .* is as it was\. To answer it, call/ }]
  })
  const accepted = { action: 'accept', content: { decision: 'accept' } }
  await peer.call('coffee', undefined, round(offered, key, accepted))
  t.equal((await runtime.listTasks({})).totalSize, 1)
})

await t.test('after a counter-offer that is answered in words, the offer before can still be accepted', async t => {
  const { as } = servedMcp(t, {
    negotiate: negotiation({ terms, respond: ({ proposal }) => (proposal ? reply('Why?') : offer({ euros: 50 })) }),
    work: () => {}
  })
  const peer = as({ form: true })
  const offered = await peer.call('coffee')
  const { key } = questionIn(offered)
  const proposed = { action: 'accept', content: { decision: 'propose', euros: 30 } }
  const replied = await peer.call('coffee', undefined, round(offered, key, proposed))
  const [words, more = ''] = textsIn(replied)
  t.equal(words, 'Why?')
  const [, offerId] =
    /^The offer before: offerId: (\S+), until 20\S+Z\. To accept it, if it stands, call/.exec(more) ?? []
  const [, contextId] = /contextId: (\S+)$/.exec(more) ?? []
  const accepted = await peer.call('coffee', { contextId, negotiation: { accept: offerId } })
  t.match(textsIn(accepted), [/^taskId: /])
})

await t.test('a client that cannot ask gets the offer as the result, and answers by the tool', async t => {
  const { as } = servedMcp(t, gardener)
  const peer = as({})
  const listed = (await peer.rpc('tools/list')).result['tools'] as { inputSchema: { properties: object } }[]
  t.ok('negotiation' in (listed[0]?.inputSchema.properties ?? {}))
  const offered = textsIn(await peer.call('coffee')).join('\n')
  const [, offerId] = /offerId: (\S+),/.exec(offered) ?? []
  const [, contextId] = /contextId: (\S+)/.exec(offered) ?? []
  t.match(offered, /terms: \{"euros":50\}\n.*\nAsk your user\. Then call this tool again/)
  t.match(
    textsIn(await peer.call('coffee', { contextId, negotiation: { propose: { euros: 30 } } })).join('\n'),
    '{"euros":40}'
  )
  t.match((await peer.call('coffee', { contextId, negotiation: { propose: { euros: 1 } } })).result, {
    isError: true,
    content: [{ text: 'Too little.' }, {}]
  })
  const next = textsIn(await peer.call('coffee', { message: 'again', contextId })).join('\n')
  const id = /offerId: (\S+),/.exec(next)?.[1]
  t.not(id, offerId)
  t.match(textsIn(await peer.call('coffee', { contextId, negotiation: { accept: id } })), [
    'Mown, for 50 euros.',
    /completed/
  ])
  t.notOk('isError' in (await peer.call('coffee', { contextId, negotiation: { decline: 'x' } })).result)
})

await t.test('errors of access and of load are those of the request, others are results', async t => {
  const refusals = new Map<string, A2AError | string>([
    ['late', new A2AError('Overloaded', 'Later.', { retryAfterMs: 2000 })],
    ['no', 'Not for you.']
  ])
  const { as, log } = servedMcp(
    t,
    { work: sized },
    {
      authenticate: ({ headers }) => ({ id: headers['x-id'] ?? 'anna' }),
      authorize: ({ principal }) => {
        const refusal = refusals.get(principal)
        if (refusal instanceof A2AError) throw refusal
        return refusal ?? true
      }
    }
  )
  const late = await as({ tasks: true, headers: { 'x-id': 'late' } }).call('coffee')
  t.match(late, { status: 503, error: { code: -31503, message: 'Later.' } })
  t.equal(late.headers.get('retry-after'), '2')
  t.match((await as({ headers: { 'x-id': 'no' } }).call('coffee')).result, {
    isError: true,
    content: [{ text: 'Not for you.' }]
  })
  t.match(await as({ tasks: true, headers: { 'x-id': 'no' } }).rpc('tasks/get', { taskId: 'x' }), {
    status: 200,
    error: { code: -31403, message: 'Not for you.' }
  })
  t.ok(log.length > 0)
})

await t.test('a refusal while a call waits is a result with the id of its task', async t => {
  let calls = 0
  const { as } = servedMcp(
    t,
    { work: sized },
    {
      authorize: ({ operation }) => {
        if (operation === 'subscribeToTask' && (calls += 1) > 0) throw new A2AError('Overloaded', 'Later.')
        return true
      }
    }
  )
  const { result } = await as({}).call('coffee')
  if (calls > 0) t.match(result, { isError: true, content: [{ text: /^Later\.\ntaskId: \S+\nCall task_followup/ }] })
  else t.match(result, { content: [{ text: 'Which size?' }, {}] })
})

await t.test('what fails in the adapter is logged, and tells the client nothing', async t => {
  const { as, log, runtime } = servedMcp(t, { work: sized })
  Object.assign(runtime, { getTask: () => Promise.reject(new Error('secret')) })
  const { error, status } = await as({ tasks: true }).rpc('tasks/get', { taskId: 'x' })
  t.match({ error, status }, { status: 200, error: { code: -32603, message: 'Internal error' } })
  t.match(log, [{ message: 'a request over MCP failed', details: { error: { message: 'secret' } } }])
})
