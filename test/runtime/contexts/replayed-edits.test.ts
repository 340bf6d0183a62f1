import t, { type Test } from 'tap'
import { readRecord, replayTask, type TaskReplay } from '../../../runtime/contexts/task-replay.ts'
import { artifact, defineAgent, inputRequired, progress, type WorkFunction } from '../../../runtime/index.ts'
import { anyone, failOnLooseErrors, lives, type Lives } from '../../fixtures/runtime/lives.ts'
import { open, rest, say } from '../../fixtures/runtime/runtime-helpers.ts'
import { sampleOf } from '../../fixtures/sample.ts'

failOnLooseErrors(t)

/** A line of the code of a work. */
type Line = readonly [kind: 'progress' | 'step' | 'artifact' | 'ask' | 'sleep' | 'return' | 'throw', name: string]

const CODE: readonly Line[] = [
  ['progress', 'begins'],
  ['step', 'price'],
  ['artifact', 'bill'],
  ['ask', 'How many?'],
  ['sleep', '1000'],
  ['step', 'pay'],
  ['ask', 'Which size?']
]

/** The work that these lines are. */
function workOf(lines: readonly Line[]): WorkFunction {
  return async ({ ask, emit, step, sleep }) => {
    for (const [kind, name] of lines) {
      if (kind === 'progress') emit(progress(name))
      if (kind === 'artifact') emit(artifact({ artifactId: name, parts: [{ text: name }] }))
      if (kind === 'step') await step(name, () => name)
      if (kind === 'ask') await ask(inputRequired(name))
      if (kind === 'sleep') await sleep(Number(name))
      if (kind === 'return') return
      if (kind === 'throw') throw new Error(name)
    }
  }
}

const NEW: readonly Line[] = [
  ['progress', 'more'],
  ['step', 'more'],
  ['artifact', 'more'],
  ['ask', 'More?'],
  ['sleep', '5'],
  ['return', ''],
  ['throw', 'no luck']
]

/** A line is added, removed, renamed, or changed to one of another kind. */
const EDITS: readonly { readonly name: string; readonly lines: readonly Line[] }[] = [
  ...Array.from({ length: CODE.length + 1 }, (_, at) =>
    NEW.map(line => ({ name: `${line.join(' ')} at ${at}`, lines: CODE.toSpliced(at, 0, line) }))
  ).flat(),
  ...CODE.flatMap((line, at) => [
    { name: `without ${line.join(' ')}`, lines: CODE.toSpliced(at, 1) },
    ...NEW.slice(0, 5).map(other => ({
      name: `${other.join(' ')} in place of ${line.join(' ')}`,
      lines: CODE.toSpliced(at, 1, other)
    }))
  ])
]

/** The moves that lead to each place of the work. */
const PLACES = { 'the first question': [], 'the sleep': ['say'], 'the second question': ['say', 'wait'] } as const

async function storedAt(t: Test, moves: readonly string[]) {
  const life = lives(t, { work: workOf(CODE), version: '1' })
  const { id } = await open(life.runtime, 'go', { contextId: 'c' })
  await rest()
  for (const move of moves) {
    if (move === 'wait') await life.pass(1000)
    else await life.runtime.sendMessage({ ...say('x', { taskId: id }), configuration: { returnImmediately: true } })
    await rest()
  }
  return { life, id }
}

/** Replays the stored task with these lines. */
async function replayed({ store }: Lives, taskId: string, lines: readonly Line[]): Promise<TaskReplay> {
  const record = await readRecord(store, { ...anyone, contextId: 'c' }, taskId)
  if (!record) throw new Error('the task has ended')
  const agent = defineAgent({ card: { name: 'Test' }, work: workOf(lines), version: '1' })
  return replayTask(agent, { ...record, store }, { stuckMs: 20, outsideMs: 40 })
}

await t.test('no outcome of a stored function is a wrong certainty, as a deploy shows', async t => {
  t.ok(EDITS.length >= 40)
  let known = 0
  for (const { name, lines } of sampleOf(t, EDITS, 20)) {
    for (const [place, moves] of Object.entries(PLACES)) {
      const { life, id } = await storedAt(t, moves)
      const before = (await life.runtime.getTask({ id })).status.state
      const { outcome, consequence, ...found } = await replayed(life, id, lines)
      await life.again({ work: workOf(lines), version: '1' })
      const { state } = (await life.runtime.getTask({ id })).status
      const label = `${name}, at ${place}: ${JSON.stringify({ outcome, consequence, ...found })}`
      if (consequence === 'fails') t.equal(state, 'TASK_STATE_FAILED', label)
      if (consequence === 'ends') t.equal(state, 'TASK_STATE_COMPLETED', label)
      // An error of new code comes after the step that the replay names.
      if (outcome !== 'cannot say' && consequence !== 'fails' && !lines.some(([kind]) => kind === 'throw'))
        t.not(state, 'TASK_STATE_FAILED', label)
      if (outcome === 'same') t.equal(state, before, label)
      known += Number(outcome !== 'cannot say' && consequence !== 'waits')
    }
  }
  t.ok(known > 30, 'most are certain')
})

await t.test('the code as it was replays to where its task is', async t => {
  for (const [place, moves] of Object.entries(PLACES)) {
    const { life, id } = await storedAt(t, moves)
    t.strictSame(await replayed(life, id, CODE), { outcome: 'same' }, place)
  }
})
