import t from 'tap'
import { z } from 'zod'
import { createMachine, fromCallback, fromPromise, type AnyStateMachine } from 'xstate'
import {
  accepted,
  defineAgent,
  negotiation,
  progress,
  reply,
  setupWork,
  type AgentDefinition
} from '../../../runtime/index.ts'
import { closestName } from '../../../runtime/primitives/options.ts'
import { echo } from '../../fixtures/runtime/agents.ts'

const card = { name: 'A' }
const chart = setupWork({}).createMachine({ initial: 'a', states: { a: { type: 'final' } } })

await t.test(
  'by default an agent rejects messages during work, never restarts, and stops within 5 seconds',
  async t => {
    t.match(defineAgent({ card, work: echo }), {
      messages: 'reject',
      restart: { type: 'temporary', intensity: 1, periodMs: 5000 },
      cancelGraceMs: 5000
    })
    t.match(
      defineAgent({
        card,
        work: chart,
        messages: 'deliver',
        restart: { type: 'transient', intensity: 3 },
        cancelGraceMs: 0
      }),
      {
        messages: 'deliver',
        restart: { type: 'transient', intensity: 3, periodMs: 5000 },
        cancelGraceMs: 0
      }
    )
    t.match(defineAgent({ card, work: echo, messages: 'queue', restart: 'transient', cancelGraceMs: Infinity }), {
      messages: 'queue',
      restart: { type: 'transient' },
      cancelGraceMs: Infinity
    })
  }
)

await t.test('work is a function, possibly async, or an async generator, but no other generator', async t => {
  const works = [
    () => {},
    async () => {},
    async function* () {
      yield progress('x')
    },
    {
      async *work() {
        yield progress('x')
      }
    }.work
  ]
  for (const work of works) t.equal(defineAgent({ card, work }).work, work)
  for (const work of [function* () {}, { *work() {} }.work]) {
    t.throws(() => defineAgent({ card, work: work as never }), {
      name: 'TypeError',
      message:
        'work has to be an async function, an async generator, or a statechart made with setupWork(…).createMachine(…).'
    })
  }
})

await t.test('steered messages need a statechart, since a function cannot say what it accepts', async t => {
  const delivering = { card, messages: 'deliver' } as const
  const message =
    "messages: 'deliver' needs work as a statechart. For a function write 'queue', which stores messages for its next question."
  t.throws(() => defineAgent({ ...delivering, work: echo }), { name: 'TypeError', message })
  t.throws(
    () =>
      defineAgent({
        ...delivering,
        work: async function* () {
          yield progress('x')
        }
      }),
    { name: 'TypeError', message }
  )
  t.doesNotThrow(() => defineAgent({ ...delivering, work: chart }))
})

await t.test('an unknown message policy is refused with the known ones', async t => {
  for (const wrong of ['', 'Queue', 'drop', null, true, 3]) {
    t.throws(() => defineAgent({ card, work: chart, messages: wrong as never }), {
      name: 'TypeError',
      message: `messages has to be 'reject', 'deliver' or 'queue', not ${String(wrong)}.`
    })
  }
})

await t.test('an invalid restart policy is refused when the agent is defined', async t => {
  t.throws(() => defineAgent({ card, work: echo, restart: 'permanent' as never }), {
    name: 'TypeError',
    message: /work cannot be permanent/
  })
  t.throws(() => defineAgent({ card, work: echo, restart: { type: 'transient', intensity: -1 } }), {
    name: 'RangeError',
    message: /restart\.intensity .* not -1\./
  })
  t.throws(() => defineAgent({ card, work: echo, restart: { type: 'transient', periodMs: 0 } }), {
    name: 'RangeError',
    message: /restart\.periodMs .* not 0\./
  })
})

await t.test('an invalid grace period is refused', async t => {
  for (const wrong of [-1, NaN, -Infinity, '5000', null, true]) {
    t.throws(() => defineAgent({ card, work: echo, cancelGraceMs: wrong as never }), {
      name: 'RangeError',
      message: `cancelGraceMs has to be milliseconds from 0, not ${String(wrong)}.`
    })
  }
})

