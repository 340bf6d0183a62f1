import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { transitionsOf } from './chart-parts.ts'

/** A chart as a drawing for mermaid (`stateDiagram-v2`): its states, nested as they are, and what leads from one to another. */
export function chartMermaid({ root }: AnyStateMachine): string {
  return ['stateDiagram-v2', ...insideOf(root, '  '), ''].join('\n')
}

function insideOf(node: AnyStateNode, indent: string): string[] {
  const states = Object.values(node.states)
  const regions = states.flatMap((state, i) => [...(node.type === 'parallel' && i > 0 ? [`${indent}--`] : []), ...drawn(state, indent)])
  const [initial] = node.type === 'parallel' ? [] : node.initial.target
  return [...(initial ? [`${indent}[*] --> ${nameOf(initial)}`] : []), ...regions, ...states.flatMap(state => arrowsOf(state, indent))]
}

/** A state, with what is in it; one with tags says so. */
function drawn(node: AnyStateNode, indent: string): string[] {
  const label = [node.key, ...node.tags.map(tag => `#${tag}`)].join(' ')
  const name = `${indent}state "${label}" as ${nameOf(node)}`
  return Object.keys(node.states).length === 0 ? [name] : [`${name} {`, ...insideOf(node, `${indent}  `), `${indent}}`]
}

function arrowsOf(node: AnyStateNode, indent: string): string[] {
  const arrows = transitionsOf(node).flatMap(one => (one.target ?? []).map(target => `${indent}${nameOf(node)} --> ${nameOf(target)}${labelOf(one)}`))
  return node.type === 'final' ? [...arrows, `${indent}${nameOf(node)} --> [*]`] : arrows
}

function labelOf({ eventType, guard }: AnyTransitionDefinition): string {
  const words = [...(eventType === '' ? [] : [eventName(eventType)]), ...(guard ? [`[${guardName(guard)}]`] : [])]
  return words.length === 0 ? '' : `: ${words.join(' ')}`
}

/** An event as people say it: `after step`, `paint is done`. */
function eventName(type: string): string {
  const [, kind, of, rest = ''] = /^xstate\.(after|done|error)\.(?:(actor|state)\.)?(.*)$/.exec(type) ?? []
  if (kind === 'after') return `after ${rest.split('.')[0]}`
  const who = of === 'state' ? rest.slice(rest.lastIndexOf('.') + 1) : /^\d+\./.test(rest) ? 'what it invokes' : rest
  if (kind === 'done') return `${who} is done`
  return kind === 'error' ? `${who} fails` : type
}

function guardName(guard: unknown): string {
  if (typeof guard === 'string') return guard
  if (typeof guard === 'object' && guard !== null && 'type' in guard) return String(guard.type)
  return 'a condition'
}

/** Ids with dots are none for mermaid. */
function nameOf({ id }: AnyStateNode): string {
  return id.replaceAll(/[^\w]/g, '_')
}
