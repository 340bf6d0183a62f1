import { hostname } from 'node:os'

/** A file or database that cannot be used, or no longer. The message names it, without credentials, and the reason. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
}

/** The process that has a file or database, for the error of another. */
export interface Holder {
  readonly pid: number
  readonly host: string
  /** An ISO time. */
  readonly since: string
}

/** This process as the holder, from now on. */
export function thisHolder(): Holder {
  return { pid: process.pid, host: hostname(), since: new Date().toISOString() }
}

/** The refusal of a file or database that another process has. */
export function inUse(name: string, holder: Holder | undefined, advice: string): StorageError {
  const who = holder ? `process ${holder.pid} on ${holder.host} since ${holder.since}` : 'another process'
  return new StorageError(`${name} is in use by ${who}. ${advice}`)
}

/** The refusal of a file or database of a newer package. */
export function tooNew(name: string, version: number, known: number): StorageError {
  return new StorageError(
    `${name} has the schema version ${version}, and this taskchart knows versions up to ${known}. Use the newer taskchart that wrote it.`
  )
}
