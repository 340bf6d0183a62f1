import t, { type Test } from 'tap'
import { z } from 'zod'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import { negotiate, offerIn, type Offer } from '../../../adapters/client/connect.ts'
import type { Message, Part, SendMessageResponse } from '../../../machines/protocol/objects.ts'
import { jsonSchemaOf } from '../../../runtime/authoring/input-schema.ts'
import {
  accepted,
  declined,
  defineAgent,
  negotiation,
  offer,
  rejected,
  reply,
  text,
  type NegotiateFunction,
  type NegotiationAnswer,
  type RespondArguments,
  type Runtime,
  type RuntimeOptions,
  type StandardSchema
} from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { NegotiationOptions } from '../../../runtime/negotiation/negotiation.ts'
import type { Store } from '../../../runtime/store/store.ts'
import type { AgentDefinition } from '../../../runtime/agent/define-agent.ts'
import { painter, steeredWork } from '../../fixtures/runtime/agents.ts'
import { failOnLooseErrors, lives } from '../../fixtures/runtime/lives.ts'
import {
  deferred,
  heldStore,
  messageIn,
  refusal,
  rejection,
  rest,
  say,
  start,
  taskIn,
  textOf,
  until,
  withGenerations
} from '../../fixtures/runtime/runtime-helpers.ts'
import { NO_SQLITE } from '../../fixtures/stores/sqlite.ts'

failOnLooseErrors(t)

const URI = 'urn:taskchart:extension:negotiation:1'
const MINUTE = 60_000
const terms = z.object({ euros: z.number(), day: z.string() })
type Terms = z.output<typeof terms>
type Respond = (given: RespondArguments<Terms>) => NegotiationAnswer<Terms> | Promise<NegotiationAnswer<Terms>>

/** Asks 40, comes down by half of the way, takes 35, and understands `deal`, `hello` and `bye`. */
const haggle: Respond = ({ message, proposal, standing }) => {
  const words = textOf(message)
  if (proposal && proposal.euros >= 35) return accepted()
  if (proposal) return offer({ euros: (40 + proposal.euros) / 2, day: proposal.day }, { message: 'Meet me half-way.' })
  if (words === 'deal') return accepted()
  if (words === 'bye') return declined('Bye!')
  if (words === 'wedding') return rejected('I do no weddings.')
  return words === 'hello'
    ? reply(`Hello, ${standing ? standing.terms.euros : 'nothing'} is what I offer.`)
    : offer({ euros: 40, day: 'friday' })
}

function bargainer(
  respond: Respond = haggle,
  more: Partial<NegotiationOptions<Terms>> = {}
): Omit<AgentDefinition, 'card'> {
  return {
    negotiate: negotiation({ terms, respond, ...more }),
    work: ({ terms }) => ({ artifact: JSON.stringify(terms) })
  }
}

/** A respond that answers each message when the test says so. */
function steered(): {
  respond: Respond
  asked: RespondArguments<Terms>[]
  answer: (answer: NegotiationAnswer<Terms>) => Promise<void>
} {
  const asked: RespondArguments<Terms>[] = []
  const gates: ReturnType<typeof deferred<NegotiationAnswer<Terms>>>[] = []
  const respond: Respond = given => {
    const gate = deferred<NegotiationAnswer<Terms>>()
    asked.push(given)
    gates.push(gate)
    return gate.promise
  }
  const answer = async (answer: NegotiationAnswer<Terms>) => {
    ;(await until(() => gates.at(-1))).resolve(answer)
    // Those of a runtime that was killed are gone with it.
    gates.length = 0
    await rest()
  }
  return { respond, asked, answer }
}

/** Says something in the context `c`. */
function tell(runtime: Runtime, ...parts: (string | Part)[]): Promise<SendMessageResponse> {
  return runtime.sendMessage(
    say('', { contextId: 'c', parts: parts.map(part => (typeof part === 'string' ? text(part) : part)) })
  )
}

/** The offer that an answer holds. */
function offerFrom(response: SendMessageResponse): Offer {
  const found = offerIn(messageIn(response))
  if (!found) throw new Error(`An offer was expected, not ${JSON.stringify(response)}`)
  return found
}

const termsIn = (response: SendMessageResponse) => Object(taskIn(response).metadata?.[URI]).terms
const wordsIn = (response: SendMessageResponse) => textOf(messageIn(response))

