import { isObject, toJson } from '../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import { jsonLoss } from '../primitives/json.ts'

/** A stored statechart: `snapshot` is XState's persisted snapshot, a copy that you may change. */
export interface StoredWork {
  /** The agent's version that stored it; `undefined` for a snapshot from before versions existed. */
  readonly version: string | undefined
  readonly snapshot: Record<string, unknown>
}

/** Converts a statechart that another version has stored into a snapshot for the present version. */
export type Migrate = (stored: StoredWork) => unknown

/**
 * Calls an author's `migrate`. Throws InvalidAgentResponse if it throws, or does not return the snapshot of an active chart.
 */
export function migrated(migrate: Migrate, stored: StoredWork, version: string): Record<string, unknown> {
  const given = snapshotBy(migrate, stored, version)
  if (isObject(given) && given['status'] === 'active' && isStateValue(given['value']) && isObject(given['context']))
    return { historyValue: {}, children: {}, ...given }
  throw new A2AError(
    'InvalidAgentResponse',
    `${fromTo(stored.version, version)} failed: migrate has to return a snapshot { status: 'active', value, context, children }.`
  )
}

/** The stored and the present version of a task, in words. */
export function fromTo(stored: string | undefined, present: string): string {
  return `The migration of this task from ${stored === undefined ? 'no version' : `version ${stored}`} to version ${present}`
}

function snapshotBy(migrate: Migrate, stored: StoredWork, version: string): unknown {
  try {
    const given = migrate({ version: stored.version, snapshot: structuredClone(stored.snapshot) }) ?? null
    const loss = jsonLoss(given, 'what migrate returns', 'kept')
    if (loss === undefined) return toJson(given)
    throw new A2AError('InvalidAgentResponse', `${fromTo(stored.version, version)} failed: ${loss}`)
  } catch (cause) {
    throw isA2AError(cause)
      ? cause
      : new A2AError('InvalidAgentResponse', `${fromTo(stored.version, version)} failed: migrate threw an error.`, {
          cause
        })
  }
}

function isStateValue(value: unknown): boolean {
  return typeof value === 'string' || isObject(value)
}
