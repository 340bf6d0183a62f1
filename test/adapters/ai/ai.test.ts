import { dynamicTool, jsonSchema, Output, tool, type ToolSet } from 'ai'
import t from 'tap'
import { z } from 'zod'
import { answerWithModel, modelReply, modelWork } from '../../../adapters/ai/index.ts'
import { MODEL_METADATA } from '../../../adapters/ai/conversation.ts'
import { checkAi } from '../../../adapters/ai/answer-options.ts'
import { connect } from '../../../adapters/client/connect.ts'
import { installable } from '../../../adapters/peers/installed-packages.ts'
import type { Message } from '../../../machines/protocol/objects.ts'
import {
  accepted,
  data,
  file,
  reply,
  text,
  type NegotiateFunction,
  type Runtime,
  type Task
} from '../../../runtime/index.ts'
import { eventsOf, failOnLooseErrors, lives } from '../../fixtures/runtime/lives.ts'
import {
  calls,
  delta,
  drivenStream,
  finish,
  modelThat,
  textParts,
  toolCall,
  type Prompt,
  type Said,
  type StreamPart
} from '../../fixtures/peers/mock-models.ts'
import {
  brief,
  closed,
  messageIn,
  open,
  reaches,
  refusal,
  rejection,
  rest,
  say,
  start,
  stateName,
  taskIn,
  textOf,
  until,
  type Started
} from '../../fixtures/runtime/runtime-helpers.ts'
import { serve } from '../../fixtures/servers/served-agent.ts'

failOnLooseErrors(t)

const euros = z.object({ euros: z.number() })

/** The end of a call that does not stream. */
const finishedCall = {
  finishReason: { unified: 'stop' as const, raw: 'stop' },
  warnings: [],
  usage: {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 }
  }
}

/** A tool that pays, with approval, and notes what it was called with. */
function payment(needsApproval: boolean | ((input: { euros: number }) => boolean) = true) {
  const paid: { euros: number; key: string }[] = []
  const pay = tool({
    inputSchema: euros,
    needsApproval,
    execute: async ({ euros }, { toolCallId }) => (paid.push({ euros, key: toolCallId }), `paid ${euros}`)
  })
  return { pay, paid }
}

/** What a task asks, by text and data. */
function asked({ status: { message } }: Task): unknown[] {
  return (message?.parts ?? []).map(part => ('text' in part ? part.text : 'data' in part ? part.data : part))
}

