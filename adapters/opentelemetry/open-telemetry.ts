import type { BatchObservableResult, Context, Meter, Observable, Span } from '@opentelemetry/api'
import type {
  MetricDefinition,
  MetricSource,
  SpanStart,
  Telemetry,
  TelemetrySpan,
  TraceCarrier
} from '../../runtime/telemetry-port.ts'
import { ATTRIBUTES } from '../../runtime/telemetry/spans.ts'
import { installedVersion } from '../peers/installed-packages.ts'
import { type Api, flushMetrics, openTelemetryApi } from './api.ts'

/**
 * Traces with OpenTelemetry, for `createRuntime({ agent, telemetry: openTelemetry() })` and `connect(url, { telemetry
 * })`. Uses the tracer provider, the propagator and the context manager that the app registers, before or after this
 * call. Without a provider nothing is traced. Exports the metrics of a runtime, if a meter provider is registered when
 * the runtime is created. Errors of these go to OpenTelemetry's `diag` only. Throws TypeError if `@opentelemetry/api`
 * is not installed.
 */
export function openTelemetry(): Telemetry {
  const api = openTelemetryApi()
  const tracer = api.trace.getTracer('taskchart', installedVersion('taskchart'))
  return {
    get fields() {
      return api.propagation.fields().map(name => name.toLowerCase())
    },
    meter: metrics => exportMetrics(api, metrics),
    begin: start => {
      const kind = { client: api.SpanKind.CLIENT, server: api.SpanKind.SERVER, internal: api.SpanKind.INTERNAL }[
        start.kind
      ]
      const parent = quietly(api, () => parentOf(api, start)) ?? api.ROOT_CONTEXT
      const span = quietly(api, () => tracer.startSpan(start.name, { kind, attributes: start.attributes }, parent))
      return new OpenSpan(api, span ?? api.trace.wrapSpanContext(api.INVALID_SPAN_CONTEXT), parent)
    }
  }
}

/**
 * The parent of a span. For a server span, an active span of the same trace, such as an HTTP server's, comes before the
 * caller's span.
 */
function parentOf({ context, propagation, trace, ROOT_CONTEXT }: Api, { kind, parent }: SpanStart): Context {
  const active = context.active()
  if (!parent) return active
  const given = propagation.extract(ROOT_CONTEXT, parent)
  const [here, there] = [trace.getSpanContext(active), trace.getSpanContext(given)]
  return kind === 'server' && here && here.traceId === there?.traceId ? active : given
}

class OpenSpan implements TelemetrySpan {
  readonly carrier: TraceCarrier
  readonly #api: Api
  readonly #span: Span
  readonly #context: Context
  #isOver = false

  constructor(api: Api, span: Span, parent: Context) {
    this.#api = api
    this.#span = span
    this.#context = api.trace.setSpan(parent, span)
    this.carrier = {}
    quietly(api, () => api.propagation.inject(this.#context, this.carrier))
  }

  run<T>(code: () => T): T {
    return this.#api.context.with(this.#context, code)
  }

  set(attributes: SpanStart['attributes']): void {
    this.#record(() => this.#span.setAttributes(attributes))
  }

  event(name: string, attributes: SpanStart['attributes']): void {
    this.#record(() => this.#span.addEvent(name, attributes))
  }

  link(carrier: TraceCarrier): void {
    const { propagation, trace, ROOT_CONTEXT } = this.#api
    this.#record(() => {
      const context = trace.getSpanContext(propagation.extract(ROOT_CONTEXT, carrier))
      if (context) this.#span.addLink({ context })
    })
  }

  end(errorType?: string): void {
    this.#record(() => {
      if (errorType !== undefined)
        this.#span.setAttribute(ATTRIBUTES.errorType, errorType).setStatus({ code: this.#api.SpanStatusCode.ERROR })
      this.#span.end()
    })
    this.#isOver = true
  }

  #record(report: () => void): void {
    if (!this.#isOver) quietly(this.#api, report)
  }
}

/** Errors of the tracer must not break what it traces. */
function quietly<T>({ diag }: Api, run: () => T): T | undefined {
  try {
    return run()
  } catch (error) {
    diag.error('taskchart: the tracer failed', error)
    return undefined
  }
}

/**
 * Exports metrics by the registered meter provider: one observable instrument for each, all read together when the
 * provider collects. Without a provider nothing is read. Returns the function that ends it, after a last export.
 */
function exportMetrics({ metrics, diag }: Api, source: MetricSource): () => void {
  const meter = metrics.getMeter('taskchart', installedVersion('taskchart'))
  const instruments = new Map(source.definitions.map(definition => [definition.name, instrumentOf(meter, definition)]))
  const observe = async (result: BatchObservableResult) => {
    for (const { name, values } of await source.read()) {
      const instrument = instruments.get(name) as Observable
      for (const { value, attributes } of values) result.observe(instrument, value, attributes)
    }
  }
  const all = [...instruments.values()]
  meter.addBatchObservableCallback(observe, all)
  return () => {
    flushMetrics()
      .catch((error: unknown) => diag.error('taskchart: the last metrics were not exported', error))
      .finally(() => meter.removeBatchObservableCallback(observe, all))
  }
}

function instrumentOf(meter: Meter, { name, kind, unit, description }: MetricDefinition): Observable {
  return kind === 'counter'
    ? meter.createObservableCounter(name, { unit, description })
    : meter.createObservableGauge(name, { unit, description })
}
