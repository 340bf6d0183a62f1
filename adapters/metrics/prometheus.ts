import { checkArgument, withMembers } from '../../runtime/primitives/options.ts'
import type { Metric, MetricDefinition, MetricSource } from '../../runtime/telemetry/metrics.ts'

/** The media type of Prometheus's text format. */
export const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8'

/** Names of units in Prometheus; numbers of things have none. */
const UNITS: Readonly<Record<string, string>> = { s: '_seconds', By: '_bytes' }

/**
 * The metrics of a runtime now, in Prometheus's text format, for a route `/metrics` of your app: `metricsText(runtime)`. Its media type is
 * `text/plain; version=0.0.4`. Resolves within about 2 seconds, without the open tasks if the store does not answer.
 */
export async function metricsText(runtime: { readonly metrics: MetricSource }): Promise<string> {
  checkArgument(runtime, withMembers(['metrics'], 'a runtime'), 'metricsText(createRuntime({ agent }))')
  const { metrics } = runtime
  const read = await metrics.read()
  return read.map(textOf).join('')
}

/** The name of a metric in Prometheus, by OpenTelemetry's rules: `taskchart_commits_total`, `taskchart_event_loop_delay_seconds`. */
export function prometheusName({ name, kind, unit }: MetricDefinition): string {
  return `${name.replaceAll('.', '_')}${UNITS[unit] ?? ''}${kind === 'counter' ? '_total' : ''}`
}

function textOf(metric: Metric): string {
  const name = prometheusName(metric)
  const values = metric.values.map(({ value, attributes }) => `${name}${labelsOf(attributes)} ${value}\n`)
  return `# HELP ${name} ${metric.description}\n# TYPE ${name} ${metric.kind}\n${values.join('')}`
}

function labelsOf(attributes: Readonly<Record<string, string>>): string {
  const labels = Object.entries(attributes).map(
    ([name, value]) => `${name}="${value.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`
  )
  return labels.length === 0 ? '' : `{${labels.join(',')}}`
}
