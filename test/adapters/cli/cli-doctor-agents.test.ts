import t, { type Test } from 'tap'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import {
  body,
  byMethod,
  cut,
  failure,
  httpAgent,
  result,
  stream,
  type Answer,
  type ScriptedCard
} from '../../fixtures/peers/scripted-http.ts'
import { officialAgent } from '../../fixtures/servers/official-agent.ts'

const place = { taskId: 't', contextId: 'c' }
const status = (state: string, text?: string) => ({
  state: `TASK_STATE_${state}`,
  ...(text !== undefined && { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text }] } })
})
const task = (state: string, text?: string) => ({ id: 't', contextId: 'c', status: status(state, text) })
const update = (state: string, text?: string) => ({ statusUpdate: { ...place, status: status(state, text) } })
const message = { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'two\nlines' }] } }
const unknown = failure({ code: -32_001, message: 'No such task.' })
const listed = result({ tasks: [], nextPageToken: '', pageSize: 1, totalSize: 0 })

type Lists = Readonly<Record<string, readonly Answer[]>>
const WELL: Lists = { GetTask: [unknown], ListTasks: [listed] }
const CALLS_OK = 'ok     the agent answers over JSONRPC: GetTask, ListTasks\n'

/** What doctor says of a scripted agent after its card, and what it asked. */
async function examined(
  t: Test,
  { lists = WELL, card = {}, text }: { readonly lists?: Lists; readonly card?: ScriptedCard; readonly text?: string }
) {
  const agent = await httpAgent(t, card)
  agent.script(byMethod(lists))
  const { code, stdout, stderr } = await runCommand([
    'doctor',
    agent.url,
    ...(text === undefined ? [] : ['--text', text])
  ])
  t.equal(stderr, '')
  const said = stdout
    .slice(stdout.search(/^(?:ok {5}card of|WRONG {2})/m))
    .replace(/^ok {5}(?:card of Scripted: JSONRPC \S+|the clocks of .*)\n/gm, '')
    .replaceAll(agent.url, 'URL')
  return { code, said, asked: agent.asked.map(({ method }) => method) }
}