await t.test('an unknown member of an agent is refused with the closest name', async t => {
  const wrong: [definition: object, message: RegExp][] = [
    [{ card, worker: echo }, /^defineAgent has no worker\. Is work meant\?$/],
    [{ card, work: echo, Restart: 'transient' }, /^defineAgent has no Restart\. Is restart meant\?$/],
    [{ card, work: echo, deadline: 1000 }, /^defineAgent has no deadline\. Is deadlineMs meant\?$/],
    [
      { card, work: echo, onMessage: echo },
      /^defineAgent has no onMessage\. There are card, extendedCard, capabilities, extensions, .*, deadlineMs, properties\.$/
    ]
  ]
  for (const [definition, message] of wrong)
    t.throws(() => defineAgent(definition as AgentDefinition), { name: 'TypeError', message })
  t.doesNotThrow(() => defineAgent({ card, work: echo, worker: undefined } as AgentDefinition))
  const agent = defineAgent({ card, work: echo, input: z.string(), inputJsonSchema: {} })
  t.strictSame(defineAgent(agent), agent, 'an agent may be defined from another')
})

await t.test('card members that the runtime sets are refused, with where to set them', async t => {
  const wrong: [more: object, message: RegExp][] = [
    [
      { url: 'http://localhost' },
      /^card\.url follows from where the agent is served\. Leave it out, or write createRuntime\(\{ publicUrl \}\)\.$/
    ],
    [{ supportedInterfaces: [] }, /^card\.supportedInterfaces follows from where/],
    [
      { capabilities: {} },
      /^card\.capabilities follows from how .*capabilities: \{ streaming: false \}.* defineAgent\(\{ extensions \}\)\.$/
    ],
    [{ signatures: [] }, /^card\.signatures would not match the served card/],
    [{ protocolVersion: '1.0' }, /^card\.protocolVersion follows/],
    [{ security: [] }, /^card\.security is called securityRequirements\.$/],
    [{ skill: [] }, /^card has no skill\. Is skills meant\?$/],
    [{ name: '' }, /^card\.name must be a non-empty string$/],
    [{ author: 'me' }, /^card has no author\. There are name, description, /]
  ]
  for (const [more, message] of wrong) {
    t.throws(() => defineAgent({ card: { ...card, ...more }, work: echo }), { name: 'TypeError', message })
    t.throws(() => defineAgent({ card, extendedCard: { ...more }, work: echo }), {
      name: 'TypeError',
      message: new RegExp(message.source.replace('^card', '^extendedCard'))
    })
  }
  t.throws(() => defineAgent({ work: echo } as never), { name: 'TypeError', message: /^card\.name is required/ })
  t.doesNotThrow(() => defineAgent({ card: { ...card, url: undefined } as typeof card, work: echo }))
})