/** Answers a task, and waits until it pauses. */
async function answer(runtime: Runtime, { id }: Task, ...parts: Message['parts']): Promise<Task> {
  return taskIn(
    await runtime.sendMessage({ message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', taskId: id, parts } })
  )
}

/** A prompt in a line for each message: its role, its text, and what else it holds. */
function told(prompt: Prompt | undefined): string[] {
  return (prompt ?? []).map(
    ({ role, content }) => `${role}: ${typeof content === 'string' ? content : content.map(short).join(' | ')}`
  )
}

function short(part: Exclude<Prompt[number]['content'], string>[number]): string {
  if (part.type === 'text') return part.text
  if (part.type === 'file')
    return `file ${part.mediaType} ${String(part.data)}${part.filename === undefined ? '' : ` ${part.filename}`}`
  if (part.type === 'tool-call') return `call ${part.toolName}(${JSON.stringify(part.input)})`
  if (part.type === 'tool-result')
    return `result ${part.toolName} ${JSON.stringify('value' in part.output ? part.output.value : part.output)}`
  return JSON.stringify(part)
}

/** What a task's events say of its artifacts: `+` for a chunk that is appended, `.` for the last. */
async function chunksOf({ store }: Pick<Started, 'store'>, id: string): Promise<string[]> {
  return (await eventsOf(store, id)).flatMap(({ update }) => {
    if (!('artifactUpdate' in update)) return []
    const { artifact, append, lastChunk } = update.artifactUpdate
    return `${append ? '+' : ''}${artifact.parts.map(part => ('text' in part ? part.text : 'raw' in part ? `<${part.mediaType}>` : JSON.stringify(part))).join('|')}${lastChunk ? '.' : ''}`
  })
}

async function ends(
  said: Said,
  options: Partial<Parameters<typeof modelWork>[0]> = {}
): Promise<{ task: Task; started: Started }> {
  const started = start(t, { work: modelWork({ model: modelThat(said), ...options }) })
  return { task: taskIn(await started.runtime.sendMessage(say('go'))), started }
}

await t.test('text streams in chunks of one artifact to a client on a WebSocket', async t => {
  const driven = drivenStream()
  const served = await serve(t, { work: modelWork({ model: modelThat(driven.said), system: 'Be kind.' }) })
  const client = await connect(served.url)
  t.teardown(() => client.close())
  const seen: string[] = []
  for await (const event of client.sendStreamingMessage(say('Hello!'))) {
    if (!('artifactUpdate' in event)) {
      seen.push(brief(event))
      if (brief(event) === 'working') {
        await until(driven.isOpen)
        driven.say(delta('Hel'), delta('lo, '), delta('dear '))
      }
      continue
    }
    const { artifact, append = false, lastChunk = false } = event.artifactUpdate
    seen.push([artifact.artifactId, artifact.name, textOf(artifact), append, lastChunk].join())
    if (textOf(artifact) === 'Hello, ') driven.say(delta('friend'))
    if (textOf(artifact) === 'dear ') {
      driven.say(delta('.'), { type: 'text-end', id: '1' }, finish())
      driven.end()
    }
  }
  t.strictSame(seen, [
    'task:submitted',
    'working',
    'answer,answer,Hello, ,false,false',
    'answer,,dear ,true,false',
    'answer,,friend.,true,true',
    'completed'
  ])
  const [{ id, metadata }] = (await client.listTasks({})).tasks as [Task]
  t.match(metadata, { [MODEL_METADATA]: { usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } } })
  t.equal((await client.getTask({ id })).artifacts?.length, 1)
})

await t.test("a model's answer", async t => {
  await t.test('of 12,000 pieces is complete, in a bounded number of events', async t => {
    const pieces = Array.from({ length: 12_000 }, (_, i) => `word${i} `)
    let sent = 0
    // In more turns of the event loop than a task may have events.
    const slow: Said = () =>
      new ReadableStream<StreamPart>({
        start: controller => controller.enqueue({ type: 'text-start', id: '1' }),
        async pull(controller) {
          await new Promise(resolve => setImmediate(resolve))
          controller.enqueue(delta(pieces[sent] ?? ''))
          sent += 1
          if (sent < pieces.length) return
          controller.enqueue(finish())
          controller.close()
        }
      })
    const { task, started } = await ends(slow)
    t.equal(stateName(task.status.state), 'completed')
    t.equal(task.artifacts?.[0]?.parts.map(part => ('text' in part ? part.text : '')).join(''), pieces.join(''))
    const chunks = await chunksOf(started, task.id)
    t.ok(chunks.length > 256 && chunks.length < 5000, `${chunks.length} chunks`)
    const lengthOf = (some: readonly string[]) => some.reduce((sum, { length }) => sum + length, 0) / some.length
    t.ok(lengthOf(chunks.slice(0, 200)) < lengthOf(chunks.slice(-200)) / 2, 'it begins in small pieces')
  })

  await t.test('has files among its text, text before a tool call, and any artifact name', async t => {
    const picture: StreamPart = { type: 'file', mediaType: 'image/png', data: 'aGk=' }
    const tools = { look: tool({ inputSchema: z.object({}), execute: () => undefined }) }
    const started = start(t, {
      work: modelWork({
        model: modelThat(
          [...textParts('Let me look.'), ...calls(['look', {}])],
          [picture, ...textParts('Here.', ' It is.'), picture, finish()]
        ),
        tools,
        artifact: { artifactId: 'a', name: 'a.txt' }
      })
    })
    const task = taskIn(await started.runtime.sendMessage(say('go')))
    t.strictSame(await chunksOf(started, task.id), ['Let me look.', '+<image/png>|Here. It is.|<image/png>.'])
    t.strictSame(
      task.artifacts?.map(({ artifactId, name }) => [artifactId, name]),
      [['a', 'a.txt']]
    )
    const { task: parted, started: other } = await ends([...textParts('Hm.'), finish()], {
      artifact: { artifactId: 'b' }
    })
    t.match(parted.artifacts, [{ artifactId: 'b', name: 'b' }])
    t.strictSame(await chunksOf(other, parted.id), ['Hm..'])
  })

  await t.test('with a file is sent as a chunk as soon as more follows', async t => {
    const driven = drivenStream()
    const started = start(t, { work: modelWork({ model: modelThat(driven.said) }) })
    const { id } = await open(started.runtime)
    await until(driven.isOpen)
    driven.say({ type: 'file', mediaType: 'image/png', data: 'aGk=' }, delta('That '))
    await until(async () => (await chunksOf(started, id)).length === 1)
    driven.say(delta('is it.'), finish())
    driven.end()
    await reaches(started.runtime, id, 'completed')
    t.strictSame(await chunksOf(started, id), ['<image/png>', '+That is it..'])
  })

  await t.test('has a blank line between the texts of two calls', async t => {
    const tools = { look: tool({ inputSchema: z.object({}), execute: () => 'nothing' }) }
    const finished: string[] = []
    const model = modelThat([...textParts('Wait.'), ...calls(['look', {}])], 'Nothing.')
    const started = start(t, {
      work: modelWork({ model, tools, onStepFinish: ({ text }) => void finished.push(text) })
    })
    const { id } = taskIn(await started.runtime.sendMessage(say('go')))
    t.strictSame(await chunksOf(started, id), ['Wait.', '+\n\nNothing..'])
    t.strictSame(finished, ['Wait.', 'Nothing.'], 'callbacks are passed on')
  })

  await t.test('has no artifact if the work uses only the result, which it may return', async t => {
    const { runtime } = start(t, {
      work: async work => {
        const model = modelThat('red', 'Blue it is.')
        const { text: colour, output, finishReason, messages } = await answerWithModel(work, { model, artifact: false })
        t.strictSame([colour, output, finishReason, messages.length], ['red', 'red', 'stop', 1])
        return answerWithModel(work, { model, messages: [{ role: 'user', content: `not ${colour}` }] })
      }
    })
    const { artifacts, metadata } = taskIn(await runtime.sendMessage(say('go')))
    t.match(artifacts, [{ artifactId: 'answer', parts: [{ text: 'Blue it is.' }] }])
    t.equal(artifacts?.length, 1)
    t.match(metadata, { [MODEL_METADATA]: { usage: { totalTokens: 15 } } })
  })

  await t.test('with typed output is one data part', async t => {
    const output = Output.object({ schema: z.object({ city: z.string() }) })
    const { task, started } = await ends('{"city":"Rome"}', { output })
    t.match(task.artifacts, [{ artifactId: 'answer', parts: [{ data: { city: 'Rome' } }] }])
    t.equal((await chunksOf(started, task.id)).length, 1)
    const { runtime } = start(t, {
      work: async work => {
        const {
          output: { city }
        } = await answerWithModel(work, { model: modelThat('{"city":"Rome"}'), output, artifact: false })
        return { artifact: city.toUpperCase() }
      }
    })
    t.equal(textOf(taskIn(await runtime.sendMessage(say('go'))).artifacts?.[0]), 'ROME')
    const { task: wrong } = await ends('{"town":"Rome"}', { output })
    t.equal(stateName(wrong.status.state), 'failed')
  })

  await t.test("shows the model's reasoning as progress, on request", async t => {
    const thinking: StreamPart[] = [
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'Hm, ' },
      { type: 'reasoning-delta', id: 'r', delta: 'yes.' },
      { type: 'reasoning-end', id: 'r' },
      { type: 'reasoning-start', id: 's' },
      { type: 'reasoning-end', id: 's' },
      ...textParts('Yes.'),
      finish()
    ]
    for (const showReasoning of [true, false]) {
      const { task } = await ends(thinking, { showReasoning })
      const words = (task.history ?? []).filter(({ role }) => role === 'ROLE_AGENT')
      t.match(
        words,
        showReasoning ? [{ parts: [{ text: 'Hm, yes.' }], metadata: { [MODEL_METADATA]: { reasoning: true } } }] : []
      )
      t.equal(words.length, showReasoning ? 1 : 0)
    }
  })

  await t.test('that is truncated says so, and a truncated tool call does not run', async t => {
    const { pay, paid } = payment(false)
    const { task } = await ends([...textParts('It is'), toolCall('pay', { euros: 1 }, 'c'), finish('length')], {
      tools: { pay }
    })
    t.strictSame(
      [stateName(task.status.state), textOf(task.status.message), textOf(task.artifacts?.[0])],
      ['completed', 'The answer is incomplete: the model reached its length limit.', 'It is']
    )
    t.strictSame(paid, [])
  })

  await t.test('that is empty gives no artifact, and without usage no metadata', async t => {
    const unknown = {
      total: undefined,
      noCache: undefined,
      cacheRead: undefined,
      cacheWrite: undefined,
      text: undefined,
      reasoning: undefined
    }
    const { task } = await ends([
      {
        type: 'finish',
        finishReason: { unified: 'stop', raw: 'stop' },
        usage: { inputTokens: unknown, outputTokens: unknown }
      }
    ])
    t.strictSame([stateName(task.status.state), task.artifacts, task.metadata], ['completed', undefined, undefined])
  })
})

