import { AgentCardSchema } from '../../../machines/protocol/card.ts'
import { ListTasksResponseSchema, SendMessageResponseSchema, StreamResponseSchema, TaskSchema } from '../../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import type { Schema } from '../../../machines/protocol/values.ts'
import type { Heard } from '../client.ts'

/** A member of something that was emitted: where it is, and what. */
export interface Member {
  readonly path: string
  readonly name: string
  readonly value: unknown
}

/** Whose members are their author's: nothing in them is A2A's to name. */
const OPAQUE = ['metadata', 'data', 'params', 'header']

/** Every member of everything that was heard, down to what is not A2A's. */
export function membersOf(heard: readonly Heard[]): Member[] {
  return heard.flatMap(({ method, value }) => walk(value, method))
}

function walk(value: unknown, path: string): Member[] {
  if (Array.isArray(value)) return value.flatMap((item, i) => walk(item, `${path}[${i}]`))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, value]) => {
    const member = { path: `${path}.${name}`, name, value: value as unknown }
    return OPAQUE.includes(name) ? [member] : [member, ...walk(value, member.path)]
  })
}

const SCHEMAS: Readonly<Partial<Record<OperationMethod, Schema<unknown>>>> = {
  SendMessage: SendMessageResponseSchema,
  GetTask: TaskSchema,
  ListTasks: ListTasksResponseSchema,
  CancelTask: TaskSchema,
  GetExtendedAgentCard: AgentCardSchema
}

/** What an operation gives, or an event of its stream, has to be. */
export function schemaOf({ method, streamed }: Heard): Schema<unknown> {
  const schema = streamed ? StreamResponseSchema : SCHEMAS[method]
  if (!schema) throw new Error(`Nothing was to be heard of ${method}`)
  return schema
}

/** The value without members that have the default of their type, except in what is not A2A's. */
export function withoutDefaults(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDefaults)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(([, value]) => value !== false && value !== '' && value !== 0 && !(Array.isArray(value) && value.length === 0))
  return Object.fromEntries(members.map(([name, value]) => [name, OPAQUE.includes(name) ? value : withoutDefaults(value)]))
}
