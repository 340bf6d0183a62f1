import { setImmediate } from 'node:timers/promises'
import type { Observer } from '../../../runtime/contexts/observers.ts'
import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Logger } from '../../../runtime/ports/logger.ts'
import { createRuntime, type Runtime } from '../../../runtime/runtime.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { formOf, refusalAnswer } from '../../entry/answers.ts'
import type { Handler } from '../../entry/connection.ts'
import { withScheme } from '../../entry/interfaces.ts'
import { GOING, listen, type Address } from '../../entry/listen.ts'
import { takePath, type TakeUpgrade } from '../../entry/upgrade-paths.ts'
import { httpHandler } from '../../http/handler.ts'
import type { Inspector } from '../../inspector/inspector.ts'
import { beside } from '../../serve/side-app.ts'
import { attach, type Served } from '../../websocket/attach.ts'
import { refuse } from '../../websocket/handshake.ts'
import type { AgentModule } from '../load-agent.ts'
import { within } from '../process/parking.ts'
import type { ServedTelemetry } from '../process/telemetry.ts'
import { legacyDialects } from '../serve/optional-bindings.ts'
import type { RuntimeSettings, ServeSettings } from '../serve/serve-options.ts'

/** How long a replaced agent may take to finish its commits, and then to stop. Slower cleanup goes on beside the new agent. */
const SETTLE_MS = 200
const STOP_MS = 200

/** The parts of a development server. */
export interface DevParts {
  readonly address: Address
  readonly legacy: ServeSettings['legacy']
  /** Is not closed by the server. */
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  readonly inspector: Inspector
  readonly traced: ServedTelemetry | undefined
  readonly runtimeOptions: (module: AgentModule) => RuntimeSettings
  /** They observe each runtime from its beginning, before its stored work goes on. */
  readonly observers?: readonly Observer[]
}

/** A served agent with its inspector. `url` is an `http:` URL. */
export interface DevServed extends Served {
  /** The runtime of the newest agent. */
  readonly runtime: Runtime
  /**
   * Serves another agent on the same port and over the same store. Its tasks are restored as after a restart. Clients reconnect
   * and resume, and inspector pages stay connected. Rejects, and changes nothing, if the module's exports conflict with the
   * options of the command.
   */
  replace(module: AgentModule): Promise<void>
}

/** Answers requests between two agents with an error after which clients retry. */
const nobody: Handler = async ({ method, url }) => refusalAnswer(GOING, {}, formOf(method, new URL(url).pathname))
const refusing: TakeUpgrade = (_, socket) => refuse(socket, GOING)

/** Serves an agent in development. Rejects when it cannot listen. */
export async function serveDev(
  { inspector, store, clock, logger, traced, address, ...parts }: DevParts,
  module: AgentModule
): Promise<DevServed> {
  // Each runtime closes its store; this one is shared by all of them.
  const kept: Store = { ...store, close: async () => {} }
  const runtimeOf = ({ agent }: AgentModule, settings: RuntimeSettings) => {
    const runtime = createRuntime({
      agent,
      store: kept,
      clock,
      ...settings,
      ...(traced && { telemetry: traced.telemetry })
    })
    for (const observer of parts.observers ?? []) runtime.observe(observer)
    return runtime
  }
  let handler = nobody
  let runtime = runtimeOf(module, parts.runtimeOptions(module))
  const own = await listen(
    address,
    runtime,
    (request, served) => handler(request, served),
    () => runtime.health()
  ).catch(async (error: unknown) => {
    await runtime.close()
    throw error
  })

  /** Serves the runtime; `release` removes the handlers that refused requests meanwhile. */
  const place = async (release = () => {}) => {
    const dialects = parts.legacy ? await legacyDialects(runtime, parts.legacy) : []
    release()
    handler = beside(inspector, httpHandler(runtime, { dialects, webSocket: true }))
    return attach(runtime, own.server, '/', { webSocket: true, http: true, dialects }, inspector.tap)
  }
  const undo = async (cause: unknown) => {
    await own.close()
    await runtime.close()
    throw cause
  }
  let sockets = await place().catch(undo)
  const closeInspector = await inspector.open(own.server, runtime, sockets.url).catch(async (error: unknown) => {
    await sockets.close()
    return undo(error)
  })

  const leave = async () => {
    sockets.drain()
    handler = beside(inspector, nobody)
    await within(clock, SETTLE_MS, runtime.settled())
    // Lets the answers to the last commits be written.
    await setImmediate()
    const closed = [sockets.close(), runtime.close()].map(closing =>
      closing.catch((error: unknown) => logger.error('not everything could be closed', { error }))
    )
    const release = takePath(own.server, { path: '/' }, refusing, refusing)
    await within(clock, STOP_MS, Promise.all(closed))
    return release
  }
  const replace = async (next: AgentModule) => {
    const settings = parts.runtimeOptions(next)
    const release = await leave()
    runtime = runtimeOf(next, settings)
    sockets = await place(release)
    inspector.use(runtime, sockets.url)
  }
  return {
    url: withScheme(sockets.url, 'http'),
    interfaces: sockets.interfaces,
    get runtime() {
      return runtime
    },
    replace,
    drain: () => {
      sockets.drain()
      own.drain()
    },
    close: async () => {
      await sockets.close()
      await closeInspector()
      await own.close()
    }
  }
}
