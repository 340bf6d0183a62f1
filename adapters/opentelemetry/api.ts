import type * as api from '@opentelemetry/api'

/** The API of OpenTelemetry: an optional peer. */
export type Api = typeof api

/** Why it could not be loaded, or the API itself. Waited for here, since spans begin without waiting. */
const loaded: Api | { readonly cause: unknown } = await import('@opentelemetry/api').catch((cause: unknown) => ({ cause }))

/** Gives the API. Throws TypeError that says how to install it, if it is not there. */
export function openTelemetryApi(): Api {
  /* c8 ignore next -- tested in a process that does not find the package */
  if ('cause' in loaded) throw new TypeError('openTelemetry traces by the API of OpenTelemetry. Install it: npm install @opentelemetry/api', { cause: loaded.cause })
  return loaded
}
