import t from 'tap'
import { fromCallback, fromPromise } from 'xstate'
import { dryRunRestore, readOpenRow, type RestoreOutlook } from '../../../runtime/contexts/restore-dry-run.ts'
import { defineAgent, setupWork, type AgentDefinition } from '../../../runtime/index.ts'
import { anyone, failOnLooseErrors, lives, type Lives } from '../../fixtures/runtime/lives.ts'
import { open, rest, say, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const listen = fromCallback(() => {})
const chart = (...names: string[]) =>
  setupWork({ actors: { listen } }).createMachine({
    id: 'work',
    initial: names[0] ?? '',
    states: Object.fromEntries(
      names.map((name, i) => [
        name,
        name.startsWith('at work')
          ? { invoke: { id: 'ear', src: 'listen' as const } }
          : { tags: 'input-required' as const, on: { 'message.received': names[i + 1] ?? name } }
      ])
    )
  })

/** What would become of the tasks of a life with another agent. */
async function outlook(life: Lives, now: Omit<AgentDefinition, 'card'>): Promise<Record<string, RestoreOutlook>> {
  const agent = defineAgent({ card: { name: 'Test' }, ...now })
  const { tasks } = await life.store.listTasks(anyone, { limit: 500, historyLength: 0, artifacts: false })
  const found: Record<string, RestoreOutlook> = {}
  for (const { task } of tasks) {
    const row = await readOpenRow(life.store, { ...anyone, contextId: task.contextId }, task.id)
    if (row) found[task.id] = dryRunRestore(agent, row)
  }
  return found
}

const waiting = async (life: Lives, contextId = 'c') =>
  taskIn(await life.runtime.sendMessage(say('go', { contextId }))).id

await t.test('the tasks of a chart continue, are migrated, or fail with the reason', async t => {
  const life = lives(t, { work: chart('a', 'b'), version: '1' })
  const ids = [await waiting(life), await waiting(life), await waiting(life, 'd')]
  await life.runtime.sendMessage(say('x', { taskId: ids[1] ?? '' }))
  const ended = await waiting(life)
  await life.runtime.cancelTask({ id: ended })

  const all = (verdict: object) => ({
    [ids[0] ?? '']: verdict,
    [ids[1] ?? '']: verdict,
    [ids[2] ?? '']: verdict
  })
  t.strictSame(await outlook(life, { work: chart('a', 'b'), version: '1' }), all({ outlook: 'ok' }))
  t.strictSame(await outlook(life, { work: chart('b', 'a'), version: '2' }), all({ outlook: 'ok' }))
  const migrate: AgentDefinition['migrate'] = ({ snapshot }) => ({ ...snapshot, value: 'c' })
  t.strictSame(await outlook(life, { work: chart('c'), version: '2', migrate }), all({ outlook: 'migrates' }))
  const changed = await outlook(life, { work: chart('a'), version: '2' })
  t.strictSame(
    Object.values(changed)
      .map(({ outlook }) => outlook)
      .toSorted(),
    ['fails', 'ok', 'ok']
  )
  t.equal(
    changed[ids[1] ?? '']?.reason,
    'This task cannot be resumed with the present agent: the chart has no state work.b. It was stored by version 1, and this is version 2.'
  )
  const broken = await outlook(life, {
    work: chart('c'),
    version: '2',
    migrate: () => {
      throw new Error('no c')
    }
  })
  t.match(broken[ids[0] ?? ''], {
    outlook: 'fails',
    reason: 'The migration of this task from version 1 to version 2 failed: migrate threw an error. (no c)'
  })
  t.match(
    await outlook(life, { negotiate: () => ({}) as never, version: '2' }),
    all({ outlook: 'fails', reason: /the agent has no work/ })
  )
  t.strictSame(life.log, [])
})

await t.test('the predicted outcome equals the real one', async t => {
  const life = lives(t, { work: chart('a', 'b'), version: '1' })
  const [stays, goes] = [await waiting(life), await waiting(life)]
  await life.runtime.sendMessage(say('x', { taskId: goes }))
  const said = await outlook(life, { work: chart('a'), version: '2' })
  await life.again({ work: chart('a'), version: '2' })
  t.equal((await life.told(goes)).at(-1), `failed: ${said[goes]?.reason}`)
  t.equal((await life.told(stays)).at(-1), 'input-required: The agent needs an answer to go on.')
})

await t.test('functions and generators run again, and tasks that had not started continue', async t => {
  const life = lives(t, {
    work: async ({ sleep }) => {
      await sleep(1000)
    },
    version: '1'
  })
  const { id } = await open(life.runtime, 'go', { contextId: 'c' })
  await rest()
  t.strictSame(await outlook(life, { work: async () => {} }), {
    [id]: { outlook: 'runs again' }
  })
  t.match(await outlook(life, { work: async () => {}, recovery: 'fail' }), {
    [id]: { outlook: 'fails', reason: /does not restart such work/ }
  })
  const { commit } = life.store
  let commits = 0
  Object.assign(life.store, {
    commit: (given: Parameters<typeof commit>[0]) => ((commits += 1) > 1 ? new Promise(() => {}) : commit(given))
  })
  // What a second task of a context is given has to be read.
  const { id: submitted } = await open(life.runtime, 'go', { contextId: 'c' })
  await rest()
  t.match(await outlook(life, { work: chart('a'), recovery: 'fail' }), {
    [submitted]: { outlook: 'ok' },
    [id]: { outlook: 'fails', reason: /was no statechart, and is one now/ }
  })
})

await t.test('a task whose version the agent still has goes on with the work of that version', async t => {
  const work = async ({ sleep }: { sleep: (ms: number) => Promise<void> }) => sleep(1000)
  for (const [before, now, verdict] of [
    [chart('a', 'b'), work, { outlook: 'ok' }],
    [work, chart('a', 'b'), { outlook: 'runs again' }],
    [chart('at work'), { work: chart('at work'), recovery: 'fail' }, { outlook: 'fails' }]
  ] as const) {
    const entry = 'work' in now ? now : before
    const life = lives(t, { work: before, version: '1' })
    const { id } = await open(life.runtime, 'go', { contextId: 'c' })
    await rest()
    const verdicts = await outlook(life, {
      work: 'work' in now ? now.work : now,
      version: '2',
      earlier: { '1': entry }
    })
    t.match(verdicts, { [id]: verdict })
  }
})

await t.test('a running chart fails if its agent wants that', async t => {
  const life = lives(t, { work: chart('at work') })
  const { id } = await open(life.runtime)
  await rest()
  t.match(await outlook(life, { work: chart('at work'), recovery: 'fail' }), {
    [id]: { outlook: 'fails', reason: /does not restart such work/ }
  })
  t.match(await outlook(life, { work: chart('at work') }), { [id]: { outlook: 'ok' } })
})

await t.test('an actor whose logic cannot be restored fails its task', async t => {
  const life = lives(t, { work: chart('at work') })
  const { id } = await open(life.runtime)
  await rest()
  const bad = {
    ...listen,
    restoreSnapshot: () => {
      throw new Error('not mine')
    }
  }
  const work = setupWork({ actors: { listen: bad } }).createMachine({
    id: 'work',
    initial: 'at work',
    states: { 'at work': { invoke: { id: 'ear', src: 'listen' } } }
  })
  t.match(await outlook(life, { work }), {
    [id]: { outlook: 'fails', reason: 'The work ended with an error. (not mine)' }
  })
})

await t.test('a task of a newer taskchart, or one that is too large, is not restored', async t => {
  const life = lives(t, { work: chart('a') })
  const taskId = await waiting(life)
  const snapshot = String(await life.store.readSnapshot(anyone, taskId))
  const row = { taskId, state: 'TASK_STATE_INPUT_REQUIRED', generation: 2 } as const
  const agent = defineAgent({ card: { name: 'Test' }, work: chart('a') })
  t.match(dryRunRestore(agent, { ...row, snapshot: snapshot.replace('"format":1', '"format":9') }), {
    outlook: 'fails',
    reason: /newer taskchart, in format 9/
  })
  t.match(dryRunRestore(agent, { ...row, snapshot: snapshot.padEnd(50_000_000, '語') }), {
    outlook: 'fails',
    reason: /more stored bytes than are loaded/
  })
})

await t.test('a task that ends while it is read has no open row', async t => {
  const life = lives(t, { work: chart('a') })
  const taskId = await waiting(life)
  const key = { ...anyone, contextId: 'c' }
  const ended = { loadContext: life.store.loadContext.bind(life.store), readSnapshot: async () => undefined }
  t.match(await readOpenRow(life.store, key, taskId), { taskId })
  t.equal(await readOpenRow(ended, key, taskId), undefined)
})

await t.test('a task with an actor that has failed continues', async t => {
  const work = setupWork({
    actors: {
      fails: fromPromise(async () => {
        throw new Error('no luck')
      })
    }
  }).createMachine({
    initial: 'asking',
    states: { asking: { tags: 'input-required', invoke: { src: 'fails', onError: {} } } }
  })
  const life = lives(t, { work })
  const id = await waiting(life)
  await rest()
  t.match(await outlook(life, { work }), { [id]: { outlook: 'ok' } })
})
