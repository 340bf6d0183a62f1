import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { diffJson, diffMarkdown } from '../../../../adapters/cli/diff/diff-text.ts'
import {
  type AgentDiff,
  type AgentSide,
  diffAgents,
  diffOutlines
} from '../../../../adapters/testing/diff/agent-diff.ts'
import { readLocalModules } from '../../../../adapters/testing/diff/local-modules.ts'
import type { OpenTask, StoreReader } from '../../../../adapters/rows/store-reader.ts'
import { diffStored } from '../../../../adapters/testing/diff/stored-diff.ts'
import type { StoredVerdict } from '../../../../adapters/testing/diff/verdicts.ts'
import type { ConfigurationVerdict } from '../../../../adapters/testing/diff/verdicts.ts'
import { isTerminal } from '../../../../machines/protocol/states.ts'
import { agentOutline, outlineText, parseOutline } from '../../../../runtime/definitions/agent-outline.ts'
import type { Agent } from '../../../../runtime/index.ts'
import { type EditedAgent, ORDERS, type PlantedEdit, PRICE } from '../../../fixtures/charts/order-edits.ts'
import { TRIPS } from '../../../fixtures/charts/trip-edits.ts'
import { anyone, lives, type Lives } from '../../../fixtures/runtime/lives.ts'
import { rest, say, taskIn, textOf } from '../../../fixtures/runtime/runtime-helpers.ts'
import { sampleOf } from '../../../fixtures/sample.ts'

/** The payments that wait, of the runtime that lives. */
let waiting: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = []
Object.assign(globalThis, {
  taskchartGate: () => new Promise<void>((resolve, reject) => void waiting.push({ resolve, reject }))
})
let folders = 0

/** An agent after an edit, from a folder of its own. */
async function edited(
  t: Test,
  { source }: EditedAgent,
  { replace, price = PRICE }: Pick<PlantedEdit, 'replace' | 'price'>
) {
  let text = source
  for (const [from, to] of replace) {
    if (!text.includes(from)) throw new Error(`The agent has no ${from}`)
    text = text.replace(from, to)
  }
  const path = join(t.testdir({ [`edit-${(folders += 1)}`]: { 'price.mjs': price } }), `edit-${folders}`, 'agent.mjs')
  writeFileSync(path, text)
  const { default: agent } = (await import(pathToFileURL(path).href)) as { default: Agent }
  return { path, agent, localModules: () => readLocalModules(path) }
}

/** Makes a move of the client, of time or of the payment; gives what the client sees then. */
async function move({ runtime, pass }: Lives, taskId: string, name: string): Promise<string> {
  const [kind, text = ''] = name.split(' ')
  if (kind === 'wait') await pass(Number(text))
  if (kind === 'pay') for (const { resolve } of waiting.splice(0)) resolve()
  if (kind === 'fail') for (const { reject } of waiting.splice(0)) reject(new Error('No.'))
  const answer = kind === 'say' ? runtime.sendMessage(say(text, { taskId }, { returnImmediately: true })) : undefined
  const refused = await answer?.then(
    () => '',
    (error: Error) => `refused: ${error.message.replaceAll(/id-\d+-\d+/g, 'id')} `
  )
  await rest()
  return `${refused ?? ''}${await seen({ runtime }, taskId)}`
}

async function seen({ runtime }: Pick<Lives, 'runtime'>, taskId: string): Promise<string> {
  const { status, artifacts = [] } = await runtime.getTask({ id: taskId })
  return [status.state, textOf(status.message) ?? '', ...artifacts.map(artifact => textOf(artifact) ?? '')].join(' | ')
}

/** A task that is opened with one agent and brought to a configuration; then the other agent is deployed. */
async function deployed(t: Test, before: Agent, after: Agent, way: readonly string[]) {
  waiting = []
  const life = lives(t, { ...before, cancelGraceMs: 0 })
  const taskId = taskIn(await life.runtime.sendMessage(say('open', {}, { returnImmediately: true }))).id
  await rest()
  for (const name of way) await move(life, taskId, name)
  const snapshot = await life.store.readSnapshot(anyone, taskId)
  waiting = []
  await life.again({ ...after, cancelGraceMs: 0 })
  return { life, taskId, snapshot: snapshot ?? '{}' }
}

/** What a client sees on a walk after the deploy. */
async function walked(t: Test, before: Agent, after: Agent, way: readonly string[], walk: readonly string[]) {
  const { life, taskId } = await deployed(t, before, after, way)
  const lines = [await seen(life, taskId)]
  for (const name of walk) lines.push(`${name}: ${await move(life, taskId, name)}`)
  return lines
}

/** The verdicts of a diff by the names of configurations. */
function verdictsIn({ charts: [chart] }: AgentDiff): Map<string, ConfigurationVerdict['verdict']> {
  return new Map(chart?.configurations.map(({ state, history, verdict }) => [placeOf(state, history), verdict]))
}

/** The name of a configuration: `a.b and a.c after d`, where a history leads to `d`. */
function placeOf(value: unknown, history: Readonly<Record<string, readonly string[]>> = {}): string {
  const nameOf = (value: unknown, path: readonly string[]): string =>
    typeof value === 'string'
      ? [...path, value].join('.')
      : Object.entries(Object(value) as object)
          .map(([key, inner]) => nameOf(inner, [...path, key]))
          .join(' and ')
  const deepest = Object.values(history).map(ids => ids.toSorted((one, other) => other.length - one.length)[0] ?? '')
  const after = deepest.map(id => id.slice(id.indexOf('.') + 1)).join(' and ')
  return after === '' ? nameOf(value, []) : `${nameOf(value, [])} after ${after}`
}

