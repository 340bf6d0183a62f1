import { A2AError, isA2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'
import type { SweepBounds, Erasure } from '../../../runtime/store/store.ts'
import type { DriverName } from '../driver.ts'
import type { ReadName } from '../read/reads.ts'
import type { CommitRows } from '../rows/commit-rows.ts'
import { StorageError } from '../storage-error.ts'
import type { WebhookChange, WebhookWriter } from '../write/webhook-writer.ts'

/** A read. */
export interface ReadCall {
  readonly name: ReadName
  readonly args: readonly unknown[]
}

/** A read as it goes to the thread: with the number that its answer has, and who reads. */
export interface NumberedRead extends ReadCall {
  readonly number: number
  readonly user: string
}

/** What is removed, or changed of webhooks. */
export type Change = { readonly sweep: SweepBounds; readonly limit: number } | { readonly erase: Erasure } | { readonly webhooks: WebhookChange }

/** What came of a change. */
export type Changed = number | ReturnType<WebhookWriter['change']>

/** Reads, which see what is durable, or what the thread does at once: commits as one group, and then at the most one change. */
export type Batch = { readonly reads: readonly NumberedRead[] } | { readonly commits: readonly CommitRows[]; readonly change: Change | undefined }

/** How something went. An error crosses threads by its message, and by its code if it is an A2AError. */
export type Outcome<T> = { readonly value: T } | { readonly failure: string; readonly code: ErrorCode | undefined }

/** What came of the read with a number. */
export type Answered = readonly [number: number, outcome: Outcome<string | undefined>]

/** A message to the thread beside batches: answers of this weight have been taken, or close. */
export type Word = number | 'close'

/** What the thread tells: how reads went, as JSON, by their numbers; how each batch of writes went; that something is damaged; and that it has stopped for good, and why. */
export type Told =
  | { readonly reads: readonly Answered[]; readonly weight: number }
  | { readonly commits: Outcome<boolean>[]; readonly change: Outcome<Changed> | undefined }
  | { readonly damage: string }
  | { readonly stopped: string }

/** What the thread is started with. */
export interface ThreadData {
  readonly file: string
  readonly driver: DriverName | undefined
}

/** Runs something, and tells how it went. */
export function outcomeOf<T>(run: () => T): Outcome<T> {
  try {
    return { value: run() }
  } catch (error) {
    return failureOf(error)
  }
}

/** What went wrong, for the other thread. */
export function failureOf(error: unknown): Outcome<never> {
  return { failure: (error as Error).message, code: isA2AError(error) ? error.code : undefined }
}

/** What an outcome says: throws what went wrong. */
export function valueOf<T>(outcome: Outcome<T>): T {
  if ('value' in outcome) return outcome.value
  throw outcome.code === undefined ? new StorageError(outcome.failure) : new A2AError(outcome.code, outcome.failure)
}
