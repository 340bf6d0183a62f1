import { A2AError, isA2AError, type ErrorCode } from '../../machines/protocol/errors.ts'
import type { NewWebhook, WebhookNote } from '../../runtime/store/rows.ts'
import type { Erasure, Scope, SweepBounds } from '../../runtime/store/store.ts'
import type { TransitionCount } from '../../runtime/xstate/transition-counter.ts'
import { StorageError } from './storage-error.ts'

/** A change of webhooks outside of a commit. */
export type WebhookChange =
  | { readonly write: NewWebhook; readonly scope: Scope; readonly limit: number }
  | { readonly notes: readonly WebhookNote[] }
  | { readonly delete: string; readonly scope: Scope; readonly taskId: string }

/** The store port's result of a change of webhooks. */
export type WebhookChanged = 'written' | 'absent' | 'full' | boolean | boolean[]

/** Counts of transitions to add. */
export interface CountChange {
  readonly counts: readonly TransitionCount[]
  readonly atMs: number
}

/** A removal, or a change of webhooks or of counts. */
export type Change =
  | { readonly sweep: SweepBounds; readonly limit: number }
  | { readonly erase: Erasure }
  | { readonly webhooks: WebhookChange }
  | CountChange

/** The result of a change; true for counts. */
export type Changed = number | WebhookChanged

/** A result. An error is sent between threads as its message, and its code if it is an A2AError. */
export type Outcome<T> = { readonly value: T } | { readonly failure: string; readonly code: ErrorCode | undefined }

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
