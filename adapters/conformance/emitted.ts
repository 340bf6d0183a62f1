import { AgentCardSchema } from '../../machines/protocol/card.ts'
import { canonicalTimestamp, message, type Schema, tryDecode } from '../../machines/protocol/codec/decode.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import {
  ListTasksResponseSchema,
  ROLES,
  SendMessageResponseSchema,
  StreamResponseSchema,
  TaskSchema
} from '../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import {
  ListTaskPushNotificationConfigsResponseSchema,
  TaskPushNotificationConfigSchema
} from '../../machines/protocol/push.ts'
import { TASK_STATES } from '../../machines/protocol/states.ts'
import type { Note } from './callers/caller.ts'

/** The content of one answer or event. */
export interface EmittedContent {
  readonly method: OperationMethod
  readonly streamed: boolean
  readonly value: unknown
}

/** A member of an emitted value, with its path. */
export interface EmittedMember {
  readonly path: string
  readonly name: string
  readonly value: unknown
}

/** Members whose content belongs to its author: A2A defines none of its names. */
export const OPAQUE: readonly string[] = ['metadata', 'data', 'params', 'header']

/** All members of the values, except inside opaque ones. */
export function membersOf(contents: readonly EmittedContent[]): EmittedMember[] {
  return contents.flatMap(({ method, value }) => walk(value, method))
}

function walk(value: unknown, path: string): EmittedMember[] {
  if (Array.isArray(value)) return value.flatMap((item, i) => walk(item, `${path}[${i}]`))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, value]) => {
    const member = { path: `${path}.${name}`, name, value: value as unknown }
    return OPAQUE.includes(name) ? [member] : [member, ...walk(value, member.path)]
  })
}

const SCHEMAS: Readonly<Record<OperationMethod, Schema<unknown>>> = {
  SendMessage: SendMessageResponseSchema,
  SendStreamingMessage: StreamResponseSchema,
  SubscribeToTask: StreamResponseSchema,
  GetTask: TaskSchema,
  ListTasks: ListTasksResponseSchema,
  CancelTask: TaskSchema,
  GetExtendedAgentCard: AgentCardSchema,
  CreateTaskPushNotificationConfig: TaskPushNotificationConfigSchema,
  GetTaskPushNotificationConfig: TaskPushNotificationConfigSchema,
  ListTaskPushNotificationConfigs: ListTaskPushNotificationConfigsResponseSchema,
  DeleteTaskPushNotificationConfig: message({})
}

/** The schema of an operation's result, or of an event of its stream. */
export function schemaOf({ method }: Pick<EmittedContent, 'method'>): Schema<unknown> {
  return SCHEMAS[method]
}

/** Records the format of a value (§5): names, enums, times, required fields, oneofs. */
export function noteEmitted(content: EmittedContent, note: Note): void {
  const members = membersOf([content])
  noteAll(
    note,
    1,
    'names in camelCase',
    members,
    () => true,
    ({ name }) => !name.includes('_')
  )
  noteAll(
    note,
    2,
    'the names of the proto',
    members,
    ({ name }) => name === 'state' || name === 'role',
    ({ name, value }) => Object.hasOwn(name === 'state' ? TASK_STATES : ROLES, String(value))
  )
  const times = members.filter(({ name }) => name === 'timestamp')
  noteAll(
    note,
    3,
    'ISO 8601 in UTC, with Z',
    times,
    () => true,
    ({ value }) => typeof value === 'string' && value.endsWith('Z') && canonicalTimestamp(value) !== undefined
  )
  noteAll(
    note,
    4,
    'three digits after the second',
    times,
    () => true,
    ({ value }) => /\.\d{3}Z$/.test(String(value))
  )
  noteAll(
    note,
    10,
    'base64',
    members,
    ({ name }) => name === 'raw',
    ({ value }) => typeof value === 'string' && /^[A-Za-z\d+/]*={0,2}$/.test(value) && value.length % 4 === 0
  )
  noteAll(
    note,
    11,
    'neither',
    members,
    () => true,
    ({ name }) => name !== 'kind' && name !== 'final'
  )
  noteAll(
    note,
    13,
    'text that is UTF-8',
    members,
    ({ value }) => typeof value === 'string',
    ({ value }) => !String(value).includes('\u{FFFD}')
  )
  noteShape(content, note)
}

/** Records whether a requirement holds for each of the members that it concerns. */
function noteAll(
  note: Note,
  id: number,
  wanted: string,
  members: readonly EmittedMember[],
  isAbout: (member: EmittedMember) => boolean,
  holds: (member: EmittedMember) => boolean
): void {
  const meant = members.filter(isAbout)
  const wrong = meant.find(member => !holds(member))
  if (meant.length > 0) note(id, wrong === undefined, wanted, wrong && `${wrong.path}: ${JSON.stringify(wrong.value)}`)
}

/** Records decoding errors, each for its own requirement. */
function noteShape(content: EmittedContent, note: Note): void {
  // A deletion is confirmed by an empty object, null, or an answer without content (§3.1.10).
  const value = content.method === 'DeleteTaskPushNotificationConfig' ? (content.value ?? {}) : content.value
  const { violations = [] } = tryDecode(schemaOf(content), value, content.method)
  const listed =
    content.method === 'ListTasks' && isObject(content.value)
      ? ['tasks', 'nextPageToken', 'pageSize', 'totalSize'].filter(
          name => !Object.hasOwn(content.value as object, name)
        )
      : []
  const oneof = violations.find(({ description }) => description.startsWith('must have exactly one of'))
  const parts = violations.find(({ field }) => field.endsWith('parts'))
  const other = violations.find(
    violation => violation !== oneof && violation !== parts && !/\.(?:state|role|timestamp|raw)$/.test(violation.field)
  )
  note(9, oneof === undefined, 'exactly one member', oneof && `${oneof.field} ${oneof.description}`)
  if (parts) note(7, false, 'parts, at least one', `${parts.field} ${parts.description}`)
  note(
    5,
    other === undefined && listed.length === 0,
    'the required fields',
    other ? `${other.field} ${other.description}` : `no ${listed.join(', ')}`
  )
}
