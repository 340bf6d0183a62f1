import type { ContextKey, JournalRow, Store, StoredContext } from './store.ts'
import type { TraceCarrier } from './telemetry.ts'

/** The key in a task's journal of the trace that it belongs to. */
const TRACE = 'trace'

/** What the journal of a task keeps of the trace of the message that opened it. */
export function traceRow(taskId: string, carrier: TraceCarrier): JournalRow {
  return { taskId, key: TRACE, value: carrier }
}

/** The traces that the stored tasks of a context belong to, by task. */
export async function storedTraces(store: Store, key: ContextKey, { tasks }: StoredContext): Promise<ReadonlyMap<string, TraceCarrier>> {
  const traces = tasks.map(async ({ taskId }): Promise<[string, TraceCarrier]> => {
    const row = (await store.readJournal(key, taskId)).find(row => row.key === TRACE)
    return [taskId, (row?.value as TraceCarrier | undefined) ?? {}]
  })
  return new Map(await Promise.all(traces))
}
