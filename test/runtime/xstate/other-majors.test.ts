import t from 'tap'
import { fromPromise, setup, type PromiseActorLogic } from 'xstate'
import { z } from 'zod'
import { chartMermaid } from '../../../adapters/drawing/mermaid.ts'
import { createRuntime, defineAgent, negotiation, setupWork } from '../../../runtime/index.ts'

const card = { name: 'Painter', description: 'Paints.' }

/**
 * The members by which charts of the other majors differ from those of XState 5. `.ci/packages` installs the real ones.
 */
const CHARTS: Readonly<Record<string, never>> = {
  '4': { transition() {}, initialState: {}, withConfig() {}, config: {} } as never,
  '6 or newer': { transition() {}, getInitialSnapshot() {}, provide() {}, root: {}, config: {}, sources: {} } as never
}

const LEAVES: Readonly<Record<string, never>> = {
  '4': { transition() {}, initialState: {}, start() {} } as never,
  '6 or newer': { transition() {}, getInitialSnapshot() {}, initialTransition() {}, config: {} } as never
}

function refusal(what: string, major: string): TypeError {
  return new TypeError(
    `${what} was made with XState ${major}, but taskchart runs on XState 5 (5.33.3 or newer, below 6). Make it with that: npm install xstate@5.`
  )
}

function invoking(actor: PromiseActorLogic<string>) {
  return setupWork({ actors: { paint: actor } }).createMachine({
    initial: 'painting',
    states: { painting: { invoke: { src: 'paint', onDone: 'over' } }, over: { type: 'final' } }
  })
}

await t.test('a chart of another major of XState is refused, with the versions that work', t => {
  for (const [major, chart] of Object.entries(CHARTS)) {
    t.throws(() => defineAgent({ card, work: chart }), refusal('work', major))
    t.throws(() => defineAgent({ card, negotiate: chart }), refusal('negotiate', major))
    t.throws(() => negotiation({ terms: z.object({}), respond: chart }), refusal('respond', major))
  }
  t.throws(() => chartMermaid(CHARTS['6 or newer'] as never), refusal('The chart', '6 or newer'))
  t.end()
})

await t.test(
  'an actor of another major is refused, in a chart, in a chart among its actors, and in a function',
  async t => {
    for (const [major, actor] of [...Object.entries(CHARTS), ...Object.entries(LEAVES)]) {
      t.throws(() => defineAgent({ card, work: invoking(actor) }), refusal('The actor paint', major))
      t.throws(() => defineAgent({ card, work: invoking(invoking(actor) as never) }), refusal('The actor paint', major))
      t.throws(
        () => negotiation({ terms: z.object({}), respond: invoking(actor) as never }),
        refusal('The actor paint', major)
      )
      let thrown: unknown
      const runtime = createRuntime({
        agent: defineAgent({
          card,
          work: async ({ spawn }) => {
            try {
              spawn(actor)
            } catch (error) {
              thrown = error
            }
          }
        })
      })
      await runtime.sendMessage({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'red' }] } })
      await runtime.close()
      t.match(thrown, refusal('The actor', major))
    }
  }
)

await t.test('charts and actors of XState 5 are taken, also a chart that is an actor of itself', t => {
  const leaf = fromPromise(async () => 'red')
  t.doesNotThrow(() => defineAgent({ card, work: invoking(leaf) }))
  const actors: Record<string, never> = {}
  const circle = setup({ actors }).createMachine({ initial: 'over', states: { over: { type: 'final' } } })
  Object.assign(circle.implementations.actors, { again: circle })
  t.doesNotThrow(() => defineAgent({ card, work: circle as never }))
  t.end()
})
