import { A2AError } from './errors.ts'

/** A2A's media type for JSON (§11.1). */
export const A2A_JSON = 'application/a2a+json'

/** The version of A2A that this folder implements, as in `A2A-Version` and in Agent Cards (§3.6). */
export const PROTOCOL_VERSION = '1.0'

const UNSTATED_VERSION = '0.3'
const VERSION = /^(0|[1-9]\d{0,3})\.(0|[1-9]\d{0,3})(?:\.(?:0|[1-9]\d{0,3}))?$/

/**
 * Gives the Major.Minor of an `A2A-Version`, without the patch number (§3.6): `1.0.1` is `1.0`.
 *
 * Empty or missing text is `0.3`, since clients of that version send no such header. Malformed text gives `undefined`,
 * which callers refuse with VersionNotSupported.
 */
export function normaliseVersion(text: string | undefined): string | undefined {
  const trimmed = text?.trim() ?? ''
  if (trimmed === '') return UNSTATED_VERSION
  const match = VERSION.exec(trimmed)
  return match ? `${match[1]}.${match[2]}` : undefined
}

/** Throws VersionNotSupported unless a request's `A2A-Version` is 1.0 (§3.6.2). */
export function checkVersion(given: string): void {
  if (normaliseVersion(given) === PROTOCOL_VERSION) return
  const request =
    given.trim() === ''
      ? 'The request names no A2A-Version, which means 0.3'
      : `The request has A2A-Version ${JSON.stringify(given.slice(0, 32))}`
  throw new A2AError(
    'VersionNotSupported',
    `${request}; this agent speaks ${PROTOCOL_VERSION}. Send A2A-Version: ${PROTOCOL_VERSION}.`,
    {
      metadata: { supportedVersions: PROTOCOL_VERSION }
    }
  )
}
