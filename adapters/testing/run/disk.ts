import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { sqliteStore } from '../../storage/sqlite.ts'

/** Where the tasks of a test are kept. */
export type DiskName = 'memory' | 'SQLite'

/** What outlives the processes of a test. */
export interface Disk {
  /** A store for the next process, which closes it at its end. */
  open(): Store
  /** Lets everything run that can run without time, once: what the store has been asked before this it has answered. */
  rest(): Promise<void>
  /** Takes everything away. */
  discard(): Promise<void>
}

/** A new disk with nothing on it. A SQLite file is in a folder of its own, below the system's for such. */
export async function newDisk(name: DiskName): Promise<Disk> {
  return name === 'memory' ? memoryDisk() : sqliteDisk(await mkdtemp(join(tmpdir(), 'taskchart-test-')))
}

/** A store in memory that stays open from one process to the next. */
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
    // Its thread answers in order.
    rest: async () => {
      await store?.loadContext(NOWHERE)
      await setImmediate()
    },
    discard: () => rm(folder, { recursive: true, force: true })
  }
}

const NOWHERE = { tenant: '', principal: '', contextId: '' }