await t.test('an offer has words and a data part, and accepting its id opens a task', async t => {
  const { runtime, store } = start(t, bargainer())
  const asked = await tell(runtime, 'mow my lawn')
  const made = offerFrom(asked)
  t.strictSame(messageIn(asked).parts, [{ text: 'This is my offer.' }, { data: { [URI]: { offer: made } } }])
  t.match(made, { round: 1, terms: { euros: 40, day: 'friday' }, expiresAt: '2026-01-02T03:14:05.006Z' })

  const counter = await tell(runtime, 'too much', negotiate({ propose: { euros: 30, day: 'monday' } }))
  t.equal(textOf(messageIn(counter)), 'Meet me half-way. ?')
  t.match(offerFrom(counter), { round: 3, terms: { euros: 35, day: 'monday' } })

  const done = taskIn(await tell(runtime, negotiate({ accept: offerFrom(counter) })))
  t.strictSame(done.metadata, { [URI]: { terms: { euros: 35, day: 'monday' } } })
  t.strictSame(done.artifacts?.map(textOf), ['{"euros":35,"day":"monday"}'], 'its work has them, too')
  const history = await store.readMessages({ tenant: '', principal: 'anonymous', contextId: 'c' }, 10)
  t.strictSame(
    history.map(({ message }) => message.role.replace('ROLE_', '')),
    ['USER', 'AGENT', 'USER', 'AGENT', 'USER']
  )

  t.match(offerFrom(await tell(runtime, 'and the hedge')), { round: 1 }, 'the next starts a new negotiation')
})

await t.test('a message that the author interprets', async t => {
  await t.test('as an acceptance accepts the proposed terms, or those of the open offer', async t => {
    const { runtime } = start(t, bargainer())
    t.strictSame(termsIn(await tell(runtime, negotiate({ propose: { euros: 36, day: 'sunday' } }))), {
      euros: 36,
      day: 'sunday'
    })
    await tell(runtime, 'mow my lawn')
    t.strictSame(termsIn(await tell(runtime, 'deal')), { euros: 40, day: 'friday' })
    t.equal(
      wordsIn(await tell(runtime, 'deal')),
      'This offer is not open any more.',
      'and nothing without an open offer'
    )
  })

  await t.test('may be answered in words, which keep the offer open, or declined, which closes it', async t => {
    const { runtime } = start(t, bargainer())
    const made = offerFrom(await tell(runtime, 'mow my lawn'))
    t.equal(wordsIn(await tell(runtime, 'hello')), 'Hello, 40 is what I offer.')
    t.equal(wordsIn(await tell(runtime, 'bye')), 'Bye!')
    t.equal(wordsIn(await tell(runtime, negotiate({ accept: made }))), 'This offer is not open any more.')
  })

  await t.test('may open a task that is rejected before its work starts', async t => {
    const { work, runs } = steeredWork()
    const { runtime } = start(t, { ...bargainer(), work })
    const task = taskIn(await tell(runtime, 'wedding'))
    t.match([task.status.state, textOf(task.status.message)], ['TASK_STATE_REJECTED', 'I do no weddings.'])
    await rest()
    t.equal(runs.length, 0)
  })
})

await t.test('moves of the protocol are decided without the author', async t => {
  const { respond, asked, answer } = steered()
  const { runtime } = start(t, bargainer(respond))
  const first = tell(runtime, 'mow my lawn')
  await answer(offer({ euros: 40, day: 'friday' }, { message: [text('40'), text('euros')] }))
  const made = offerFrom(await first)
  t.equal(textOf(messageIn(await first)), '40 euros ?')

  t.match(
    offerFrom(await tell(runtime, negotiate({ accept: { offerId: 'another' } }))),
    made,
    'another offer is not open: the client receives the open one'
  )
  t.match(offerFrom(await tell(runtime, negotiate({ decline: { offerId: 'another' } }))), made)
  t.equal(wordsIn(await tell(runtime, 'no', negotiate({ decline: made }))), 'The offer is declined. There is no deal.')
  t.equal(wordsIn(await tell(runtime, negotiate({ accept: made }))), 'This offer is not open any more.')
  t.strictSame(asked.length, 1)
  t.strictSame((await runtime.listTasks({})).tasks, [])
})

await t.test('the author receives message, history, proposal, open offer and number of offers', async t => {
  const { respond, asked, answer } = steered()
  const uri = 'https://example.com/ext'
  const { runtime, clock } = start(t, { ...bargainer(respond), extensions: [{ uri }] })
  const first = tell(runtime, 'mow my lawn')
  await answer(offer({ euros: 40, day: 'friday' }))
  const { offerId } = offerFrom(await first)
  const second = runtime.sendMessage(
    say('', { contextId: 'c', parts: [negotiate({ propose: { euros: 30, day: 'monday' } })] }),
    {
      extensions: [uri]
    }
  )
  await until(() => asked.length === 2)
  const expiresAtMs = clock.now() + 10 * MINUTE
  t.match(asked[0], { contextId: 'c', extensions: [], proposal: undefined, standing: undefined, round: 0 })
  t.match(asked[1], {
    extensions: [uri],
    proposal: { euros: 30, day: 'monday' },
    standing: { offerId, round: 1, terms: { euros: 40, day: 'friday' }, expiresAtMs },
    round: 2
  })
  t.strictSame((await asked[1]?.history())?.map(textOf), ['mow my lawn', 'This is my offer. ?'])
  t.notOk(asked[1]?.signal.aborted)
  const refused = refusal(second)
  await runtime.close()
  t.match(await refused, { code: 'Overloaded' })
  t.ok(asked[1]?.signal.aborted, 'its signal aborts with the runtime')
})

