import {
  canonicalTimestamp,
  compileSchema,
  type Decoded,
  type Schema,
  tryDecode
} from '../../machines/protocol/codec/decode.ts'
import { isObject, pathText } from '../../machines/protocol/codec/json.ts'
import type { FieldViolation } from '../../machines/protocol/errors.ts'
import { TASK_STATES } from '../../machines/protocol/states.ts'

/** The ids that a client knows of the task of an answer or an event. */
export interface KnownTask {
  readonly taskId?: string | undefined
  readonly contextId?: string | undefined
}

/** Gives what is read in place of an invalid or missing member; `undefined` if there is nothing to put there. */
export type Fill = (
  member: { readonly value: unknown; readonly holder: object; readonly path: readonly PropertyKey[] },
  known: KnownTask
) => unknown

/** Values in place of invalid members, by their names. A member without an entry is left out, with what needs it. */
export type Fills = ReadonlyMap<PropertyKey, Fill>

const MOST_PASSES = 40
const LONGEST_ID = 4096
/** A valid value in the place of one that the schema refuses and that is read nevertheless. */
const STAND_IN = 'x'

const ANSWER_FILLS: Fills = new Map<PropertyKey, Fill>([
  ['id', ({ value }, { taskId }) => longId(value) ?? taskId],
  ['taskId', ({ value }, { taskId }) => longId(value) ?? taskId],
  ['contextId', ({ value }, { contextId = '' }) => longId(value) ?? contextId],
  ['messageId', ({ value, holder }) => longId(value) ?? ('parts' in holder ? idOf(holder) : undefined)],
  ['artifactId', ({ value }) => longId(value)],
  ['parts', ({ value }) => (((value ?? []) as { length?: unknown }).length === 0 ? [] : undefined)],
  ['state', ({ value }) => stateNamed(value)],
  ['role', ({ value }) => (value === 'user' ? 'ROLE_USER' : 'ROLE_AGENT')],
  ['timestamp', ({ value }) => canonicalTimestamp(`${String(value)}Z`)]
])

/** Values from the root to an invalid one, as they came, and the path to it. */
interface Place {
  readonly path: readonly PropertyKey[]
  readonly nodes: readonly unknown[]
}

/**
 * Decodes what an agent sent, as far as it can be read: what is invalid is filled in, or left out with what needs it.
 * `warn` gets a sentence for each of these, if the rest is valid. Violations name what was invalid first. It changes
 * `value`.
 */
export function readLeniently<T>(
  schema: Schema<T>,
  value: unknown,
  warn: (oddity: string) => void,
  {
    root = 'result',
    known = {},
    fills = ANSWER_FILLS
  }: { readonly root?: string; readonly known?: KnownTask; readonly fills?: Fills } = {}
): Decoded<T> {
  const first = tryDecode(schema, value, root)
  if (!first.violations) return first
  const { violations } = first
  const [oddities, replaced] = [new Set<string>(), [] as (Place & { readonly shown: unknown })[]]
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const result = compileSchema(schema).safeParse(value)
    if (result.success) {
      for (const { nodes, path, shown } of replaced) show(result.data, nodes, path, shown)
      for (const oddity of oddities) warn(oddity)
      return { value: result.data }
    }
    const found = result.error.issues.map(({ path, message }) => ({ path, message, nodes: nodesAt(value, path) }))
    for (const { path, nodes, message } of found) {
      const [holder, invalid] = nodes.slice(-2)
      const name = path.at(-1)
      if (name === undefined) return because(violations, root, path, message)
      const shown = isObject(holder) ? fills.get(name)?.({ value: invalid, holder, path }, known) : undefined
      const oddityStart = `${pathText(root, path)} ${message}. It was `
      if (shown !== undefined && isObject(holder)) {
        const accepted = standInFor(shown)
        remove(holder, name, invalid)
        holder[String(name)] = accepted
        if (accepted !== shown) replaced.push({ path, nodes: [...nodes.slice(0, -1), accepted], shown })
        oddities.add(`${oddityStart}${shown === invalid ? 'read as it is' : 'filled in'}.`)
      } else if (path.length === 1 && fills === ANSWER_FILLS) {
        // An answer keeps all of its members: without its tasks, a page would look empty.
        return because(violations, root, path, message)
      } else if (Array.isArray(holder) || (invalid !== undefined && invalid !== null)) {
        remove(holder, name, invalid)
        oddities.add(`${oddityStart}left out.`)
      } else if (path.length < 2) return because(violations, root, path, message)
      else {
        remove(nodes.at(-3), path.at(-2), holder)
        oddities.add(`${oddityStart}left out, with what needs it.`)
      }
    }
  }
  return { violations }
}

/** The first violations at a path or below it. */
function because(
  violations: readonly FieldViolation[],
  root: string,
  path: readonly PropertyKey[],
  description: string
): { readonly violations: FieldViolation[] } {
  const field = pathText(root, path)
  const causes = violations.filter(violation => violation.field.startsWith(field))
  return { violations: [...causes, { field, description }].slice(0, Math.max(1, causes.length)) }
}

function nodesAt(value: unknown, path: readonly PropertyKey[]): unknown[] {
  const nodes = [value]
  for (const step of path) {
    const holder = nodes.at(-1) as Record<PropertyKey, unknown> | undefined
    nodes.push(holder?.[step] ?? holder?.[snakeCase(step)])
  }
  return nodes
}

function snakeCase(step: PropertyKey): PropertyKey {
  return typeof step === 'string' ? step.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`) : step
}

/** Removes a value from its list or its object. It may be gone already. */
function remove(holder: unknown, name: PropertyKey = '', value: unknown): void {
  if (Array.isArray(holder)) {
    const index = holder.indexOf(value)
    if (index >= 0) holder.splice(index, 1)
  } else if (isObject(holder)) {
    const own = Object.hasOwn(holder, name) ? name : snakeCase(name)
    Reflect.deleteProperty(holder, own)
  }
}

function standInFor(shown: unknown): unknown {
  if (Array.isArray(shown)) return [{ text: '' }]
  return shown === '' || longId(shown) !== undefined ? STAND_IN : shown
}

/** Puts a value into the decoded form, where its stand-in is. The lists on the path may have become shorter. */
function show(decoded: unknown, nodes: readonly unknown[], path: readonly PropertyKey[], shown: unknown): void {
  let target = decoded as Record<PropertyKey, unknown> | undefined
  for (const [depth, step] of path.entries()) {
    const holder = nodes[depth]
    const at = Array.isArray(holder) ? holder.indexOf(nodes[depth + 1]) : step
    if (depth === path.length - 1 && target) target[at] = shown
    else target = target?.[at] as typeof target
  }
}

/** An id that is only too long. */
function longId(value: unknown): string | undefined {
  return typeof value === 'string' && value.length > 128 && value.length <= LONGEST_ID && !/\p{Cc}/u.test(value)
    ? value
    : undefined
}

/** An id for a message without one: equal messages get equal ids, however often they are read. */
function idOf(message: object): string {
  let hash = 5381
  for (const unit of JSON.stringify(message)) hash = (Math.imul(hash, 33) ^ Number(unit.codePointAt(0))) >>> 0
  return `unnamed-${hash.toString(36)}`
}

/** A state as A2A 0.3 names it. An unknown or missing one is read as working. */
function stateNamed(value: unknown): string {
  const name = `TASK_STATE_${String(value).toUpperCase().replaceAll('-', '_')}`
  return Object.hasOwn(TASK_STATES, name) ? name : 'TASK_STATE_WORKING'
}
