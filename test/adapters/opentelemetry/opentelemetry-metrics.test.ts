import {
  diag,
  metrics,
  type BatchObservableCallback,
  type BatchObservableResult,
  type Meter,
  type MeterProvider,
  type MetricOptions,
  type Observable
} from '@opentelemetry/api'
import t from 'tap'
import { hasProvider } from '../../../adapters/cli/serve/parts.ts'
import { flushTelemetry } from '../../../adapters/opentelemetry/api.ts'
import { openTelemetry } from '../../../adapters/opentelemetry/open-telemetry.ts'
import { metricsText } from '../../../adapters/serve/serve-metrics.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import { say, start, until } from '../../fixtures/runtime/runtime-helpers.ts'

/** An instrument that a runtime made. */
interface Made {
  readonly name: string
  readonly kind: string
  readonly options: MetricOptions | undefined
}

/** A meter provider that collects when it is told to, as an SDK does. */
function collecting() {
  const made: Made[] = []
  const callbacks = new Set<BatchObservableCallback>()
  const observed: [name: string, value: number, attributes: object | undefined][] = []
  const maker =
    (kind: string) =>
    (name: string, options?: MetricOptions): Observable => {
      const instrument = { name, kind, options }
      made.push(instrument)
      return instrument as unknown as Observable
    }
  const meter = {
    createObservableCounter: maker('counter'),
    createObservableGauge: maker('gauge'),
    addBatchObservableCallback: (callback: BatchObservableCallback) => callbacks.add(callback),
    removeBatchObservableCallback: (callback: BatchObservableCallback) => callbacks.delete(callback)
  } as unknown as Meter
  const forceFlush = async () => {
    observed.length = 0
    const result = {
      observe: (instrument: unknown, value: number, attributes?: object) =>
        observed.push([(instrument as Made).name, value, attributes])
    } as unknown as BatchObservableResult
    for (const callback of callbacks) await callback(result)
  }
  const scopes: unknown[] = []
  return {
    made,
    observed,
    callbacks,
    scopes,
    provider: { getMeter: (...scope: unknown[]) => (scopes.push(scope), meter), forceFlush } satisfies MeterProvider & {
      forceFlush(): Promise<void>
    }
  }
}

await t.test('nothing is read without a meter provider', async t => {
  const { runtime } = start(t, { work: echo }, { telemetry: openTelemetry() })
  await runtime.sendMessage(say('hello'))
  await flushTelemetry()
})

await t.test('a registered meter provider gets the same metrics as Prometheus', async t => {
  const { provider, made, observed, callbacks, scopes } = collecting()
  metrics.setGlobalMeterProvider(provider)
  t.teardown(() => metrics.disable())
  t.ok(hasProvider(), 'the command finds it')
  const { runtime } = start(t, { work: echo }, { telemetry: openTelemetry() })
  t.strictSame(
    made.map(({ name, kind, options }) => ({ name, kind, ...options })),
    runtime.metrics.definitions
  )
  t.match(scopes, [['taskchart', /^\d+\.\d+\.\d+$/]])
  t.match(made, [
    { name: 'taskchart.ready', kind: 'gauge' },
    { name: 'taskchart.tasks', kind: 'gauge', options: { unit: '{task}' } }
  ])
  await runtime.sendMessage(say('hello'))
  await flushTelemetry()
  t.match(
    observed.find(([name]) => name === 'taskchart.tasks.opened'),
    ['taskchart.tasks.opened', 1, {}]
  )
  t.match(
    observed.find(
      ([name, , attributes]) => name === 'taskchart.tasks.ended' && Object.values(attributes ?? {})[0] === 'completed'
    ),
    [String, 1, { state: 'completed' }]
  )
  const text = await metricsText(runtime)
  t.equal(observed.length, text.split('\n').filter(line => line !== '' && !line.startsWith('#')).length)
  await runtime.sendMessage(say('again'))
  await runtime.close()
  await until(() => callbacks.size === 0)
  t.match(
    observed.find(([name]) => name === 'taskchart.tasks.opened'),
    [String, 2, {}],
    'closing exports once more'
  )
})

await t.test('a provider that fails when a runtime closes gives a line of diag', async t => {
  const { provider, callbacks } = collecting()
  metrics.setGlobalMeterProvider(
    Object.assign(provider, { forceFlush: () => Promise.reject(new Error('nobody there')) })
  )
  t.teardown(() => metrics.disable())
  const errors: unknown[] = []
  diag.setLogger({
    error: (...args) => errors.push(...args),
    warn: () => {},
    info: () => {},
    debug: () => {},
    verbose: () => {}
  })
  t.teardown(() => diag.disable())
  const { runtime } = start(t, { work: echo }, { telemetry: openTelemetry() })
  await runtime.close()
  await until(() => callbacks.size === 0)
  t.match(errors, ['taskchart: the last metrics were not exported', { message: 'nobody there' }])
})
