import { ERRORS, type ErrorCode } from '../../../machines/protocol/errors.ts'
import type { Outcome } from '../binding-test.ts'
import type { Refusal, Terms } from '../callers/caller.ts'

/** An error as it is wanted: `TaskNotFound (-32001)`. */
export function errorText(code: ErrorCode): string {
  return `${code} (${ERRORS[code].code}, HTTP ${ERRORS[code].http})`
}

/** Terms of a call that are not the usual ones. */
export function termsText({ version, extensions, credentials }: Terms): string {
  const told = [
    ...(version === undefined ? [] : [version === '' ? 'without A2A-Version' : `A2A-Version: ${version}`]),
    ...(extensions === undefined ? [] : [`A2A-Extensions: ${extensions.join(', ')}`]),
    ...(credentials === '' ? ['without credentials'] : [])
  ]
  return told.length === 0 ? '' : ` (${told.join('; ')})`
}

/** An error as it came. */
export function refusalText({ native, message, reason, code }: Refusal): string {
  return `${native}${code ? ` ${code}` : ''}${typeof reason === 'string' ? ` (${reason})` : ''}: ${message}`
}

/** Anything that was found, as text. */
export function shown(found: unknown): string {
  return typeof found === 'string' ? found : (JSON.stringify(found) ?? 'nothing')
}

/** What a call was answered with, as text. */
export function outcomeText(outcome: Outcome): string {
  return 'refusal' in outcome ? refusalText(outcome.refusal) : shown(outcome.result)
}
