import { setImmediate } from 'node:timers/promises'
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
import { legacyDialects } from '../serve/dialects.ts'
import type { RuntimeSettings } from '../serve/serve-options.ts'

/** How long an agent that is replaced may take to commit what it has decided, and to stop. Works that clean up longer do so beside the next. */
const SETTLE_MS = 200
const STOP_MS = 200

/** What a development server is made with. */
export interface DevParts {
  readonly address: Address
  readonly legacy: boolean
  /** Is not closed. */
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  readonly inspector: Inspector
  readonly traced: ServedTelemetry | undefined
  readonly runtimeOptions: (module: AgentModule) => RuntimeSettings
}

/** An agent that is served with its inspector. `url` is an `http:` address. */
export interface DevServed extends Served {
  /** The agent as it is now. */
  readonly runtime: Runtime
  /**
   * Serves another agent in its place: on the same port, over the same store, so that its tasks go on as after a restart.
   * Clients connect again, and go on where they were; pages of the inspector stay. Rejects, and changes nothing, if the
   * module's exports do not fit the options of the command.
   */
  replace(module: AgentModule): Promise<void>
}

/** What answers while one agent has gone and the next is not there: clients come again. */
const nobody: Handler = async ({ method, url }) => refusalAnswer(GOING, {}, formOf(method, new URL(url).pathname))
const refusing: TakeUpgrade = (_, socket) => refuse(socket, GOING)

/** Serves an agent in development. Rejects when it cannot listen. */
export async function serveDev({ inspector, store, clock, logger, traced, address, ...parts }: DevParts, module: AgentModule): Promise<DevServed> {
  // Each runtime closes its store; this one is to outlive them.
  const kept: Store = { ...store, close: async () => {} }
  const runtimeOf = ({ agent }: AgentModule, settings: RuntimeSettings) => createRuntime({ agent, store: kept, clock, ...settings, ...(traced && { telemetry: traced.telemetry }) })
  let handler = nobody
  let runtime = runtimeOf(module, parts.runtimeOptions(module))
  const own = await listen(address, runtime, (request, served) => handler(request, served)).catch(async (error: unknown) => {
    await runtime.close()
    throw error
  })

  /** Serves the runtime; `release` gives back the place that was kept for it. */
  const place = async (release = () => {}) => {
    const dialects = parts.legacy ? await legacyDialects(runtime) : []
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
    // What was committed last is being answered.
    await setImmediate()
    const closed = [sockets.close(), runtime.close()].map(closing => closing.catch((error: unknown) => logger.error('not everything could be closed', { error })))
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