await t.test('an unsuitable chart is refused with what to write instead', async t => {
  const x = fromPromise(async () => {})
  const one = (state: object, more: object = {}) =>
    createMachine({ id: 'shop', initial: 'a', states: { a: state, b: { type: 'final' } }, ...more } as never)
  const asks = { tags: 'input-required', on: { 'message.received': 'b' } }
  const schema = z.string()
  const wrong: [what: string, work: AnyStateMachine, message: string | RegExp][] = [
    [
      'logic without a name',
      one({ invoke: { src: fromPromise(async () => {}) } }),
      "The state shop.a invokes logic without a name. Name it: setupWork({ actors: { paint: … } }), and invoke: { src: 'paint' }."
    ],
    [
      'logic that is not there',
      one({ invoke: { src: 'paint' } }),
      'The state shop.a invokes paint, but there is no such actor. Add it: setupWork({ actors: { paint: fromPromise(…) } }).'
    ],
    [
      'a time that is not there',
      one({ after: { 1000: 'b', soon: 'b' } }),
      'The state shop.a uses the delay soon, which is not defined. Define it: setupWork({ delays: { soon: 1000 } }).'
    ],
    [
      'a question at the end',
      one({ ...asks, on: {}, type: 'final' }),
      "The state shop.a is final, and tagged input-required, but a final state receives no answer. Leave out type: 'final', and add a transition for 'message.received'."
    ],
    [
      'a failure that is no end',
      one({ tags: 'failed', on: { 'message.received': 'b' } }),
      "The state shop.a is tagged failed, but is not final: the task would not end there. Add type: 'final'."
    ],
    [
      'two questions at once',
      one({ ...asks, tags: ['input-required', 'auth-required'] }),
      'The state shop.a is tagged input-required and auth-required: it can ask for one of them. Make it two states.'
    ],
    [
      'two ends at once',
      one({ type: 'final', tags: ['failed', 'rejected'] }),
      'The state shop.a is tagged failed and rejected: a task ends in one of them. Make it two states.'
    ],
    [
      'a question and an end at once',
      one({ tags: ['rejected', 'auth-required'] }),
      'The state shop.a is tagged auth-required and rejected, but a state that asks is no end. Make it two states.'
    ],
    [
      'a tag in another spelling',
      one({ ...asks, tags: 'inputRequired' }),
      "The state shop.a is tagged 'inputRequired'. Is 'input-required' meant?"
    ],
    ['a tag as on the wire', one({ ...asks, tags: 'TASK_STATE_AUTH_REQUIRED' }), /'auth-required' meant/],
    ['a tag with a slip', one({ ...asks, tags: 'auth-requierd' }), /'auth-required' meant/],
    ['a tag that is too short', one({ type: 'final', tags: 'fail' }), /'failed' meant/],
    [
      'words that nobody hears',
      one({ meta: { prompt: 'Which?' }, on: { 'message.received': 'b' } }),
      "The state shop.a has a prompt in its meta, but asks nothing. Tag it: tags: 'input-required'."
    ],
    [
      'a schema that nobody answers',
      one({ meta: { schema } }),
      /^The state shop\.a has a schema in its meta, but asks nothing/
    ],
    [
      'a JSON Schema that nobody answers',
      one({ meta: { jsonSchema: {} } }),
      /^The state shop\.a has a jsonSchema in its meta, but asks nothing/
    ],
    [
      'a reason for nothing',
      one({ type: 'final', meta: { reason: 'No.' } }),
      "The state shop.a has a reason in its meta, but is not tagged failed or rejected. Tag it: type: 'final', tags: 'failed', or 'rejected'."
    ],
    [
      'words that are none',
      one({ ...asks, meta: { prompt: 7 } }),
      /^The state shop\.a has an invalid prompt or reason in its meta\. Give text/
    ],
    [
      'a reason that is none',
      one({ type: 'final', tags: 'failed', meta: { reason: { parts: [] } } }),
      /^The state shop\.a has an invalid prompt or reason in its meta/
    ],
    [
      'a schema that is none',
      one({ ...asks, meta: { schema: { parse: Number } } }),
      /^schema of the state shop\.a has to implement Standard Schema/
    ],
    [
      'a JSON Schema that is too long',
      one({ ...asks, meta: { schema, jsonSchema: { title: 'x'.repeat(20_000) } } }),
      /^The JSON Schema of schema of the state shop\.a has 20012 bytes/
    ],
    [
      'a question without an answer',
      one({ tags: 'input-required' }),
      "The state shop.a asks, but handles no answer. Add on: { 'message.received': … } to it."
    ],
    [
      'a login without an answer',
      one({ tags: 'auth-required', on: { paid: 'b' } }),
      "The state shop.a asks, but handles no answer. Add on: { 'authorization.received': … } to it."
    ],
    [
      'a question whose answer another state hears',
      one(
        { tags: 'input-required' },
        { states: { a: { tags: 'input-required' }, c: { on: { 'message.received': 'a' } } } }
      ),
      /asks, but handles no answer/
    ],
    [
      'an answer in another spelling',
      one({ ...asks, on: { 'message.recieved': 'b' } }),
      "The state shop.a handles 'message.recieved'. Is 'message.received' meant?"
    ],
    ...['on', 'after', 'always', 'invoke'].map((member): [string, AnyStateMachine, string] => [
      `what comes after the end: ${member}`,
      one({
        type: 'final',
        [member]: { on: { x: 'b' }, after: { 1: 'b' }, always: { target: 'b' }, invoke: { src: 'x' } }[member]
      }).provide({ actors: { x } }),
      `The state shop.a is final: the chart has ended there, and its ${member} is ignored. Leave it out, or make it a state that is not final.`
    ])
  ]
  for (const [what, work, message] of wrong) t.throws(() => defineAgent({ card, work }), { message }, what)
})

await t.test('input is refused for work that a negotiation opens', t => {
  const terms = z.object({ euros: z.number() })
  t.throws(
    () =>
      defineAgent({
        card,
        input: terms,
        negotiate: negotiation({ terms, respond: () => accepted() }),
        work: async () => {}
      }),
    { name: 'TypeError', message: /leave input out/ }
  )
  t.end()
})

