import type { StateValue } from 'xstate'
import {
  anyString,
  defaultText,
  enumeration,
  flag,
  int32,
  json,
  list,
  map,
  message,
  nonEmptyText,
  optionalFlag,
  optionalList,
  optionalText,
  presenceField,
  requiredField,
  type Schema,
  struct,
  tryDecode
} from '../../../machines/protocol/codec/decode.ts'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import { violationsText } from '../../../machines/protocol/errors.ts'
import { MessageSchema, StreamResponseSchema } from '../../../machines/protocol/objects.ts'
import { isTerminal, TASK_STATES } from '../../../machines/protocol/states.ts'
import { type TaskContext, taskMachine } from '../../../machines/task.machine.ts'
import type { JournalRow, MessageRow, TaskEvent } from '../../../runtime/store/store.ts'
import type { RecordedTask } from '../../../runtime/work-port.ts'

/** The format number of a history. A newer one is refused. */
const FORMAT = 1

const HistorySchema = message({
  key: requiredField(message({ tenant: defaultText, principal: defaultText, contextId: requiredField(anyString) })),
  task: requiredField(
    message({
      taskId: requiredField(nonEmptyText),
      state: requiredField(enumeration(TASK_STATES)),
      generation: requiredField(int32(1)),
      wakeAtMs: presenceField(json)
    })
  ),
  isAlone: requiredField(flag),
  snapshot: requiredField(struct),
  events: requiredField(
    list(
      message({ generation: requiredField(int32(1)), ordinal: presenceField(int32(1)), update: requiredField(struct) })
    )
  ),
  messages: requiredField(
    list(message({ message: requiredField(struct), generation: requiredField(int32()), isNumbered: optionalFlag }))
  ),
  journal: requiredField(list(message({ key: requiredField(nonEmptyText), value: presenceField(json) }))),
  redacted: optionalList(anyString)
})

/** The stored actor of a task, as far as a replay reads it. */
const ActorSchema = message({
  version: optionalText,
  status: requiredField(nonEmptyText),
  value: requiredField(json),
  context: requiredField(
    message({
      taskId: requiredField(nonEmptyText),
      queue: requiredField(list(struct)),
      restarts: requiredField(list(json))
    })
  ),
  children: requiredField(map(message({ src: requiredField(nonEmptyText), snapshot: requiredField(struct) }))),
  delayed: optionalList(struct)
})

/** Why a file is no history that can be replayed: a clause that follows its name. */
export class HistoryFault extends Error {}

/**
 * The text of a history: JSON with a format number. The same task has the same text. `definition`: its text in a store.
 */
export function historyText(recorded: RecordedTask, definition?: string): string {
  const { key, row, events, messages, journal, isAlone, redacted } = recorded
  const { snapshot, ...task } = row
  const history = {
    format: FORMAT,
    key: { tenant: key.tenant, principal: key.principal, contextId: key.contextId },
    task,
    isAlone,
    snapshot: JSON.parse(snapshot) as unknown,
    events: events.map(({ generation, ordinal, update }) => ({ generation, ordinal, update })),
    messages: messages.map(({ generation, isNumbered, message }) => ({ generation, isNumbered, message })),
    journal: journal.map(({ key, value }) => ({ key, value })),
    ...(redacted && { redacted }),
    ...(definition !== undefined && { definition: JSON.parse(definition) as unknown })
  }
  return `${JSON.stringify(history, undefined, 2)}\n`
}

