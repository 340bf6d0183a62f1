import type { ContextKey, RestorableRow, Store, StoredContext } from '../store/store.ts'

/** How many bytes of snapshots are read at once; one that is larger alone is read alone. */
const BYTES_AT_ONCE = 8 * 1024 * 1024

/** Loads a context, with up to so many bytes of its tasks' snapshots, a few at a time. Tasks for which there is no room come without theirs. */
export async function loadContext(store: Pick<Store, 'loadContext' | 'readSnapshot'>, key: ContextKey, bytes: number): Promise<StoredContext | undefined> {
  const stored = await store.loadContext(key, Math.min(bytes, BYTES_AT_ONCE))
  if (!stored || stored.tasks.every(({ snapshot }) => snapshot !== undefined)) return stored
  let left = bytes - snapshotBytes(stored)
  const tasks: RestorableRow[] = []
  for (const row of stored.tasks) {
    if (row.snapshot !== undefined || row.snapshotBytes > left) {
      tasks.push(row)
      continue
    }
    left -= row.snapshotBytes
    const snapshot = await store.readSnapshot(key, row.taskId)
    if (snapshot !== undefined) tasks.push({ ...row, snapshot })
  }
  return { ...stored, tasks }
}

/** How many bytes the snapshots that were read have. */
export function snapshotBytes({ tasks }: StoredContext): number {
  return tasks.reduce((sum, { snapshot }) => sum + (snapshot?.length ?? 0), 0)
}
