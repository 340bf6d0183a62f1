import t from 'tap'
import { artifactTitle } from '../../../adapters/inspector/story/chart-path.ts'
import {
  answerWords,
  choiceLabel,
  choicesIn,
  lineOfEvent,
  lineOfMessage,
  litSteps,
  moveOf,
  moveWords,
  POINT_KINDS,
  runPoints,
  statesAfterAnswer,
  statusWords,
  storyLines,
  storyMoments
} from '../../../adapters/inspector/story/moments.ts'
import type { ActorStep } from '../../../adapters/inspector/feed.ts'
import type { JsonValue } from '../../../machines/protocol/codec/json.ts'
import { movePart, offerPart } from '../../../machines/protocol/negotiation.ts'
import type { Message, Part, Task } from '../../../machines/protocol/objects.ts'
import type { TaskState } from '../../../machines/protocol/states.ts'
import { ANSWER_SCHEMA, NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'

const [WORKING, ASKING, COMPLETED] = [
  'TASK_STATE_WORKING',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_COMPLETED'
] as const

function message(messageId: string, text: string, role: Message['role'] = 'ROLE_AGENT'): Message {
  return { messageId, role, parts: [{ text }] }
}

function said(messageId: string, role: Message['role'], ...parts: Part[]): Message {
  return { messageId, role, parts }
}

function status(generation: number, state: TaskState, said?: Message, timestamp?: string): TaskEvent {
  const shown = { state, ...(said && { message: said }), ...(timestamp !== undefined && { timestamp }) }
  return { taskId: 't', generation, update: { statusUpdate: { taskId: 't', contextId: 'c', status: shown } } }
}

function artifact(generation: number, artifactId: string, more: object = {}): TaskEvent {
  const update = { taskId: 't', contextId: 'c', artifact: { artifactId, parts: [] }, ...more }
  return { taskId: 't', generation, update: { artifactUpdate: update } }
}

const asked = message('a1', 'Which?')
const task: Task = {
  id: 't',
  contextId: 'c',
  status: { state: COMPLETED },
  history: [message('c1', 'A boat.', 'ROLE_USER'), asked, message('c2', 'Red.', 'ROLE_USER')]
}
const events = [
  status(2, 'TASK_STATE_SUBMITTED'),
  status(3, WORKING),
  status(4, ASKING, asked),
  status(6, WORKING),
  status(7, WORKING),
  artifact(8, 'one'),
  artifact(9, 'one', { append: true }),
  artifact(10, 'one'),
  status(11, COMPLETED)
]

await t.test('a moment is what is new: a message, another status, an artifact, or another state of the chart', t => {
  const steps = [3, 7].map(generation => ({ generation, states: [`m.s${generation}`], transitions: [] }))
  const moments = storyMoments(storyLines(task, events), steps, 60)
  t.strictSame(
    moments.map(({ generation, status, results, steps }) =>
      [
        generation,
        status?.state,
        ...Array.from(results.values(), artifactTitle),
        ...steps.flatMap(({ states }) => states)
      ].join(' ')
    ),
    [
      '1 ',
      '2 TASK_STATE_SUBMITTED',
      '3 TASK_STATE_WORKING m.s3',
      '4 TASK_STATE_INPUT_REQUIRED',
      '5 TASK_STATE_INPUT_REQUIRED',
      '6 TASK_STATE_WORKING',
      '7 TASK_STATE_WORKING m.s7',
      '10 TASK_STATE_WORKING one',
      '11 TASK_STATE_COMPLETED one'
    ]
  )
  t.strictSame(storyMoments([], [], 60), [])
  t.end()
})

await t.test('an artifact has its name as title, or its text while that is whole, or its id', t => {
  const part = (generation: number, artifactId: string, own: object, append = false) =>
    artifact(generation, artifactId, { artifact: { artifactId, parts: [{ text: 'Hello' }], ...own }, append })
  const all = [
    part(2, 'text', {}),
    part(3, 'named', { name: 'a.txt' }),
    part(4, 'data', { parts: [{ data: 1 }] }),
    part(5, 'named', {}, true),
    part(6, 'text', {}, true),
    part(7, 'late', {}, true)
  ]
  const moments = storyMoments(storyLines({ ...task, history: [] }, all), [], 60)
  t.strictSame(
    moments.map(({ results }) => Array.from(results.values(), artifactTitle).join(', ')),
    ['“Hello”', '“Hello”, a.txt', '“Hello”, a.txt, data', 'text, a.txt, data', 'text, a.txt, data, late']
  )
  t.end()
})

await t.test('a long story has groups of moments, each with everything in it', t => {
  const many = Array.from({ length: 1000 }, (_, i) => status(i + 2, WORKING, message(`m${i}`, `word ${i}`)))
  const steps = Array.from({ length: 1000 }, (_, i) => ({ generation: i + 2, states: [`m.s${i}`], transitions: [] }))
  const moments = storyMoments(storyLines({ ...task, history: [] }, many), steps, 60)
  t.equal(moments.length, 59)
  t.equal(moments[0]?.lines.length, 17)
  t.equal(moments[0]?.steps.at(-1)?.states[0], 'm.s16')
  t.equal(moments.flatMap(({ lines }) => lines).length, 1000)
  t.equal(moments.at(-1)?.generation, 1001)
  t.end()
})

await t.test('a recorded step without a generation belongs to the next one that has it', t => {
  const step = (generation?: number): ActorStep => ({
    n: 1,
    atMs: 0,
    kind: 'microstep',
    to: 'x',
    event: { type: 'e' },
    ...(generation !== undefined && { generation, states: ['s'], transitions: ['t'] })
  })
  t.strictSame(litSteps([step(), step(4), step()]), [
    { generation: 4, states: [], transitions: [] },
    { generation: 4, states: ['s'], transitions: ['t'] },
    { generation: Infinity, states: [], transitions: [] }
  ])
  t.end()
})

await t.test('the points of a run: messages, words, questions, steps, results and its end', t => {
  const at = (second: number) => `2026-01-01T00:00:0${second}Z`
  const offered = offerPart({
    offerId: 'o',
    round: 1,
    terms: { euros: 4, day: 'Friday' },
    expiresAt: '2026-01-02T00:00:00Z'
  })
  const before = [
    said('b1', 'ROLE_USER', { text: 'Bread?' }),
    said('b2', 'ROLE_AGENT', offered),
    said('b3', 'ROLE_USER', movePart({ propose: { terms: { euros: 3 } } })),
    said('b4', 'ROLE_AGENT', { text: 'No.' }),
    said('b5', 'ROLE_USER', movePart({ accept: { offerId: 'o' } }))
  ]
  const run = [
    ...before.map((one, i) => ({ ...lineOfMessage(one), generation: i - 4 })),
    lineOfMessage(message('c1', 'Bread.', 'ROLE_USER')),
    lineOfEvent(status(2, 'TASK_STATE_SUBMITTED', undefined, at(1))),
    lineOfEvent(status(3, WORKING, message('w', 'Looking'), at(2))),
    lineOfEvent(status(4, ASKING, undefined, at(3))),
    lineOfEvent(artifact(5, 'bread')),
    lineOfEvent(artifact(6, 'bread', { append: true })),
    lineOfEvent(status(7, COMPLETED, message('e', 'Done.'), at(5)))
  ]
  const stored = (n: number, name: string, generation: number | undefined, atMs: number): ActorStep => ({
    n,
    atMs,
    kind: 'stored',
    to: 'x',
    event: { type: `step ${name}`, name },
    ...(generation !== undefined && { generation })
  })
  const steps = [
    stored(1, 'weigh', 3, Date.parse(at(2))),
    { ...stored(2, 'other', 3, 0), kind: 'event' as const },
    stored(3, 'bake', undefined, Date.parse(at(4))),
    stored(4, 'clean', 9, Date.parse(at(9)))
  ]
  t.strictSame(
    runPoints(run, steps).map(({ kind, text, generation }) => `${generation} ${kind} ${text}`),
    [
      '-4 client Bread?',
      '-3 offers euros 4, day Friday',
      '-2 client Proposes other terms: euros 3',
      '-1 works No.',
      '0 client Accepts the offer.',
      '1 client Bread.',
      '3 works Looking',
      '3 step weigh',
      '4 asks input-required',
      '5 result artifact bread',
      '5 step bake',
      '7 completed completed: Done.',
      '7 step clean'
    ]
  )
  t.strictSame(
    runPoints([], steps).map(({ generation, text }) => `${generation} ${text}`),
    ['0 weigh', '0 bake', '0 clean']
  )
  t.end()
})

await t.test('each end has the colour of its state', t => {
  const kinds = (['COMPLETED', 'FAILED', 'REJECTED', 'CANCELED'] as const).map(state =>
    runPoints([lineOfEvent(status(1, `TASK_STATE_${state}`))], []).map(({ kind }) => `${kind}, ${POINT_KINDS[kind]}`)
  )
  t.strictSame(kinds.flat(), ['completed, ended', 'failed, ended', 'failed, ended', 'canceled, ended'])
  t.end()
})

await t.test('what a task does, what it waits for and how it ended, in words', t => {
  const said = (state: TaskState, words: string, results: string[] = []) =>
    (['client', 'anyone'] as const).map(reader => statusWords({ state }, words, results, reader))
  t.strictSame(said(ASKING, 'Which?'), [
    'The agent waits for your answer: “Which?”',
    "The agent waits for the client's answer: “Which?”"
  ])
  t.equal(said(WORKING, '')[0], 'The agent works.')
  t.equal(said('TASK_STATE_SUBMITTED', '')[0], 'The task is open, its work begins.')
  t.equal(said('TASK_STATE_AUTH_REQUIRED', '')[0], 'The agent waits for an authorization.')
  t.equal(said(COMPLETED, '', ['a', 'b'])[0], 'The task has ended. Its result: a, b.')
  t.equal(said('TASK_STATE_FAILED', 'No.')[0], 'The task has ended: “No.”')
  const leads = (state: TaskState, states: string[]) => answerWords({ state }, states)
  t.equal(leads(ASKING, ['brewing', 'spilt']), 'The answer leads to brewing or spilt.')
  t.equal(leads(ASKING, []), 'With the answer the work goes on.')
  t.equal(leads('TASK_STATE_AUTH_REQUIRED', []), 'Once it is authorized, the work goes on.')
  t.equal(leads(WORKING, []), '')
  t.strictSame(
    statesAfterAnswer(
      ['m', 'm.a'],
      ['m.a on message.received to b', 'm.a on message.received to b', 'm.a on message.received stays', 'm.b on x to c']
    ),
    ['b']
  )
  t.end()
})

await t.test('choices and moves', t => {
  const parts: Part[] = [{ text: 'Which?' }, { data: { name: 'Red' } }, { data: 3 }, { data: { title: 'T' } }]
  const question: Message = { messageId: 'q', role: 'ROLE_AGENT', parts }
  t.strictSame(choicesIn(question).map(choiceLabel), ['Red', '3', 'T'])
  t.strictSame(choicesIn({ ...question, metadata: { [ANSWER_SCHEMA]: {} } }), [])
  t.strictSame(choicesIn(undefined), [])
  t.equal(choiceLabel({ data: { label: 'L' } }), 'L')
  t.equal(choiceLabel({ text: 'no choice' }), undefined)
  const move = (value: JsonValue | undefined) =>
    moveOf({ parts: [{ text: '' }, { data: { [NEGOTIATION_EXTENSION]: value ?? null } }] })
  t.strictSame(
    [{ propose: {} }, { accept: {} }, { decline: {} }].map(one => moveWords(move(one) ?? {})),
    ['Proposes other terms:', 'Accepts the offer.', 'Declines the offer.']
  )
  t.equal(move(undefined), undefined)
  t.end()
})