await t.test('a tool that needs approval', async t => {
  const asks = async (says: Said[], tools: ToolSet) => {
    const model = modelThat(...says)
    const started = start(t, { work: modelWork({ model, tools }) })
    return { ...started, model, task: taskIn(await started.runtime.sendMessage(say('pay'))) }
  }

  await t.test('is requested in words and as data, and runs when the client approves', async t => {
    for (const yes of [
      text('yes'),
      text(' OK!\n'),
      text('Approved.'),
      data({ approved: true }),
      data({ approved: true, reason: 'fine' })
    ]) {
      const { pay, paid } = payment()
      const { runtime, task, model } = await asks([calls(['pay', { euros: 5 }]), 'Done.'], { pay })
      t.equal(stateName(task.status.state), 'input-required')
      t.match(asked(task), [
        'May I call pay with {"euros":5}? Say yes or no.',
        { approval: { approvalId: /.+/, toolName: 'pay', input: { euros: 5 } } }
      ])
      t.strictSame(paid, [], 'not before')
      const done = await answer(runtime, task, yes)
      t.strictSame([stateName(done.status.state), textOf(done.artifacts?.[0])], ['completed', 'Done.'])
      t.strictSame(paid, [{ euros: 5, key: `${task.id}/step/tool pay/1` }], 'with a key of its own for a call id')
      t.strictSame(told(model.doStreamCalls[1]?.prompt), [
        'user: pay',
        'assistant: call pay({"euros":5})',
        'tool: result pay "paid 5"'
      ])
    }
  })

  await t.test('does not run when the client denies it, and the model receives the reason', async t => {
    for (const [no, reason] of [
      [text('no'), undefined],
      [text('No, too much.'), 'too much.'],
      [text('don’t!'), undefined],
      [data({ approved: false, reason: 'too much' }), 'too much'],
      [data({ approved: false }), undefined]
    ] as const) {
      const { pay, paid } = payment()
      const { runtime, task, model } = await asks([calls(['pay', { euros: 5 }]), 'Then not.'], { pay })
      const done = await answer(runtime, task, no)
      t.strictSame([stateName(done.status.state), textOf(done.artifacts?.[0]), paid], ['completed', 'Then not.', []])
      t.equal(
        told(model.doStreamCalls[1]?.prompt).at(-1),
        `tool: result pay ${JSON.stringify({ type: 'execution-denied', ...(reason !== undefined && { reason }) })}`
      )
    }
  })

  await t.test('is still requested after an answer that neither approves nor denies it', async t => {
    const { pay, paid } = payment()
    const { runtime, task } = await asks([calls(['pay', { euros: 5 }]), 'Done.'], { pay })
    for (const nonsense of [
      text('perhaps'),
      text('yes, but only 3'),
      text(`yes${' '.repeat(400_000)}x`),
      text('nothing'),
      text(''),
      data({ approved: 'yes' }),
      data({ approved: true, reason: 1 }),
      data(null),
      data([true])
    ]) {
      const { code, message } = await refusal(answer(runtime, task, nonsense))
      t.strictSame([code, message.includes('has to be yes, no, or no with a reason')], ['InvalidParams', true])
    }
    t.match(await refusal(answer(runtime, task, data({ approved: true, approvalId: 'other' }))), {
      code: 'InvalidParams',
      message: /is not the id of this approval/
    })
    t.equal(stateName((await runtime.getTask({ id: task.id })).status.state), 'input-required')
    const { approvalId } = (asked(task)[1] as { approval: { approvalId: string } }).approval
    t.equal(stateName((await answer(runtime, task, data({ approved: true, approvalId }))).status.state), 'completed')
    t.equal(paid.length, 1)
  })

  await t.test('is requested after the tools without approval, one call at a time', async t => {
    const { pay, paid } = payment(({ euros }) => euros > 1)
    const both = [
      calls(['pay', { euros: 1 }], ['pay', { euros: 2 }], ['pay', { euros: 3 }], ['pay', { euros: 4 }]),
      'Done.'
    ]
    const { runtime, task, model } = await asks(both, { pay })
    t.strictSame(
      paid.map(({ euros }) => euros),
      [1]
    )
    t.match(asked(task)[0], /"euros":2/)
    const second = await answer(runtime, task, text('yes'))
    t.match(asked(second)[0], /"euros":3/)
    t.strictSame(
      paid.map(({ euros }) => euros),
      [1],
      'none is called while a question is open'
    )
    const third = await answer(runtime, second, text('no'))
    const done = await answer(runtime, third, text('yes'))
    t.equal(stateName(done.status.state), 'completed')
    t.strictSame(
      paid.map(({ euros }) => euros),
      [1, 2, 4]
    )
    t.equal(new Set(paid.map(({ key }) => key)).size, 3)
    t.equal(
      told(model.doStreamCalls[1]?.prompt).at(-1),
      'tool: result pay "paid 1" | result pay {"type":"execution-denied"} | result pay "paid 2" | result pay "paid 4"'
    )
  })

  await t.test('does not run by the approval of another call with the same id', async t => {
    const { pay, paid } = payment()
    const { runtime, task } = await asks(
      [calls(['pay', { euros: 5 }, 'same'], ['pay', { euros: 5000 }, 'same']), 'Done.'],
      { pay }
    )
    const second = await answer(runtime, task, text('yes'))
    t.match(asked(second)[0], /"euros":5000/)
    await answer(runtime, second, text('no'))
    t.strictSame(
      paid.map(({ euros }) => euros),
      [5]
    )
  })

  await t.test('of the provider is also requested, and the provider receives the answer', async t => {
    const requests: StreamPart[] = [
      { type: 'tool-call', toolCallId: 'm', toolName: 'mcp', input: '{"a":1}', providerExecuted: true, dynamic: true },
      { type: 'tool-approval-request', approvalId: 'm-1', toolCallId: 'm' },
      finish('tool-calls')
    ]
    const { runtime, task, model } = await asks([requests, 'Done.'], {})
    t.match(asked(task), [/May I call mcp with/, { approval: { approvalId: 'm-1' } }])
    const done = await answer(runtime, task, text('yes'))
    t.equal(stateName(done.status.state), 'completed')
    t.match(
      told(model.doStreamCalls[1]?.prompt).at(-1),
      'tool: {"type":"tool-approval-response","approvalId":"m-1","approved":true}'
    )
  })
})

