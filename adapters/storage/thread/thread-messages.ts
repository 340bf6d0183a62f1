import type { Change, Changed, Outcome } from '../../rows/changes.ts'
import type { DriverName } from '../driver.ts'
import type { ReadName } from '../read/reads.ts'
import type { PackedCommit } from './packed-commits.ts'

export interface ReadCall {
  readonly name: ReadName
  readonly args: readonly unknown[]
}

/** A read for the thread, with the number of its answer and its user. */
export interface NumberedRead extends ReadCall {
  readonly number: number
  readonly user: string
}

/** Commits as one group, then at most one change, and the length of their text. */
export interface Writes {
  readonly commits: readonly PackedCommit[]
  readonly change: Change | undefined
  readonly characters: number
}

export type Batch = { readonly reads: readonly NumberedRead[] } | Writes

/** The outcome of the read with a number. */
export type Answered = readonly [number: number, outcome: Outcome<string | undefined>]

/** A control message to the thread: answers to a user's reads were received, or close. */
export type Word = { readonly taken: string; readonly weight: number } | 'close'

/** A message from the thread: outcomes of one user's reads by number, outcomes of a batch of writes, damaged data, or a final failure. */
export type Told =
  | { readonly reads: readonly Answered[]; readonly user: string; readonly weight: number }
  | { readonly commits: Outcome<boolean>[]; readonly change: Outcome<Changed> | undefined }
  | { readonly damage: string }
  | { readonly stopped: string }

/** The start parameters of the thread. */
export interface ThreadData {
  readonly file: string
  readonly driver: DriverName | undefined
}
