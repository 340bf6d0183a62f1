import { isObject } from '../../machines/protocol/codec/json.ts'
import { ERRORS, isA2AError, type A2AError, type ErrorCode } from '../../machines/protocol/errors.ts'
import { isMissingCard } from '../client/card/discovery.ts'
import { CommandError, EXIT, type CliErrorCode } from './command.ts'
import { thrownText } from './text/terminal.ts'

/** An error of a command, as its exit code and for programs. */
export interface Failure {
  readonly exitCode: number
  /** A2A's name of the error, such as `TaskNotFoundError`, or else one of a2a-cli. */
  readonly code: string
  readonly message: string
  /** Advice, such as a command; `null` for none. */
  readonly hint: string | null
  /** The number that the agent sent: of JSON-RPC, HTTP or gRPC. `null` if the error is not the agent's. */
  readonly a2aCode: number | null
}

/** Describes what a command threw. Without a code of its own, an error has that of its cause. */
export function failureOf(error: unknown): Failure {
  const { exitCode, code } = sortOf(error)
  const hint = error instanceof CommandError ? error.hint : undefined
  const text = thrownText(error)
  const message = hint !== undefined && text.endsWith(` ${hint}`) ? text.slice(0, -hint.length - 1) : text
  return { exitCode, code, message, hint: hint ?? null, a2aCode: numberIn(error) ?? null }
}

/** One line of JSON for a failure: `{ error: { code, message, hint, a2aCode } }`. */
export function envelopeOf({ code, message, hint, a2aCode }: Failure): object {
  return { error: { code, message, hint, a2aCode } }
}

type Sort = Pick<Failure, 'exitCode' | 'code'>

function sortOf(error: unknown): Sort {
  if (isA2AError(error)) return sortOfA2A(error)
  if (!(error instanceof CommandError)) return INTERNAL
  const { cause } = error
  const { exitCode, code } = cause === undefined ? INTERNAL : sortOf(cause)
  return { exitCode: error.exitCode ?? exitCode, code: error.code ?? code }
}

const INTERNAL = sort(EXIT.error, 'A2ACLI_ERR_INTERNAL')

function sort(exitCode: number, code: CliErrorCode): Sort {
  return { exitCode, code }
}

/** The errors that A2A does not name, or names otherwise, apart from those without an exit code of their own. */
const SORTS: Readonly<Partial<Record<ErrorCode, Sort>>> = {
  Overloaded: sort(EXIT.unreachable, 'A2ACLI_ERR_UNREACHABLE'),
  Unauthenticated: sort(EXIT.credentials, 'A2ACLI_ERR_AUTH_FAILED'),
  Forbidden: sort(EXIT.credentials, 'A2ACLI_ERR_AUTH_FAILED'),
  DeadlineExceeded: sort(EXIT.timeout, 'A2ACLI_ERR_TIMEOUT'),
  ParseError: { exitCode: EXIT.error, code: 'JSONParseError' }
}

/** taskchart's own errors have numbers above those of A2A and JSON-RPC, which A2A names (§9.5). */
function sortOfA2A(error: A2AError): Sort {
  if (isMissingCard(error)) return sort(EXIT.unreachable, 'A2ACLI_ERR_CARD_NOT_FOUND')
  const { code } = error
  const named = { exitCode: EXIT.error, code: `${code.replace(/Error$/, '')}Error` }
  return SORTS[code] ?? (ERRORS[code].code > -32_000 ? INTERNAL : named)
}

/** The number of the agent's own error, which is the last of the causes. */
function numberIn(error: unknown): number | undefined {
  if (error instanceof Error) return numberIn(error.cause)
  return isObject(error) && typeof error.code === 'number' ? error.code : undefined
}
