import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { AnyStateMachine } from 'xstate'
import { storedDiffText } from '../../../../adapters/cli/diff/diff-text.ts'
import type { OpenTask, StoreReader } from '../../../../adapters/rows/store-reader.ts'
import { readLocalModules } from '../../../../adapters/testing/diff/local-modules.ts'
import { diffStored, type TaskVerdict } from '../../../../adapters/testing/diff/stored-diff.ts'
import { A2AError } from '../../../../machines/protocol/errors.ts'
import { agentOutline, outlineText } from '../../../../runtime/definitions/agent-outline.ts'
import {
  type Agent,
  defineAgent,
  inputRequired,
  progress,
  setupWork,
  textOf,
  type WorkFunction,
  type WorkGenerator
} from '../../../../runtime/index.ts'
import { memoryStore } from '../../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../../runtime/store/store.ts'
import { anyone, failOnLooseErrors, lives } from '../../../fixtures/runtime/lives.ts'
import { rest, say, taskIn } from '../../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

/** A chart whose state `resting` is a compound one, with a timer. */
const childAfter = (ms: number) =>
  setupWork({}).createMachine({
    id: 'child',
    initial: 'asking',
    states: {
      asking: { tags: 'input-required', on: { 'message.received': 'resting' } },
      resting: { initial: 'long', states: { long: {} }, after: { [ms]: 'over' } },
      over: { type: 'final' }
    }
  } as never) as unknown as AnyStateMachine

/** A chart with a history, regions, and a state to which nothing leads. `talking` is that state's configuration. */
const chart = (
  talking: object = { invoke: { src: 'child', id: 'talk', onDone: 'both' } },
  actors: Record<string, AnyStateMachine> = { child: childAfter(1000) }
) =>
  setupWork({ actors: actors as never }).createMachine({
    id: 'work',
    initial: 'asking',
    states: {
      asking: { tags: 'input-required', on: { 'message.received': 'talking', BACK: 'both.last' } },
      talking: { ...talking, on: { ASIDE: 'asking' } },
      both: {
        type: 'parallel',
        on: { ASIDE: 'asking' },
        states: {
          left: { initial: 'off', states: { off: { on: { ON: 'on' } }, on: { on: { OFF: 'off' } } } },
          right: { initial: 'off', states: { off: { on: { UP: 'on' } }, on: { on: { DOWN: 'off' } } } },
          last: { type: 'history', history: 'deep' }
        }
      },
      lonely: { tags: 'input-required', on: { 'message.received': 'asking' } }
    }
  } as never) as unknown as AnyStateMachine

const agentOf = (work: Agent['work'], more: object = {}): Agent =>
  defineAgent({ card: { name: 'A' }, version: '1', work, ...more } as never)

interface Row {
  /** The stored work; a task that has not begun has none. */
  readonly work?: object | undefined
  /** '1' by default; '' for a task of before versions. */
  readonly version?: string
  /** The digest of its definition. */
  readonly definition?: string
}

/** The verdicts on these rows, whose tasks are `t1`, `t2` and so on, with the agent of now. */
async function verdictsOn(
  t: Test,
  { rows, definitions = {}, now }: { rows: readonly Row[]; definitions?: Record<string, Agent>; now: Agent }
) {
  const tasks = rows.map(({ work, version = '1', definition }, i): OpenTask => {
    const snapshot = {
      format: 1,
      ...(version !== '' && { version }),
      ...(definition !== undefined && { definition }),
      status: 'active',
      value: { active: 'working' },
      historyValue: {},
      context: { taskId: `t${i + 1}`, contextId: 'c', queue: [], restarts: [] },
      ...(work && { children: { work: { src: 'work', snapshot: work } } })
    }
    return {
      tenant: '',
      principal: 'ann',
      contextId: 'c',
      taskId: `t${i + 1}`,
      state: 'TASK_STATE_WORKING',
      wakeAtMs: 0,
      snapshot: JSON.stringify(snapshot)
    }
  })
  const reader: StoreReader = {
    ...(memoryStore() as unknown as StoreReader),
    openTasks: async (limit, after) => {
      const from = Number(after)
      return {
        tasks: tasks.slice(from, from + limit),
        ...(from + limit < tasks.length && { next: String(from + limit) })
      }
    },
    readDefinition: async digest => {
      const agent = definitions[digest]
      return agent && outlineText(agentOutline(agent))
    }
  }
  const path = join(t.testdir({ 'agent.mjs': '' }), 'agent.mjs')
  const verdicts: TaskVerdict[] = []
  const diff = await diffStored(
    reader,
    { agent: now, localModules: () => readLocalModules(path) },
    {
      signal: new AbortController().signal,
      onTask: verdict => void verdicts.push(verdict)
    }
  )
  return { diff, verdicts, brief: verdicts.map(({ verdict, reasons }) => [verdict, ...reasons].join('; ')) }
}

