import { ERRORS, type ErrorCode } from '../../../machines/protocol/errors.ts'
import type { Outcome } from '../binding-test.ts'
import type { Refusal, Terms } from '../callers/caller.ts'

/** An expected error: `TaskNotFound (-32001)`. */
export function errorText(code: ErrorCode): string {
  return `${code} (${ERRORS[code].code}, HTTP ${ERRORS[code].http})`
}

/** The unusual terms of a call. */
export function termsText({ version, extensions, credentials }: Terms): string {
  const told = [
    ...(version === undefined ? [] : [version === '' ? 'without A2A-Version' : `A2A-Version: ${version}`]),
    ...(extensions === undefined ? [] : [`A2A-Extensions: ${extensions.join(', ')}`]),
    ...(credentials === '' ? ['without credentials'] : [])
  ]
  return told.length === 0 ? '' : ` (${told.join('; ')})`
}

/** An actual error. */
export function refusalText({ native, message, reason, code }: Refusal): string {
  return `${native}${code ? ` ${code}` : ''}${typeof reason === 'string' ? ` (${reason})` : ''}: ${message}`
}

/** An actual value as text. */
export function shown(found: unknown): string {
  return typeof found === 'string' ? found : (JSON.stringify(found) ?? 'nothing')
}

/** The answer to a call as text. */
export function outcomeText(outcome: Outcome): string {
  return 'refusal' in outcome ? refusalText(outcome.refusal) : shown(outcome.result)
}
