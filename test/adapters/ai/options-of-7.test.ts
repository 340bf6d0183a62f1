import { inspect } from 'node:util'
import { tool } from 'ai'
import t from 'tap'
import { z } from 'zod'
import { modelReply, modelWork, type ToolApproval } from '../../../adapters/ai/index.ts'
import { heldBack, type ToolApprovalStatus } from '../../../adapters/ai/tools.ts'
import type { Task } from '../../../runtime/index.ts'
import { calls, modelThat, type Prompt } from '../../fixtures/peers/mock-models.ts'
import { failOnLooseErrors } from '../../fixtures/runtime/lives.ts'
import { say, start, stateName, taskIn, type Started } from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

/** A bill that says its day, which its schema turns into a Date. */
const bill = z.object({ euros: z.number(), day: z.string().transform(day => new Date(day)) })
const DUE = { euros: 29, day: '2026-01-01' }

/** A tool that pays bills, and notes them. By itself it asks the client. */
function payment() {
  const paid: number[] = []
  return {
    paid,
    pay: tool({ inputSchema: bill, needsApproval: true, execute: ({ euros }) => (paid.push(euros), `paid ${euros}`) })
  }
}

/** A model that pays a bill and then says so, under an approval. */
async function pays(
  toolApproval: ToolApproval,
  more: Partial<Parameters<typeof modelWork>[0]> = {}
): Promise<{ task: Task; paid: number[]; heard: string; started: Started }> {
  const { pay, paid } = payment()
  const model = modelThat(calls(['pay', DUE]), 'Well.')
  const started = start(t, { work: modelWork({ model, tools: { pay }, toolApproval, ...more }) })
  const task = taskIn(await started.runtime.sendMessage(say('go')))
  return { task, paid, heard: heardIn(model.doStreamCalls[1]?.prompt), started }
}

/** The result of the tool in a prompt. */
function heardIn(prompt: Prompt = []): string {
  const content = prompt.at(-1)?.content ?? []
  return typeof content === 'string'
    ? content
    : content.flatMap(part => (part.type === 'tool-result' ? [JSON.stringify(part.output)] : [])).join()
}

await t.test('instructions reach the model as its system message, with every major of the SDK', async t => {
  const model = modelThat('Hello.', 'Hello.')
  const { runtime } = start(t, { work: modelWork({ model, instructions: 'Be kind.', system: 'Be rude.' }) })
  await runtime.sendMessage(say('go'))
  t.strictSame(model.doStreamCalls[0]?.prompt.slice(0, 1), [{ role: 'system', content: 'Be kind.' }])
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 }
  }
  model.doGenerate = async () => ({
    content: [{ type: 'text', text: 'Hello.' }],
    finishReason: { unified: 'stop', raw: 'stop' },
    usage,
    warnings: []
  })
  const prompts: Prompt[] = []
  const generate = model.doGenerate
  model.doGenerate = options => (prompts.push(options.prompt), generate(options))
  await start(t, { negotiate: modelReply({ model, instructions: 'Be kind.' }) }).runtime.sendMessage(say('go'))
  t.strictSame(prompts[0]?.[0], { role: 'system', content: 'Be kind.' })
})

await t.test('toolApproval lets a call run, denies it or asks the client, whatever the tool says', async t => {
  const outcomes: [ToolApproval, state: string, paid: number[], heard: RegExp][] = [
    [{ pay: 'approved' }, 'completed', [29], /paid 29/],
    [{ pay: 'not-applicable' }, 'completed', [29], /paid 29/],
    [{ pay: { type: 'denied', reason: 'no money' } }, 'completed', [], /execution-denied.*no money/],
    [{ pay: 'denied' }, 'completed', [], /execution-denied/],
    [{ pay: 'user-approval' }, 'input-required', [], /^$/],
    [{ pay: undefined }, 'input-required', [], /^$/],
    [{}, 'input-required', [], /^$/],
    [
      { pay: ({ euros, day }) => (euros < 30 && day instanceof Date ? 'approved' : 'denied') },
      'completed',
      [29],
      /paid 29/
    ],
    [
      ({ toolCall: { toolName, input }, tools }) =>
        Object.hasOwn(tools, toolName) && input.day instanceof Date ? undefined : 'denied',
      'completed',
      [29],
      /paid 29/
    ],
    [async () => 'denied' as const, 'completed', [], /execution-denied/]
  ]
  for (const [toolApproval, state, expected, result] of outcomes) {
    const { task, paid, heard } = await pays(toolApproval)
    t.strictSame([stateName(task.status.state), paid], [state, expected], JSON.stringify(toolApproval))
    t.match(heard, result)
  }
  t.match(heldBack('perhaps' as ToolApprovalStatus), { isDenied: false }, 'a word that nobody knows lets nothing run')
})

await t.test('the reason of an approval is in its question, in words and as data', async t => {
  const {
    task: {
      id,
      status: { message }
    },
    paid,
    started: { runtime }
  } = await pays({ pay: { type: 'user-approval', reason: 'It is more than 10 euros.' } })
  t.equal(
    Object(message?.parts[0]).text,
    `May I call pay with ${JSON.stringify(DUE)}? It is more than 10 euros. Say yes or no.`
  )
  t.match(message?.parts[1], {
    data: { approval: { toolName: 'pay', input: DUE, reason: 'It is more than 10 euros.' } }
  })
  t.equal(stateName(taskIn(await runtime.sendMessage(say('yes', { taskId: id }))).status.state), 'completed')
  t.strictSame(paid, [29])
})

await t.test('each tool gets its own context, after its contextSchema', async t => {
  const seen: [string, unknown][] = []
  const noted = (name: string) => (_: unknown, options: object) => (
    seen.push([name, Reflect.get(options, 'context')]),
    true
  )
  const first = Object.assign(
    tool({
      inputSchema: bill,
      needsApproval: (input, options) => !noted('asks')(input, options),
      execute: noted('first')
    }),
    { contextSchema: z.object({ key: z.string().transform(key => `${key}!`) }) }
  )
  const tools = {
    first,
    second: tool({ inputSchema: bill, execute: noted('second') }),
    third: tool({ inputSchema: bill, execute: noted('third') })
  }
  const run = async (toolsContext: Record<string, unknown>, toolApproval: ToolApproval = {}) => {
    const model = modelThat(calls(['first', DUE], ['second', DUE], ['third', DUE]), 'Done.')
    const { runtime, log } = start(t, {
      work: modelWork({ model, tools, toolsContext, toolApproval, runtimeContext: { user: 'ann' } } as Parameters<
        typeof modelWork
      >[0])
    })
    return { state: stateName(taskIn(await runtime.sendMessage(say('go'))).status.state), log }
  }
  t.equal((await run({ first: { key: 'k' }, second: 2 })).state, 'completed')
  t.strictSame(
    new Map(seen.splice(0)),
    new Map<string, unknown>([
      ['asks', { key: 'k!' }],
      ['first', { key: 'k!' }],
      ['second', 2],
      ['third', undefined]
    ])
  )
  const decided: unknown[] = []
  t.equal(
    (
      await run(
        { first: { key: 'k' }, second: 2 },
        { first: (_, { toolContext, runtimeContext }) => (decided.push(toolContext, runtimeContext), 'approved') }
      )
    ).state,
    'completed'
  )
  t.strictSame(decided, [{ key: 'k!' }, { user: 'ann' }])
  const wrong = await run({ first: { key: 7 } }, { first: 'approved' })
  t.equal(wrong.state, 'failed', 'a wrong context is the fault of the author, not of the model')
  t.match(inspect(wrong.log, { depth: 5 }), /Type validation failed|key/)
})