/** A chart as it is stored. */
const at = (value: unknown, more: object = {}) => ({
  status: 'active',
  value,
  historyValue: {},
  context: {},
  children: {},
  ...more
})

const talkingWith = (snapshot: object) => at('talking', { children: { talk: { src: 'child', snapshot } } })

await t.test(
  'a task that has not begun begins with the new code, and goes on the same way if nothing has changed',
  async t => {
    const before = agentOf(chart())
    const rows = [{ definition: 'd' }, { version: '0' }]
    const begins = 'it has not begun, and begins with the new code'
    const cases: [name: string, before: Agent, now: Agent, verdict: string][] = [
      ['the same chart', before, agentOf(chart()), 'same'],
      ['another chart', before, agentOf(chart({})), `otherwise; ${begins}`],
      ['another option', before, agentOf(chart(), { deadlineMs: 5 }), `otherwise; ${begins}`],
      ['the same function', agentOf(async () => {}), agentOf(async () => {}), 'same'],
      ['another function', agentOf(async () => {}), agentOf(async () => undefined), `otherwise; ${begins}`]
    ]
    for (const [name, before, now, verdict] of cases) {
      const { brief, verdicts } = await verdictsOn(t, { rows, definitions: { d: before }, now })
      t.strictSame(brief, [verdict, `not compared; ${begins}`], name)
      t.match(verdicts, [{ configuration: 'not begun', version: '1', definition: 'd' }, { version: '0' }])
    }
  }
)

await t.test('a chart among the actors is judged where it is, if it goes on', async t => {
  const rows = [
    talkingWith(at({ resting: 'long' })),
    talkingWith(at('asking')),
    talkingWith({ ...at('over'), status: 'done', output: undefined })
  ].map(work => ({ work, definition: 'd' }))
  const now = agentOf(chart(undefined, { child: childAfter(2000) }))
  const { brief } = await verdictsOn(t, { rows, definitions: { d: agentOf(chart()) }, now })
  t.match(brief, [
    /^never ends; the actor talk in \{"resting":"long"\}: never ends; its timer "after 1000 ms" leads nowhere/,
    /^depends; the actor talk in asking: otherwise; resting has changed; depends on the actor child, whose source changed$/,
    /^depends; depends on the actor child, whose source changed$/
  ])
})

await t.test('a task that is restored, though the comparison of its chart says otherwise, is unknown', async t => {
  const { brief, diff } = await verdictsOn(t, {
    rows: [
      { work: at('talking', { stopped: ['talk'] }), definition: 'd' },
      { work: at('lonely'), definition: 'd' },
      { work: talkingWith(at('asking')), definition: 'd' }
    ],
    definitions: { d: agentOf(chart()) },
    now: agentOf(chart({}, {}))
  })
  t.match(brief, [
    'unknown; it is restored; the chart has no logic child for the actor talk',
    'unknown; the stored definition does not come to this configuration',
    /^not restored; .*the chart has no logic child for the actor talk/
  ])
  t.strictSame(
    diff.definitions[0]?.diff?.charts.map(({ chart }) => chart),
    ['work'],
    'an actor that is gone has no comparison'
  )
})

await t.test('a task of before versions is converted in the trial', async t => {
  const rows = [{ work: at('gone'), version: '' }]
  const migrate = ({ version, snapshot }: { version?: string; snapshot: object }) => ({
    ...snapshot,
    value: version === undefined ? 'asking' : 'gone'
  })
  const { brief, verdicts } = await verdictsOn(t, {
    rows,
    now: agentOf(chart(), { migrate, earlier: { '0': chart() } })
  })
  t.strictSame(brief, ['not compared; it is restored'])
  t.match(verdicts, [{ isMigrated: true, version: undefined }])
})

await t.test('a stored chart with a history is compared by it, in whatever order its parts are', async t => {
  const agent = agentOf(chart())
  const [left, right] = [{ id: 'work.both.left.on' }, { id: 'work.both.right.on' }]
  const work = (states: object[]) => at('asking', { historyValue: { 'work.both.last': states } })
  const { brief, diff } = await verdictsOn(t, {
    rows: [
      { work: work([left, right]), definition: 'd' },
      { work: work([right, left]), definition: 'd' },
      { work: at({ both: { left: 'on', right: 'off' } }), definition: 'd' },
      { work: at({ both: { right: 'off', left: 'on' } }), definition: 'd' },
      { work: work([left, right]) }
    ],
    definitions: { d: agent },
    now: agent
  })
  t.strictSame(brief, ['same', 'same', 'same', 'same', 'not compared; it is restored'])
  const history = { 'work.both.last': ['work.both.left.on', 'work.both.right.on'] }
  t.match(
    diff.definitions.map(({ groups }) => groups),
    [
      [
        { state: 'asking', history, ids: ['t1', 't2'] },
        { state: { both: { left: 'on', right: 'off' } }, ids: ['t3', 't4'] }
      ],
      [{ state: 'asking', history, verdict: 'not compared', ids: ['t5'] }]
    ]
  )
})