await t.test('tools', async t => {
  await t.test('are shown as progress without their input, unless this is switched off', async t => {
    for (const showTools of [undefined, false]) {
      const { pay } = payment(false)
      const look = tool({ title: 'Looks around', inputSchema: z.object({}), execute: () => 1 })
      const started = start(t, {
        work: modelWork({
          model: modelThat(calls(['pay', { euros: 5 }], ['look', {}]), 'Done.'),
          tools: { pay, look },
          ...(showTools === false && { showTools })
        })
      })
      const { history } = taskIn(await started.runtime.sendMessage(say('go')))
      t.strictSame(
        (history ?? []).slice(1).map(message => textOf(message)),
        showTools === false ? [] : ['Calls pay.', 'Calls Looks around.']
      )
    }
  })

  await t.test('return the results of their schemas and toModelOutput, or the last yielded value', async t => {
    const days: unknown[] = []
    const tools: ToolSet = {
      day: tool({
        inputSchema: z.object({ day: z.string().transform(day => new Date(day)) }),
        needsApproval: ({ day }) => day.getFullYear() < 2000,
        execute: ({ day }) => (days.push(day), { year: day.getFullYear() })
      }),
      pieces: tool({
        inputSchema: z.object({}),
        async *execute() {
          yield 'one'
          yield 'two'
        }
      }),
      shown: tool({
        inputSchema: z.object({}),
        execute: () => 7,
        toModelOutput: ({ output }) => ({ type: 'text', value: `seven is ${output}` })
      }),
      loose: dynamicTool({ inputSchema: jsonSchema({ type: 'object' }), execute: async input => input }),
      list: tool({ inputSchema: z.object({}), execute: () => [1] })
    }
    const model = modelThat(
      calls(['day', { day: '2026-01-01' }], ['pieces', {}], ['shown', {}], ['loose', { x: [1] }], ['list', {}]),
      'Done.'
    )
    const { runtime } = start(t, { work: modelWork({ model, tools, experimental_context: 1 }) })
    t.equal(stateName(taskIn(await runtime.sendMessage(say('go'))).status.state), 'completed')
    t.strictSame(days, [new Date('2026-01-01')])
    t.equal(
      told(model.doStreamCalls[1]?.prompt).at(-1),
      'tool: result day {"year":2026} | result pieces "two" | result shown "seven is 7" | result loose {"x":[1]} | result list [1]'
    )
  })

  await t.test('that throw or get invalid input report it to the model', async t => {
    const ran: unknown[] = []
    const tools: ToolSet = {
      burst: tool({
        inputSchema: z.object({}),
        execute: (): string => {
          throw new Error('no paper')
        }
      }),
      odd: tool({ inputSchema: z.object({}), execute: (): Promise<string> => Promise.reject('odd') }),
      pay: tool({ inputSchema: euros, execute: input => (ran.push(input), 1) })
    }
    const hostile: [string, unknown, string][] = [
      ['burst', {}, 'a'],
      ['odd', {}, 'b'],
      ['pay', { euros: 'all' }, 'c'],
      ['pay', '{"euros":', 'd'],
      ['pay', '{"__proto__":{"euros":1}}', 'e'],
      ['none', {}, 'f'],
      ['constructor', {}, 'g'],
      ['__proto__', {}, 'h'],
      ['pay', '[1]', 'i']
    ]
    const model = modelThat(calls(...hostile), 'Sorry.')
    const { runtime, log } = start(t, { work: modelWork({ model, tools }) })
    const { status, artifacts } = taskIn(await runtime.sendMessage(say('go')))
    t.strictSame([stateName(status.state), textOf(artifacts?.[0]), ran, log], ['completed', 'Sorry.', [], []])
    const results = told(model.doStreamCalls[1]?.prompt).at(-1)?.split(' | ') ?? []
    t.equal(results.length, hostile.length)
    t.ok(results.some(line => line === 'result burst "no paper"') && results.some(line => line === 'result odd "odd"'))
    t.match(
      results.find(line => line.includes('result none')),
      /unavailable tool/
    )
  })

  await t.test('that do not exist are reported to the model, which is called again', async t => {
    const model = modelThat(calls(['none', {}]), 'Sorry.')
    const { runtime } = start(t, { work: modelWork({ model }) })
    t.equal(textOf(taskIn(await runtime.sendMessage(say('go'))).artifacts?.[0]), 'Sorry.')
  })

  await t.test('without execute ask the client, after an approval if one is needed', async t => {
    const tools: ToolSet = {
      ask: tool({ inputSchema: z.object({ question: z.string() }) }),
      pick: tool({ inputSchema: z.object({ of: z.array(z.number()) }), needsApproval: true })
    }
    const model = modelThat(calls(['ask', { question: 'Which day?' }], ['pick', { of: [1, 2] }]), 'Done.')
    const { runtime } = start(t, { work: modelWork({ model, tools }) })
    const first = taskIn(await runtime.sendMessage(say('go')))
    t.match(asked(first)[0], /May I call pick/)
    const second = await answer(runtime, first, text('yes'))
    t.strictSame(asked(second), ['Which day?', { toolCall: { toolName: 'ask', input: { question: 'Which day?' } } }])
    const third = await answer(runtime, second, text('Monday'))
    t.strictSame(asked(third)[0], 'pick: {"of":[1,2]}')
    const done = await answer(runtime, third, data({ picked: 2 }))
    t.equal(stateName(done.status.state), 'completed')
    t.equal(told(model.doStreamCalls[1]?.prompt).at(-1), 'tool: result ask "Monday" | result pick {"picked":2}')
  })
})

