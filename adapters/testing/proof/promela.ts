import type { Property } from '../../../machines/properties/properties.ts'
import { type Moment, occurs, type Term } from '../../../machines/properties/terms.ts'
import { BoundError } from '../bounds.ts'
import type { Edge, Node, StateSpace } from './state-space.ts'

/** How every model begins. */
export const MODEL_BEGINS = '/* Written by taskchart prove --promela'

/** The content of a model. */
interface Modelled {
  readonly name: string
  readonly stateSpaces: readonly StateSpace[]
  readonly properties: readonly (readonly [name: string, property: Property])[]
  /** The bounds of the model, as sentences. */
  readonly bounds: readonly string[]
}

/** The moments between two moments of a step, and between two steps. */
const BETWEEN = 1
const STILL = 0

/**
 * Writes explored charts and their properties as a model for SPIN. The process walks from configuration to
 * configuration. `m` is the moment: which terms of the properties hold. Fairness `progress` is a counter `k`, which
 * waits for each source in turn to act, to be started again or to be gone. Fairness `choice` is a walk that settles
 * somewhere, and from then on takes the steps of each configuration in turn.
 */
export function promelaModel({ name, stateSpaces, properties, bounds }: Modelled): string {
  const [met] = stateSpaces.flatMap(({ met }) => met ?? [])
  if (met !== undefined) throw new BoundError(`${met}. Raise that bound, or give memory in the cases.`)
  const claims = properties.map(([name, property], i) => ({
    name,
    property,
    id: `p${i + 1}`,
    formula: formulaOf(property, `p${i + 1}`)
  }))
  const names = Object.entries(
    Object.assign({}, ...claims.map(({ formula }) => formula.names)) as ReturnType<typeof formulaOf>['names']
  )
  const moments = new Numbers(BETWEEN + 1)
  const turns = new Numbers()
  const sources = new Numbers()
  for (const { nodes } of stateSpaces) for (const node of nodes) for (const source of node.sources) sources.of(source)
  const valuations: string[][] = []
  const momentOf = (moment: Moment): number => {
    const held = names.flatMap(([name, holds]) => (holds(moment) ? [name] : []))
    const number = moments.of(JSON.stringify([moment.kind === 'state', held]))
    valuations[number] = moment.kind === 'state' ? ['rests', ...held] : held
    return number
  }
  const passing = (row: readonly Moment[]) => row.map(moment => `m = ${momentOf(moment)}; `).join(`m = ${BETWEEN}; `)
  let before = 0
  const parts = stateSpaces.map(({ initialState, nodes, moments: row }) => {
    const first = before
    before += nodes.length
    const start = `  :: ${passing(row)}goto c${first} ${comment(initialState.name)}`
    return {
      start,
      nodes: nodes.flatMap((node, i) =>
        nodeLines(node, { label: to => `c${first + to}`, nodes, i, turns, sources, passing })
      )
    }
  })
  const defined = ['rests', ...names.map(([name]) => name)].map(
    name =>
      `#define ${name} ${anyOf(
        'm',
        valuations.flatMap((held, number) => (held.includes(name) ? [number] : []))
      )}`
  )
  const ltl = claims.map(({ name, property: { fairness, claim }, id, formula }) => {
    const text = `${comment(`${claim.word}: ${name}`)}\nltl ${id} { ${formula.text} }`
    return fairness ? `#if${fairness === 'choice' ? 'def' : 'ndef'} CHOICE\n${text}\n#endif` : text
  })
  const hasChoice = claims.some(({ property }) => property.fairness === 'choice')
  return [
    MODEL_BEGINS,
    `   ${inComment(name)}: ${before} configurations.`,
    ...bounds.map(bound => `   ${inComment(bound)}`),
    '',
    '   spin -a model.pml && gcc -O1 -w -DNOREDUCE -o pan pan.c && ./pan -a -m1000000 -N p1',
    '',
    '   "errors: 0" means that the property holds.',
    ...(hasChoice ? ['   Those under CHOICE need: spin -DCHOICE -a model.pml'] : []),
    '*/',
    '',
    '/* The moment: 0 between two steps, 1 between two moments of a step. */',
    'short m;',
    '#define still (m == 0)',
    '#define between (m <= 1)',
    ...defined,
    '',
    ...fairnessLines(sources.size, turns.size),
    '',
    'active proctype walk() {',
    '  if',
    ...parts.map(({ start }) => start),
    '  fi;',
    ...parts.flatMap(({ nodes }) => nodes),
    'ended: stays; goto ended;',
    'end_gone: false',
    '}',
    '',
    ...ltl,
    ''
  ].join('\n')
}

/** The fairness of both kinds, as macros of steps. `quits` is a step after which no claim about the end counts. */
function fairnessLines(sources: number, turns: number): string[] {
  return [
    '#ifdef CHOICE',
    'bool settled;',
    `short turn[${Math.max(1, turns)}];`,
    '#define settles if :: settled = true :: skip fi;',
    '#define goes(waits, at, mine, next) (!settled || turn[at] == mine) -> turn[at] = (settled -> next : 0);',
    '#define goes_on(waits) skip;',
    '#define quits !settled ->',
    '#define stays settled = true',
    '#else',
    '/* The source that is waited for. */',
    'short k;',
    `#define round (k == ${sources})`,
    '#define settles',
    `#define goes_on(waits) k = (round -> 0 : ((waits) -> k : k + 1));`,
    '#define goes(waits, at, mine, next) goes_on(waits)',
    `#define quits k = ${sources + 1};`,
    `#define stays k = ${sources}`,
    '#endif'
  ]
}

