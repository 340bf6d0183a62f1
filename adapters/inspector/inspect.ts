import { redacted } from '../../runtime/ports/redact.ts'
import { checkOptions, type OptionKinds } from '../../runtime/primitives/options.ts'
import { drawChart } from '../drawing/chart-drawing.ts'
import type { SideApp } from '../serve/side-app.ts'
import { Inspector } from './inspector.ts'
import { PageFiles } from './page-files.ts'
import { loadStately } from './stately/stately-sink.ts'

/** How an agent is inspected. */
export interface InspectOptions {
  /**
   * Makes a copy of what is shown without secrets: of events, snapshots, titles and frames. Default what is done for logs: what
   * stands under names such as `authorization` or `apiKey`, and what looks like a secret, is left out.
   */
  readonly redact?: (value: unknown) => unknown
  /** A receiver of Stately's to feed too, such as its `createInspectorServer()`: `ws://127.0.0.1:8080`. Needs `@statelyai/inspect`. */
  readonly stately?: string
  /** What lets in who looks. Default a random one, which the page has from its server. */
  readonly token?: string
}

const OPTIONS: OptionKinds<InspectOptions> = { redact: true, stately: true, token: true }

/** The page as it is built into the package. */
export const builtPage = new PageFiles(new URL('./page/', import.meta.url))

/**
 * An inspector, to be served beside an agent: `serve(runtime, { port: 4242, inspector: inspect() })`. Its page takes the place of
 * the plain one at `/`; `/stately` opens Stately's inspector. Where callers are told apart, or others reach the server, it lets
 * in only who has the token (`/?token=…`). While nobody looks it costs nothing. Throws TypeError for options that cannot be.
 */
export function inspect(options: InspectOptions = {}): SideApp {
  checkOptions(options, OPTIONS, 'inspect', "inspect({ stately: 'ws://127.0.0.1:8080' })")
  const { redact = redacted, stately, token } = options
  if (typeof redact !== 'function') throw new TypeError('redact has to be a function that gives a copy without secrets: value => copy.')
  if (stately !== undefined && !/^ws:\/\/./.test(stately)) throw new TypeError(`stately has to be an address such as ws://127.0.0.1:8080, not ${JSON.stringify(stately)}.`)
  if (token !== undefined && (typeof token !== 'string' || token === '')) throw new TypeError('token has to be a text that is not empty.')
  return new Inspector({ redact, stately, token, draw: drawChart, coverage: async () => undefined, page: builtPage, loadStately })
}
