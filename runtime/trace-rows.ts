import type { Limits } from './limits.ts'
import type { ContextKey, JournalRow, Store, StoredContext } from './store.ts'
import type { TraceCarrier } from './telemetry.ts'

/** The key in a task's journal of the trace that it belongs to. */
const TRACE = 'trace'

/** What the journal of a task keeps of the trace of the message that opened it. */
export function traceRow(taskId: string, carrier: TraceCarrier): JournalRow {
  return { taskId, key: TRACE, value: carrier }
}

/** The traces that the stored tasks of a context belong to, by task. One journal at a time is read, and none that is too large for the work to start again. */
export async function storedTraces(store: Store, key: ContextKey, { tasks }: StoredContext, { restoredBytes }: Pick<Limits, 'restoredBytes'>): Promise<ReadonlyMap<string, TraceCarrier>> {
  const traces = new Map<string, TraceCarrier>()
  for (const { taskId, journalBytes } of await store.measureTasks({ ...key, taskIds: tasks.map(({ taskId }) => taskId) })) {
    const rows = journalBytes > restoredBytes ? [] : await store.readJournal(key, taskId)
    traces.set(taskId, (rows.find(row => row.key === TRACE)?.value as TraceCarrier | undefined) ?? {})
  }
  return traces
}
