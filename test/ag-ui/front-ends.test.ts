import t, { type Test } from 'tap'
import { z } from 'zod'
import { artifact, failed, inputRequired, progress, text, textOf, type WorkArguments } from '../../runtime/index.ts'
import { serve } from '../../adapters/serve/serve.ts'
import { reaches, start, until, type Started } from '../fixtures/runtime/runtime-helpers.ts'
import { FRONT_ENDS, NO_AG_UI_PACKAGES, packages, type FrontEndPage } from './front-ends.ts'

const size = z.enum(['small', 'large'], 'has to be small or large')

/** Resolves the coffee of `brew`. */
let pour = () => {}

/** A barista whose orders say how they end. */
async function* work({ message }: WorkArguments) {
  const order = textOf(message)
  if (order === 'a poem') {
    const poem = { artifactId: 'poem', name: 'poem' }
    yield artifact({ ...poem, parts: [text('Roses ')] })
    yield artifact({ ...poem, parts: [text('are red.')] }, { append: true, lastChunk: true })
    return { artifact: { name: 'rose', parts: [{ raw: 'aGk=', mediaType: 'image/png', filename: 'rose.png' }] } }
  }
  if (order === 'tea') return failed('There is no tea.')
  if (order === 'brew') {
    yield progress('Brewing.')
    await new Promise<void>(resolve => (pour = resolve))
    return { artifact: 'A brewed coffee.' }
  }
  const cup = yield* inputRequired('Which size?', { schema: size })
  return order === 'a cup of nothing' ? failed('The cup fell over.') : { artifact: `One ${cup} coffee.` }
}

/** What happens between a page and the barista. `open` opens another page of the same thread. */
type Scenario = (t: Test, page: FrontEndPage, agent: Started, open: () => Promise<FrontEndPage>) => Promise<void>

/** The barista, and its URL for AG-UI. */
async function served(t: Test): Promise<{ readonly agent: Started; readonly url: string }> {
  const agent = start(t, { work })
  const { agUiUrl, close } = await serve(agent.runtime, { port: 0, agui: true })
  t.teardown(close)
  return { agent, url: String(agUiUrl) }
}

/** The task of a page, as a client of A2A reads it. */
async function read({ runtime }: Started, { task }: FrontEndPage) {
  return runtime.getTask({ id: String(task?.id), historyLength: 0 })
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'a question is an interrupt with its schema, and its answer goes on with the task': async (t, page, agent) => {
    t.equal(await page.say('a coffee'), undefined)
    const [asked] = page.interrupts
    t.match(asked, { message: 'Which size?', responseSchema: { enum: ['small', 'large'] } })
    t.equal(await page.answer('huge'), undefined)
    t.match(page.interrupts, [{ id: asked?.id, message: 'Not accepted: has to be small or large\n\nWhich size?' }])
    t.equal(await page.answer('large'), undefined)
    t.strictSame(page.interrupts, [])
    t.strictSame(page.messages, ['user: a coffee', 'assistant: One large coffee.'])
    t.strictSame(page.task, await read(agent, page), 'the state has the task as GetTask gives it')
    t.equal(page.task?.status.state, 'TASK_STATE_COMPLETED')
  },
  'chunks of text are one message, and a file is in the state': async (t, page, agent) => {
    t.equal(await page.say('a poem'), undefined)
    t.strictSame(page.messages, ['user: a poem', 'assistant: Roses are red.'])
    t.match(page.task?.artifacts, [{ name: 'poem' }, { parts: [{ raw: 'aGk=', filename: 'rose.png' }] }])
    t.strictSame(page.task, await read(agent, page))
  },
  'a failure is an error, also after an answer, and the thread goes on': async (t, page) => {
    t.equal(await page.say('tea'), 'There is no tea.')
    t.equal(page.task?.status.state, 'TASK_STATE_FAILED')
    t.equal(await page.say('a cup of nothing'), undefined)
    t.equal(await page.answer('small'), 'The cup fell over.')
    t.strictSame(page.interrupts, [])
    t.equal(await page.say('a poem'), undefined)
    t.equal(page.messages.at(-1), 'assistant: Roses are red.')
  },
  'a refused question cancels the task, and the thread goes on': async (t, page, agent) => {
    await page.say('a coffee')
    t.equal(await page.refuse(), undefined)
    t.strictSame(page.interrupts, [])
    t.equal((await read(agent, page)).status.state, 'TASK_STATE_CANCELED')
    t.equal(await page.say('a poem'), undefined)
    t.equal(page.messages.at(-1), 'assistant: Roses are red.')
  },
  'a page that was loaded again has the messages and the open question': async (t, page, agent, open) => {
    await page.say('a poem')
    await page.say('a coffee')
    const loaded = await open()
    t.equal(await loaded.rejoin(), undefined)
    t.strictSame(loaded.messages, ['user: a poem', 'assistant: Roses are red.', 'user: a coffee'])
    t.strictSame(loaded.interrupts, page.interrupts)
    t.strictSame(loaded.task, page.task)
    t.equal(await loaded.answer('small'), undefined)
    t.equal(loaded.messages.at(-1), 'assistant: One small coffee.')
    t.equal((await read(agent, page)).status.state, 'TASK_STATE_COMPLETED')
  },
  'a run that its user stops cancels nothing, and the next page has the result': async (t, page, agent, open) => {
    const run = page.say('brew')
    await until(() => page.task?.status.state === 'TASK_STATE_WORKING')
    page.stop()
    await run
    t.equal((await read(agent, page)).status.state, 'TASK_STATE_WORKING')
    pour()
    await reaches(agent.runtime, String(page.task?.id), 'completed')
    const loaded = await open()
    t.equal(await loaded.rejoin(), undefined)
    t.strictSame(loaded.messages, ['user: brew', 'assistant: A brewed coffee.'])
  }
}

for (const [frontEnd, openPage] of Object.entries(FRONT_ENDS))
  await t.test(frontEnd, { skip: NO_AG_UI_PACKAGES }, async t => {
    for (const [behaviour, scenario] of Object.entries(SCENARIOS))
      await t.test(behaviour, async t => {
        const { agent, url } = await served(t)
        const open = () => openPage(t, url, behaviour)
        await scenario(t, await open(), agent, open)
      })
  })

await t.test(
  'CopilotKit replays a thread from its memory, and asks the agent after that',
  { skip: NO_AG_UI_PACKAGES },
  async t => {
    const { url } = await served(t)
    const open = () => FRONT_ENDS.CopilotKit(t, url, 'replayed')
    const page = await open()
    await page.say('a coffee')
    const replayed = await open()
    t.equal(await replayed.replay?.(), undefined)
    t.strictSame(replayed.messages, ['user: a coffee'])
    t.strictSame(replayed.interrupts, page.interrupts)
    const { InMemoryAgentRunner } = await packages()
    new InMemoryAgentRunner().clearThreads()
    const restarted = await open()
    await restarted.replay?.()
    t.strictSame(restarted.messages, [], 'its server has forgotten the thread')
    t.equal(await restarted.rejoin(), undefined)
    t.strictSame(restarted.messages, ['user: a coffee'])
    t.strictSame(restarted.interrupts, page.interrupts)
  }
)
