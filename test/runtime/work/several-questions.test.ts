import t from 'tap'
import { assign, createActor, emit, sendParent, sendTo, setup } from 'xstate'
import { z } from 'zod'
import { proveAgent, testAgent } from '../../../adapters/testing/index.ts'
import { outlineOf } from '../../../adapters/drawing/outline.ts'
import {
  dataOf,
  defineAgent,
  progress,
  propertiesOf,
  setupWork,
  text,
  textOf as wordsOf,
  type MessageReceived
} from '../../../runtime/index.ts'
import { QUESTION } from '../../../machines/protocol/uris.ts'
import { failOnLooseErrors, lives } from '../../fixtures/runtime/lives.ts'
import {
  open,
  reaches,
  refusal,
  say,
  start,
  stateName,
  taskIn,
  textOf
} from '../../fixtures/runtime/runtime-helpers.ts'
import { someWalks } from '../../fixtures/charts/some-walks.ts'

failOnLooseErrors(t)

type Answers = { age: number; colour: string }

/** Two regions that ask: the first one after a second, the other one at once. */
function person(more: { readonly delayMs?: number } = {}) {
  const schema = z.coerce.number().int()
  return setupWork({
    types: { context: {} as Answers, events: {} as { type: 'colour.guessed' } }
  })
    .extend({
      guards: { isColour: ({ event }) => 'message' in event && wordsOf(event.message) !== 'none' }
    })
    .createMachine({
      id: 'person',
      type: 'parallel',
      context: { age: 0, colour: '' },
      states: {
        age: {
          initial: more.delayMs === undefined ? 'asking' : 'waiting',
          states: {
            waiting: { after: { [more.delayMs ?? 0]: 'asking' } },
            asking: {
              tags: 'input-required',
              meta: { prompt: 'Age?', schema },
              on: {
                'message.received': {
                  target: 'known',
                  actions: assign({ age: ({ event }) => dataOf(event, schema) })
                }
              }
            },
            known: { type: 'final' }
          }
        },
        colour: {
          initial: 'asking',
          states: {
            asking: {
              tags: 'input-required',
              meta: { prompt: 'Colour?' },
              on: {
                'colour.guessed': 'known',
                'message.received': [
                  {
                    guard: 'isColour',
                    target: 'known',
                    actions: assign({ colour: ({ event }) => wordsOf(event.message) })
                  },
                  'refused'
                ]
              }
            },
            refused: { type: 'final' },
            known: { type: 'final' }
          }
        }
      },
      output: ({ context: { age, colour } }) => ({ artifact: text(`${age} ${colour}`) })
    })
}

/** The answer to the open question of a task, sent as a client that names it. */
function naming(messageId: string | undefined, words: string, taskId: string) {
  return say(words, { taskId, metadata: { [QUESTION]: messageId } })
}

