import { isObject } from '../../../machines/protocol/codec/json.ts'
import { ANSWER_SCHEMA } from '../../../machines/protocol/uris.ts'
import { pointerPart, type RecordedTask } from '../../../runtime/work-port.ts'

/**
 * What is redacted of a value: nothing, every text and number in it, or by member. The rule of `others` is for members
 * without one of their own, and for the elements of a list.
 */
type Rule = 'keep' | 'redact' | { readonly members?: Readonly<Record<string, Rule>>; readonly others: Rule }

const PARTS: Rule = { others: { members: { mediaType: 'keep' }, others: 'redact' } }
const METADATA: Rule = { members: { [ANSWER_SCHEMA]: 'keep' }, others: 'redact' }
const MESSAGE: Rule = { members: { parts: PARTS, metadata: METADATA }, others: 'keep' }
const ARTIFACT: Rule = {
  members: { artifactId: 'keep', extensions: 'keep', parts: PARTS },
  others: 'redact'
}
const STATUS: Rule = { members: { message: MESSAGE }, others: 'keep' }
const UPDATE: Rule = {
  members: {
    statusUpdate: { members: { status: STATUS, metadata: 'redact' }, others: 'keep' },
    artifactUpdate: { members: { artifact: ARTIFACT, metadata: 'redact' }, others: 'keep' }
  },
  others: 'keep'
}

/** An actor as XState persists it. Its `value` is its state; everything that is not named is of the author. */
const ACTOR: Rule = {
  members: {
    status: 'keep',
    value: 'keep',
    historyValue: 'keep',
    entered: 'keep',
    stopped: 'keep',
    run: 'keep',
    get children(): Rule {
      return { others: { members: { snapshot: ACTOR }, others: 'keep' } }
    }
  },
  others: 'redact'
}

const SNAPSHOT: Rule = {
  members: {
    children: { others: { members: { snapshot: ACTOR }, others: 'keep' } },
    context: {
      members: { queue: { others: { members: { message: MESSAGE, request: 'redact' }, others: 'keep' } } },
      others: 'keep'
    },
    delayed: { others: { members: { event: { members: { type: 'keep' }, others: 'redact' } }, others: 'keep' } }
  },
  others: 'keep'
}

const ANSWER: Rule = { members: { type: 'keep', message: MESSAGE }, others: 'redact' }

/** The values of a journal by the form of their keys; those of all others are results. */
const JOURNAL: readonly (readonly [RegExp, Rule])[] = [
  [/^\d+$/, ANSWER],
  [/^(?:patch|needs)\/|^\d+\/until$|^extensions$|^relayed$/, 'keep']
]

/**
 * A task whose texts and numbers are replaced by others of the same length, with pointers to them: those of messages,
 * artifacts, results of steps, charts and their actors, and of its owner. Ids, states, times, types of events, names of
 * steps, schemas of questions and the names of members stay.
 */
export function redactedTask(task: RecordedTask): RecordedTask {
  const redacted: string[] = []
  const replace = <T>(value: T, pointer: string, rule: Rule): T => replaced(value, pointer, rule, redacted) as T
  const { key, row, events, messages, journal } = task
  const { tenant, principal, contextId } = key
  return {
    ...task,
    key: { ...replace({ tenant, principal }, '/key', 'redact'), contextId },
    row: { ...row, snapshot: JSON.stringify(replace(JSON.parse(row.snapshot), '/snapshot', SNAPSHOT)) },
    events: replace(events, '/events', { others: { members: { update: UPDATE }, others: 'keep' } }),
    messages: replace(messages, '/messages', { others: { members: { message: MESSAGE }, others: 'keep' } }),
    journal: journal.map((row, index) => ({
      ...row,
      value: replace(row.value, `/journal/${index}/value`, ruleOf(row))
    })),
    redacted
  }
}

function ruleOf({ key, value }: RecordedTask['journal'][number]): Rule {
  const isSleep = isObject(value) && 'untilMs' in value
  return isSleep ? 'keep' : (JOURNAL.find(([form]) => form.test(key))?.[1] ?? 'redact')
}

function replaced(value: unknown, pointer: string, rule: Rule, redacted: string[]): unknown {
  if (rule === 'keep') return value
  if (typeof value !== 'object' || value === null) {
    const other = substituteFor(value)
    if (other !== value) redacted.push(pointer)
    return other
  }
  const { members = {}, others } = rule === 'redact' ? { others: rule } : rule
  const member = (name: string, one: unknown) =>
    replaced(
      one,
      `${pointer}/${pointerPart(name)}`,
      Object.hasOwn(members, name) ? (members[name] as Rule) : others,
      redacted
    )
  return Array.isArray(value)
    ? value.map((one, index) => member(String(index), one))
    : Object.fromEntries(Object.entries(value).map(([name, one]) => [name, member(name, one)]))
}

/** Another text of the same length, or a number of as many digits. All other values stay. */
function substituteFor(value: unknown): unknown {
  if (typeof value === 'string') return 'x'.repeat(value.length)
  if (typeof value !== 'number') return value
  const [digits = '', exponent] = String(value).split('e')
  return Number([digits.replaceAll(/\d/g, '1'), ...(exponent === undefined ? [] : [exponent])].join('e'))
}
