import type { BatchObservableResult, Meter, Observable } from '@opentelemetry/api'
import type { MetricDefinition, MetricSource } from '../../runtime/telemetry/metrics.ts'
import { versionIn } from '../../runtime/xstate/self-check.ts'
import { flushMetrics, type Api } from './api.ts'

/**
 * Exports metrics by the registered meter provider: one observable instrument for each, all read together when the provider collects.
 * Without a provider nothing is read. Returns the function that ends it, after a
 * last export.
 */
export function exportMetrics({ metrics, diag }: Api, source: MetricSource): () => void {
  const meter = metrics.getMeter('taskchart', versionIn('taskchart/package.json'))
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
