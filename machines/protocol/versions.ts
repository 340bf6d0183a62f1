import { A2AError } from './errors.ts'

/** A2A's media type for JSON (§11.1). */
export const A2A_JSON = 'application/a2a+json'

/** The version of A2A that every server speaks, as in `A2A-Version` and in Agent Cards (§3.6). */
export const PROTOCOL_VERSION = '1.0'

/** The draft of the next version, which a runtime may speak too. It adds members to the objects of 1.0. */
export const NEXT_VERSION = '1.1'

/** A version whose objects this folder has. They differ by members only, so that one flag of a call is enough. */
export type NativeVersion = typeof PROTOCOL_VERSION | typeof NEXT_VERSION

/** The native versions, the newest first. */
export const NATIVE_VERSIONS: readonly NativeVersion[] = [NEXT_VERSION, PROTOCOL_VERSION]

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

/** The version that an `A2A-Version` names, if it is one of these: `1.1.0` is `1.1`. */
export function nativeVersionIn(text: string, versions: readonly NativeVersion[]): NativeVersion | undefined {
  const named = normaliseVersion(text)
  return versions.find(version => version === named)
}

/** The version of a request by its `A2A-Version`. Throws VersionNotSupported unless the agent speaks it. */
export function checkVersion(given: string, versions: readonly NativeVersion[]): NativeVersion {
  const version = nativeVersionIn(given, versions)
  if (version === undefined) throw versionNotSupported(given, versions)
  return version
}

/**
 * The error for a request whose `A2A-Version` is none of those that the agent speaks, which it lists, the newest first
 * (§3.6.2).
 */
export function versionNotSupported(given: string, versions: readonly NativeVersion[]): A2AError {
  const request =
    given.trim() === ''
      ? 'The request names no A2A-Version, which means 0.3'
      : `The request has A2A-Version ${JSON.stringify(given.slice(0, 32))}`
  return new A2AError(
    'VersionNotSupported',
    `${request}; this agent speaks ${versions.join(' and ')}. Send A2A-Version: ${versions.join(' or ')}.`,
    {
      metadata: { supportedVersions: versions.join(', ') }
    }
  )
}
