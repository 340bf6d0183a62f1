import type { Test } from 'tap'
import type { Binding, BindingName } from './binding.ts'
import type { Column } from './column.ts'

/** How much A2A wants it: it MUST be, it SHOULD be, or A2A leaves it open and this is how it is here. */
export type Level = 'M' | 'S' | 'M/S' | 'D'

/** One requirement, and how to find out whether it is met. */
export interface Row {
  readonly id: number
  readonly level: Level
  /** The section of A2A that says so. */
  readonly section: string
  readonly says: string
  /** Where the row makes no sense: why. */
  readonly missing?: (binding: Binding) => string | undefined
  /** Fails by its assertions, or throws. Left out where it makes no sense anywhere. */
  readonly check?: (t: Test, column: Column) => Promise<void>
  /** Where it is known to fail, through no fault of ours that can be mended here: why. There it has to fail. */
  readonly fails?: (binding: Binding) => string | undefined
  /** Is about everything that the other rows heard: comes after them. */
  readonly atLast?: boolean
}

type Missing = NonNullable<Row['missing']>

/** A row that is tried wherever `missing` gives no reason against it. */
export function row(
  id: number,
  level: Level,
  section: string,
  says: string,
  check: NonNullable<Row['check']>,
  ...missing: Missing[]
): Row {
  return {
    id,
    level,
    section,
    says,
    check,
    missing: binding => missing.map(reason => reason(binding)).find(reason => reason !== undefined)
  }
}

/** A row about everything that is emitted. */
export function lastRow(...given: Parameters<typeof row>): Row {
  return { ...row(...given), atLast: true }
}

/** A row that is known to fail on these bindings. */
export function failing(row: Row, names: readonly BindingName[], reason: string): Row {
  return { ...row, fails: ({ name }) => (names.includes(name) ? reason : undefined) }
}

/** A row that nothing here can meet or miss. */
export function nowhere(id: number, level: Level, section: string, says: string, reason: string): Row {
  return { id, level, section, says, missing: () => reason }
}

/** Only on these bindings. */
export function only(names: readonly BindingName[], reason: string): Missing {
  return ({ name }) => (names.includes(name) ? undefined : reason)
}

/** Everywhere but on these bindings. */
export function except(names: readonly BindingName[], reason: string): Missing {
  return ({ name }) => (names.includes(name) ? reason : undefined)
}

/** Not in 0.3. */
export function newer(reason: string): Missing {
  return ({ version }) => (version === '0.3' ? reason : undefined)
}