await t.test('a valid chart is accepted, however it receives its answers', async t => {
  const asks = { tags: 'input-required' }
  const actors = { x: fromPromise(async () => {}) }
  const right: [what: string, states: object, given?: object][] = [
    ['around it', { a: { initial: 'c', states: { c: asks }, on: { 'message.received': 'b' } }, b: { type: 'final' } }],
    ['in it', { a: { ...asks, initial: 'c', states: { c: { on: { 'message.received': 'd' } }, d: {} } } }],
    ['by a wildcard', { a: { ...asks, on: { 'message.*': 'a' } } }, {}],
    ['by any event', { a: { ...asks, on: { '*': 'a' } } }, {}],
    ['as a message while it waits for a login', { a: { tags: 'auth-required', on: { 'message.received': 'a' } } }],
    [
      'beside it',
      {
        a: {
          type: 'parallel',
          states: { c: { initial: 'e', states: { e: asks } }, d: { on: { 'message.received': {} } } }
        }
      }
    ],
    ['never, but its time comes', { a: { ...asks, after: { 10: 'b' } }, b: {} }],
    ['never, but an actor leads on', { a: { ...asks, invoke: { src: 'x' } } }],
    ['never, but it goes on by itself', { a: { ...asks, always: { target: 'b' } }, b: {} }],
    ['never, but an actor of its own sends what leads on', { a: { ...asks, on: { paid: 'b' } }, b: {} }],
    ['never, but it sends itself what leads on', { a: { ...asks, entry: () => {}, on: { paid: 'b' } }, b: {} }, {}],
    [
      'not at all, with tags of its own',
      { a: { tags: ['loading', 'sailed', 'auth'] }, b: { type: 'final', tags: 'failed' } }
    ],
    ['not at all, with meta of its own', { a: { meta: { reasons: ['x'] } } }],
    ['not at all, with an end in a state', { a: { initial: 'c', states: { c: { type: 'final', on: { x: 'c' } } } } }]
  ]
  for (const [what, states, given = actors] of right) {
    t.doesNotThrow(
      () => defineAgent({ card, work: createMachine({ initial: 'a', states } as never).provide({ actors: given }) }),
      what
    )
  }
  t.doesNotThrow(() => defineAgent({ card, negotiate: () => reply('x') }))
})

await t.test('a chart with a state without exits is warned about once', async t => {
  const warn = t.capture(console, 'warn', () => {})
  const warnings = (states: object, more: object = {}) => {
    const machine = createMachine({ id: 'shop', initial: 'a', states, ...more } as never).provide({
      actors: { x: fromPromise(async () => {}) }
    })
    for (const _ of [1, 2]) defineAgent({ card, work: machine as never })
    return warn().map(({ args }) => String(args[0]))
  }
  const noWayOn =
    "cannot be left: it has no transition for an event, timer or actor. Its task works until it is canceled. Add a transition to another state, or type: 'final'."
  const asks = { tags: 'input-required', on: { 'message.received': 'b' } }
  const end = { type: 'final' }
  t.strictSame(warnings({ a: { on: { x: 'b' } }, b: { on: { x: 'b', y: { actions: [] } } } }), [
    `taskchart: The state shop.b ${noWayOn}`
  ])
  t.strictSame(warnings({ a: { initial: 'c', onDone: 'b', states: { c: {} } }, b: end }), [
    `taskchart: The state shop.a.c ${noWayOn}`
  ])
  t.strictSame(
    warnings({
      a: {
        type: 'parallel',
        onDone: 'b',
        states: {
          c: { initial: 'd', states: { d: {} } },
          e: { initial: 'f', states: { f: { on: { x: 'g' } }, g: end } }
        }
      },
      b: end
    }),
    [`taskchart: The state shop.a.c.d ${noWayOn}`]
  )
  t.strictSame(warnings({ a: { ...asks, on: { 'message.received': { actions: [] } } } }), [
    "taskchart: The state shop.a asks, but no answer leaves it: its task waits until it is canceled. Add a target: on: { 'message.received': 'next' }."
  ])
  t.match(warnings({ a: { tags: 'auth-required', on: { 'authorization.received': {} } } }), [
    /on: \{ 'authorization\.received': 'next' \}/
  ])
  t.strictSame(warnings({ a: { ...asks, on: { paid: 'b' } }, b: end }), [
    "taskchart: The state shop.a asks, but handles no answer of the client: only the agent's own events leave it. Add on: { 'message.received': … }, or on: { 'message.received': {} } if that is meant."
  ])
  const right = [
    { a: asks, b: end },
    { a: { ...asks, on: { paid: 'b', 'message.received': {} } }, b: end },
    { a: { after: { 10: 'b' } }, b: end },
    { a: { always: [{ guard: () => false, target: 'b' }] }, b: end },
    { a: { tags: 'input-required', invoke: { src: 'x', onDone: 'b' } }, b: end },
    { a: { tags: 'input-required', after: { 10: 'b' } }, b: end },
    { a: { tags: 'input-required', always: { guard: () => false, target: 'b' } }, b: end },
    { a: { initial: 'c', on: { x: 'b' }, states: { c: {} } }, b: end },
    { a: { initial: 'c', on: { x: 'a' }, states: { c: {} } } },
    { a: { initial: 'c', on: { x: '.d' }, states: { c: {}, d: end } } },
    {
      a: {
        type: 'parallel',
        states: {
          c: { initial: 'd', states: { d: {} } },
          e: { initial: 'f', onDone: '#shop.b', states: { f: { on: { x: 'g' } }, g: end } }
        }
      },
      b: end
    }
  ]
  for (const states of right) t.strictSame(warnings(states), [], JSON.stringify(states))
  t.strictSame(warnings({ a: {} }, { on: { x: '.b' }, states: { a: {}, b: end } }), [])
})

