import type { AnyStateMachine } from 'xstate'
import { occasionOf } from '../../machines/xstate-names.ts'
import { checkArgument, withMembers } from '../../runtime/primitives/options.ts'
import {
  type WrittenChart,
  writtenChart,
  type WrittenState,
  type WrittenTransition
} from '../../runtime/xstate/written-chart.ts'
import { guardName } from '../../runtime/xstate/written-chart.ts'
import type { Mark, MergedChart } from './merged-chart.ts'
import { shownText } from './svg-element.ts'

/** A chart in mermaid's syntax (`stateDiagram-v2`): its nested states, then the transitions between them. */
export function chartMermaid(machine: AnyStateMachine): string {
  checkArgument(
    machine,
    withMembers(['root', 'config'], 'a statechart'),
    'chartMermaid(setupWork({}).createMachine({ … }))'
  )
  return mermaidOf({ chart: writtenChart(machine), marks: new Map() })
}

/** Two charts in one in mermaid's syntax. States that are new, gone or changed have colours, and arrows words. */
export function mermaidOf({ chart, marks }: MergedChart): string {
  const { root, states, transitions } = chart
  const names = namesOf(chart)
  const isDrawn =
    root.type === 'parallel' ||
    transitions.some(({ source, targets }) => targets.some(end => end === root || source === root))
  const boxes = isDrawn ? boxOf(root, names, '  ') : insideOf(root, names, '  ')
  const classes = states.flatMap(state => {
    const mark = marks.get(state.id)
    return mark ? [`  class ${names.get(state)} ${mark}`] : []
  })
  return [
    'stateDiagram-v2',
    ...boxes,
    ...states.flatMap(node => arrowsOf(node, names, marks)),
    ...(classes.length > 0 ? [...CLASSES, ...classes] : []),
    ''
  ].join('\n')
}

const CLASSES = [
  '  classDef added stroke:#1a7f37,stroke-width:3px',
  '  classDef removed stroke:#cf222e,stroke-width:3px,stroke-dasharray:5 4',
  '  classDef changed stroke:#bc4c00,stroke-width:3px'
]

/** The words before the label of an arrow. */
const MARK_WORDS: Readonly<Record<Mark, string>> = { added: 'new: ', removed: 'gone: ', changed: 'changed: ' }

type Names = ReadonlyMap<WrittenState, string>

function insideOf(node: WrittenState, names: Names, indent: string): string[] {
  const { states } = node
  if (node.type === 'parallel')
    return states.flatMap((state, i) => [...(i > 0 ? [`${indent}--`] : []), ...boxOf(state, names, indent)])
  return [
    ...node.initial.map(state => `${indent}[*] --> ${names.get(state)}`),
    ...states.flatMap(state => boxOf(state, names, indent))
  ]
}

/** A state with its tags and its children. */
function boxOf(node: WrittenState, names: Names, indent: string): string[] {
  const label = [mermaidText(node.key), ...node.tags.map(tag => `#${mermaidText(tag)}`)].join(' ')
  const name = `${indent}state "${label}" as ${names.get(node)}`
  if (node.type === 'final') return [name, `${indent}${names.get(node)} --> [*]`]
  return node.states.length === 0 ? [name] : [`${name} {`, ...insideOf(node, names, `${indent}  `), `${indent}}`]
}

/**
 * The arrows from a state. They stand outside of all states, since mermaid moves the ends of an arrow into the state
 * that contains it. Those to the state itself are one: of several, mermaid 11 draws one label.
 */
function arrowsOf(node: WrittenState, names: Names, marks: MergedChart['marks']): string[] {
  const labelFor = (one: WrittenTransition) => {
    const mark = marks.get(one.name)
    return `${mark ? MARK_WORDS[mark] : ''}${labelOf(one)}`
  }
  const arrows = node.transitions.flatMap(one => one.targets.map(end => ({ end, label: labelFor(one) })))
  const loops = arrows.filter(({ end }) => end === node)
  const loop = loops.length === 0 ? [] : [{ end: node, label: loops.map(({ label }) => label).join('<br>') }]
  return [...loop, ...arrows.filter(({ end }) => end !== node)].map(
    ({ end, label }) => `  ${names.get(node)} --> ${names.get(end)}${label === '' ? '' : `: ${label}`}`
  )
}

function labelOf({ source, event, guard }: WrittenTransition): string {
  const words = occasionOf(event, guard && guardName(guard), source.invoke)
  return words === '' ? '' : mermaidText(words)
}

function namesOf({ root, states }: WrittenChart): Names {
  const ids = mermaidIds(states.map(({ path }) => [root.id, ...path].join('_')))
  return new Map(states.map((state, i) => [state, ids[i] as string]))
}

/**
 * Words that mermaid does not take as ids, in any case: those of its state diagrams, then those of its sequence
 * diagrams.
 */
const WORDS = new Set([
  'accdescr',
  'acctitle',
  'class',
  'classdef',
  'click',
  'default',
  'direction',
  'end',
  'hide',
  'note',
  'root',
  'scale',
  'state',
  'statediagram',
  'style',
  'activate',
  'actor',
  'alt',
  'and',
  'as',
  'autonumber',
  'box',
  'break',
  'create',
  'critical',
  'deactivate',
  'destroy',
  'details',
  'else',
  'left',
  'link',
  'links',
  'loop',
  'opt',
  'option',
  'over',
  'par',
  'par_over',
  'participant',
  'properties',
  'rect',
  'right',
  'sequencediagram',
  'title'
])

/**
 * An id for each text, of its letters and digits. No two are equal, and none is a word of mermaid's, or its name of a
 * beginning or an end.
 */
export function mermaidIds(texts: readonly string[]): string[] {
  const used = new Set([''])
  return texts.map(text => {
    let id = text.replaceAll(/[^\p{L}\p{M}\p{N}]/gu, '_')
    while (used.has(id) || WORDS.has(id.toLowerCase()) || /_(?:start|end)$/.test(id)) id += '_'
    used.add(id)
    return id
  })
}

/**
 * Text for mermaid in one line. Characters that it may read as its own, or as Markdown, are written as numbers: `#59;`.
 */
export function mermaidText(text: string): string {
  return shownText(text).replaceAll(MERMAIDS_OWN, character => `#${character.codePointAt(0)};`) || '#32;'
}

/** `direction LR` in any text turns the drawing. */
const MERMAIDS_OWN = /(?<=direction) |(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|[^\p{L}\p{M}\p{N} .,'[\]_-]/gu