await t.test('the conversation', async t => {
  await t.test('is sent to the model with both sides and earlier tasks, oldest first', async t => {
    const { pay } = payment()
    const model = modelThat(calls(['pay', { euros: 5 }]), 'Paid.', 'You paid 5.')
    const negotiate: NegotiateFunction = ({ message }) => (textOf(message) === 'hello' ? reply('Hello!') : accepted())
    const { runtime } = start(t, { negotiate, work: modelWork({ model, system: 'Be kind.', tools: { pay } }) })
    const { contextId } = messageIn(await runtime.sendMessage(say('hello')))
    const inContext = { contextId: String(contextId) }
    const task = taskIn(await runtime.sendMessage(say('pay 5', inContext)))
    await answer(runtime, task, text('yes'))
    await runtime.sendMessage(say('what did I pay?', inContext))
    const approved = asked(task)[1]
    t.strictSame(told(model.doStreamCalls[2]?.prompt), [
      'system: Be kind.',
      'user: hello',
      'assistant: Hello!',
      'user: pay 5',
      `assistant: May I call pay with {"euros":5}? Say yes or no.\n${JSON.stringify(approved)}`,
      'user: yes',
      'assistant: Paid.',
      'user: what did I pay?'
    ])
  })

  await t.test('is limited by messages and by characters, and always includes the newest message', async t => {
    for (const [history, expected] of [
      [{ messages: 0 }, ['user: five']],
      [{ messages: 2 }, ['user: three', 'assistant: THREE', 'user: four', 'assistant: FOUR', 'user: five']],
      [{ characters: 9 }, ['user: four', 'assistant: FOUR', 'user: five']],
      [{ characters: 0 }, ['user: five']]
    ] as const) {
      const model = modelThat('ONE', 'TWO', 'THREE', 'FOUR', 'FIVE')
      const { runtime } = start(t, { work: modelWork({ model, history }) })
      for (const words of ['one', 'two', 'three', 'four', 'five'])
        await runtime.sendMessage(say(words, { contextId: 'c' }))
      t.strictSame(told(model.doStreamCalls[4]?.prompt), expected)
    }
  })

  await t.test('has images and PDF as files, data as JSON, and other files by name only', async t => {
    const model = modelThat('ok', 'ok', 'ok')
    const { runtime } = start(t, {
      card: { name: 'Test', defaultInputModes: ['*/*'] },
      work: async work => {
        await answerWithModel(work, { model, artifact: false })
        return {
          artifacts: [
            {
              name: 'p',
              parts: [
                text('a'),
                text('b'),
                file(new Uint8Array([1]), { filename: 'x.bin', mediaType: 'application/x' }),
                data(1)
              ]
            }
          ]
        }
      }
    })
    const parts: Message['parts'] = [
      { text: 'Look:' },
      { raw: 'aGk=', mediaType: 'image/png' },
      { raw: 'aGk=', mediaType: 'application/pdf', filename: 'a.pdf' },
      { url: 'https://127.0.0.1:1/a.png', mediaType: 'image/png' },
      { url: 'file:///etc/passwd', mediaType: 'image/png' },
      { url: 'https://', mediaType: 'image/png' },
      { raw: 'aGk=' },
      { raw: 'aGk=', mediaType: 'text/csv', filename: 'a.csv' },
      { data: { a: [1] } },
      { data: null, mediaType: 'image/png' }
    ]
    await runtime.sendMessage({ message: { messageId: 'm', role: 'ROLE_USER', contextId: 'c', parts } })
    const task = taskIn(await runtime.sendMessage(say('and?', { contextId: 'c' })))
    const user =
      'user: Look: | file image/png aGk= | file application/pdf aGk= a.pdf | file image/png https://127.0.0.1:1/a.png | [a file without a name, image/png, at file:///etc/passwd] | ' +
      '[a file without a name, image/png, at https://] | [a file without a name, of an unknown type] | [a file a.csv, text/csv] | {"a":[1]} | null'
    t.strictSame(told(model.doStreamCalls[1]?.prompt), [
      user,
      'assistant: ab\n[a file x.bin, application/x]\n1',
      'user: and?'
    ])
    // A task of another context that the message refers to.
    await runtime.sendMessage(say('this', { contextId: 'd', referenceTaskIds: [task.id] }))
    t.strictSame(told(model.doStreamCalls[2]?.prompt), [
      'assistant: ab\n[a file x.bin, application/x]\n1',
      'user: this'
    ])
  })
})