await t.test('an offer expires by the clock, also for the author', async t => {
  const { runtime, clock } = start(t, bargainer(haggle, { offerMs: MINUTE }))
  const made = offerFrom(await tell(runtime, 'mow my lawn'))
  clock.increment(MINUTE - 1)
  t.equal(wordsIn(await tell(runtime, 'hello')), 'Hello, 40 is what I offer.')
  clock.increment(1)
  t.equal(wordsIn(await tell(runtime, negotiate({ accept: made }))), 'This offer is not open any more.')
  await tell(runtime, 'mow my lawn')
  clock.increment(MINUTE)
  t.equal(wordsIn(await tell(runtime, 'deal')), 'This offer is not open any more.')
  t.equal(wordsIn(await tell(runtime, 'hello')), 'Hello, nothing is what I offer.')
  const last = offerFrom(await tell(runtime, 'mow my lawn'))
  t.equal(last.round, 1, 'the count of offers restarts')
  clock.increment(MINUTE - 1)
  t.strictSame(termsIn(await tell(runtime, negotiate({ accept: last }))), { euros: 40, day: 'friday' })
})

await t.test('a timely acceptance counts although it waited until the offer had expired', async t => {
  const { respond, answer } = steered()
  const { runtime, clock } = start(t, bargainer(respond, { offerMs: MINUTE }))
  const first = tell(runtime, 'mow my lawn')
  await answer(offer({ euros: 40, day: 'friday' }))
  const made = offerFrom(await first)
  const [words, inTime] = [tell(runtime, 'hm'), tell(runtime, negotiate({ accept: made }))]
  await rest()
  clock.increment(MINUTE)
  await answer(reply('Take your time.'))
  t.equal(wordsIn(await words), 'Take your time.')
  t.strictSame(termsIn(await inTime), { euros: 40, day: 'friday' })
})

await t.test('a counter-offer beyond the rounds is declined in words, and the negotiation restarts', async t => {
  const { runtime } = start(t, bargainer(haggle, { rounds: 3 }))
  await tell(runtime, 'mow my lawn')
  const made = offerFrom(await tell(runtime, negotiate({ propose: { euros: 20, day: 'monday' } })))
  t.equal(made.round, 3)
  t.equal(
    wordsIn(await tell(runtime, negotiate({ propose: { euros: 21, day: 'monday' } }))),
    'There is no deal: the offer limit of 3 is reached.'
  )
  t.equal(wordsIn(await tell(runtime, negotiate({ accept: made }))), 'This offer is not open any more.')
  t.equal(offerFrom(await tell(runtime, negotiate({ propose: { euros: 20, day: 'monday' } }))).round, 2)
})

await t.test('one of two simultaneous acceptances opens a task', async t => {
  const { runtime } = start(t, bargainer())
  const made = offerFrom(await tell(runtime, 'mow my lawn'))
  const both = await Promise.all([
    tell(runtime, negotiate({ accept: made })),
    tell(runtime, negotiate({ accept: made }))
  ])
  t.strictSame(
    both.map(answer => ('task' in answer ? 'task' : wordsIn(answer))),
    ['task', 'This offer is not open any more.']
  )
  t.equal((await runtime.listTasks({})).tasks.length, 1)
})

await t.test('a resent acceptance returns the same task with the reliability extension', async t => {
  const { runtime } = start(t, bargainer())
  const params = say('', {
    contextId: 'c',
    parts: [negotiate({ accept: offerFrom(await tell(runtime, 'mow my lawn')) })]
  })
  const ids = [
    taskIn(await runtime.sendMessage(params, withGenerations)).id,
    taskIn(await runtime.sendMessage(params, withGenerations)).id
  ]
  t.equal(ids[0], ids[1])
})

