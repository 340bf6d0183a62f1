import type { Logger } from '../../../runtime/ports/logger.ts'
import type { Telemetry } from '../../../runtime/telemetry/telemetry.ts'

/** The telemetry of a served agent, and the function that flushes its last spans and metrics. */
export interface ServedTelemetry {
  readonly telemetry: Telemetry
  readonly flush: () => Promise<void>
}

/** OpenTelemetry, if the agent's module or a `node --import` has registered a provider of tracers or meters. Otherwise nothing is loaded. */
export async function registeredTelemetry(logger: Logger): Promise<ServedTelemetry | undefined> {
  if (!hasProvider()) return undefined
  const [{ openTelemetry }, { flushTelemetry }] = await Promise.all([
    import('../../opentelemetry/open-telemetry.ts'),
    import('../../opentelemetry/api.ts')
  ])
  const flush = () =>
    flushTelemetry().catch((error: unknown) =>
      logger.error('the last spans and metrics could not be exported', { error })
    )
  return { telemetry: openTelemetry(), flush }
}

/** The key of the global under which every copy of the OpenTelemetry API registers providers. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/** Whether a provider of tracers or meters is registered. Does not load the API. */
export function hasProvider(place: object = globalThis): boolean {
  const registered = (place as Record<symbol, { readonly trace?: unknown; readonly metrics?: unknown } | undefined>)[
    REGISTERED
  ]
  return registered?.trace !== undefined || registered?.metrics !== undefined
}
