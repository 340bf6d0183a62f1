import type { Logger } from '../../../runtime/ports/logger.ts'
import type { Telemetry } from '../../../runtime/telemetry/telemetry.ts'
import { hasTracerProvider } from '../../opentelemetry/registered.ts'

/** What traces an agent that is served, and what has the last spans leave the process. */
export interface ServedTelemetry {
  readonly telemetry: Telemetry
  readonly flush: () => Promise<void>
}

/** OpenTelemetry, if somebody has registered a tracer provider with it: the agent's module, or what `node --import` loads. Else nothing is traced, or loaded. */
export async function registeredTelemetry(logger: Logger): Promise<ServedTelemetry | undefined> {
  if (!hasTracerProvider()) return undefined
  const [{ openTelemetry }, { flushSpans }] = await Promise.all([import('../../opentelemetry/open-telemetry.ts'), import('../../opentelemetry/flush-spans.ts')])
  const flush = () => flushSpans().catch((error: unknown) => logger.error('the last spans could not be exported', { error }))
  return { telemetry: openTelemetry(), flush }
}