await t.test('while a message is being answered', async t => {
  await t.test('later ones wait in order, and one over the limit is refused with RateLimited', async t => {
    const { respond, asked, answer } = steered()
    const { runtime } = start(t, bargainer(respond), { limits: { queuedMessages: 2 } })
    const first = tell(runtime, 'one')
    await until(() => asked.length === 1)
    const [second, third] = [
      tell(runtime, negotiate({ propose: { euros: 30, day: 'monday' } })),
      tell(runtime, 'three')
    ]
    t.match(await refusal(tell(runtime, 'four')), { code: 'RateLimited', message: /wait for an answer/ })
    await answer(offer({ euros: 40, day: 'friday' }))
    await answer(offer({ euros: 35, day: 'monday' }))
    await answer(reply('3'))
    t.strictSame([offerFrom(await first).round, offerFrom(await second).round, wordsIn(await third)], [1, 3, '3'])
    t.strictSame(
      asked.map(({ standing }) => standing?.terms.euros),
      [undefined, 40, 35]
    )
  })

  await t.test('the second of two waiting acceptances opens nothing, also after the author accepted', async t => {
    const { respond, asked, answer } = steered()
    const { runtime } = start(t, bargainer(respond))
    const first = tell(runtime, 'mow my lawn')
    await answer(offer({ euros: 40, day: 'friday' }))
    const made = offerFrom(await first)
    const all = [tell(runtime, 'deal'), tell(runtime, negotiate({ accept: made }))]
    await until(() => asked.length === 2)
    await answer(accepted())
    t.strictSame(
      (await Promise.all(all)).map(answer => 'task' in answer),
      [true, false]
    )
  })

  await t.test('the tasks of the context continue, and accept messages', async t => {
    const { respond, asked, answer } = steered()
    const { runtime } = start(t, { ...bargainer(respond), work: painter() })
    const opening = tell(runtime, 'a boat')
    await answer(accepted({ euros: 1, day: 'today' }))
    const { id } = taskIn(await opening)
    const talk = tell(runtime, 'hello?')
    await until(() => asked.length === 2)
    t.equal(taskIn(await runtime.sendMessage(say('red', { taskId: id }))).status.state, 'TASK_STATE_COMPLETED')
    await answer(reply('Hello!'))
    t.equal(wordsIn(await talk), 'Hello!')
  })
})

await t.test('an acceptance in a full context is refused with RateLimited, and the offer stays open', async t => {
  const { work, run } = steeredWork()
  const { runtime } = start(t, { ...bargainer(), work }, { limits: { tasksPerContext: 1 } })
  const opened = await runtime.sendMessage(
    say('', { contextId: 'c', parts: [negotiate({ propose: { euros: 99, day: 'now' } })] }, { returnImmediately: true })
  )
  const made = offerFrom(await tell(runtime, 'mow my lawn'))
  t.match(await refusal(tell(runtime, negotiate({ accept: made }))), { code: 'RateLimited', message: /Too many tasks/ })
  t.match(await refusal(tell(runtime, 'deal')), { code: 'RateLimited' })
  t.match(await refusal(tell(runtime, 'wedding')), { code: 'RateLimited' })
  ;(await run()).resolve({})
  await until(async () => (await runtime.getTask({ id: taskIn(opened).id })).status.state === 'TASK_STATE_COMPLETED')
  const accepting = tell(runtime, negotiate({ accept: made }))
  ;(await run(1)).resolve({})
  t.strictSame(termsIn(await accepting), { euros: 40, day: 'friday' })
})

await t.test('an invalid move or terms are refused with InvalidParams by field, without effect', async t => {
  const { runtime, store } = start(
    t,
    bargainer(() => {
      throw new Error('nobody asks')
    })
  )
  const at = `message.parts[0].data["${URI}"]`
  const good = negotiate({ propose: { euros: 1, day: 'x' } })
  const wrong: [unknown, string][] = [
    [7, at],
    [{}, at],
    [{ accept: {} }, `${at}.accept.offerId`],
    [{ accept: { offerId: 7 } }, `${at}.accept.offerId`],
    [{ decline: 'x' }, `${at}.decline`],
    [{ accept: { offerId: 'x' }, decline: { offerId: 'x' } }, at],
    [{ propose: {} }, `${at}.propose.terms`],
    [{ propose: { terms: [] } }, `${at}.propose.terms`],
    [{ propose: { terms: { euros: '40', day: 'x' } } }, `${at}.propose.terms.euros`],
    [{ propose: { terms: { euros: 40 } } }, `${at}.propose.terms.day`]
  ]
  for (const [move, field] of wrong) {
    const error = await rejection(tell(runtime, { data: { [URI]: move } as never }))
    t.match(error, { code: 'InvalidParams', violations: [{ field }] }, JSON.stringify(move))
    t.match(error.message, field)
  }
  t.match(await rejection(tell(runtime, good, good)), {
    code: 'InvalidParams',
    violations: [{ field: at.replace('0', '1') }]
  })
  t.equal(await store.loadContext({ tenant: '', principal: 'anonymous', contextId: 'c' }), undefined)
})

