import { A2AError, type ErrorCode } from '../../machines/protocol/errors.ts'

/** How an older version writes what the runtime's errors say. */
export interface Wording {
  /** A text in the words of that version. */
  readonly text: (text: string) => string
  /** The name of a member in its requests. */
  readonly field: (field: string) => string
  readonly code?: (code: ErrorCode) => ErrorCode
  /** Changes of the metadata. */
  readonly metadata?: Readonly<Record<string, string>>
  readonly dataIsObject?: boolean
}

/** An error in the words of an older version: its message, its metadata, and the fields that it names. */
export function reworded(
  error: A2AError,
  { text, field, code = code => code, metadata = {}, dataIsObject = false }: Wording
): A2AError {
  const { message, violations, retryAfterMs } = error
  const told = violations.map(violation => ({
    field: field(violation.field),
    description: text(violation.description)
  }))
  const named = violations.reduce(
    (words, { field, description }, index) =>
      words.replace(`${field} ${description}`, `${told[index]?.field} ${description}`),
    message
  )
  return new A2AError(code(error.code), text(named), {
    metadata: { ...error.metadata, ...metadata },
    violations: told,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    dataIsObject,
    cause: error
  })
}

/** The methods of an older version, by those of 1.0. */
export type MethodNames = ReadonlyMap<string, string>

/** Replaces the names of methods in a text. */
export function withMethods(text: string, names: MethodNames): string {
  return text.replaceAll(/\b[A-Z][a-z]+[A-Z]\w+\b/g, word => names.get(word) ?? word)
}
