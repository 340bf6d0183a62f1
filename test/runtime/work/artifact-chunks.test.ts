import t from 'tap'
import { emit } from 'xstate'
import type { Part, TaskArtifactUpdateEvent } from '../../../machines/protocol/objects.ts'
import {
  artifact,
  data,
  inputRequired,
  setupWork,
  text,
  type WorkFunction,
  type WorkGenerator
} from '../../../runtime/index.ts'
import { failOnLooseErrors, lives } from '../../fixtures/runtime/lives.ts'
import { collect, open, reaches, say, start } from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const [FIRST, SECOND] = ['\ud83d', '\ude42']
const AGAIN = { append: true }
const LAST = { append: true, lastChunk: true }

type Chunk = ReturnType<typeof artifact>

const chunk = (parts: string | Part[], how: { append?: boolean; lastChunk?: boolean } = {}, artifactId = 'a'): Chunk =>
  artifact({ ...(artifactId !== '' && { artifactId }), parts: typeof parts === 'string' ? [text(parts)] : parts }, how)

/** A chunk as clients get it: its texts, its data, and its flags. */
function shown({ artifact: { parts }, append, lastChunk }: TaskArtifactUpdateEvent): string {
  return [
    ...(append ? ['append'] : []),
    ...(lastChunk ? ['last'] : []),
    ...parts.map(part => JSON.stringify('text' in part ? part.text : 'data' in part ? part.data : part))
  ].join(' ')
}

const ROWS: readonly [what: string, chunks: readonly Chunk[], told: readonly string[]][] = [
  ['the first chunk does not append', [chunk('1', AGAIN), chunk('2', LAST)], ['"1"', 'append last "2"']],
  [
    'each artifact has a first chunk',
    [chunk('1', AGAIN), chunk('x', AGAIN, 'b'), chunk('2', AGAIN)],
    ['"1"', '"x"', 'append "2"']
  ],
  [
    'an artifact whose last chunk was sent can go on',
    [chunk('1', { lastChunk: true }), chunk('2', AGAIN)],
    ['last "1"', 'append "2"']
  ],
  [
    'an artifact without an id has one chunk',
    [chunk('1', AGAIN, ''), chunk(`2${FIRST}`, AGAIN, '')],
    ['"1"', '"2\ufffd"']
  ],
  [
    'a split character is sent with its second half',
    [chunk(`a${FIRST}`), chunk(`${SECOND}b`, LAST)],
    ['"a"', 'append last "🙂b"']
  ],
  [
    'the half waits for the artifact that it is of',
    [chunk(FIRST), chunk(SECOND, AGAIN, 'b'), chunk('', AGAIN), chunk(SECOND, LAST)],
    ['""', '"\ufffd"', 'append ""', 'append last "🙂"']
  ],
  ['a half in the last chunk is replaced', [chunk('a'), chunk(`b${FIRST}`, LAST)], ['"a"', 'append last "b\ufffd"']],
  ['a half before another character is replaced', [chunk(`a${FIRST}`), chunk('b', AGAIN)], ['"a"', 'append "\ufffdb"']],
  ['a half before data is replaced', [chunk(`a${FIRST}`), chunk([data(1)], AGAIN)], ['"a"', 'append "\ufffd" 1']],
  ['a half before a new start is dropped', [chunk(`a${FIRST}`), chunk('b')], ['"a"', '"b"']],
  ['the parts of a chunk are not joined', [chunk([text(FIRST), data(1), text(SECOND)])], ['"\ufffd" 1 "\ufffd"']],
  [
    'whole characters stay as they are',
    [chunk('🙂'), chunk([data(FIRST.length), text('🙂')], LAST)],
    ['"🙂"', 'append last 1 "🙂"']
  ]
]

/** The ways in which work says its words. */
const WAYS: Readonly<Record<string, (chunks: readonly Chunk[]) => NonNullable<Parameters<typeof start>[1]['work']>>> = {
  'a function':
    (chunks): WorkFunction =>
    ({ emit }) =>
      chunks.forEach(emit),
  'a generator': (chunks): WorkGenerator =>
    async function* () {
      yield* chunks
    },
  'a step':
    (chunks): WorkFunction =>
    async ({ step }) => {
      await step('says', ({ emit }) => chunks.forEach(emit))
    },
  'a chart': chunks =>
    setupWork({}).createMachine({
      initial: 'says',
      states: { says: { entry: chunks.map(one => emit(one)), always: 'done' }, done: { type: 'final' } }
    })
}

for (const [name, workOf] of Object.entries(WAYS)) {
  await t.test(`chunks of ${name} are sent whole, and the first of an artifact replaces`, async t => {
    for (const [what, chunks, wanted] of ROWS) {
      const { runtime } = start(t, { work: workOf(chunks) })
      const told = (await collect(runtime.sendStreamingMessage(say('x')))).flatMap(event =>
        'artifactUpdate' in event ? [shown(event.artifactUpdate)] : []
      )
      t.strictSame(told, wanted, what)
    }
  })
}

/** Asks between two chunks; the first may be said in a step. */
const askingWork =
  (inStep: boolean): WorkFunction =>
  async ({ emit, step, ask }) => {
    if (inStep) await step('begins', step => step.emit(chunk('x', AGAIN)))
    else emit(chunk(`x${FIRST}`, AGAIN))
    await ask(inputRequired('And?'))
    emit(chunk(`${inStep ? '🙂' : SECOND}y`, LAST))
  }

const askingChart = setupWork({}).createMachine({
  initial: 'asking',
  states: {
    asking: {
      entry: emit(chunk('x', AGAIN)),
      tags: 'input-required',
      meta: { prompt: 'And?' },
      on: { 'message.received': { target: 'done', actions: [emit(chunk('', AGAIN, '')), emit(chunk('🙂y', LAST))] } }
    },
    done: { type: 'final' }
  }
})

for (const [name, work, wanted] of [
  ['a function', askingWork(false), ['"x"', 'append last "🙂y"']],
  ['a step', askingWork(true), ['"x"', 'append last "🙂y"']],
  ['a chart', askingChart, ['"x"', '""', 'append last "🙂y"']]
] as const) {
  await t.test(`an artifact that ${name} has begun goes on after a restart`, async t => {
    const life = lives(t, { work })
    const { id } = await open(life.runtime)
    await reaches(life.runtime, id, 'input-required')
    await life.again()
    const events = collect(life.runtime.subscribeToTask({ id }))
    await life.runtime.sendMessage(say('go on', { taskId: id }))
    const { artifacts = [] } = await life.runtime.getTask({ id })
    const told = (await events).flatMap(event => ('artifactUpdate' in event ? [shown(event.artifactUpdate)] : []))
    t.strictSame(told, wanted.slice(1))
    t.strictSame(artifacts.find(({ artifactId }) => artifactId === 'a')?.parts, [text('x'), text('🙂y')])
    t.strictSame(life.log, [])
  })
}
