import { setTimeout } from 'node:timers/promises'
import { setupWork } from '../../runtime/authoring/setup-work.ts'
import { artifact, text, textOf } from '../../runtime/authoring/words.ts'
import type { WorkFunction, WorkGenerator } from '../../runtime/work/function-work.ts'
import { ARTIFACT_TEXT, CHUNK_TEXT, errandIn, nextTurn, WORK_STEPS } from '../errands.ts'

/** Hands over one artifact: work as a function. */
const atOnce: WorkFunction = async () => ({ artifact: text(ARTIFACT_TEXT) })

/** Hands over the result of two steps, each stored before the work goes on. */
const inSteps: WorkFunction = async ({ step }) => {
  const begun = await step('begin', WORK_STEPS.begin)
  return { artifact: text(await step('end', () => WORK_STEPS.end(begun))) }
}

/** Appends chunks to one artifact: work as a generator. */
const inChunks: WorkGenerator = async function* ({ message }) {
  const errand = errandIn(textOf(message))
  const { count, characters } = errand.kind === 'chunks' ? errand : { count: 1 }
  const chunk = characters === undefined ? CHUNK_TEXT : 'x'.repeat(characters)
  for (let made = 0; made < count; made += 1) {
    yield artifact({ artifactId: 'text', parts: [text(chunk)] }, { append: made > 0 })
    await nextTurn()
  }
}

/** Appends the time, a hundred times a second. */
const ticking: WorkGenerator = async function* ({ message }) {
  const errand = errandIn(textOf(message))
  const count = errand.kind === 'chunks' ? errand.count : 1
  for (let made = 0; made < count; made += 1) {
    await setTimeout(10)
    yield artifact(
      { artifactId: 'text', parts: [text((performance.timeOrigin + performance.now()).toFixed(3))] },
      { append: made > 0 }
    )
  }
}

/** Asks, and hands over the artifact once it has an answer. */
const asking = setupWork({}).createMachine({
  initial: 'asking',
  states: {
    asking: { tags: 'input-required', meta: { prompt: 'Which colour?' }, on: { 'message.received': 'done' } },
    done: { type: 'final' }
  },
  output: () => ({ artifact: text(ARTIFACT_TEXT) })
})

/** The work for each kind of errand, in the form that its author would choose. */
export const ourWork = { artifact: atOnce, steps: inSteps, chunks: inChunks, ticking, ask: asking }