await t.test('errors, restarts and cancels', async t => {
  const errors: [string, Said][] = [
    ['the stream has an error', [...textParts('Half'), { type: 'error', error: new Error('key sk-123 is wrong') }]],
    ['the call fails', () => Promise.reject(new Error('key sk-123 is wrong'))],
    [
      'the stream breaks off',
      new ReadableStream<StreamPart>({ start: controller => controller.error(new Error('key sk-123 is wrong')) })
    ],
    ['the stream is empty', []]
  ]
  for (const [what, said] of errors) {
    await t.test(`the task fails if ${what}, and only the log has the error`, async t => {
      const { task, started } = await ends(said, { maxRetries: 0 })
      t.strictSame(
        [stateName(task.status.state), textOf(task.status.message)],
        ['failed', 'The work ended with an error.']
      )
      t.equal(started.log.length, 1)
      t.notMatch(JSON.stringify(await started.runtime.getTask({ id: task.id })), /sk-123/)
    })
  }

  await t.test('the task fails if the model exceeds its time limit', async t => {
    // The time that the SDK measures does not keep a process alive.
    const alive = setInterval(() => {}, 1000)
    t.teardown(() => clearInterval(alive))
    const { task, started } = await ends(drivenStream().said, { timeout: 1 })
    t.strictSame(
      [stateName(task.status.state), textOf(task.status.message)],
      ['failed', 'The work ended with an error.']
    )
    t.match(started.log, [{ details: { error: { name: 'TimeoutError' } } }])
  })

  await t.test('the task fails with a reason if the model refuses or has no result', async t => {
    const { task } = await ends([finish('content-filter')])
    t.strictSame(
      [stateName(task.status.state), textOf(task.status.message)],
      ['failed', 'The model withheld its answer.']
    )
    const { task: broken } = await ends([...textParts('Hm'), finish('error')])
    t.strictSame(
      [stateName(broken.status.state), textOf(broken.status.message)],
      ['failed', 'The model ended with an error.']
    )
    const { pay, paid } = payment(false)
    const { task: endless } = await ends(() => calls(['pay', { euros: 1 }]), { tools: { pay }, maxSteps: 1 })
    t.strictSame(
      [stateName(endless.status.state), textOf(endless.status.message)],
      ['failed', 'The model gave no answer within 1 calls.']
    )
    t.equal(paid.length, 1)
  })

  await t.test('a crash restarts the work and its artifact, and completed steps are reused', async t => {
    const { pay, paid } = payment(false)
    const model = modelThat(
      calls(['pay', { euros: 1 }]),
      [...textParts('It ', 'was ', 'half'), { type: 'error', error: new Error('x') }],
      'Whole.'
    )
    const { runtime, ...started } = start(t, { work: modelWork({ model, tools: { pay } }), restart: 'transient' })
    const task = taskIn(await runtime.sendMessage(say('go')))
    t.equal(stateName(task.status.state), 'completed')
    t.equal(model.doStreamCalls.length, 3)
    t.equal(paid.length, 1)
    t.equal((await chunksOf(started, task.id)).at(-1), 'Whole..')
    t.equal(textOf(task.artifacts?.[0]), 'Whole.')
  })

  await t.test('canceling a task aborts the model call, and its later text is dropped', async t => {
    const driven = drivenStream()
    const started = start(t, { work: modelWork({ model: modelThat(driven.said) }) })
    const { id } = await open(started.runtime)
    await until(driven.isOpen)
    driven.say(delta('one '), delta('two '))
    await until(async () => (await chunksOf(started, id)).length === 1)
    driven.say(delta('three '), delta('four '))
    await started.runtime.cancelTask({ id })
    await until(driven.wasAborted)
    await rest()
    t.strictSame(
      [stateName((await started.runtime.getTask({ id })).status.state), await chunksOf(started, id), started.log],
      ['canceled', ['one '], []]
    )
  })

  await t.test("canceling a task aborts a tool's signal", async t => {
    let heard: unknown
    const wait = tool({
      inputSchema: z.object({}),
      execute: (_, { abortSignal }) =>
        new Promise((_resolve, reject) => {
          heard = 'nothing'
          abortSignal?.addEventListener('abort', () => {
            heard = 'abort'
            reject(new Error('stopped'))
          })
        })
    })
    const model = modelThat(calls(['wait', {}]), 'Done.')
    const { runtime, clock } = start(t, { work: modelWork({ model, tools: { wait } }) })
    const { id } = await open(runtime)
    await until(() => heard === 'nothing')
    await runtime.cancelTask({ id })
    await until(() => heard === 'abort')
    await rest()
    t.equal(model.doStreamCalls.length, 1)
    await closed(runtime, clock)
  })
})

