import { emit, fromCallback } from 'xstate'
import { setupWork } from '../../runtime/setup-work.ts'
import type { WorkFunction } from '../../runtime/work-runner.ts'
import { artifact, text, textOf } from '../../runtime/words.ts'
import { ARTIFACT_TEXT, CHUNK_TEXT, errandIn, nextTurn } from '../errands.ts'

/** Hands over one artifact: work as a function. */
const atOnce: WorkFunction = async () => ({ artifact: text(ARTIFACT_TEXT) })

/** Appends chunks to one artifact, as a chart that listens to a model would. */
const inChunks = setupWork({
  types: { context: {} as { count: number }, events: {} as { type: 'chunk.made'; isFirst: boolean } | { type: 'chunks.ended' } },
  actors: {
    model: fromCallback<{ type: 'none' }, { count: number }>(({ input, sendBack }) => {
      const stop = new AbortController()
      const make = async () => {
        for (let made = 0; made < input.count && !stop.signal.aborted; made += 1) {
          sendBack({ type: 'chunk.made', isFirst: made === 0 })
          await nextTurn()
        }
        sendBack({ type: 'chunks.ended' })
      }
      void make()
      return () => stop.abort()
    })
  }
}).createMachine({
  context: ({ input }) => {
    const errand = errandIn(textOf(input.message))
    return { count: errand.kind === 'chunks' ? errand.count : 1 }
  },
  initial: 'streaming',
  states: {
    streaming: {
      invoke: { src: 'model', input: ({ context }) => context },
      on: {
        'chunk.made': { actions: emit(({ event }) => artifact({ artifactId: 'text', parts: [text(CHUNK_TEXT)] }, { append: !event.isFirst })) },
        'chunks.ended': 'done'
      }
    },
    done: { type: 'final' }
  }
})

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
export const ourWork = { artifact: atOnce, chunks: inChunks, ask: asking }
