import type * as api from '@opentelemetry/api'
import type { ProxyTracerProvider } from '@opentelemetry/api'
import { checkPackages } from '../peers/installed-packages.ts'

/** The API of OpenTelemetry: an optional peer. */
export type Api = typeof api

/** The API, or why it could not be loaded. Awaited here, since spans begin synchronously. */
const loaded: Api | { readonly cause: unknown } = await import('@opentelemetry/api').catch((cause: unknown) => ({
  cause
}))

/** The API. Throws TypeError with the install command if it is not installed. */
export function openTelemetryApi(): Api {
  /* c8 ignore next -- tested in a process that does not find the package */
  if ('cause' in loaded)
    throw new TypeError('openTelemetry needs the OpenTelemetry API. Install it: npm install @opentelemetry/api', {
      cause: loaded.cause
    })
  checkPackages(['@opentelemetry/api'])
  return loaded
}

/** A provider that may export what is pending. */
interface Provider {
  forceFlush?(): Promise<void>
}

/** Has the registered providers export pending spans and metrics, if they support that. */
export async function flushTelemetry(): Promise<void> {
  const { trace } = openTelemetryApi()
  const tracers = (trace.getTracerProvider() as ProxyTracerProvider).getDelegate() as Provider
  await Promise.all([tracers.forceFlush?.(), flushMetrics()])
}

/** Has the registered meter provider export the metrics as they are now, if it supports that. */
export async function flushMetrics(): Promise<void> {
  await (openTelemetryApi().metrics.getMeterProvider() as Provider).forceFlush?.()
}
