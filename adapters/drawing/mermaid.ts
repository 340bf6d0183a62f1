import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { checkArgument, withMembers } from '../../runtime/primitives/options.ts'
import { transitionsOf } from '../../runtime/xstate/transition-names.ts'
import { occasionOf } from './chart-parts.ts'

/** A chart in mermaid's syntax (`stateDiagram-v2`): its nested states and the transitions between them. */
export function chartMermaid(machine: AnyStateMachine): string {
  checkArgument(machine, withMembers(['root', 'config'], 'a statechart'), 'chartMermaid(setupWork({}).createMachine({ … }))')
  const { root } = machine
  return ['stateDiagram-v2', ...insideOf(root, '  '), ''].join('\n')
}

function insideOf(node: AnyStateNode, indent: string): string[] {
  const states = Object.values(node.states)
  const regions = states.flatMap((state, i) => [...(node.type === 'parallel' && i > 0 ? [`${indent}--`] : []), ...drawn(state, indent)])
  const [initial] = node.type === 'parallel' ? [] : node.initial.target
  return [...(initial ? [`${indent}[*] --> ${nameOf(initial)}`] : []), ...regions, ...states.flatMap(state => arrowsOf(state, indent))]
}

/** A state with its tags and its children. */
function drawn(node: AnyStateNode, indent: string): string[] {
  const label = [node.key, ...node.tags.map(tag => `#${tag}`)].join(' ')
  const name = `${indent}state "${label}" as ${nameOf(node)}`
  return Object.keys(node.states).length === 0 ? [name] : [`${name} {`, ...insideOf(node, `${indent}  `), `${indent}}`]
}

function arrowsOf(node: AnyStateNode, indent: string): string[] {
  const arrows = transitionsOf(node).flatMap(one => (one.target ?? []).map(target => `${indent}${nameOf(node)} --> ${nameOf(target)}${labelOf(one)}`))
  return node.type === 'final' ? [...arrows, `${indent}${nameOf(node)} --> [*]`] : arrows
}

function labelOf({ source, eventType, guard }: AnyTransitionDefinition): string {
  const words = occasionOf({ eventType, guard, invoked: source.invoke })
  return words === '' ? '' : `: ${words}`
}

/** mermaid allows no dots in ids. */
function nameOf({ id }: AnyStateNode): string {
  return id.replaceAll(/[^\w]/g, '_')
}