await t.test(
  'doctor says what is odd of an agent, and whether the client copes, with calls that change nothing',
  async t => {
    const extended = { capabilities: { streaming: true, extendedAgentCard: true } }
    for (const [name, { code = 0, ...given }, said, asked = ['GetTask', 'ListTasks']] of [
      ['an agent without oddities', {}, CALLS_OK],
      [
        'a card with odd skills and an odd provider',
        { card: { card: { skills: [{ name: 'a' }, { name: 'b' }], provider: { organization: 'Boats' } } } },
        `note   odd in the card, and how the client reads it:
         card.provider.url is required and must be a non-empty string. It was left out, with what needs it.
         card.skills[0].id is required and must be a non-empty string. It was left out, with what needs it.
${CALLS_OK}`
      ],
      [
        'a card that cannot be used',
        { code: 1, card: { card: { supportedInterfaces: 'none' } } },
        'WRONG  The JSON at URL is not an agent card: card.supportedInterfaces must be a list of at least one.\n       Tell whoever runs the agent: the client needs this of its card\n',
        []
      ],
      [
        'an agent that does not stream',
        { card: { card: { capabilities: {} } } },
        `note   the card does not say that the agent streams: the client copes with SendMessage and GetTask\n${CALLS_OK}`
      ],
      [
        'GetTask that knows every id',
        { lists: { ...WELL, GetTask: [result(task('WORKING'))] } },
        'ok     the agent answers over JSONRPC: ListTasks\nnote   GetTask gives a task for an id that nobody has.\n       The client copes: it takes the task as it is\n'
      ],
      [
        'GetTask that fails for an unknown id',
        { lists: { ...WELL, GetTask: [failure({ code: -32_603, message: 'Oh.' })] } },
        'ok     the agent answers over JSONRPC: ListTasks\nnote   GetTask for an id that nobody has fails, but not with TaskNotFound (-32001): Oh.\n       The client copes: it passes the error on\n'
      ],
      [
        'an agent without GetTask and ListTasks',
        { code: 1, lists: {} },
        'ok     the agent answers over JSONRPC\nWRONG  GetTask fails: There is no GetTask.\n       The client can follow a task only while its stream lasts\nnote   ListTasks fails: There is no ListTasks.\n       The client copes, but cannot open an earlier conversation\n'
      ],
      [
        'a list that cannot be read',
        { code: 1, lists: { ...WELL, ListTasks: [result({ tasks: 'none' })] } },
        "ok     the agent answers over JSONRPC: GetTask\nWRONG  ListTasks fails: The agent's answer is not A2A 1.0: result.tasks must be a list.\n       The client cannot open an earlier conversation\n"
      ],
      [
        'a list with an odd task',
        {
          lists: {
            ...WELL,
            ListTasks: [
              result({ tasks: [{ id: 't', contextId: 'c', status: {} }], nextPageToken: '', pageSize: 1, totalSize: 1 })
            ]
          }
        },
        /^ok {5}the agent answers over JSONRPC: GetTask, ListTasks\nnote {3}odd in answers, and how the client reads it:\n {9}result\.tasks\[0\]\.status\.state is required .*\. It was filled in\.\n$/
      ],
      [
        'an agent of A2A 0.3',
        { card: { version: '0.3' }, lists: { 'tasks/get': [unknown] } },
        'ok     the agent answers over JSONRPC: GetTask\nnote   ListTasks fails: There is no ListTasks in A2A 0.3, and the agent speaks nothing newer.\n       The client copes, but cannot open an earlier conversation\n',
        ['tasks/get']
      ],
      [
        'an extended card',
        {
          card: { card: extended },
          lists: {
            ...WELL,
            GetExtendedAgentCard: [
              result({
                name: 'More',
                version: '1',
                capabilities: {},
                supportedInterfaces: [{ url: 'x:1', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]
              })
            ]
          }
        },
        'ok     the agent answers over JSONRPC: GetTask, ListTasks, GetExtendedAgentCard\n',
        ['GetTask', 'ListTasks', 'GetExtendedAgentCard']
      ],
      [
        'an extended card that is refused',
        { card: { card: extended }, lists: { ...WELL, GetExtendedAgentCard: [body('', {}, 401)] } },
        /^ok {5}the agent answers over JSONRPC: GetTask, ListTasks\nnote {3}the card says that there is an extended card, and GetExtendedAgentCard fails: .*\n {7}The client copes with the public card\n$/,
        ['GetTask', 'ListTasks', 'GetExtendedAgentCard']
      ],
      [
        'calls that need a key',
        { code: 1, text: 'hi', lists: { GetTask: [body('', {}, 401)] } },
        'WRONG  The agent at URL requires a key. Give one with --api-key KEY.\n       npx taskchart doctor URL --api-key KEY\n',
        ['GetTask']
      ],
      [
        'an agent that is gone after its card',
        { code: 1, text: 'hi', lists: { GetTask: [cut] } },
        /^WRONG {2}.*\n {7}npx taskchart card URL\n$/,
        ['GetTask']
      ]
    ] as const satisfies readonly (readonly [
      string,
      Parameters<typeof examined>[1] & { readonly code?: number },
      string | RegExp,
      (readonly string[])?
    ])[]) {
      const found = await examined(t, given)
      t.strictSame([found.code, found.asked], [code, asked], name)
      if (typeof said === 'string') t.equal(found.said, said, name)
      else t.match(found.said, said, name)
    }
  }
)

await t.test('doctor --text sends one message as the client does, and says how it went', async t => {
  const sent = (answer: Answer, more: Lists = {}): Lists => ({ ...WELL, SendStreamingMessage: [answer], ...more })
  const odd = (...oddities: readonly string[]) =>
    `note   odd in the answer to the message, and how the client reads it:\n${oddities.map(oddity => `         ${oddity}\n`).join('')}`
  for (const [name, lists, code, said, asked = ['SendStreamingMessage'], card] of [
    ['a message', sent(stream([message])), 0, 'ok     the message was answered with a message (1 event): two lines\n'],
    [
      'a task that ends',
      sent(stream([{ task: task('WORKING') }, update('COMPLETED', 'Done.')])),
      0,
      'ok     the message was answered with task t, which is completed (2 events): Done.\n'
    ],
    [
      'a question',
      sent(stream([{ task: task('INPUT_REQUIRED', 'Which?') }])),
      0,
      'ok     the message was answered with task t, which is input-required (1 event): Which?\n'
    ],
    [
      'a task that fails',
      sent(stream([{ task: task('WORKING') }, update('FAILED')])),
      1,
      'WRONG  the message was answered with task t, which is failed (2 events)\n'
    ],
    [
      'an error',
      sent(failure({ code: -32_603, message: 'Oh.' })),
      1,
      'WRONG  the message failed after 0 events: Oh.\n'
    ],
    [
      'a key that is needed',
      sent(body('', {}, 401)),
      1,
      'WRONG  the message failed after 0 events: The agent at URL requires a key. Give one with --api-key KEY.\n       npx taskchart doctor URL --api-key KEY\n'
    ],
    [
      'odd events',
      sent(
        stream([
          { task: task('WORKING') },
          { scent: 'lavender' },
          message,
          { statusUpdate: { taskId: 't', status: { state: 'completed' } } }
        ])
      ),
      0,
      /which is completed \(3 events\)\nnote {3}odd in the answer to the message, and how the client reads it:\n.*The event was skipped\.\n {9}A message came between the events of a task\. It was read as a status update\.\n.*contextId is required.*\n.*state must be .*\n$/
    ],
    [
      'no streaming, by its refusal',
      sent(failure({ code: -32_601, message: 'Not here.' }), { SendMessage: [result({ task: task('COMPLETED') })] }),
      0,
      `ok     the message was answered with task t, which is completed (1 event)\n${odd('The message was sent with SendMessage: Not here.')}`,
      ['SendStreamingMessage', 'SendMessage']
    ],
    [
      'no streaming, by its card',
      { ...WELL, SendMessage: [result({ task: task('COMPLETED') })] },
      0,
      `ok     the message was answered with task t, which is completed (1 event)\n${odd('The message was sent with SendMessage: The agent does not stream, as its card says.')}`,
      ['SendMessage'],
      { card: { capabilities: {} } }
    ],
    [
      'a stream that ends early',
      sent(stream([{ task: task('WORKING') }]), {
        GetTask: [unknown, result(task('COMPLETED'))],
        SubscribeToTask: [failure({ code: -32_004, message: 'No streams of tasks.' })]
      }),
      0,
      `ok     the message was answered with task t, which is completed (2 events)\n${odd('Its stream ended before its task. The task was read with GetTask: No streams of tasks.')}`,
      ['SendStreamingMessage', 'SubscribeToTask', 'GetTask']
    ]
  ] as const satisfies readonly (readonly [
    string,
    Lists,
    number,
    string | RegExp,
    (readonly string[])?,
    ScriptedCard?
  ])[]) {
    const found = await examined(t, { lists, text: 'hi', ...(card && { card }) })
    t.equal(found.code, code, name)
    t.match(found.said, said, name)
    t.ok(typeof said !== 'string' || found.said.endsWith(`${CALLS_OK}${said}`), name)
    t.strictSame(found.asked, ['GetTask', 'ListTasks', ...asked], name)
  }
})

await t.test('doctor finds nothing wrong with an agent of the official SDK, and sends it a message', async t => {
  for (const binding of ['JSONRPC', 'HTTP+JSON']) {
    const { url } = await officialAgent(t, [binding])
    const { code, stdout, stderr } = await runCommand(['doctor', url, '--text', 'a boat'])
    t.strictSame([code, stderr], [0, ''], stdout)
    t.match(stdout, `\nok     the agent answers over ${binding}: GetTask, ListTasks, GetExtendedAgentCard\n`)
    t.match(stdout, /\nok {5}the message was answered with task \S+, which is completed \(\d+ events\)\n/)
  }
})
