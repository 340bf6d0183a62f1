import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { StoreStatus } from '../../../runtime/store/rows.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { sqliteStore } from '../../storage/sqlite.ts'

/** The storage of a test's tasks. */
export type DiskName = 'memory' | 'SQLite'

/** The storage that survives the processes of a test. */
export interface Disk {
  /** Opens a store for the next process, which closes it. */
  open(): Store
  /** Lets pending work run once: the store answers everything that was asked before. */
  rest(): Promise<void>
  /** Deletes everything. */
  discard(): Promise<void>
}

/** Creates an empty disk. A SQLite file is in a new folder for temporary files. */
export async function newDisk(name: DiskName): Promise<Disk> {
  return name === 'memory' ? memoryDisk() : sqliteDisk(await mkdtemp(join(tmpdir(), 'taskchart-test-')))
}

/** A store in memory that stays open between processes. */
function memoryDisk(): Disk {
  const store = memoryStore()
  return {
    open: () => ({ ...store, close: async () => {} }),
    rest: () => setImmediate(),
    discard: () => store.close()
  }
}

function sqliteDisk(folder: string): Disk {
  let store: Store | undefined
  return {
    open: () => (store = sqliteStore(join(folder, 'tasks.db'))),
    // The store's thread serves the caller first whose reads took the least time: on a busy machine a read of another one may wait for many.
    rest: async () => {
      for (let times = 0; times < 3; times += 1) {
        do await store?.loadContext(NOWHERE)
        while (isBusy(store?.status?.()))
      }
      await setImmediate()
    },
    discard: () => rm(folder, { recursive: true, force: true })
  }
}

function isBusy(status: StoreStatus | undefined): boolean {
  return status !== undefined && status.waitingReads + status.waitingWrites > 0
}

const NOWHERE = { tenant: '', principal: '', contextId: '' }
