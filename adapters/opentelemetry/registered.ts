/** Where the API of OpenTelemetry, in all its copies, keeps what is registered with it. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/** Whether somebody has registered a tracer provider, which is found without loading the API. */
export function hasTracerProvider(place: object = globalThis): boolean {
  const registered = (place as Record<symbol, { readonly trace?: unknown } | undefined>)[REGISTERED]
  return registered?.trace !== undefined
}