await t.test('two regions that ask', async t => {
  await t.test('ask one after the other, in the order of the chart', async t => {
    const { runtime, log } = start(t, { work: person() })
    const first = taskIn(await runtime.sendMessage(say('x')))
    const taskId = first.id
    t.equal(textOf(first.status.message), 'Age?')
    t.equal((await refusal(runtime.sendMessage(say('old', { taskId })))).code, 'InvalidParams')
    const second = taskIn(await runtime.sendMessage(say('7', { taskId })))
    t.equal(textOf(second.status.message), 'Colour?')
    const done = taskIn(await runtime.sendMessage(say('red', { taskId })))
    t.equal(textOf(done.artifacts?.[0]), '7 red')
    t.strictSame(log, [])
  })

  await t.test('keep the open question while another region begins to ask, also after a kill', async t => {
    for (const isKilled of [false, true]) {
      const life = lives(t, { work: person({ delayMs: 1000 }) })
      const { id } = await open(life.runtime)
      await reaches(life.runtime, id, 'input-required')
      await life.pass(1000)
      if (isKilled) await life.kill()
      t.equal(textOf((await life.runtime.getTask({ id })).status.message), 'Colour?')
      t.equal(textOf(taskIn(await life.runtime.sendMessage(say('blue', { taskId: id }))).status.message), 'Age?')
      if (isKilled) await life.kill()
      t.equal(textOf(taskIn(await life.runtime.sendMessage(say('30', { taskId: id }))).artifacts?.[0]), '30 blue')
      t.strictSame(await life.told(id), [
        'submitted',
        'working',
        'input-required: Colour?',
        'working',
        'input-required: Age?',
        'working',
        'artifact: 30 blue',
        'completed'
      ])
    }
  })

  await t.test('are walked by tests, and proofs say which is asked first', async t => {
    const work = person({ delayMs: 1000 })
    const { never, precedes } = propertiesOf(work)
    const agent = defineAgent({
      card: { name: 'Person' },
      work,
      properties: {
        'no colour without an answer': never(({ context }) => context.colour === 'none'),
        'age is known before a colour': precedes('age.known', 'colour.known')
      }
    })
    const cases = { messages: { number: '7', colour: 'red', none: 'none' } }
    await testAgent(someWalks(t), agent, { cases })
    const { verdicts } = await proveAgent(agent, { cases, only: ' colour' })
    t.strictSame(
      verdicts.map(({ property, outcome }) => [property, outcome]),
      [
        ['no colour without an answer', 'proved'],
        ['age is known before a colour', 'confirmed']
      ]
    )
  })

  await t.test('are the same chart for plain XState, and no drawing shows the guard', async t => {
    const work = person()
    const actor = createActor(work, { input: undefined as never }).start()
    const { message } = say('7')
    actor.send({ type: 'message.received', message, question: 'person.colour.asking' })
    t.strictSame(actor.getSnapshot().value, { age: 'asking', colour: 'known' })
    const both = createActor(work, { input: undefined as never }).start()
    both.send({ type: 'message.received', message })
    t.strictSame(both.getSnapshot().value, { age: 'known', colour: 'known' }, 'an event without a question passes')
    const drawn = JSON.stringify(outlineOf(work))
    t.match(drawn, '"guard":"isColour"')
    t.notMatch(drawn, /isQuestionOpen|isColour and|and isColour/)
  })

  await t.test('of which one waits for an authorization, each get what they asked for', async t => {
    const work = setupWork({
      types: { context: {} as { colour: string }, events: {} as { type: 'authorization.received'; data: unknown } }
    }).createMachine({
      id: 'shop',
      type: 'parallel',
      context: { colour: '' },
      states: {
        colour: {
          initial: 'asking',
          states: {
            asking: { tags: 'input-required', meta: { prompt: 'Colour?' }, on: { '*': 'known' } },
            known: { type: 'final' }
          }
        },
        payment: {
          initial: 'asking',
          states: {
            asking: { tags: 'auth-required', meta: { prompt: 'Pay.' }, on: { 'authorization.received': 'paid' } },
            paid: { type: 'final' }
          }
        }
      },
      output: { message: 'Thanks.' }
    })
    const { runtime } = start(t, { work })
    const { id: taskId, status } = taskIn(await runtime.sendMessage(say('x')))
    t.equal(textOf(status.message), 'Colour?')
    t.equal((await refusal(runtime.authorized(taskId, 'paid'))).code, 'UnsupportedOperation')
    t.equal(stateName(taskIn(await runtime.sendMessage(say('red', { taskId }))).status.state), 'auth-required')
    t.equal(
      (await refusal(runtime.sendMessage(say('blue', { taskId })))).code,
      'UnsupportedOperation',
      'a message is no answer for the region that has one'
    )
    t.equal(stateName((await runtime.authorized(taskId, 'paid')).status.state), 'completed')
  })
})

