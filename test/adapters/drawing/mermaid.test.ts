import t from 'tap'
import { createMachine, type AnyStateMachine, type AnyStateNode } from 'xstate'
import { occasionOf } from '../../../machines/xstate-names.ts'
import { guardName } from '../../../runtime/xstate/written-chart.ts'
import { chartMermaid, mermaidIds } from '../../../adapters/drawing/mermaid.ts'
import { shownText } from '../../../adapters/drawing/svg-element.ts'
import { statesOf, transitionName, transitionsOf } from '../../../runtime/xstate/state-nodes.ts'
import { writtenChart } from '../../../runtime/xstate/written-chart.ts'
import { drawnCharts } from '../../fixtures/charts/drawn/charts.ts'
import { generatedAgents } from '../../fixtures/charts/generated-charts.ts'
import { CHROMIUM } from '../../fixtures/pages/chromium.ts'
import { openMermaid, type MermaidArrow, type MermaidDrawing } from '../../fixtures/pages/mermaid-page.ts'

const charts: Readonly<Record<string, AnyStateMachine>> = {
  ...drawnCharts,
  ...Object.fromEntries(
    generatedAgents(10, 17).map(({ agent }, i) => [`generated ${i + 1}`, agent.work as AnyStateMachine])
  )
}

await t.test('ids have letters and digits only, and no two are equal', t => {
  t.strictSame(mermaidIds(['質問', '完了', 'a b', 'a.b', 'a_b', 'end', 'END', 'm.start', 'm.end', 'm.starts', '']), [
    '質問',
    '完了',
    'a_b',
    'a_b_',
    'a_b__',
    'end_',
    'END_',
    'm_start_',
    'm_end_',
    'm_starts',
    '_'
  ])
  t.end()
})

/** A state or an arrow in words, as the chart has it and as mermaid reads it: paths of labels. */
interface Read {
  readonly states: readonly string[]
  readonly arrows: readonly string[]
}

/** What mermaid has to read. */
function readOf({ root }: AnyStateMachine): Read {
  const pathOf = (node?: AnyStateNode): string => (!node?.parent ? '' : `${pathOf(node.parent)}/${labelOf(node)}`)
  const arrowOf = (from: string, to: string, label = '') => `${from} -> ${to}: ${label}`
  const states = statesOf(root)
  return {
    states: states
      .filter(({ parent }) => parent)
      .map(pathOf)
      .toSorted(),
    arrows: states
      .flatMap(node => [
        ...(node.type === 'compound'
          ? node.initial.target.map(first => arrowOf(`${pathOf(node)}/begins`, pathOf(first)))
          : []),
        ...(node.type === 'final' ? [arrowOf(pathOf(node), `${pathOf(node.parent)}/ends`)] : []),
        ...transitionsFrom(node).map(([target, label]) => arrowOf(pathOf(node), pathOf(target), label))
      ])
      .toSorted()
  }
}

/** The targets of a state's transitions, with labels. Those to itself are one. */
function transitionsFrom(node: AnyStateNode): [target: AnyStateNode, label: string][] {
  const written = writtenChart(node.machine).transitions
  const labelled = transitionsOf(node).flatMap(one => {
    const guard = written.find(({ name }) => name === transitionName(one))?.guard
    const invoked = node.invoke.map(({ id, src }) => ({ id, src: src as string }))
    const words = occasionOf(one.eventType, guard && guardName(guard), invoked)
    return (one.target ?? []).map((target): [AnyStateNode, string] => [target, words === '' ? '' : shownOf(words)])
  })
  const loops = labelled.filter(([target]) => target === node).map(([, label]) => label)
  return [
    ...labelled.filter(([target]) => target !== node),
    ...(loops.length > 0 ? [[node, loops.join('<br>')] as [AnyStateNode, string]] : [])
  ]
}

function labelOf({ key, tags }: AnyStateNode): string {
  return [shownOf(key), ...tags.map(tag => `#${shownOf(tag)}`)].join(' ')
}

/** Text as a drawing shows it: what nobody would see is a space. */
function shownOf(text: string): string {
  return shownText(text) || ' '
}

/** What mermaid has read. The root is the state that contains all others, if it is drawn. */
function readBy({ states, arrows }: MermaidDrawing, root: AnyStateNode): Read {
  const isInside = ({ from }: MermaidArrow) => 'mark' in from && from.parent === undefined
  const [drawnRoot] = arrows.some(isInside)
    ? []
    : states.filter(({ parent, label }) => parent === undefined && label === labelOf(root))
  const pathOf = (id?: string): string => {
    const state = states.find(one => one.id === id)
    return !state || state === drawnRoot ? '' : `${pathOf(state.parent)}/${state.label}`
  }
  const endOf = (end: MermaidArrow['from']) => ('id' in end ? pathOf(end.id) : `${pathOf(end.parent)}/${end.mark}`)
  return {
    states: states
      .filter(state => state !== drawnRoot)
      .map(({ id }) => pathOf(id))
      .toSorted(),
    arrows: arrows.map(({ from, to, label }) => `${endOf(from)} -> ${endOf(to)}: ${label}`).toSorted()
  }
}

await t.test('in mermaid', { skip: CHROMIUM === undefined && 'no Chromium on this machine' }, async t => {
  const draw = await openMermaid(t)

  for (const [name, machine] of Object.entries(charts)) {
    await t.test(
      `the drawing of the chart ${name} has each state in its place, and each arrow with its label`,
      async t => {
        const text = chartMermaid(machine)
        const drawing = await draw(text)
        t.equal(drawing.error, undefined)
        t.strictSame(readBy(drawing, machine.root), readOf(machine), text)
        for (const { label } of [...drawing.states, ...drawing.arrows])
          t.ok(drawing.texts.includes(label.replaceAll('<br>', ' ').trim()) || label === '', `${label} is seen`)
      }
    )
  }

  await t.test('a chart may have any id', async t => {
    for (const id of [
      'state',
      'note',
      'end',
      'class',
      'classDef',
      'click',
      'default',
      'direction',
      'scale',
      'style',
      'hide',
      'stateDiagram',
      'accTitle',
      'root',
      '(machine)',
      '1',
      '%%',
      ''
    ]) {
      const { error, states } = await draw(
        chartMermaid(createMachine({ id, type: 'parallel', states: { start: {}, end: {} } }))
      )
      t.equal(error, undefined, id)
      t.equal(states.length, 3, id)
    }
  })
})
