import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Runtime } from '../../runtime/index.ts'
import { checkArgument, checkOptions, type OptionKinds, withMembers } from '../../runtime/primitives/options.ts'
import { type ServedRuntime, servedRuntime } from '../../runtime/runtime-options.ts'
import type { Metric, MetricDefinition, MetricSource } from '../../runtime/telemetry-port.ts'
import { type AllowList, originRefusal, requestPathOf, targetOf } from '../entry/admission.ts'
import { bindError } from '../entry/bind.ts'
import { ADDRESS, serverUrlOf, checkPort } from '../entry/listen.ts'

/** Where metrics are served. */
export interface MetricsOptions {
  /** 0 takes a free port. */
  readonly port: number
  /** The address to bind. Default `127.0.0.1`. On any other everyone who reaches it can read the metrics. */
  readonly host?: string
}

/** Metrics that are served. */
export interface ServedMetrics {
  /** `http://127.0.0.1:9464/metrics`. */
  readonly url: string
  /** May be called twice. */
  close(): Promise<void>
}

const OPTIONS: OptionKinds<MetricsOptions> = { ...ADDRESS }

const EXAMPLE = 'serveMetrics(runtime, { port: 9464 })'

/** The path of the metrics. */
const PATH = '/metrics'

/** Without names and origins: loopback names where the address is one. */
const ALLOWED: AllowList = {}

/** A request for metrics is short. */
const REQUEST_TIMEOUT_MS = 10_000

/**
 * Serves the metrics of a runtime for Prometheus, on a port of its own. They hold numbers and words of the code, and
 * nothing of tasks or callers. Resolves when it accepts connections; rejects if the port cannot be bound. Throws
 * TypeError for an unknown option, and without a port.
 */
export async function serveMetrics(given: Runtime, options: MetricsOptions): Promise<ServedMetrics> {
  const runtime = servedRuntime(given, 'serveMetrics')
  checkOptions(options, OPTIONS, 'serveMetrics', EXAMPLE)
  checkPort(options, 'serveMetrics', EXAMPLE)
  const { port, host = '127.0.0.1' } = options
  const server = createServer({ headersTimeout: REQUEST_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS })
  server.listen(port, host)
  await once(server, 'listening').catch((error: unknown) => {
    throw bindError(error, { host, port })
  })
  server.on('request', (request, response) => void answer(runtime, request, response))
  // Metrics need no body, so a client that waits to send one is not invited.
  server.on(
    'checkContinue',
    (request: IncomingMessage, response: ServerResponse) => void answer(runtime, request, response)
  )
  let closing: Promise<void> | undefined
  const close = async () => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  return { url: serverUrlOf(server, PATH), close: () => (closing ??= close()) }
}

async function answer(runtime: ServedRuntime, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [status, text] = await answerTo(runtime, request)
  response.writeHead(status, {
    'Content-Type': status === 200 ? PROMETHEUS_TEXT : 'text/plain',
    'Content-Length': Buffer.byteLength(text),
    ...(status === 405 && { Allow: 'GET, HEAD' })
  })
  response.end(request.method === 'HEAD' ? undefined : text)
}

/** The answer to a request. Pages of other origins may not read metrics, also not by DNS rebinding. */
async function answerTo(runtime: ServedRuntime, request: IncomingMessage): Promise<[status: number, text: string]> {
  const target = targetOf(request, ALLOWED)
  if ('status' in target) return [target.status, `${target.message}\n`]
  const refusal = originRefusal(request.headers.origin, target.host, ALLOWED)
  if (refusal) return [refusal.status, `${refusal.message}\n`]
  if (requestPathOf(request) !== PATH) return [404, `The metrics are at ${PATH}.\n`]
  if (request.method !== 'GET' && request.method !== 'HEAD') return [405, 'Metrics are read with GET.\n']
  try {
    return [200, await metricsText(runtime)]
  } catch (error) {
    runtime.settings.logger.error('the metrics could not be read', { error })
    return [500, 'The metrics could not be read. The log of the agent has the reason.\n']
  }
}

/** The media type of Prometheus's text format. */
const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8'

/** Names of units in Prometheus; numbers of things have none. */
const UNITS: Readonly<Record<string, string>> = { s: '_seconds', By: '_bytes' }

/**
 * The metrics of a runtime now, in Prometheus's text format, for a route `/metrics` of your app:
 * `metricsText(runtime)`. Its media type is `text/plain; version=0.0.4`. Resolves within about 2 seconds, without the
 * open tasks if the store does not answer.
 */
export async function metricsText(runtime: { readonly metrics: MetricSource }): Promise<string> {
  checkArgument(runtime, withMembers(['metrics'], 'a runtime'), 'metricsText(createRuntime({ agent }))')
  const { metrics } = runtime
  const read = await metrics.read()
  return read.map(textOf).join('')
}

/**
 * The name of a metric in Prometheus, by OpenTelemetry's rules: `taskchart_commits_total`,
 * `taskchart_event_loop_delay_seconds`.
 */
function prometheusName({ name, kind, unit }: MetricDefinition): string {
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
