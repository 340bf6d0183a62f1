import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { diffJson, diffMarkdown } from '../../../../adapters/cli/diff/diff-text.ts'
import { diffAgents, diffOutlines, type AgentDiff } from '../../../../adapters/testing/diff/agent-diff.ts'
import { readLocalModules } from '../../../../adapters/testing/diff/local-modules.ts'
import type { ConfigurationVerdict, ChangeVerdict } from '../../../../adapters/testing/diff/verdicts.ts'
import { isTerminal } from '../../../../machines/protocol/states.ts'
import { agentOutline, outlineText, parseOutline } from '../../../../runtime/definitions/agent-outline.ts'
import type { Agent } from '../../../../runtime/index.ts'
import { anyone, lives, type Lives } from '../../../fixtures/runtime/lives.ts'
import { rest, say, taskIn, textOf } from '../../../fixtures/runtime/runtime-helpers.ts'
import { sampleOf } from '../../../fixtures/sample.ts'

/** An agent with everything that an edit may touch. `pay` ends when a walk says so. */
const AGENT = `
import { defineAgent, fromPromise, setupWork, text, textOf } from 'taskchart'
import { assign } from 'xstate'
import { price } from './price.mjs'

const LIMIT = 4
const isLong = given => given.length > LIMIT
const pay = fromPromise(() => globalThis.taskchartGate())

const work = setupWork({
  actors: { pay },
  guards: { isLarge: ({ event }) => isLong(textOf(event.message)) },
  actions: { note: assign({ size: ({ event }) => textOf(event.message) }) }
}).createMachine({
  id: 'order',
  context: { size: '' },
  initial: 'choosing',
  states: {
    choosing: {
      tags: 'input-required',
      meta: { prompt: 'Which size?' },
      on: {
        'message.received': [
          { guard: 'isLarge', target: 'approving', actions: 'note' },
          { target: 'brewing', actions: 'note' }
        ]
      }
    },
    approving: {
      tags: 'input-required',
      meta: { prompt: 'Really?' },
      on: {
        'message.received': [
          { guard: ({ event }) => textOf(event.message) === 'yes', target: 'paying' },
          { target: 'refused' }
        ]
      },
      after: { 60000: 'refused' }
    },
    paying: { invoke: { src: 'pay', id: 'payment', onDone: 'brewing', onError: 'declined' } },
    declined: {
      tags: 'input-required',
      meta: { prompt: 'It was declined. Again?' },
      on: { 'message.received': 'paying' },
      after: { 5000: 'refused' }
    },
    brewing: {
      initial: 'grinding',
      onDone: 'serving',
      states: {
        grinding: { after: { 1000: 'pouring' } },
        pouring: { after: { 1000: 'poured' } },
        poured: { type: 'final' }
      }
    },
    serving: {
      type: 'parallel',
      onDone: 'served',
      states: {
        cup: {
          initial: 'full',
          states: {
            full: { tags: 'input-required', meta: { prompt: 'Say when it is empty.' }, on: { 'message.received': 'empty' } },
            empty: { type: 'final' }
          }
        },
        bill: {
          initial: 'open',
          states: { open: { after: { 2000: 'closed' } }, closed: { type: 'final' } }
        }
      }
    },
    refused: { type: 'final', tags: 'rejected' },
    served: { type: 'final' }
  },
  output: ({ context }) => ({ artifact: text(context.size + ' for ' + price) })
})
export default defineAgent({ card: { name: 'Order' }, version: '1', work })
`
const PRICE = 'export const price = 3\n'

/** The moves that lead to each configuration of the agent. */
const WAYS: Readonly<Record<string, readonly string[]>> = {
  choosing: [],
  approving: ['say large'],
  paying: ['say large', 'say yes'],
  declined: ['say large', 'say yes', 'fail'],
  'brewing.grinding': ['say big'],
  'brewing.pouring': ['say big', 'wait 1000'],
  'serving.cup.full and serving.bill.open': ['say big', 'wait 1000', 'wait 1000'],
  'serving.cup.full and serving.bill.closed': ['say big', 'wait 1000', 'wait 1000', 'wait 2000'],
  'serving.cup.empty and serving.bill.open': ['say big', 'wait 1000', 'wait 1000', 'say ok']
}

/** A planted edit: its replacements, and the verdicts that are not `same`. */
interface Edit {
  readonly name: string
  readonly replace: readonly (readonly [from: string, to: string])[]
  readonly price?: string
  readonly verdicts: Readonly<Record<string, ChangeVerdict>>
}