/** The name of the configuration of a stored task. */
function placeIn(snapshot: string): string {
  const { value, historyValue = {} } = JSON.parse(snapshot).children.work.snapshot as {
    value: unknown
    historyValue?: Record<string, { id: string }[]>
  }
  const ids = Object.entries(historyValue).map(([id, states]) => [id, states.map(({ id }) => id)])
  return placeOf(value, Object.fromEntries(ids) as Record<string, string[]>)
}

/** The verdicts on stored tasks, in their order, whose definition was stored with this text. */
async function storedVerdicts(snapshots: readonly string[], definition: string, after: AgentSide) {
  const tasks = snapshots.map((snapshot, i): OpenTask => ({
    ...anyone,
    contextId: 'c',
    taskId: `t${i}`,
    state: 'TASK_STATE_WORKING',
    snapshot: snapshot.replace(/"version":"1"/, '$&,"definition":"stored"')
  }))
  const verdicts: StoredVerdict[] = []
  const reader: Pick<StoreReader, 'openTasks' | 'readDefinition'> = {
    openTasks: async () => ({ tasks }),
    readDefinition: async () => definition
  }
  await diffStored(reader as StoreReader, after, {
    signal: new AbortController().signal,
    onTask: ({ verdict }) => void verdicts.push(verdict)
  })
  return verdicts
}

/** Whether a line of a walk shows a task that has ended otherwise than by a cancel. */
const hasEnded = (line: string) =>
  ['COMPLETED', 'FAILED', 'REJECTED'].some(
    state => line.includes(`TASK_STATE_${state}`) && isTerminal(`TASK_STATE_${state}` as never)
  )

await t.test('at least 80 edits are planted, each once', async t => {
  const names = [...ORDERS.edits, ...TRIPS.edits].map(({ name }) => name)
  t.ok(names.length >= 80)
  t.equal(new Set(names).size, names.length)
})

for (const [name, planted, count] of [
  ['an order', ORDERS, 8],
  ['a trip', TRIPS, 5]
] as const) {
  const { ways, edits, moves, tail } = planted
  const walks = moves.flatMap(one => moves.map(other => [one, other, ...tail]))
  const original = await edited(t, planted, { replace: [] })
  const definition = outlineText(agentOutline(original.agent, readLocalModules(original.path)))
  const known = new Map<string, Promise<readonly string[]>>()

  /** What a client sees without an edit, with a restart at the same place. */
  const unedited = (t: Test, place: string, walk: readonly string[]): Promise<readonly string[]> => {
    const key = `${place}: ${walk.join(', ')}`
    const found = known.get(key) ?? walked(t, original.agent, original.agent, ways[place] ?? [], walk)
    known.set(key, found)
    return found
  }

  await t.test(`of planted edits of ${name}, each configuration has its verdict`, async t => {
    const stored = parseOutline(definition)
    for (const edit of edits) {
      const after = await edited(t, planted, edit)
      const diff = diffAgents(original, after)
      const ofStored = diffOutlines(stored, after)
      for (const text of [diffJson, diffMarkdown]) t.equal(text(ofStored), text(diff), `${edit.name}, stored`)
      const verdicts = verdictsIn(diff)
      const found = Object.keys(ways).flatMap(place => {
        const verdict = verdicts.get(place)
        return verdict === 'same' ? [] : [[place, verdict]]
      })
      t.strictSame(Object.fromEntries(found), edit.verdicts, edit.name)
      const unnamed = [...verdicts.keys()].filter(place => !place.includes(' after ') && !(place in ways))
      t.strictSame(unnamed, [], 'every configuration without a history has a way that leads to it')
    }
  })

  await t.test(`no verdict on a stored task of ${name} is a wrong certainty, as a deploy shows`, async t => {
    for (const edit of sampleOf(t, edits, count, 2 * count)) {
      await t.test(edit.name, async t => {
        const after = await edited(t, planted, edit)
        const verdicts = verdictsIn(diffAgents(original, after))
        const snapshots: string[] = []
        for (const [place, way] of Object.entries(ways)) {
          const { snapshot } = await deployed(t, original.agent, original.agent, way)
          t.equal(placeIn(snapshot), place)
          snapshots.push(snapshot)
        }
        const ofTasks = await storedVerdicts(snapshots, definition, after)
        for (const [i, [place, way]] of Object.entries(ways).entries()) {
          const given = [verdicts.get(place), ofTasks[i]]
          for (const walk of sampleOf({ comment: () => {} }, walks, 3, 4)) {
            const [before, now] = [
              await unedited(t, place, walk),
              await walked(t, original.agent, after.agent, way, walk)
            ]
            for (const [i, verdict] of given.entries()) {
              const what = `${place}, ${i === 0 ? 'of a module' : 'of a stored task'}: ${verdict}`
              if (verdict === undefined || verdict === 'not compared') t.fail(what)
              if (verdict === 'same') t.strictSame(now, before, what)
              if (verdict === 'not restored') t.match(now[0], /FAILED \| This task cannot be resumed/, what)
              else t.notMatch(now[0], /cannot be resumed/, what)
              if (verdict === 'never ends') t.notOk(now.some(hasEnded), what)
            }
          }
        }
      })
    }
  })
}
