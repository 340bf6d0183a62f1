import type { Verdict, Walk, WalkStep } from '../../testing/proof/prove.ts'
import { mermaidIds, mermaidText } from '../../drawing/mermaid.ts'
import { tableLines } from '../text/columns.ts'
import { oneLine } from '../text/terminal-text.ts'

/** A verdict that has a counterexample. */
export type Refuted = Extract<Verdict, { walk: Walk }>

/** What comes before the steps that repeat, and after a walk on which nothing goes on. */
export const ENDINGS = { moment: '', loop: 'and for ever again:', end: 'and then nothing goes on' } as const

/** A counterexample in words: each step with the state after it and what is told by it. */
export function walkLines({ opening, begins, steps, again, kind }: Walk): string[] {
  const row = ({ says, state, told, sent }: Omit<WalkStep, 'from'>, number: number) => [
    `  ${number}`,
    oneLine(says),
    stateText(state),
    toldText({ told, sent })
  ]
  const lines = tableLines([{ ...begins, says: opening }, ...steps, ...again].map((step, i) => row(step, i + 1)))
  const before = lines.slice(0, steps.length + 1)
  if (kind === 'loop') return [...before, `  ${ENDINGS.loop}`, ...lines.slice(steps.length + 1)]
  return kind === 'end' ? [...before, `  ${ENDINGS.end}`] : before
}

/** What a step tells and sends: `tells WORKING, sends pull`. */
export function toldText({ told, sent }: Pick<WalkStep, 'told' | 'sent'>): string {
  return [...listed('tells', told), ...listed('sends', sent)].join(', ')
}

function listed(verb: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`${verb} ${names.join(', ')}`]
}

/** A counterexample as a sequence for mermaid: the client, the task, and the actors of its chart. */
export function walkMermaid({ property, walk: { opening, begins, steps, again, kind } }: Refuted): string {
  const senders = [...new Set([...steps, ...again].map(({ from }) => from))].filter(from => from !== 'client')
  const lanes = ['client', 'task', ...senders]
  const [client, task, ...others] = mermaidIds(lanes)
  const idOf = (from: string) => others[senders.indexOf(from)] ?? client
  const arrows = ({ says, from, state, told, sent }: WalkStep) => [
    `  ${idOf(from)}->>${task}: ${mermaidText(says)}`,
    ...told.map(name => `  ${task}-->>${client}: ${mermaidText(name)}`),
    ...sent.map(type => `  Note over ${task}: sends ${mermaidText(type)}`),
    `  Note right of ${task}: ${mermaidText(stateText(state))}`
  ]
  const loop = kind === 'loop' ? ['  loop for ever', ...again.flatMap(arrows), '  end'] : []
  const participants = [client, task, ...others].map(
    (id, i) => `  participant ${id} as ${mermaidText(String(lanes[i]))}`
  )
  const end = kind === 'end' ? [`  Note over ${client},${task}: ${ENDINGS.end}`] : []
  return [
    'sequenceDiagram',
    `  %% ${mermaidText(property)}`,
    ...participants,
    ...[{ ...begins, says: opening, from: 'client' }, ...steps].flatMap(arrows),
    ...loop,
    ...end,
    ''
  ].join('\n')
}

/** Counterexamples as a file of tests for Node's runner, which pass once the chart is mended. */
export function walkTests(refuted: readonly Refuted[], module: string, hasCases: boolean): string {
  const tests = refuted.map(({ property, walk: { opening, steps, again } }) =>
    [
      `void test(${quoted(property)}, () => checkWalk(agent, {`,
      ...(hasCases ? ['  cases,'] : []),
      `  property: ${quoted(property)},`,
      `  opening: ${quoted(opening)},`,
      `  walk: [${saidBy(steps)}]${again.length === 0 ? '' : ','}`,
      ...(again.length === 0 ? [] : [`  again: [${saidBy(again)}]`]),
      '}))',
      ''
    ].join('\n')
  )
  const imports = [
    "import { test } from 'node:test'",
    "import { checkWalk } from 'taskchart/testing'",
    `import agent${hasCases ? ', { cases }' : ''} from ${quoted(module)}`
  ]
  return `${imports.join('\n')}\n\n${tests.join('\n')}`
}

function saidBy(steps: readonly WalkStep[]): string {
  return steps.map(({ says }) => quoted(says)).join(', ')
}

/** A text as source code. */
function quoted(text: string): string {
  return /['\\]/.test(text) ? JSON.stringify(text) : `'${text}'`
}

/** A state value as paths: `order.paying`, and several for parallel states. */
function stateText(value: unknown): string {
  return typeof value === 'string' ? value : pathsIn(Object(value)).join(' and ')
}

function pathsIn(value: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(value).flatMap(([key, inner]) => {
    if (typeof inner === 'string') return [`${key}.${inner}`]
    const below = pathsIn(Object(inner))
    return below.length === 0 ? [key] : below.map(path => `${key}.${path}`)
  })
}