const all = (verdict: ChangeVerdict) => Object.fromEntries(Object.keys(WAYS).map(place => [place, verdict]))
const BEGINNING = ['choosing', 'approving', 'paying', 'declined']
const BREWING = ['brewing.grinding', 'brewing.pouring']
const SERVING = Object.keys(WAYS).filter(place => place.startsWith('serving'))
const OPEN = SERVING.filter(place => place.endsWith('open'))
const at = (verdict: ChangeVerdict, ...places: readonly string[]) =>
  Object.fromEntries(places.map(place => [place, verdict]))
const MIGRATE =
  ", migrate: ({ snapshot }) => (snapshot.value === 'choosing' ? { ...snapshot, value: 'asking' } : snapshot)"
const NEW_VERSION = ["version: '1'", "version: '2'"] as const
/** States, nested ones, a region and an actor get other names. */
const OTHER_NAMES = [
  ["initial: 'choosing'", "initial: 'asking'"],
  ['    choosing: {', '    asking: {'],
  ["target: 'brewing'", "target: 'making'"],
  ["onDone: 'brewing', onError: 'declined'", "onDone: 'making', onError: 'declined'"],
  ["src: 'pay', id: 'payment'", "src: 'charge', id: 'bill'"],
  ['actors: { pay }', 'actors: { charge: pay }'],
  ['    brewing: {', '    making: {'],
  ["grinding: { after: { 1000: 'pouring' } }", "grinding: { after: { 1000: 'filling' } }"],
  ['pouring: {', 'filling: {'],
  ['        cup: {', '        mug: {']
] as const
const RENAMED = (pouring = 'making.filling') =>
  `version: '2', renamed: { states: { choosing: 'asking', brewing: 'making', ${pouring === '' ? '' : `'brewing.pouring': '${pouring}', `}'serving.cup': 'serving.mug' }, actors: { pay: 'charge', payment: 'bill' } }`