await t.test(
  'beyond 1000 groups, tasks are counted by their verdict, and beyond 100 a group names no more',
  async t => {
    const states = ['left', 'left.off', 'left.on', 'right', 'right.off', 'right.on'].map(name => `work.both.${name}`)
    const all = [...states, 'work', 'work.asking', 'work.talking', 'work.both', 'work.lonely']
    const places = Array.from({ length: 1002 }, (_, number) =>
      at('asking', {
        historyValue: { 'work.both.last': all.filter((_, i) => (number & (1 << i)) !== 0).map(id => ({ id })) }
      })
    )
    const known = Array.from({ length: 101 }, () => places[0] as object)
    const { diff } = await verdictsOn(t, {
      rows: [...places, ...known].map(work => ({ work })),
      now: agentOf(chart())
    })
    const groups = diff.definitions[0]?.groups ?? []
    t.match([diff.tasks, groups.length], [1103, 1001])
    t.match(groups[0], { state: 'asking', tasks: 102 })
    t.equal(groups[0]?.ids.length, 100)
    t.match(groups.at(-1), {
      state: 'other places',
      verdict: 'not compared',
      reasons: [],
      tasks: 2,
      ids: ['t1001', 't1002']
    })
    t.notOk(groups.at(-1)?.history)
    const text = storedDiffText(diff, false)
    t.match(text, /^1103 open tasks, .*\n\n1103 open tasks stored by version 1\n/)
    t.match(text, /it is restored\n +102 tasks: t1, t1003, t1004, and 99 more\n/)
    t.match(text, /other places +not compared +2 tasks: t1001, t1002\n/)
  }
)

const asking =
  (word: string): WorkFunction =>
  async ({ ask, emit }) => {
    emit(progress(word))
    await ask(inputRequired('Size?'))
  }

/** The verdict on this open task of a store with a work. */
async function verdictOn(store: Store, task: OpenTask, work: WorkFunction | WorkGenerator): Promise<TaskVerdict> {
  const verdicts: TaskVerdict[] = []
  const reader = {
    ...store,
    openTasks: async () => ({ tasks: [task] }),
    readDefinition: async () => undefined,
    scopes: async () => []
  }
  const agent = defineAgent({ card: { name: 'Test' }, work })
  const onTask = (verdict: TaskVerdict) => void verdicts.push(verdict)
  await diffStored(reader as never, { agent }, { signal: new AbortController().signal, onTask })
  return verdicts[0] as TaskVerdict
}

/** An open task as a store has it now. */
async function openTask(store: Store, taskId: string): Promise<OpenTask> {
  const key = { ...anyone, contextId: 'c' }
  const snapshot = await store.readSnapshot(key, taskId)
  return { ...key, taskId, state: 'TASK_STATE_INPUT_REQUIRED', ...(snapshot !== undefined && { snapshot }) }
}

await t.test('a task that ends while it is compared is the same', async t => {
  const life = lives(t, { work: asking('begins') })
  const { id } = taskIn(await life.runtime.sendMessage(say('go', { contextId: 'c' })))
  await rest()
  const task = await openTask(life.store, id)
  t.match(await verdictOn(life.store, task, asking('starts')), { verdict: 'otherwise', word: 1 })
  await life.runtime.cancelTask({ id })
  t.match(await verdictOn(life.store, task, asking('starts')), {
    verdict: 'same',
    reasons: ['it has ended meanwhile']
  })
})

await t.test('a task whose record cannot be read is no certainty', async t => {
  const life = lives(t, { work: asking('begins') })
  const { id } = taskIn(await life.runtime.sendMessage(say('go', { contextId: 'c' })))
  await rest()
  const task = await openTask(life.store, id)
  const readEvents = () => Promise.reject(new A2AError('Overloaded', 'The database is away.'))
  t.match(await verdictOn({ ...life.store, readEvents }, task, asking('starts')), {
    verdict: 'depends',
    reasons: ['The database is away.']
  })
})

await t.test('a function reads the other tasks of its context from the store', async t => {
  const reading = (size: string): WorkGenerator =>
    async function* ({ message, history }) {
      if (textOf(message) === 'first') return
      yield progress((await history()).map(textOf).join())
      yield* inputRequired(size)
    }
  const life = lives(t, { work: reading('Size?') })
  await life.runtime.sendMessage(say('first', { contextId: 'c' }))
  const { id } = taskIn(await life.runtime.sendMessage(say('second', { contextId: 'c' })))
  const task = await openTask(life.store, id)
  t.match(await verdictOn(life.store, task, reading('Size?')), {
    verdict: 'not compared',
    reasons: ['it comes to where it is', 'then it goes on with the new code']
  })
  t.match(await verdictOn(life.store, task, reading('Which size?')), { verdict: 'otherwise', word: 2 })
})
