import { redactValue } from '../../runtime/ports/logger.ts'
import { checkOptions, type OptionKinds } from '../../runtime/primitives/options.ts'
import { drawChart } from '../drawing/chart-drawing.ts'
import type { PortExtension } from '../serve/port-extension.ts'
import { builtPage, Inspector } from './inspector.ts'
import { loadStately } from './stately.ts'

// Its declarations are public, so they import none of `ws`, which brings no types, or of optional packages.

/** The options of an inspector. */
export interface InspectOptions {
  /**
   * Copies shown values without secrets: events, snapshots, titles and frames. Default: the function of logs, which
   * removes members with names such as `authorization` or `apiKey`, and texts that look like secrets.
   */
  readonly redact?: (value: unknown) => unknown
  /**
   * The URL of a Stately receiver, such as `createInspectorServer()`: `ws://127.0.0.1:8080`. Needs
   * `@statelyai/inspect`.
   */
  readonly stately?: string
  /** The token for access. Default a random one, which the server writes into the page. */
  readonly token?: string
}

const OPTIONS: OptionKinds<InspectOptions> = { redact: true, stately: true, token: true }

/**
 * An inspector to serve beside an agent: `serve(runtime, { port: 4242, inspector: inspect() })`. Its page replaces the
 * plain one at `/`; `/stately` opens Stately's inspector. With `authenticate`, or on a public address, it requires the
 * token (`/?token=…`). Without viewers it costs nothing. Throws TypeError for invalid options.
 */
export function inspect(options: InspectOptions = {}): PortExtension {
  return inspectorWith(options)
}

/** An inspector with the URL of its page. Throws as `inspect` does. */
export function inspectorWith(options: InspectOptions): PortExtension & { readonly pageUrl: string } {
  checkOptions(options, OPTIONS, 'inspect', "inspect({ stately: 'ws://127.0.0.1:8080' })")
  const { redact = redactValue, stately, token } = options
  if (typeof redact !== 'function')
    throw new TypeError('redact has to be a function that gives a copy without secrets: value => copy.')
  if (stately !== undefined && !/^ws:\/\/./.test(stately))
    throw new TypeError(`stately has to be an address such as ws://127.0.0.1:8080, not ${JSON.stringify(stately)}.`)
  if (token !== undefined && (typeof token !== 'string' || token === ''))
    throw new TypeError('token has to be a text that is not empty.')
  return new Inspector({
    redact,
    stately,
    token,
    draw: drawChart,
    coverage: async () => undefined,
    page: builtPage,
    loadStately
  })
}
