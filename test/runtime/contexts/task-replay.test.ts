import t, { type Test } from 'tap'
import { readRecord, replayTask, type TaskReplay } from '../../../runtime/contexts/task-replay.ts'
import {
  artifact,
  defineAgent,
  inputRequired,
  progress,
  text,
  textOf,
  type AgentDefinition,
  type WorkGenerator
} from '../../../runtime/index.ts'
import { anyone, failOnLooseErrors, lives, type Lives } from '../../fixtures/runtime/lives.ts'
import { open, rest, say } from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

type Definition = Omit<AgentDefinition, 'card'>

const QUICK = { stuckMs: 20, outsideMs: 40 }

/** The agent that replays. */
const agentOf = (definition: Definition) => defineAgent({ card: { name: 'Test' }, ...definition })

/** Opens a task, with `then` after it, and gives a function that replays it with another agent. */
async function stored(t: Test, definition: Definition, then: (life: Lives, id: string) => Promise<unknown> = rest) {
  const life = lives(t, definition)
  const { id, contextId = '' } = await open(life.runtime)
  await rest()
  await then(life, id)
  await rest()
  const record = await readRecord(life.store, { ...anyone, contextId }, id)
  if (!record) throw new Error('the task has ended')
  return (now: Definition, redacted: readonly string[] = []): Promise<TaskReplay> =>
    replayTask(agentOf(now), { ...record, redacted }, QUICK)
}

const answer = (words: string) => async (life: Lives, taskId: string) => {
  life.runtime.sendMessage(say(words, { taskId })).catch(() => {})
  await rest()
}

const order = (changes: { size?: string; step?: string; between?: boolean; name?: string } = {}): WorkGenerator =>
  async function* ({ step, sleep }) {
    yield progress('Looking.')
    if (changes.between) yield progress('Thinking.')
    const size = textOf(yield* inputRequired(changes.size ?? 'Which size?'))
    const price = await step(changes.step ?? 'price', () => size.length)
    yield artifact({ artifactId: 'cup', name: changes.name ?? 'cup', parts: [text(`${price}`)] })
    await sleep(1000)
    return { message: 'Served.' }
  }

await t.test('a generator comes to where its task stands', async t => {
  const atQuestion = await stored(t, { work: order() })
  t.strictSame(await atQuestion({ work: order() }), { outcome: 'same' })
  const atSleep = await stored(t, { work: order() }, answer('large'))
  t.strictSame(await atSleep({ work: order() }), { outcome: 'same' })
})

await t.test('a difference is found at its word, with both sides', async t => {
  const replay = await stored(t, { work: order() }, answer('large'))
  t.strictSame(await replay({ work: order({ between: true }) }), {
    outcome: 'diverges',
    difference: { at: 'word 2', was: 'question "Which size?"', is: 'progress "Thinking."' }
  })
  t.strictSame(await replay({ work: order({ step: 'cost' }) }), {
    outcome: 'diverges',
    difference: { at: 'word 3', was: 'artifact "cup"', is: 'step cost' }
  })
  t.strictSame(await replay({ work: order({ name: 'mug' }) }), {
    outcome: 'otherwise',
    difference: { at: 'word 3', was: 'artifact "cup"', is: 'artifact "mug"' }
  })
  t.strictSame(await replay({ work: async () => {} }), {
    outcome: 'diverges',
    difference: { at: 'word 1', was: 'progress "Looking."', is: 'end of the work' }
  })
  t.strictSame(await replay({ work: async () => Promise.reject(new Error('no key')) }), {
    outcome: 'diverges',
    difference: { at: 'word 1', was: 'progress "Looking."', is: 'error "no key"' }
  })
})