await t.test('an answer', async t => {
  const asks = setupWork({
    types: { context: {} as { said: string[] } },
    actions: { note: assign({ said: ({ context, event }) => [...context.said, wordsOf(event.message)] }) }
  })
  const work = asks.createMachine({
    context: { said: [] },
    initial: 'one',
    states: {
      one: {
        tags: 'input-required',
        meta: { prompt: 'One?' },
        on: { 'message.received': { target: 'two', actions: 'note' } }
      },
      two: {
        tags: 'input-required',
        meta: { prompt: 'Two?' },
        on: { 'message.received': { target: 'end', actions: 'note' } }
      },
      end: { type: 'final' }
    },
    output: ({ context }) => ({ artifact: text(context.said.join(' ')) })
  })

  await t.test(
    'of the second of two clients who answer at once is no answer to the next question, which it has not seen',
    async t => {
      const { runtime } = start(t, { work })
      const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
      const [first, second] = await Promise.allSettled([
        runtime.sendMessage(say('1', { taskId })),
        runtime.sendMessage(say('2', { taskId }))
      ])
      t.match(
        [first, second],
        [
          { status: 'fulfilled' },
          {
            status: 'rejected',
            reason: { code: 'UnsupportedOperation', message: /no longer asks the question that this message answers/ }
          }
        ]
      )
      t.equal(textOf(taskIn(await runtime.sendMessage(say('3', { taskId }))).artifacts?.[0]), '1 3')
    }
  )

  await t.test('that is queued is for whatever is asked next', async t => {
    const { runtime } = start(t, { work, messages: 'queue' })
    const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
    await Promise.all([runtime.sendMessage(say('1', { taskId })), runtime.sendMessage(say('2', { taskId }))])
    t.equal(textOf((await runtime.getTask({ id: taskId })).artifacts?.[0]), '1 2')
  })

  await t.test(
    'that names its question is refused if another one is open, also after the end of the process',
    async t => {
      for (const messages of ['reject', 'queue'] as const) {
        for (const isKilled of [false, true]) {
          const life = lives(t, { work, messages })
          const again = async () => void (isKilled && (await life.kill()))
          const { id: taskId, status: one } = taskIn(await life.runtime.sendMessage(say('x')))
          await again()
          const wrong = await refusal(life.runtime.sendMessage(naming('other', '1', taskId)))
          t.match(wrong, { code: 'UnsupportedOperation', message: new RegExp(`Task ${taskId} no longer asks`) })
          const { status: two } = taskIn(await life.runtime.sendMessage(naming(one.message?.messageId, '1', taskId)))
          t.equal(textOf(two.message), 'Two?')
          await again()
          t.equal(
            (await refusal(life.runtime.sendMessage(naming(one.message?.messageId, '2', taskId)))).code,
            'UnsupportedOperation'
          )
          t.equal(
            textOf(taskIn(await life.runtime.sendMessage(naming(two.message?.messageId, '2', taskId))).artifacts?.[0]),
            '1 2'
          )
        }
      }
    }
  )

  await t.test('that names a question in another way, or of no task, is refused', async t => {
    const { runtime } = start(t, { work })
    const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
    for (const wrong of [7, '', null])
      t.match(await refusal(runtime.sendMessage(say('1', { taskId, metadata: { [QUESTION]: wrong } }))), {
        code: 'InvalidParams',
        message: /message\.metadata.*must be the messageId/
      })
    t.match(await refusal(runtime.sendMessage(say('1', { metadata: { [QUESTION]: 'q' } }))), {
      code: 'InvalidParams',
      message: /add the task's id as taskId/
    })
  })
})

