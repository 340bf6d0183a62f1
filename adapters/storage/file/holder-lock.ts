import { inUse, type Holder, StorageError } from '../../rows/storage-error.ts'
import { driverOf, sqliteCode, type Database, type DriverName } from '../driver.ts'
import { reasonOf } from '../trouble.ts'
import { createPrivately } from './file-header.ts'

const ADVICE = 'Stop that one, or use another file.'

interface Held {
  readonly holder: Holder
  readonly driver: DriverName | undefined
}

/**
 * The files that this process holds. File locks belong to a process: the drivers do not see each other's, and opening and closing a
 * file a second time releases them.
 */
const heldHere = new Map<string, Held>()

/** The entry of a file that this process holds, with its driver. */
export function holdingHere(file: string): Held | undefined {
  return heldHere.get(file)
}

/**
 * Locks a file for this process by a transaction on the empty database `FILE-lock`. The lock ends with the process, or when the returned
 * function is called, which may be called twice. Throws StorageError if another process holds it; `holderOf` names it.
 */
export function hold(
  file: string,
  holder: Holder,
  driver: DriverName | undefined,
  holderOf: () => Holder | undefined
): () => void {
  const here = heldHere.get(file)
  if (here) throw inUse(file, here.holder, ADVICE)
  const lock = lockOf(file, driver)
  try {
    lock.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    throw sqliteCode(error) === 'BUSY' ? inUse(file, holderOf(), ADVICE) : unusable(file, error)
  }
  heldHere.set(file, { holder, driver })
  let isHeld = true
  return () => {
    // A second call would release a lock that another store has taken since.
    if (!isHeld) return
    isHeld = false
    heldHere.delete(file)
    lock.close()
  }
}

function lockOf(file: string, driver: DriverName | undefined): Database {
  const open = driverOf(driver)
  createPrivately(`${file}-lock`)
  try {
    return open(`${file}-lock`, false)
  } catch (error) {
    throw unusable(file, error)
  }
}

function unusable(file: string, cause: unknown): StorageError {
  return new StorageError(
    `${file} cannot be used: its lock ${file}-lock cannot be taken: ${reasonOf(cause)}. Is the folder there, and may it be written?`,
    { cause }
  )
}