const EDITS: readonly Edit[] = [
  { name: 'nothing', replace: [], verdicts: {} },
  {
    name: 'layout and comments',
    replace: [
      ['    choosing: {\n', '    // asks\n    choosing:\n    {\n'],
      ['({ event }) => isLong(textOf(event.message))', '({event}) => isLong(\n  textOf(event.message) /* text */,\n)']
    ],
    verdicts: {}
  },
  { name: 'a new version', replace: [NEW_VERSION], verdicts: {} },
  {
    name: 'a renamed state',
    replace: [
      ['    choosing: {', '    asking: {'],
      ["initial: 'choosing'", "initial: 'asking'"]
    ],
    verdicts: at('not restored', 'choosing')
  },
  {
    name: 'a renamed state, which is migrated',
    replace: [
      ['    choosing: {', '    asking: {'],
      ["initial: 'choosing'", "initial: 'asking'"],
      ["version: '1'", `version: '2'${MIGRATE}`]
    ],
    verdicts: all('depends')
  },
  {
    name: 'other names, which are renamed',
    replace: [...OTHER_NAMES, ["version: '1'", RENAMED()]],
    verdicts: {}
  },
  {
    name: 'other names, of which one is not renamed',
    replace: [...OTHER_NAMES, ["version: '1'", RENAMED('')]],
    verdicts: { ...at('otherwise', ...BEGINNING, 'brewing.grinding'), ...at('not restored', 'brewing.pouring') }
  },
  {
    name: 'a renamed state whose code has changed too',
    replace: [
      ...OTHER_NAMES,
      ["version: '1'", RENAMED()],
      ['LIMIT = 4', 'LIMIT = 2'],
      ["=== 'yes'", "=== 'no'"],
      ['open: { after: { 2000', 'open: { after: { 500']
    ],
    verdicts: {
      ...at('otherwise', ...Object.keys(WAYS).filter(place => !place.endsWith('closed')))
    }
  },
  {
    name: 'names that were exchanged, by version',
    replace: [
      ['    declined: {', '    approving2: {'],
      ['    approving: {', '    declined: {'],
      ['    approving2: {', '    approving: {'],
      ["target: 'approving', actions", "target: 'declined', actions"],
      ["onError: 'declined'", "onError: 'approving'"],
      ["version: '1'", "version: '2', renamed: { '1': { states: { approving: 'declined', declined: 'approving' } } }"]
    ],
    verdicts: {}
  },
  {
    name: 'a step in the middle',
    replace: [
      ["onDone: 'brewing'", "onDone: 'thanking'"],
      ['    declined: {', "    thanking: { after: { 500: 'brewing' } },\n    declined: {"]
    ],
    verdicts: at('otherwise', ...BEGINNING)
  },
  {
    name: 'a longer timer, in the same version',
    replace: [['after: { 5000: ', 'after: { 9000: ']],
    verdicts: at('otherwise', ...BEGINNING)
  },
  {
    name: 'a shorter timer that is the only way on, in the same version',
    replace: [["grinding: { after: { 1000: 'pouring' } }", "grinding: { after: { 500: 'pouring' } }"]],
    verdicts: { ...at('otherwise', ...BEGINNING), ...at('never ends', 'brewing.grinding') }
  },
  {
    name: 'a shorter timer that is the only way on, in a new version',
    replace: [["grinding: { after: { 1000: 'pouring' } }", "grinding: { after: { 500: 'pouring' } }"], NEW_VERSION],
    verdicts: at('otherwise', ...BEGINNING, 'brewing.grinding')
  },
  { name: 'a constant that a guard reads', replace: [['LIMIT = 4', 'LIMIT = 2']], verdicts: at('depends', 'choosing') },
  {
    name: 'a function that a guard calls',
    replace: [['given.length > LIMIT', 'given.length >= LIMIT']],
    verdicts: at('depends', 'choosing')
  },
  {
    name: 'a guard',
    replace: [['isLong(textOf(event.message)) }', '!isLong(textOf(event.message)) }']],
    verdicts: at('depends', 'choosing')
  },
  {
    name: 'a guard without a name',
    replace: [["=== 'yes'", "=== 'no'"]],
    verdicts: at('depends', 'choosing', 'approving')
  },
  {
    name: 'a guard that is renamed',
    replace: [
      ['guards: { isLarge:', 'guards: { isBig:'],
      ["guard: 'isLarge'", "guard: 'isBig'"]
    ],
    verdicts: at('otherwise', 'choosing')
  },
  {
    name: 'a guard that goes',
    replace: [["guard: 'isLarge', target: 'approving'", "target: 'approving'"]],
    verdicts: at('otherwise', 'choosing')
  },
  { name: 'a module that is imported', replace: [], price: 'export const price = 4\n', verdicts: all('depends') },
  {
    name: 'the layout of a module that is imported',
    replace: [],
    price: '// In euros.\nexport  const price = 3;\n'.replace(';', ''),
    verdicts: {}
  },
  {
    name: 'an action',
    replace: [['assign({ size: ({ event }) => textOf(event.message) })', "assign({ size: () => 'none' })"]],
    verdicts: at('depends', 'choosing')
  },
  {
    name: 'an actor',
    replace: [['=> globalThis.taskchartGate()', '=> globalThis.taskchartGate().then(() => 2)']],
    verdicts: at('depends', ...BEGINNING)
  },
  {
    name: 'a renamed actor',
    replace: [
      ['const pay =', 'const charge ='],
      ['actors: { pay }', 'actors: { charge }'],
      ["src: 'pay'", "src: 'charge'"]
    ],
    verdicts: { ...at('otherwise', ...BEGINNING), ...at('not restored', 'paying') }
  },
  {
    name: 'another id of an actor',
    replace: [["id: 'payment'", "id: 'bill'"]],
    verdicts: { ...at('otherwise', ...BEGINNING), ...at('not restored', 'paying') }
  },
  {
    name: 'an actor in a state that had none',
    replace: [['    declined: {', "    declined: {\n      invoke: { src: 'pay', id: 'more' },"]],
    verdicts: { ...at('otherwise', ...BEGINNING), ...at('not restored', 'declined') }
  },
  { name: 'the output', replace: [["' for '", "' at '"]], verdicts: all('depends') },
  { name: 'the first context', replace: [["context: { size: '' }", "context: { size: 'medium' }"]], verdicts: {} },
  { name: 'another first state', replace: [["initial: 'choosing'", "initial: 'declined'"]], verdicts: {} },
  {
    name: 'another first state below',
    replace: [["initial: 'grinding'", "initial: 'pouring'"]],
    verdicts: at('otherwise', ...BEGINNING)
  },
  {
    name: 'an action when a state is entered',
    replace: [
      ['    serving: {', "    serving: {\n      entry: 'note2',"],
      ['actions: { note:', "actions: { note2: assign({ size: 'done' }), note:"]
    ],
    verdicts: at('otherwise', ...BEGINNING, ...BREWING)
  },
  {
    name: 'a state that goes',
    replace: [
      ["{ guard: 'isLarge', target: 'approving', actions: 'note' },", ''],
      ['    approving: {', '    verifying: {']
    ],
    verdicts: { ...at('otherwise', 'choosing'), ...at('not restored', 'approving') }
  },
  {
    name: 'the error of an actor, which nothing handles',
    replace: [[", onError: 'declined'", '']],
    verdicts: at('otherwise', ...BEGINNING)
  },
  {
    name: 'a new end',
    replace: [
      ["onError: 'declined'", "onError: 'lost'"],
      ['    refused: {', "    lost: { type: 'final', tags: 'failed' },\n    refused: {"]
    ],
    verdicts: at('otherwise', ...BEGINNING)
  },
  {
    name: 'an end that is none any more',
    replace: [["    served: { type: 'final' }", "    served: { on: { 'message.received': 'served' } }"]],
    verdicts: { ...at('otherwise', ...BEGINNING), ...at('never ends', ...BREWING, ...SERVING) }
  },
  {
    name: 'an end that rejects',
    replace: [["    served: { type: 'final' }", "    served: { type: 'final', tags: 'rejected' }"]],
    verdicts: all('otherwise')
  },
  { name: 'a prompt', replace: [["'Really?'", "'Are you sure?'"]], verdicts: at('otherwise', 'choosing', 'approving') },
  {
    name: 'a schema of an answer',
    replace: [
      ["meta: { prompt: 'Which size?' }", "meta: { prompt: 'Which size?', schema: z.enum(['big', 'large']) }"],
      ['import { price }', "import { z } from 'zod'\nimport { price }"]
    ],
    verdicts: at('other answer', 'choosing')
  },
  {
    name: 'a question that is none any more',
    replace: [["      tags: 'input-required',\n      meta: { prompt: 'Really?' },\n", '']],
    verdicts: { ...at('otherwise', 'choosing'), ...at('other answer', 'approving') }
  },
  {
    name: 'a timer that is new, in the same version',
    replace: [['    choosing: {', "    choosing: {\n      after: { 3000: 'refused' },"]],
    verdicts: at('otherwise', 'choosing')
  },
  {
    name: 'a timer that goes',
    replace: [['      after: { 60000: ', '      on2: { 60000: '.replace('on2', 'after').replace('60000', '70000')]],
    verdicts: at('otherwise', 'choosing', 'approving')
  },
  {
    name: 'a new region',
    replace: [
      ['        bill: {', "        spoon: { initial: 'here', states: { here: { type: 'final' } } },\n        bill: {"]
    ],
    verdicts: all('otherwise')
  },
  {
    name: 'a state below that is renamed',
    replace: [
      ['pouring: {', 'filling: {'],
      ["1000: 'pouring'", "1000: 'filling'"]
    ],
    verdicts: { ...at('otherwise', ...BEGINNING, 'brewing.grinding'), ...at('not restored', 'brewing.pouring') }
  },
  {
    name: 'another id of the chart',
    replace: [["id: 'order'", "id: 'coffee'"]],
    verdicts: { ...all('otherwise'), ...at('never ends', ...BREWING, ...OPEN) }
  },
  {
    name: 'an eventless way out',
    replace: [
      [
        '    paying: {',
        "    paying: {\n      always: { guard: ({ context }) => context.size === 'never', target: 'refused' },"
      ]
    ],
    verdicts: at('otherwise', ...BEGINNING)
  },
  { name: 'a deadline', replace: [["version: '1'", "version: '1', deadlineMs: 600000"]], verdicts: all('otherwise') },
  {
    name: 'messages to working tasks',
    replace: [["version: '1'", "version: '1', messages: 'queue'"]],
    verdicts: all('otherwise')
  }
]