await t.test('charts below the work', async t => {
  const schema = z.enum(['small', 'large'])
  const size = setup({
    types: { context: {} as { size: string }, events: {} as MessageReceived }
  }).createMachine({
    id: 'size',
    context: { size: '' },
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        meta: { prompt: 'Size?', schema },
        on: {
          'message.received': { target: 'known', actions: assign({ size: ({ event }) => dataOf(event, schema) }) }
        }
      },
      known: { type: 'final' }
    },
    output: ({ context }) => context.size
  })
  const drink = setup({ types: { context: {} as { size: string } }, actors: { size } }).createMachine({
    id: 'drink',
    context: { size: '' },
    initial: 'choosing',
    states: {
      choosing: {
        invoke: {
          src: 'size',
          id: 'inner',
          onDone: { target: 'chosen', actions: assign({ size: ({ event }) => event.output as string }) }
        }
      },
      chosen: { type: 'final' }
    },
    output: ({ context }) => context.size
  })
  const order = (withOwn: boolean) =>
    setupWork({ types: { context: {} as { drink: string; name: string } }, actors: { drink, size } }).createMachine({
      id: 'order',
      context: { drink: '', name: '' },
      type: 'parallel',
      states: {
        drink: {
          initial: 'ordering',
          states: {
            ordering: {
              invoke: {
                src: 'drink',
                id: 'drink',
                onDone: {
                  target: 'ordered',
                  actions: [assign({ drink: ({ event }) => event.output as string }), emit(progress('Noted.'))]
                }
              }
            },
            ordered: { type: 'final' }
          }
        },
        name: {
          initial: withOwn ? 'asking' : 'known',
          states: {
            asking: {
              tags: 'input-required',
              meta: { prompt: 'Your name?' },
              on: {
                'message.received': {
                  target: 'known',
                  actions: assign({ name: ({ event }) => wordsOf(event.message) })
                }
              }
            },
            known: { type: 'final' }
          }
        }
      },
      output: ({ context: { drink, name } }) => ({ artifact: text(`${drink} for ${name}`) })
    })

  await t.test('ask through the task, as deep as they nest, and get the answers', async t => {
    for (const isKilled of [false, true]) {
      const life = lives(t, { work: order(true) })
      const again = async () => void (isKilled && (await life.kill()))
      const first = taskIn(await life.runtime.sendMessage(say('x')))
      const { id: taskId } = first
      t.equal(textOf(first.status.message), 'Your name?')
      await again()
      t.equal(textOf(taskIn(await life.runtime.sendMessage(say('Ann', { taskId }))).status.message), 'Size?')
      await again()
      t.equal((await refusal(life.runtime.sendMessage(say('huge', { taskId })))).code, 'InvalidParams')
      t.equal(textOf(taskIn(await life.runtime.sendMessage(say('small', { taskId }))).artifacts?.[0]), 'small for Ann')
      t.strictSame(await life.told(taskId), [
        'submitted',
        'working',
        'input-required: Your name?',
        'working',
        'input-required: Size?',
        'working',
        'working: Noted.',
        'artifact: small for Ann',
        'completed'
      ])
      t.strictSame(life.log, [])
    }
  })

  await t.test('are walked by tests, and proofs see their questions', async t => {
    const work = order(true)
    const { never, told } = propertiesOf(work)
    const agent = defineAgent({
      card: { name: 'Order' },
      work,
      properties: {
        'nothing is noted': never(told('WORKING', (one: { message?: unknown }) => one.message !== undefined)),
        'nobody is huge': never(({ context }) => context.drink === 'huge')
      }
    })
    const cases = { messages: { small: 'small', Ann: 'Ann' } }
    await testAgent(someWalks(t), agent, { cases })
    const { verdicts } = await proveAgent(agent, { cases, only: ' is ' })
    t.match(verdicts, [
      {
        property: 'nothing is noted',
        outcome: 'confirmed',
        walk: { steps: [{ says: 'the client says "small"' }, { says: 'the client says "small"' }] }
      },
      { property: 'nobody is huge', outcome: 'proved' }
    ])
  })

  await t.test('ask for a work that asks nothing itself', async t => {
    const { runtime } = start(t, { work: order(false) })
    const { id: taskId, status } = taskIn(await runtime.sendMessage(say('x')))
    t.equal(textOf(status.message), 'Size?')
    t.equal(textOf(taskIn(await runtime.sendMessage(say('large', { taskId }))).artifacts?.[0]), 'large for ')
  })

  await t.test('refuse a message that they do not take, and take a queued one', async t => {
    const picky = setup({}).createMachine({
      id: 'picky',
      initial: 'asking',
      states: {
        asking: {
          tags: 'input-required',
          on: {
            'message.received': {
              guard: ({ event }) => wordsOf((event as never as { message: { parts: never[] } }).message) === 'yes',
              target: 'ok'
            }
          }
        },
        ok: { type: 'final' }
      }
    })
    const work = setupWork({ actors: { picky } }).createMachine({
      initial: 'a',
      states: { a: { after: { 1000: 'b' } }, b: { invoke: { src: 'picky', onDone: 'c' } }, c: { type: 'final' } }
    })
    const life = lives(t, { work, messages: 'queue' })
    const { id: taskId } = await open(life.runtime)
    await life.runtime.sendMessage(say('no', { taskId }, { returnImmediately: true }))
    await life.pass(1000)
    await reaches(life.runtime, taskId, 'input-required')
    t.equal((await refusal(life.runtime.sendMessage(say('no', { taskId })))).code, 'UnsupportedOperation')
    t.equal(stateName(taskIn(await life.runtime.sendMessage(say('yes', { taskId }))).status.state), 'completed')
  })

  await t.test('that ask twice in one step tell both questions, which the model does not know', async t => {
    const asks = (prompt: string) => ({ tags: 'input-required', meta: { prompt } })
    const echo = setup({}).createMachine({ on: { ping: { actions: sendParent({ type: 'next' }) } } })
    const asker = setup({ actors: { echo } }).createMachine({
      id: 'asker',
      invoke: { src: 'echo', id: 'echo' },
      initial: 'zero',
      states: {
        zero: { ...asks('Zero?'), on: { 'message.received': 'one' } },
        one: { ...asks('One?'), entry: sendTo('echo', { type: 'ping' }), on: { next: 'two' } },
        two: { ...asks('Two?'), on: { 'message.received': 'end' } },
        end: { type: 'final' }
      }
    })
    const work = setupWork({ actors: { asker } }).createMachine({
      initial: 'a',
      states: { a: { invoke: { src: 'asker', id: 'asker', onDone: 'b' } }, b: { type: 'final' } }
    })
    const life = lives(t, { work })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('x')))
    t.equal(textOf(taskIn(await life.runtime.sendMessage(say('y', { taskId }))).status.message), 'Two?')
    t.strictSame(await life.told(taskId), [
      'submitted',
      'working',
      'input-required: Zero?',
      'working',
      'input-required: One?',
      'working',
      'input-required: Two?'
    ])
    const { verdicts } = await proveAgent(defineAgent({ card: { name: 'Asker' }, work }), {
      cases: { messages: { yes: 'yes' } },
      only: 'throws'
    })
    t.match(verdicts, [
      {
        outcome: 'unknown',
        why: /charts among its actors ask several questions, one after the other, without time passing/
      }
    ])
  })

  await t.test('that fail at an answer fail their work', async t => {
    const broken = setup({
      actions: {
        fail: assign(() => {
          throw new Error('broken')
        })
      }
    }).createMachine({
      id: 'broken',
      initial: 'asking',
      states: { asking: { tags: 'input-required', on: { 'message.received': { actions: 'fail' } } } }
    })
    const { runtime } = start(t, {
      work: setupWork({ actors: { broken } }).createMachine({
        initial: 'a',
        states: { a: { invoke: { src: 'broken', onDone: 'b' } }, b: { type: 'final' } }
      })
    })
    const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
    t.equal(stateName(taskIn(await runtime.sendMessage(say('y', { taskId }))).status.state), 'failed')
  })
})

await t.test('a region that asks nothing hears the answers to the questions of others', async t => {
  const asking = (prompt: string) =>
    ({
      initial: 'asking',
      states: {
        asking: { tags: 'input-required', meta: { prompt }, on: { 'message.received': 'known' } },
        known: { type: 'final' }
      }
    }) as const
  const work = setupWork({ types: { context: {} as { heard: string } } }).createMachine({
    type: 'parallel',
    context: { heard: '' },
    output: ({ context }) => ({ artifact: text(context.heard) }),
    states: {
      left: asking('Left?'),
      right: asking('Right?'),
      log: {
        initial: 'open',
        states: {
          open: {
            on: {
              'message.received': {
                target: 'closed',
                actions: assign({ heard: ({ event }) => wordsOf(event.message) })
              }
            }
          },
          closed: { type: 'final' }
        }
      }
    }
  })
  const { runtime } = start(t, { work })
  const { id } = taskIn(await runtime.sendMessage(say('go')))
  await runtime.sendMessage(say('first', { taskId: id }))
  const { artifacts } = taskIn(await runtime.sendMessage(say('second', { taskId: id })))
  t.match(artifacts, [{ parts: [{ text: 'first' }] }])
})
