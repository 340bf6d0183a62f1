import type { MetricsOptions } from '../../metrics/serve-metrics.ts'
import { usageError } from '../command.ts'

const ADDRESS = /^(?:(?<host>[^:\s[\]]+|\[[^\]\s]+\]):)?(?<port>\d{1,5})$/

/** Parses `--metrics [HOST:]PORT`; without a host it is 127.0.0.1. Throws a usage error for anything else. */
export function readMetricsAddress(text: string): Required<MetricsOptions> {
  const { host = '127.0.0.1', port = '' } = ADDRESS.exec(text)?.groups ?? {}
  if (port !== '' && Number(port) <= 65_535) return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
  throw usageError(`--metrics takes PORT or HOST:PORT, such as 9464 or 0.0.0.0:9464, not ${JSON.stringify(text)}.`)
}
