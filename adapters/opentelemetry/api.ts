import type * as api from '@opentelemetry/api'
import type { ProxyTracerProvider } from '@opentelemetry/api'

/** The API of OpenTelemetry: an optional peer. */
export type Api = typeof api

/** The API, or why it could not be loaded. Awaited here, since spans begin synchronously. */
const loaded: Api | { readonly cause: unknown } = await import('@opentelemetry/api').catch((cause: unknown) => ({ cause }))

/** The API. Throws TypeError with the install command if it is not installed. */
export function openTelemetryApi(): Api {
  /* c8 ignore next -- tested in a process that does not find the package */
  if ('cause' in loaded) throw new TypeError('openTelemetry needs the OpenTelemetry API. Install it: npm install @opentelemetry/api', { cause: loaded.cause })
  return loaded
}

/** Has the registered tracer provider export its pending spans, if it supports that. */
export async function flushSpans(): Promise<void> {
  const provider = (openTelemetryApi().trace.getTracerProvider() as ProxyTracerProvider).getDelegate() as { forceFlush?(): Promise<void> }
  await provider.forceFlush?.()
}