await t.test('data that is no offer of this negotiation counts as words', async t => {
  const { runtime } = start(t, bargainer())
  for (const data of [null, [], { other: 1 }, 'x']) t.ok(offerFrom(await tell(runtime, { data })))
  const { runtime: other } = start(t, { negotiate: () => reply('hello') })
  t.equal(wordsIn(await tell(other, { data: { [URI]: 7 } })), 'hello')
  t.equal(
    offerIn({ parts: [text('x'), { data: { [URI]: 7 } }, { data: { [URI]: { offer: { offerId: 'x' } } } }] }),
    undefined
  )
})

await t.test('a message to a task does not reach the negotiation', async t => {
  const { runtime } = start(t, { ...bargainer(), work: painter() })
  const { id } = taskIn(await tell(runtime, negotiate({ propose: { euros: 99, day: 'now' } })))
  const answered = taskIn(
    await runtime.sendMessage(say('', { taskId: id, parts: [text('red'), { data: { [URI]: 7 } }] }))
  )
  t.not(answered.status.state, 'TASK_STATE_SUBMITTED')
})

await t.test('an invalid answer of the author fails only that call, and the offer stays open', async t => {
  const wrong: [string, () => unknown, RegExp][] = [
    [
      'throws',
      () => {
        throw new Error('secret')
      },
      /secret/
    ],
    ['nothing', () => undefined, /has to answer offer\(…\), accepted\(…\), declined\(…\), reply\(…\) or rejected\(…\)/],
    ['no word', () => ({ type: 'maybe' }), /has to answer/],
    [
      'bad terms',
      () => offer({ euros: '40', day: 'friday' }),
      /produced terms that its own schema does not accept: terms\.euros /
    ],
    ['no terms', () => offer(undefined as never), /terms /],
    ['bad agreement', () => accepted({ euros: 1 }), /terms\.day /],
    ['bad message', () => offer({ euros: 1, day: 'x' }, { message: 7 as never }), /message must be/],
    ['bad words', () => declined(7 as never), /message must be/],
    ['bad reason', () => rejected(undefined as never), /message is required/]
  ]
  let next: (() => unknown) | undefined
  const { runtime, log } = start(
    t,
    bargainer((given): never => (next ? next() : haggle(given)) as never)
  )
  const made = offerFrom(await tell(runtime, 'mow my lawn'))
  for (const [name, answer, error] of wrong) {
    next = answer
    const refused = await refusal(tell(runtime, name))
    t.match(refused, { code: 'InternalError', message: 'The agent could not answer this message.' })
    t.match(
      log.pop(),
      {
        level: 'error',
        message: 'the negotiation of a message failed',
        details: { contextId: 'c', error: { message: error } }
      },
      name
    )
  }
  t.strictSame(log, [])
  t.strictSame(termsIn(await tell(runtime, negotiate({ accept: made }))), { euros: 40, day: 'friday' })
})

await t.test(
  'an answer that times out fails with DeadlineExceeded, aborts its signal and unblocks the next',
  async t => {
    const signals: AbortSignal[] = []
    const slow = ({ message, signal }: { message: Message; signal: AbortSignal }) => {
      if (textOf(message) !== 'slow') return reply('quick')
      signals.push(signal)
      return new Promise<never>(() => {})
    }
    for (const [name, definition] of Object.entries({ bargaining: bargainer(slow), function: { negotiate: slow } })) {
      const { runtime, clock, log } = start(t, definition, { limits: { advanced: { negotiationMs: 500 } } })
      const refused = refusal(tell(runtime, 'slow'))
      const signal = await until(() => signals.pop())
      clock.increment(499)
      await rest()
      t.notOk(signal.aborted, name)
      const next = tell(runtime, 'next')
      clock.increment(1)
      t.match(
        await refused,
        { code: 'DeadlineExceeded', message: 'The agent gave no answer to this message in time.' },
        name
      )
      t.ok(signal.aborted, name)
      t.equal(wordsIn(await next), 'quick', name)
      t.match(
        log,
        [
          {
            message: 'the negotiation of a message failed',
            details: { contextId: 'c', error: { name: 'TimeoutError', message: 'There was no answer within 500 ms.' } }
          }
        ],
        name
      )
    }
  }
)