await t.test('work that runs again', async t => {
  /** A life whose model goes on over all runs. */
  const alive = (says: Said[], tools: ToolSet = {}) => {
    const model = modelThat(...says)
    return { model, life: lives(t, { work: modelWork({ model, tools }) }) }
  }
  const chunks = (life: Pick<Started, 'store'>, id: string, count: number) =>
    until(async () => (await chunksOf(life, id)).length === count, `${count} chunks`)

  await t.test('after a kill during a stream calls the model again and restarts the artifact', async t => {
    const driven = drivenStream()
    const { life, model } = alive([driven.said, [...textParts('Good ', 'day'), finish()]])
    const { id } = await open(life.runtime)
    await until(driven.isOpen)
    for (const [i, words] of ['Hel', 'lo, ', 'my ', 'dear'].entries()) {
      driven.say(delta(words))
      if (i > 0) await chunks(life, id, i)
    }
    await life.kill()
    await reaches(life.runtime, id, 'completed')
    t.strictSame(await chunksOf(life, id), ['Hel', '+lo, ', '+my ', 'Good day.'])
    t.equal(textOf((await life.runtime.getTask({ id })).artifacts?.[0]), 'Good day')
    t.equal(model.doStreamCalls.length, 2)
    t.strictSame(life.log, [])
  })

  await t.test('keeps the text of the first call after a kill during the second', async t => {
    const driven = drivenStream()
    const { pay, paid } = payment(false)
    const first = [...textParts('Wait.'), ...calls(['pay', { euros: 1 }])]
    for (const [again, expected] of [
      ['Paid.', 'Wait.\n\nPaid..'],
      [[finish()], 'Wait..']
    ] as const) {
      const { life, model } = alive([first, driven.said, again], { pay })
      const { id } = await open(life.runtime)
      await until(() => model.doStreamCalls.length === 2)
      await rest()
      driven.say(delta('Pay'), delta('ing'))
      await chunks(life, id, 2)
      await life.kill()
      await reaches(life.runtime, id, 'completed')
      t.strictSame(await chunksOf(life, id), ['Wait.', '+\n\nPay', expected])
      t.equal(model.doStreamCalls.length, 3)
      t.strictSame(told(model.doStreamCalls[2]?.prompt), told(model.doStreamCalls[1]?.prompt))
    }
    t.equal(paid.length, 2, 'once a life')
  })

  await t.test('removes the text of an unfinished call from the artifact', async t => {
    const driven = drivenStream()
    const { life } = alive([driven.said, [finish()]])
    const { id } = await open(life.runtime)
    await until(driven.isOpen)
    driven.say(delta('Hel'), delta('lo'))
    await chunks(life, id, 1)
    await life.kill()
    const { artifacts } = await reaches(life.runtime, id, 'completed')
    t.strictSame(artifacts, [{ artifactId: 'answer', name: 'answer', parts: [{ text: '' }] }])
  })

  await t.test('repeats only a tool call without a result, with the same key', async t => {
    const keys: string[] = []
    let hold = true
    const pay = tool({
      inputSchema: euros,
      execute: (_, { toolCallId }) => (keys.push(toolCallId), hold ? new Promise<string>(() => {}) : 'paid')
    })
    const { life, model } = alive([[...textParts('Wait.'), ...calls(['pay', { euros: 1 }])], 'Paid.'], { pay })
    const { id } = await open(life.runtime)
    await until(() => keys.length === 1)
    hold = false
    await life.kill()
    await reaches(life.runtime, id, 'completed')
    t.strictSame(keys, [`${id}/step/tool pay/1`, `${id}/step/tool pay/1`])
    t.strictSame(await chunksOf(life, id), ['Wait.', '+\n\nPaid..'], 'the artifact continues')
    t.equal(model.doStreamCalls.length, 2)
    t.strictSame(
      (await life.told(id)).filter(line => line.startsWith('working: ')),
      ['working: Calls pay.']
    )
  })

  await t.test('does not call a tool of a new version with input that it refuses', async t => {
    const { pay, paid } = payment()
    const { life } = alive([calls(['pay', { euros: 5 }])], { pay })
    const task = taskIn(await life.runtime.sendMessage(say('go')))
    const model = modelThat('Sorry.')
    const stricter = tool({
      inputSchema: z.object({ euros: z.number().max(3, 'is too much') }),
      needsApproval: true,
      execute: () => 'paid'
    })
    await life.kill({ work: modelWork({ model, tools: { pay: stricter } }) })
    t.equal(stateName((await answer(life.runtime, task, text('yes'))).status.state), 'completed')
    t.strictSame(paid, [])
    t.match(told(model.doStreamCalls[0]?.prompt).at(-1), /is too much/)
  })

  await t.test('asks no question twice while it waits for an approval', async t => {
    for (const move of ['kill', 'again'] as const) {
      const { pay, paid } = payment()
      const { life, model } = alive(
        [
          [...textParts('Wait.'), ...calls(['pay', { euros: 1 }], ['pay', { euros: 2 }])],
          [...textParts('Paid.'), finish()]
        ],
        { pay }
      )
      const task = taskIn(await life.runtime.sendMessage(say('go')))
      await life[move]()
      const second = await answer(life.runtime, task, text('yes'))
      t.match(asked(second)[0], /"euros":2/)
      await life[move]()
      const done = await answer(life.runtime, second, text('yes'))
      await life[move]()
      t.strictSame(
        [stateName(done.status.state), paid.map(({ euros }) => euros), model.doStreamCalls.length],
        ['completed', [1, 2], 2]
      )
      t.strictSame(
        (await life.told(task.id)).map(line => line.replace(/ with.*/s, '')),
        [
          'submitted',
          'working',
          'artifact: Wait.',
          'input-required: May I call pay',
          'working',
          'input-required: May I call pay',
          'working',
          'working: Calls pay.',
          'working: Calls pay.',
          'artifact: \n\nPaid.',
          'completed'
        ]
      )
      t.strictSame(life.log, [])
    }
  })
})

