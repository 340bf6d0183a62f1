import { createHash } from 'node:crypto'

/** A short text that stands for values: the same for the same JSON, and an id that nobody can guess from some of them. */
export function digestOf(...values: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('base64url').slice(0, 24)
}
