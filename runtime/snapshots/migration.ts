import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { plainValue } from '../authoring/checked-words.ts'

/** A statechart as it was stored: `snapshot` is what XState persists of an actor, and the caller's own. */
export interface StoredWork {
  /** The agent's version under which it was stored; `undefined` if it is older than versions are. */
  readonly version: string | undefined
  readonly snapshot: Record<string, unknown>
}

/** Makes of a statechart that another version has stored a snapshot that the present one can go on from. */
export type Migrate = (stored: StoredWork) => unknown

/**
 * What an author's function makes of a stored chart. Throws InvalidAgentResponse if it throws, or gives what is not the
 * snapshot of a chart that goes on.
 */
export function migrated(migrate: Migrate, stored: StoredWork, version: string): Record<string, unknown> {
  const given = snapshotBy(migrate, stored, version)
  if (isObject(given) && given['status'] === 'active' && isStateValue(given['value']) && isObject(given['context'])) return { historyValue: {}, children: {}, ...given }
  throw new A2AError('InvalidAgentResponse', `${fromTo(stored.version, version)} failed: migrate has to return a snapshot { status: 'active', value, context, children }.`)
}

/** The versions that a task was stored under, and is to go on under, in words. */
export function fromTo(stored: string | undefined, present: string): string {
  return `The migration of this task from ${stored === undefined ? 'no version' : `version ${stored}`} to version ${present}`
}

function snapshotBy(migrate: Migrate, stored: StoredWork, version: string): unknown {
  try {
    return plainValue(migrate({ version: stored.version, snapshot: structuredClone(stored.snapshot) }), 'what migrate returns')
  } catch (cause) {
    throw new A2AError('InvalidAgentResponse', `${fromTo(stored.version, version)} failed: migrate threw an error.`, { cause })
  }
}

function isStateValue(value: unknown): boolean {
  return typeof value === 'string' || isObject(value)
}
