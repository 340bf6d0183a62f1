import type { ProxyTracerProvider } from '@opentelemetry/api'
import { openTelemetryApi } from './api.ts'

/** Has the registered tracer provider export what it still holds, if it can be asked for that. */
export async function flushSpans(): Promise<void> {
  const provider = (openTelemetryApi().trace.getTracerProvider() as ProxyTracerProvider).getDelegate() as { forceFlush?(): Promise<void> }
  await provider.forceFlush?.()
}