await t.test('a stopped negotiation leaves no timer', async t => {
  const { runtime, clock, log } = start(t, { negotiate: () => new Promise<never>(() => {}) })
  const lost = refusal(tell(runtime, 'x'))
  await rest()
  await runtime.close()
  t.match(await lost, { code: 'Overloaded' })
  clock.increment(10 * MINUTE)
  await rest()
  t.strictSame(log, [])
})

await t.test('the history of a negotiation has the newest messages up to limits.referencedBytes', async t => {
  const read: unknown[] = []
  const negotiate: NegotiateFunction = async ({ history }) => {
    read.push((await history()).map(message => textOf(message)?.slice(0, 1)))
    return reply('r')
  }
  const { runtime } = start(t, { negotiate }, { limits: { referencedBytes: 2000 } })
  for (const words of ['a', 'b', 'c', 'd']) await tell(runtime, words.repeat(1000))
  t.strictSame(read, [[], ['a', 'r'], ['a', 'r', 'b', 'r'], ['b', 'r', 'c', 'r']])
})

await t.test('a schema', async t => {
  const standard = (validate: (value: unknown) => unknown) =>
    ({ '~standard': { version: 1, vendor: 'test', validate } }) as StandardSchema<{ a: number }>
  const answering = (schema: StandardSchema<{ a: number }>) =>
    start(t, { negotiate: negotiation({ terms: schema, respond: () => offer({ a: 1 }) }), work: () => {} })

  await t.test('that throws, is asynchronous, or returns no object is the author’s error', async t => {
    for (const validate of [
      () => {
        throw new Error('secret')
      },
      async (value: unknown) => ({ value }),
      () => ({ value: 7 })
    ]) {
      const { runtime, log } = answering(standard(validate))
      t.match(await refusal(tell(runtime, negotiate({ propose: { a: 1 } }))), { code: 'InternalError' })
      t.match(await refusal(tell(runtime, 'hello')), { code: 'InternalError' })
      t.strictSame(
        log.map(({ message }) => message),
        ['an operation failed', 'the negotiation of a message failed']
      )
    }
  })

  await t.test('returns the agreed terms', async t => {
    const seen: unknown[] = []
    const doubled = z.object({ a: z.number().catch(7) })
    const { runtime } = start(t, {
      negotiate: negotiation({ terms: doubled, respond: ({ proposal }) => (seen.push(proposal), accepted()) }),
      work: () => {}
    })
    t.strictSame(termsIn(await tell(runtime, negotiate({ propose: { a: 'x', b: 1 } }))), { a: 7 })
    t.strictSame(seen, [{ a: 7 }])
  })
})

/** Stores to restart over: one in memory, one on disk. */
const STORES: [string, (t: Test) => Store][] = [
  ['in memory', () => memoryStore()],
  ['on disk', onDisk]
]

function onDisk(t: Test): Store {
  const store = sqliteStore(`${t.testdir()}/tasks.db`)
  t.teardown(() => store.close())
  return store
}

await t.test('after a restart', async t => {
  for (const [where, storeOf] of STORES) {
    await t.test(
      `at every step, the negotiation continues from the stored state ${where}`,
      { skip: where === 'on disk' && NO_SQLITE },
      async t => {
        const life = lives(t, bargainer(), { store: storeOf(t) })
        const first = offerFrom(await tell(life.runtime, 'mow my lawn'))
        await life.kill()
        t.equal(wordsIn(await tell(life.runtime, 'hello')), 'Hello, 40 is what I offer.')
        await life.restart()
        const second = offerFrom(await tell(life.runtime, negotiate({ propose: { euros: 30, day: 'monday' } })))
        t.strictSame([first.round, second.round], [1, 3])
        await life.kill()
        const { id } = taskIn(await tell(life.runtime, negotiate({ accept: second })))
        await life.kill()
        t.equal(wordsIn(await tell(life.runtime, negotiate({ accept: second }))), 'This offer is not open any more.')
        t.strictSame(
          (await life.runtime.listTasks({})).tasks.map(task => task.id),
          [id]
        )
        await life.restart()
        await tell(life.runtime, 'mow my lawn')
        await life.pass(10 * MINUTE)
        await life.kill()
        t.equal(
          wordsIn(await tell(life.runtime, 'deal')),
          'This offer is not open any more.',
          'an offer that expired meanwhile is closed'
        )
        t.strictSame(life.log, [])
      }
    )

    await t.test(
      `unanswered messages are answered in order when the context is used, ${where}`,
      { skip: where === 'on disk' && NO_SQLITE },
      async t => {
        const { respond, asked, answer } = steered()
        const life = lives(t, bargainer(respond), { store: storeOf(t) })
        const lost = [refusal(tell(life.runtime, 'one')), refusal(tell(life.runtime, 'two'))]
        await until(() => asked.length === 1)
        await life.kill()
        t.match(await Promise.all(lost), [{ code: 'Overloaded' }, { code: 'Overloaded' }])
        const third = tell(life.runtime, 'three')
        await until(() => asked.length === 2)
        await rest()
        for (const words of ['1', '2', '3']) await answer(reply(words))
        t.equal(wordsIn(await third), '3')
        t.strictSame(
          asked.map(({ message }) => textOf(message)),
          ['one', 'one', 'two', 'three']
        )
      }
    )
  }

  await t.test('an uncommitted offer is not open, and nobody received it', async t => {
    const store = heldStore()
    const { runtime } = start(t, bargainer(), { store })
    store.hold()
    let heard = false
    const asked = tell(runtime, 'mow my lawn').finally(() => (heard = true))
    await until(() => store.held.length === 1)
    await store.release()
    await until(() => store.held.length === 1)
    t.notOk(heard, 'the offer is decided, and nobody receives it')
    await store.passAll()
    t.ok(offerFrom(await asked))
  })

  await t.test('during an acceptance there is one task, or none', async t => {
    const life = lives(t, bargainer())
    const made = offerFrom(await tell(life.runtime, 'mow my lawn'))
    life.die()
    const lost = refusal(tell(life.runtime, negotiate({ accept: made })))
    await life.kill()
    t.match(await lost, { code: 'Overloaded' })
    t.strictSame((await life.runtime.listTasks({})).tasks, [], 'it was not committed')
    t.strictSame(termsIn(await tell(life.runtime, negotiate({ accept: made }))), { euros: 40, day: 'friday' })
  })
})