/** The moves that are made after the deploy; then a tail, on which tasks end. */
const MOVES = ['say yes', 'say large', 'wait 1000', 'wait 60000', 'pay', 'fail']
const TAIL = ['pay', 'say yes', 'wait 60000', 'pay', 'wait 60000', 'say yes', 'wait 60000']
const WALKS = MOVES.flatMap(one => MOVES.map(other => [one, other, ...TAIL]))

/** The payments that wait, of the runtime that lives. */
let waiting: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = []
Object.assign(globalThis, {
  taskchartGate: () => new Promise<void>((resolve, reject) => void waiting.push({ resolve, reject }))
})

const folder = t.testdir({ 'agent.mjs': AGENT, 'price.mjs': PRICE })
let folders = 0

/** An agent after an edit, from a folder of its own. */
async function edited(t: Test, { replace, price = PRICE }: Pick<Edit, 'replace' | 'price'>) {
  let text = AGENT
  for (const [from, to] of replace) {
    if (!text.includes(from)) throw new Error(`The agent has no ${from}`)
    text = text.replace(from, to)
  }
  const path = join(t.testdir({ [`edit-${(folders += 1)}`]: { 'price.mjs': price } }), `edit-${folders}`, 'agent.mjs')
  writeFileSync(path, text)
  const { default: agent } = (await import(pathToFileURL(path).href)) as { default: Agent }
  return { agent, path }
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
  const stored = await life.store.readSnapshot(anyone, taskId)
  waiting = []
  await life.again({ ...after, cancelGraceMs: 0 })
  return { life, taskId, work: JSON.parse(stored ?? '{}').children?.work?.snapshot as { value: unknown } | undefined }
}