await t.test('close names differ in case, separators, an ending, or a letter in six', async t => {
  const names = ['input-required', 'failed', 'work', 'messageBytes']
  for (const [word, name] of [
    ['INPUT_REQUIRED', 'input-required'],
    ['inputrequird', 'input-required'],
    ['fialed', 'failed'],
    ['faild', 'failed'],
    ['sailed', undefined],
    ['worker', 'work'],
    ['workers', undefined],
    ['wor', 'work'],
    ['w', undefined],
    ['', undefined],
    ['messagebyets', 'messageBytes']
  ] as const) {
    t.equal(closestName(word, names), name, word)
  }
})

await t.test('an agent is validated when it is defined', async t => {
  await t.test('with defaults in its description, and the given members', async t => {
    t.strictSame(defineAgent({ card, work: echo }).card, {
      name: 'A',
      description: '',
      version: '1.0.0',
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: []
    })
    t.match(defineAgent({ card: { ...card, version: '2', description: 'd' }, work: chart }).card, {
      version: '2',
      description: 'd'
    })
  })

  await t.test('with a TypeError for invalid members that says what to write', async t => {
    const inline = fromCallback(() => {})
    const nested = chart.provide({})
    const withConfig = (config: object) =>
      setupWork({}).createMachine({ id: 'chart', initial: 'a', ...config } as never)
    const bad: [definition: object, says: RegExp][] = [
      [{ card }, /needs work, negotiate or both/],
      [{ card, work: 'x' }, /work has to be an async function, an async generator, or a statechart/],
      [{ card, work: {} }, /work has to be/],
      [{ card, work: inline }, /work has to be/],
      [{ card, work: function* () {} }, /work has to be/],
      [{ card, work: nested, negotiate: 'x' }, /negotiate has to be a function/],
      [{ card: { name: '' }, work: echo }, /card\.name/],
      [{ card: {}, work: echo }, /card\.name/],
      [{ card: { ...card, skills: [{ id: 's' }] }, work: echo }, /card\.skills\[0\]\.name/],
      [
        { card, work: withConfig({ invoke: { src: inline }, states: { a: {} } }) },
        /The state chart invokes logic without a name/
      ],
      [
        {
          card,
          work: withConfig({
            states: { a: { initial: 'b', states: { b: { invoke: [{ src: 'x' }, { src: inline }] } } } }
          })
        },
        /The state chart\.a\.b invokes/
      ]
    ]
    for (const [definition, says] of bad)
      t.throws(() => defineAgent(definition as never), { name: 'TypeError', message: says })
    t.doesNotThrow(() => defineAgent({ card, negotiate: () => ({ type: 'accepted' }) }))
  })
})
