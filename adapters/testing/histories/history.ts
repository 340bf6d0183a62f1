import {
  anyString,
  defaultText,
  enumeration,
  flag,
  int32,
  json,
  list,
  message,
  nonEmptyText,
  optionalFlag,
  optionalList,
  presenceField,
  requiredField,
  struct,
  tryDecode
} from '../../../machines/protocol/codec/decode.ts'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import { violationsText } from '../../../machines/protocol/errors.ts'
import { isTerminal, TASK_STATES } from '../../../machines/protocol/states.ts'
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
  if (typeof format !== 'number') throw new HistoryFault('is no history: it has no format number')
  if (format > FORMAT)
    throw new HistoryFault(`has format ${format}, and this taskchart knows formats up to ${FORMAT}. Update taskchart`)
  const { value, violations } = tryDecode(HistorySchema, given)
  if (!value) throw new HistoryFault(`is no whole history: ${violationsText(violations)}`)
  const { key, task, isAlone, snapshot, redacted } = value
  const { taskId, state, generation, wakeAtMs } = task
  if (isTerminal(state)) throw new HistoryFault('is of a task that has ended')
  const of = <Row extends object>(rows: readonly Row[]) => rows.map(row => ({ taskId, ...row }))
  const history = {
    key,
    row: {
      taskId,
      state,
      generation,
      ...(wakeAtMs !== undefined && { wakeAtMs: Number(wakeAtMs) }),
      snapshot: JSON.stringify(snapshot)
    },
    events: of(value.events) as unknown as TaskEvent[],
    messages: of(value.messages) as unknown as MessageRow[],
    journal: of(value.journal) as JournalRow[],
    isAlone,
    ...(redacted && { redacted })
  }
  checkLog(history)
  return history
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
  const odd = events.find(({ update }) => !isUpdate(update))
  if (odd)
    throw new HistoryFault(`is no whole history: its event ${odd.generation} is neither a status nor an artifact`)
  const numbered = messages.filter(({ isNumbered }) => isNumbered)
  const own = new Set([...events, ...numbered].map(entry => entry.generation))
  const missing = Array.from({ length: generation }, (_, index) => index + 1).find(number => !own.has(number))
  if (missing !== undefined) throw new HistoryFault(`is no whole history: it has no entry ${missing} of ${generation}`)
  if (messages.length === 0) throw new HistoryFault('is no whole history: it has no message that opened the task')
}

function isUpdate(update: object): boolean {
  const { statusUpdate, artifactUpdate } = update as Readonly<Record<string, unknown>>
  return (
    (isObject(statusUpdate) && isObject(statusUpdate['status'])) ||
    (isObject(artifactUpdate) && isObject(artifactUpdate['artifact']))
  )
}