interface Drawing {
  readonly nodes: readonly Node[]
  /** The number of the configuration. */
  readonly i: number
  readonly label: (to: number) => string
  readonly turns: Numbers
  readonly sources: Numbers
  readonly passing: (row: readonly Moment[]) => string
}

/** A configuration and its steps. Where nothing has to go on, the walk may end. */
function nodeLines(
  { configuration, edges, sources: here }: Node,
  { nodes, i, label, turns, sources, passing }: Drawing
): string[] {
  const head = `${label(i)}: m = ${STILL}; `
  const note = comment(
    `${JSON.stringify(configuration.chart.value)}${configuration.over ? ` ${configuration.over}` : ''}`
  )
  if (edges.length === 0) return [`${head}goto ${configuration.over === 'canceled' ? 'end_gone' : 'ended'}; ${note}`]
  const lasting = edges.filter(({ transition }) => transition.type !== 'cancel')
  const at = lasting.length > 1 ? turns.of(label(i)) : 0
  const guardOf = (edge: Edge): string => {
    if (edge.transition.type === 'cancel') return 'quits'
    const waiting = [...here].filter(
      source =>
        source !== edge.transition.source && !edge.restarts.includes(source) && nodes[edge.to]?.sources.has(source)
    )
    const waits = anyOf(
      'k',
      waiting.map(source => sources.of(source))
    )
    const mine = lasting.indexOf(edge)
    return lasting.length > 1 ? `goes(${waits}, ${at}, ${mine}, ${(mine + 1) % lasting.length})` : `goes_on(${waits})`
  }
  const steps = edges.map(
    edge => `  :: ${guardOf(edge)} ${passing(edge.moments)}goto ${label(edge.to)} ${comment(edge.transition.says)}`
  )
  return [`${head}settles ${note}`, '  if', ...steps, ...(here.size === 0 ? ['  :: goto ended'] : []), '  fi;']
}

/** Numbers for texts, in the order in which they are first seen. */
class Numbers {
  readonly #numbers = new Map<string, number>()
  readonly #first: number

  constructor(first = 0) {
    this.#first = first
  }

  get size(): number {
    return this.#numbers.size
  }

  of(text: string): number {
    const number = this.#numbers.get(text) ?? this.#numbers.size + this.#first
    this.#numbers.set(text, number)
    return number
  }
}

/** The condition that a variable has one of these values. */
function anyOf(variable: string, values: readonly number[]): string {
  return values.length === 0 ? 'false' : `(${values.map(value => `${variable} == ${value}`).join(' || ')})`
}

function comment(text: string): string {
  return `/* ${inComment(text)} */`
}

/** Text that ends no comment, in one line. */
function inComment(text: string): string {
  return text
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .replaceAll('*/', '* /')
    .replaceAll('/*', '/ *')
}

/** A property in linear temporal logic: its formula for SPIN, and what the names in it mean. */
interface Formula {
  readonly text: string
  /** Whether each name holds at a moment. */
  readonly names: Readonly<Record<string, (moment: Moment) => boolean>>
}

/**
 * Writes a property as a formula whose names begin with `id`. Its base is the sentence of the property's word, not its
 * automaton. No name holds between two moments, so that a moment that repeats counts twice without `X`.
 */
export function formulaOf(
  {
    claim: {
      word,
      terms: [first, second = first],
      after
    },
    fairness
  }: Property,
  id: string
): Formula {
  const [a, b, c] = [`${id}_a`, `${id}_b`, `${id}_after`]
  const later = (violation: string) => (after ? `!<> (${c} && <> (!${c} && <> (${violation})))` : `!<> (${violation})`)
  const named = (one: Term['holds'], other?: Term['holds']) => ({
    [a]: one,
    ...(other && { [b]: other }),
    ...(after && { [c]: (moment: Moment) => occurs(after, moment) })
  })
  const premise = fairness === 'choice' ? '(<> settled)' : '([] <> round)'
  switch (word) {
    case 'never':
      return { names: named(first.holds), text: later(a) }
    case 'always':
      return { names: named(first.holds), text: later(`rests && !${a}`) }
    case 'atMostOnce': {
      const left = first.isLasting ? `(rests && !${a})` : 'between'
      const once = `${a} && <> (${left} && <> ${a})`
      const since = `${a} && !${c} && (!${c} U (${left} && !${c} && (!${c} U ${a})))`
      return { names: named(moment => occurs(first, moment)), text: later(after ? since : once) }
    }
    case 'precedes': {
      const unheralded = `!${a} U (${b} && !${a})`
      return {
        names: named(first.holds, moment => occurs(second, moment)),
        text: after ? `!<> (${c} && (${c} U (between && (${unheralded}))))` : `!(${unheralded})`
      }
    }
    case 'leadsTo': {
      const owes = `${a} && [] !${b}`
      const names = named(
        moment => occurs(first, moment),
        moment => second.holds(moment) && !(second.isLasting && moment.kind === 'event')
      )
      // A state that is entered with its effect demands no other, so nothing of its step may have it.
      return {
        names,
        text: `${premise} -> (!<> (${first.isLasting ? `still && ((!${b} && !rests) U (${owes}))` : owes}))`
      }
    }
    case 'eventually':
    default:
      return { names: named(first.holds), text: `${premise} -> (<> ${a})` }
  }
}
