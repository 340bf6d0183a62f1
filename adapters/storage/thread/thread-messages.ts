import { A2AError, isA2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'
import type { SweepBounds, Erasure } from '../../../runtime/store/store.ts'
import type { DriverName } from '../driver.ts'
import type { ReadName } from '../read/reads.ts'
import type { CommitRows } from '../rows/commit-rows.ts'
import { StorageError } from '../storage-error.ts'
import type { WebhookChange, WebhookWriter } from '../write/webhook-writer.ts'

export interface ReadCall {
  readonly name: ReadName
  readonly args: readonly unknown[]
}

/** A read for the thread, with the number of its answer and its user. */
export interface NumberedRead extends ReadCall {
  readonly number: number
  readonly user: string
}

/** A removal, or a change of webhooks. */
export type Change = { readonly sweep: SweepBounds; readonly limit: number } | { readonly erase: Erasure } | { readonly webhooks: WebhookChange }

/** The result of a change. */
export type Changed = number | ReturnType<WebhookWriter['change']>

/** Reads, or writes: commits as one group, then at most one change. */
export type Batch = { readonly reads: readonly NumberedRead[] } | { readonly commits: readonly CommitRows[]; readonly change: Change | undefined }

/** A result. An error is sent between threads as its message, and its code if it is an A2AError. */
export type Outcome<T> = { readonly value: T } | { readonly failure: string; readonly code: ErrorCode | undefined }

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

/** Runs a function, and returns its outcome. */
export function outcomeOf<T>(run: () => T): Outcome<T> {
  try {
    return { value: run() }
  } catch (error) {
    return failureOf(error)
  }
}

/** An error as an outcome. */
export function failureOf(error: unknown): Outcome<never> {
  return { failure: (error as Error).message, code: isA2AError(error) ? error.code : undefined }
}

/** The value of an outcome. Throws its error. */
export function valueOf<T>(outcome: Outcome<T>): T {
  if ('value' in outcome) return outcome.value
  throw outcome.code === undefined ? new StorageError(outcome.failure) : new A2AError(outcome.code, outcome.failure)
}