/** What a client sees on a walk after the deploy. */
async function walked(t: Test, before: Agent, after: Agent, way: readonly string[], walk: readonly string[]) {
  const { life, taskId } = await deployed(t, before, after, way)
  const lines = [await seen(life, taskId)]
  for (const name of walk) lines.push(`${name}: ${await move(life, taskId, name)}`)
  return lines
}

function verdictAt({ charts: [chart] }: AgentDiff, value: unknown): ConfigurationVerdict | undefined {
  return chart?.configurations.find(({ state }) => JSON.stringify(state) === JSON.stringify(value))
}

const path = join(folder, 'agent.mjs')
const { default: original } = (await import(pathToFileURL(path).href)) as { default: Agent }
const known = new Map<string, Promise<readonly string[]>>()

/** What a client sees without an edit, with a restart at the same place. */
function unedited(t: Test, place: string, walk: readonly string[]): Promise<readonly string[]> {
  const key = `${place}: ${walk.join(', ')}`
  const found = known.get(key) ?? walked(t, original, original, WAYS[place] ?? [], walk)
  known.set(key, found)
  return found
}

/** Whether a line of a walk shows a task that has ended otherwise than by a cancel. */
const hasEnded = (line: string) =>
  ['COMPLETED', 'FAILED', 'REJECTED'].some(
    state => line.includes(`TASK_STATE_${state}`) && isTerminal(`TASK_STATE_${state}` as never)
  )

await t.test('of planted edits, each configuration has its verdict', async t => {
  t.ok(EDITS.length >= 40)
  const stored = parseOutline(outlineText(agentOutline(original, readLocalModules(path))))
  for (const edit of EDITS) {
    const diff = diffAgents({ agent: original, path }, await edited(t, edit))
    const ofStored = diffOutlines(stored, await edited(t, edit))
    for (const text of [diffJson, diffMarkdown]) t.equal(text(ofStored), text(diff), `${edit.name}, stored`)
    const [chart] = diff.charts
    const found = Object.fromEntries(
      (chart?.configurations ?? []).flatMap(one => (one.verdict === 'same' ? [] : [[placeOf(one.state), one.verdict]]))
    )
    t.strictSame(found, edit.verdicts, edit.name)
    t.strictSame(chart?.configurations.map(({ state }) => placeOf(state)).toSorted(), Object.keys(WAYS).toSorted())
  }
})

function placeOf(value: unknown, path: readonly string[] = []): string {
  if (typeof value === 'string') return [...path, value].join('.')
  return Object.entries(Object(value) as object)
    .map(([key, inner]) => placeOf(inner, [...path, key]))
    .join(' and ')
}

await t.test('no verdict on a stored task is a wrong certainty, as a deploy shows', async t => {
  for (const edit of sampleOf(t, EDITS, 15)) {
    await t.test(edit.name, async t => {
      const changed = await edited(t, edit)
      const diff = diffAgents({ agent: original, path }, changed)
      for (const [place, way] of Object.entries(WAYS)) {
        const { work } = await deployed(t, original, original, way)
        const verdict = verdictAt(diff, work?.value)
        t.equal(placeOf(work?.value), place)
        if (!verdict) {
          t.fail(`no verdict for ${place}`)
          continue
        }
        for (const walk of sampleOf({ comment: () => {} }, WALKS, 3, 9)) {
          const [before, after] = [await unedited(t, place, walk), await walked(t, original, changed.agent, way, walk)]
          if (verdict.verdict === 'same') t.strictSame(after, before, `${place} goes on the same way`)
          if (verdict.verdict === 'not restored') t.match(after[0], /FAILED \| This task cannot be resumed/, place)
          else t.notMatch(after[0], /cannot be resumed/, `${place} is restored`)
          if (verdict.verdict === 'never ends') t.notOk(after.some(hasEnded), `${place} never ends`)
        }
      }
    })
  }
})
