import type { Runtime } from '../../../runtime/runtime.ts'
import { serveMetrics, type MetricsOptions, type ServedMetrics } from '../../metrics/serve-metrics.ts'
import { CommandError, usageError } from '../command.ts'

const ADDRESS = /^(?:(?<host>[^:\s[\]]+|\[[^\]\s]+\]):)?(?<port>\d{1,5})$/

/** Parses `--metrics [HOST:]PORT`; without a host it is 127.0.0.1. Throws a usage error for anything else. */
export function readMetricsAddress(text: string): Required<MetricsOptions> {
  const { host = '127.0.0.1', port = '' } = ADDRESS.exec(text)?.groups ?? {}
  if (port !== '' && Number(port) <= 65_535) return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
  throw usageError(`--metrics takes PORT or HOST:PORT, such as 9464 or 0.0.0.0:9464, not ${JSON.stringify(text)}.`)
}

/** Serves the metrics of a runtime. Throws CommandError if the port cannot be bound. */
export async function openMetrics(runtime: Runtime, address: Required<MetricsOptions>): Promise<ServedMetrics> {
  return serveMetrics(runtime, address).catch((cause: unknown) => {
    const { host, port } = address
    throw new CommandError(`Metrics cannot be served on ${host} port ${port}: ${(cause as Error).message}. Choose another with --metrics, or --metrics 0 for any.`, { cause })
  })
}