await t.test('modelReply', async t => {
  await t.test('answers messages with the earlier ones as history, and opens no task', async t => {
    const model = modelThat()
    model.doGenerate = async options => {
      model.doGenerateCalls.push(options)
      return { content: [{ type: 'text', text: `Answer ${model.doGenerateCalls.length}` }], ...finishedCall }
    }
    const { runtime } = start(t, {
      card: { name: 'Test', defaultInputModes: ['*/*'] },
      negotiate: modelReply({ model, system: 'Be kind.', history: { messages: 2 } })
    })
    for (const words of ['one', 'two', 'three']) await runtime.sendMessage(say(words, { contextId: 'c' }))
    t.strictSame(told(model.doGenerateCalls[1]?.prompt), [
      'system: Be kind.',
      'user: one',
      'assistant: Answer 1',
      'user: two'
    ])
    t.strictSame(told(model.doGenerateCalls[2]?.prompt), [
      'system: Be kind.',
      'user: two',
      'assistant: Answer 2',
      'user: three'
    ])
    const { tasks } = await runtime.listTasks({})
    t.strictSame(tasks, [])
    await runtime.sendMessage({
      message: {
        messageId: 'm',
        role: 'ROLE_USER',
        parts: [{ url: 'https://127.0.0.1:1/a.png', mediaType: 'image/png' }]
      }
    })
    t.strictSame(
      told(model.doGenerateCalls[3]?.prompt).at(-1),
      'user: file image/png https://127.0.0.1:1/a.png',
      'no address is fetched here'
    )
  })

  await t.test('uses the default limits for those that are omitted or undefined', async t => {
    const model = modelThat()
    model.doGenerate = async options => {
      model.doGenerateCalls.push(options)
      return { content: [{ type: 'text', text: 'Yes.' }], ...finishedCall }
    }
    const { runtime } = start(t, {
      negotiate: modelReply({ model, history: { messages: undefined as never, characters: undefined as never } })
    })
    for (let i = 0; i < 12; i += 1)
      await runtime.sendMessage(say('x'.repeat(i === 11 ? 1 : 12_000), { contextId: 'c' }))
    t.equal(
      model.doGenerateCalls[11]?.prompt.filter(({ role }) => role === 'user').length,
      9,
      'the newest, and eight more of 12,000 characters within 100,000'
    )
    for (let i = 0; i < 12; i += 1) await runtime.sendMessage(say('x', { contextId: 'd' }))
    t.equal(model.doGenerateCalls[23]?.prompt.length, 21, 'the newest, and twenty before it')
  })

  await t.test('fails if the model returns nothing', async t => {
    const model = modelThat()
    model.doGenerate = async () => ({ content: [], ...finishedCall })
    const { runtime, log } = start(t, { negotiate: modelReply({ model }) })
    t.equal((await refusal(runtime.sendMessage(say('x')))).code, 'InternalError')
    t.match(log, [{ details: { error: { message: 'The model said nothing.' } } }])
  })
})

await t.test('invalid options are refused when the agent is defined', async t => {
  const model = modelThat()
  t.throws(() => modelWork({} as never), { name: 'TypeError', message: /A model is missing: modelWork\(\{ model/ })
  t.throws(() => modelWork(undefined as never), { name: 'TypeError', message: /A model is missing/ })
  t.throws(() => modelReply({} as never), { name: 'TypeError', message: /A model is missing/ })
  for (const maxSteps of [0, 1.5, NaN])
    t.throws(() => modelWork({ model, maxSteps }), {
      name: 'RangeError',
      message: `maxSteps has to be a whole number from 1, not ${maxSteps}.`
    })
  t.match(await rejection(answerWithModel({} as never, {} as never)), { name: 'TypeError' })
  const missing = () => {
    throw new Error('Cannot find package')
  }
  t.throws(() => checkAi(missing), {
    name: 'TypeError',
    message: `taskchart/ai calls models with the AI SDK. Install it: npm install ${installable('ai')}`
  })
})