/** The task of a history. Throws HistoryFault for a text that is none, or one of a newer format. */
export function parseHistory(text: string): RecordedTask {
  const given = jsonIn(text)
  const format = isObject(given) ? given['format'] : undefined
  if (!Number.isInteger(format) || Number(format) < 1) throw new HistoryFault('is no history: it has no format number')
  if (Number(format) > FORMAT)
    throw new HistoryFault(
      `has format ${Number(format)}, and this taskchart knows formats up to ${FORMAT}. Update taskchart`
    )
  const value = decodeMember(HistorySchema, given)
  const { key, task, isAlone, snapshot, redacted } = value
  const { taskId, state, generation, wakeAtMs } = task
  if (wakeAtMs !== undefined && typeof wakeAtMs !== 'number')
    throw new HistoryFault('is no whole history: task.wakeAtMs must be a number')
  if (isTerminal(state)) throw new HistoryFault('is of a task that has ended')
  const of = <Row extends object>(rows: readonly Row[]) => rows.map(row => ({ taskId, ...row }))
  const history = {
    key,
    row: {
      taskId,
      state,
      generation,
      ...(wakeAtMs !== undefined && { wakeAtMs }),
      snapshot: JSON.stringify(snapshot)
    },
    events: of(value.events) as unknown as TaskEvent[],
    messages: of(value.messages) as unknown as MessageRow[],
    journal: of(value.journal) as JournalRow[],
    isAlone,
    ...(redacted && { redacted })
  }
  checkLog(history)
  // A text is the key of another row.
  const odd = history.journal.find(({ value }) => !isObject(value) && typeof value !== 'string')
  if (odd) throw new HistoryFault(`is no whole history: its journal has no value for ${odd.key}`)
  // One in a newer format has another form, and the restore names the format.
  if ((snapshot['format'] ?? 1) === 1) checkActor(snapshot, taskId)
  return history
}

/** Throws HistoryFault for a stored actor that could not be restored with any agent. */
function checkActor(snapshot: object, taskId: string): void {
  const actor = decodeMember(ActorSchema, snapshot, 'snapshot')
  if (actor.context.taskId !== taskId) throw new HistoryFault('is no whole history: its snapshot is of another task')
  const state = stateOf(actor)
  if (state.status !== 'active' || actor.status !== 'active') throw new HistoryFault('is of a task that has ended')
  if (state.matches({ active: 'started' }) && !('work' in actor.children))
    throw new HistoryFault('is no whole history: its snapshot has no work')
}

function stateOf({ value, context }: { readonly value: unknown; readonly context: object }) {
  try {
    return taskMachine.resolveState({ value: value as StateValue, context: context as TaskContext })
  } catch (cause) {
    throw new HistoryFault(`is no whole history: no task is in the state ${JSON.stringify(value)}`, { cause })
  }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new HistoryFault(`is not whole JSON: ${(cause as Error).message}`, { cause })
  }
}

/** Throws HistoryFault for a log that has an entry of no kind, or lacks one. */
function checkLog({ row: { generation }, events, messages }: RecordedTask): void {
  for (const [i, { update }] of events.entries()) {
    const decoded = decodeMember(StreamResponseSchema, update, `events[${i}].update`)
    if (!('statusUpdate' in decoded || 'artifactUpdate' in decoded))
      throw new HistoryFault(`is no whole history: its event ${i} is neither a status nor an artifact`)
  }
  for (const [i, { message }] of messages.entries()) decodeMember(MessageSchema, message, `messages[${i}].message`)
  const numbered = messages.filter(({ isNumbered }) => isNumbered)
  const own = new Set([...events, ...numbered].map(entry => entry.generation))
  let next = 1
  while (own.has(next)) next += 1
  if (next <= generation) throw new HistoryFault(`is no whole history: it has no entry ${next} of ${generation}`)
  if (own.size > generation) throw new HistoryFault(`is no whole history: it has entries after ${generation}, its last`)
  if (messages.length === 0) throw new HistoryFault('is no whole history: it has no message that opened the task')
}

/** Throws HistoryFault for a value of another form. */
function decodeMember<Value>(schema: Schema<Value>, given: unknown, root = ''): Value {
  const decoded = tryDecode(schema, given, root)
  if (decoded.violations) throw new HistoryFault(`is no whole history: ${violationsText(decoded.violations)}`)
  return decoded.value
}