await t.test('another agent after a restart', async t => {
  await t.test('closes an open offer with terms that its schema refuses, and keeps others', async t => {
    for (const [changed, answer] of [
      [z.object({ euros: z.string() }), 'gone'],
      [
        z.custom(() => {
          throw new Error('broken')
        }),
        'gone'
      ],
      [z.object({ euros: z.number() }), 'stands']
    ] as const) {
      const life = lives(t, bargainer())
      const made = offerFrom(await tell(life.runtime, 'mow my lawn'))
      await life.kill({
        negotiate: negotiation({
          terms: changed as StandardSchema<Record<string, unknown>>,
          respond: ({ round }) => reply(`${round}`)
        }),
        work: () => {}
      })
      const answered = await tell(life.runtime, negotiate({ accept: made }))
      t.equal('task' in answered ? 'stands' : 'gone', answer)
    }
    const life = lives(t, bargainer())
    await tell(life.runtime, 'hello')
    await life.kill(bargainer(haggle, { rounds: 1 }))
    await tell(life.runtime, 'mow my lawn')
    t.match(
      wordsIn(await tell(life.runtime, negotiate({ propose: { euros: 1, day: 'x' } }))),
      'the offer limit of 1 is reached'
    )
  })

  await t.test('continues a context, with or without a negotiation function on each side', async t => {
    const byFunction = {
      negotiate: ({ message }: { message: Parameters<typeof textOf>[0] }) => reply(`re ${textOf(message)}`),
      work: () => {}
    }
    const life = lives(t, byFunction)
    t.equal(wordsIn(await tell(life.runtime, 'a')), 're a')
    await life.kill(bargainer())
    const made = offerFrom(await tell(life.runtime, 'mow my lawn'))
    await life.kill(byFunction)
    t.equal(wordsIn(await tell(life.runtime, negotiate({ accept: made }))), 're ?')
    await life.kill({ work: () => ({ artifact: 'x' }) })
    t.ok(taskIn(await tell(life.runtime, 'x')))
    await life.kill(bargainer())
    t.equal('task' in (await tell(life.runtime, negotiate({ accept: made }))), true, 'the offer has waited')
  })

  await t.test('drops a message that was being answered if it negotiates in another way', async t => {
    const pending = { negotiate: () => new Promise<never>(() => {}), work: () => {} }
    const life = lives(t, pending)
    const lost = refusal(tell(life.runtime, 'a'))
    await rest()
    await life.kill(bargainer())
    t.match(await lost, { code: 'Overloaded' })
    t.ok(offerFrom(await tell(life.runtime, 'mow my lawn')))
    const open = lives(
      t,
      bargainer(() => new Promise(() => {}))
    )
    const given = refusal(tell(open.runtime, 'a'))
    await rest()
    await open.kill({ negotiate: () => reply('b') })
    t.match(await given, { code: 'Overloaded' })
    t.equal(wordsIn(await tell(open.runtime, 'x')), 'b')
  })
})

