import { setTimeout as elapsed } from 'node:timers/promises'
import { apiKey } from '../../adapters/auth/index.ts'
import { defineAgent } from '../../runtime/agent/define-agent.ts'
import { inputRequired } from '../../runtime/authoring/questions.ts'
import { artifact, progress, text, textOf } from '../../runtime/authoring/words.ts'
import { nextTurn } from '../errands.ts'
import { KEYS } from './keys.ts'

/** The module that the besieged server serves: two callers, and work that does what its message says. */
export const authenticate = apiKey({ keys: KEYS })

const CHUNK = text('0123456789abcdef'.repeat(4096))

export default defineAgent({
  card: { name: 'Besieged' },
  work: async function* ({ message, signal, sleep }) {
    const [errand = '', first = '0', second = '0'] = textOf(message).split(' ', 3)
    const [count, ms] = [Number(first), Number(second)]
    if (errand === 'wait') await elapsed(3_600_000, undefined, { signal })
    if (errand === 'sleep') await sleep(3_600_000)
    if (errand === 'ask') yield* inputRequired('What next?')
    if (errand === 'echo') return { artifact: { parts: message.parts } }
    if (errand === 'throw') throw new Error('This task was asked to throw.')
    if (errand === 'strange') yield { type: 'no such word' } as never
    if (errand === 'deep') return { artifact: { parts: [{ data: JSON.parse('['.repeat(count) + ']'.repeat(count)) }] } }
    if (errand === 'grow' || errand === 'tick') {
      for (let done = 0; done < count; done += 1) {
        yield errand === 'grow'
          ? artifact({ artifactId: 'large', parts: [CHUNK] }, { append: done > 0 })
          : progress(`tick ${done}`)
        await (ms > 0 ? elapsed(ms, undefined, { signal }) : nextTurn())
      }
    }
    return { artifact: text('done') }
  }
})