await t.test('a context may leave memory with an open offer, but not while it answers', async t => {
  const { respond, asked, answer } = steered()
  const loads: string[] = []
  const inner = memoryStore()
  // Behind a node, the definition of the agent is stored by way of contexts as well.
  const store: Store = {
    ...inner,
    loadContext: key => {
      if (!key.principal.startsWith('urn:taskchart:')) loads.push(key.contextId)
      return inner.loadContext(key)
    }
  }
  const { runtime } = start(
    t,
    bargainer(given => (textOf(given.message) === 'wait' ? respond(given) : haggle(given))),
    { store, limits: { advanced: { idleContexts: 1 } } }
  )
  const to = (contextId: string, ...parts: Part[]) => runtime.sendMessage(say('', { contextId, parts }))
  const made = offerFrom(await to('a', text('mow')))
  await to('b', text('mow'))
  await to('d', text('mow'))
  t.strictSame(loads, ['a', 'b', 'd'])
  t.strictSame(termsIn(await to('a', negotiate({ accept: made }))), { euros: 40, day: 'friday' })
  t.strictSame(loads, ['a', 'b', 'd', 'a'])

  const waiting = to('w', text('wait'))
  await until(() => asked.length === 1)
  await to('b', text('mow'))
  await to('d', text('mow'))
  await answer(reply('done'))
  t.equal(wordsIn(await waiting), 'done')
  t.strictSame(
    loads.filter(id => id === 'w'),
    ['w'],
    'it never left memory'
  )
})

await t.test("the card declares the extension, with the limits and the terms' JSON Schema if any", async t => {
  const extensionsOf = (agent: Omit<AgentDefinition, 'card'>, options?: Partial<RuntimeOptions>) => {
    const { runtime } = start(t, agent, options)
    return {
      declared: runtime.agentCard([]).capabilities.extensions?.find(({ uri }) => uri === URI),
      supported: runtime.settings.extensions.includes(URI)
    }
  }
  t.match(extensionsOf(bargainer(haggle, { rounds: 7, offerMs: 5 })), {
    declared: {
      params: {
        rounds: 7,
        offerMs: 5,
        terms: {
          type: 'object',
          properties: { euros: { type: 'number' }, day: { type: 'string' } },
          required: ['euros', 'day']
        }
      }
    },
    supported: true
  })
  const silent: StandardSchema<Terms> = {
    '~standard': { version: 1, vendor: 'test', validate: value => ({ value: value as Terms }) }
  }
  t.strictSame(
    extensionsOf({ negotiate: negotiation({ terms: silent, respond: () => reply('x') }), work: () => {} }).declared
      ?.params,
    { rounds: 5, offerMs: 600_000 }
  )
  t.strictSame(extensionsOf({ negotiate: () => reply('x') }), { declared: undefined, supported: false })
  t.equal(jsonSchemaOf(z.object({ at: z.date() })), undefined, 'a date has no schema')
  t.equal(jsonSchemaOf(silent), undefined)
})

await t.test('an invalid negotiation is refused when it is defined, with what to write instead', async t => {
  const card = { name: 'A' }
  const given = { terms, respond: haggle }
  for (const wrong of [undefined, null, 7, {}, { '~standard': null }, { '~standard': {} }]) {
    t.throws(() => negotiation({ terms: wrong as never, respond: () => reply('x') }), {
      name: 'TypeError',
      message: /^terms has to be a schema .*z\.object/
    })
  }
  for (const rounds of [0, -1, 1.5, NaN, Infinity, '5', null])
    t.throws(() => negotiation({ ...given, rounds: rounds as never }), {
      name: 'RangeError',
      message: /^rounds has to be a whole number/
    })
  for (const offerMs of [0, -1, NaN, Infinity, 1e300, 'x'])
    t.throws(() => negotiation({ ...given, offerMs: offerMs as never }), {
      name: 'RangeError',
      message: /^offerMs has to be milliseconds above 0/
    })
  for (const respond of [undefined, 'x', {}])
    t.throws(() => negotiation({ ...given, respond: respond as never }), {
      name: 'TypeError',
      message: /^respond has to be a function that answers offer/
    })
  t.throws(() => defineAgent({ card, negotiate: negotiation(given) }), {
    name: 'TypeError',
    message: /^A negotiation agrees on terms for work\. Add work/
  })
  for (const wrong of ['x', {}, { type: 'negotiation' }, given]) {
    t.throws(() => defineAgent({ card, work: () => {}, negotiate: wrong as never }), {
      name: 'TypeError',
      message: /^negotiate has to be a function .* or a negotiation: negotiation\(\{ terms/
    })
  }
  t.doesNotThrow(
    () => defineAgent({ card, work: () => {}, negotiate: { ...negotiation(given) } }),
    'a negotiation of another copy of the package counts'
  )
})
