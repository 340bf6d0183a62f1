import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { AnyStateMachine, InspectionEvent } from 'xstate'
import type { Agent } from '../../runtime/agent/define-agent.ts'
import type { LiveActors, Observation } from '../../runtime/contexts/observers.ts'
import { randomIds } from '../../runtime/ports/ids.ts'
import type { Logger } from '../../runtime/ports/logger.ts'
import { unrefTimer } from '../../runtime/primitives/event-loop.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { chartsOf } from '../drawing/agent-charts.ts'
import { chartMermaid } from '../drawing/mermaid.ts'
import type { Tap } from '../entry/connection.ts'
import type { Chart, Coverage, FromHub } from './feed.ts'
import { PageLink, type Shown } from './page-link.ts'
import { FrameLog } from './recorder/frame-log.ts'
import { Recorder } from './recorder/recorder.ts'
import type { Redact } from './recorder/seen-step.ts'
import { earlierTasks, TaskIndex } from './recorder/task-index.ts'

/** The interval at which changes are sent to pages. */
export const FLUSH_MS = 100

/** How long the hub keeps observing without pages, since a page may only have lost its connection. */
export const LINGER_MS = 30_000

/** Receives all recorded events in XState's form, in addition to the pages. */
export interface Sink {
  /** A context is recorded from now on, with its present actors. */
  began(actors: LiveActors): void
  inspected(event: InspectionEvent): void
}

/** The options of a hub. */
export interface HubOptions {
  readonly redact: Redact
  readonly draw: DrawChart
  /** The coverage of the agent's last test; `undefined` if unknown. */
  readonly coverage: () => Promise<Coverage | undefined>
}

/** The state of the observation while someone uses the inspector. */
interface Looking extends Shown {
  readonly observation: Observation
}

/**
 * Observes an agent for pages and sinks, and sends them its events. It observes the runtime from the first page or sink until the
 * last has gone, after a page for 30 more seconds; without them the runtime has no observer.
 */
export class Hub {
  readonly #frames: FrameLog
  readonly #options: HubOptions
  readonly #pages = new Set<PageLink>()
  readonly #sinks = new Set<Sink>()
  #runtime: Runtime
  #url: string
  #charts: Promise<Chart[]> | undefined
  #looking: Looking | undefined
  #timer: unknown
  #lingering: unknown
  #trouble: string | null = null

  constructor(runtime: Runtime, url: string, options: HubOptions, tap: Tap) {
    this.#runtime = runtime
    this.#url = url
    this.#options = options
    this.#frames = new FrameLog(tap, runtime.settings.clock, () => this.#stirred())
  }

  /** The number of pages and sinks. */
  get lookers(): number {
    return this.#pages.size + this.#sinks.size
  }

  /** Switches to another runtime after a reload of the agent. */
  use(runtime: Runtime, url: string): void {
    this.#unlook()
    this.#runtime = runtime
    this.#url = url
    this.#charts = undefined
    this.#trouble = null
    if (this.lookers > 0) this.#look()
    for (const page of this.#pages) {
      page.show(undefined)
      void this.#greet(page)
    }
  }

  /** Tells the pages why the agent could not be reloaded; null once it can. */
  tell(trouble: string | null): void {
    this.#trouble = trouble
    this.#tellAll({ type: 'reload', error: trouble })
  }

  /** Sends the coverage of a test to the pages. */
  async cover(): Promise<void> {
    const coverage = await this.#options.coverage()
    if (coverage) this.#tellAll(coverage)
  }

  /** Adds a page until its socket closes. `host` is the name by which it reaches the server. */
  page(socket: WebSocket, stream: Socket, host: string): void {
    const page = new PageLink(socket, stream, host)
    this.#pages.add(page)
    this.#look()
    socket.on('close', () => {
      page.leave()
      this.#pages.delete(page)
      this.#linger()
    })
    void this.#greet(page)
  }

  /** Adds a sink. Returns the function that removes it, which may be called twice. */
  sink(sink: Sink): () => void {
    const { recorder } = this.#look()
    this.#sinks.add(sink)
    for (const actors of recorder.recorded) sink.began(actors)
    return () => {
      this.#sinks.delete(sink)
      if (this.lookers === 0) this.#unlook()
    }
  }

  /** Stops observing. */
  close(): void {
    this.#unlook()
    const { clock } = this.#runtime.settings
    clock.clearTimeout(this.#timer)
    clock.clearTimeout(this.#lingering)
  }

  /** Sends `hello` to a page, and then everything that is known. */
  async #greet(page: PageLink): Promise<void> {
    const shown = this.#look()
    const { name, description, version } = this.#runtime.agentCard([])
    const hello = { type: 'hello', agent: { name, description, version }, url: atHost(this.#url, page.host), instance: shown.instance, authorizes: true } as const
    const charts = await this.#drawn(shown.observation)
    // The page may have gone meanwhile, or a reload may greet it again.
    if (this.#looking !== shown || !this.#pages.has(page)) return
    page.send({ ...hello, charts, nowMs: this.#runtime.settings.clock.now() })
    page.show(shown)
    if (this.#trouble !== null) page.send({ type: 'reload', error: this.#trouble })
    const coverage = await this.#options.coverage()
    if (coverage) page.send(coverage)
  }

  /** The charts, drawn once per agent. */
  #drawn({ agent }: Observation): Promise<Chart[]> {
    return (this.#charts ??= drawnCharts(agent, this.#options.draw, this.#runtime.settings.logger))
  }

  /** Starts observing, if necessary. */
  #look(): Looking {
    if (this.#looking) return this.#looking
    const { redact } = this.#options
    const runtime = this.#runtime
    const recorder = new Recorder(runtime.settings.clock, {
      stirred: () => this.#stirred(),
      inspected: event => this.#sinks.forEach(sink => sink.inspected(event)),
      began: actors => this.#sinks.forEach(sink => sink.began(actors)),
      troubled: error => runtime.settings.logger.error('the inspector failed', { error })
    })
    const tasks = new TaskIndex(redact, {
      changed: row => this.#eachPage(page => page.changed(row)),
      removed: taskId => this.#eachPage(page => page.removed(taskId))
    })
    const observation = runtime.observe({
      entered: actors => recorder.entered(actors),
      left: actors => recorder.left(actors),
      committed: commit => {
        recorder.committed(commit)
        tasks.committed(commit)
      },
      erased: whose => {
        recorder.erased(whose)
        tasks.erased(whose)
      }
    })
    const authorize = async (taskId: string, data: unknown) => {
      const owner = tasks.get(taskId)?.owner
      await runtime.authorized(taskId, data, owner)
    }
    const looking = { instance: randomIds(), recorder, tasks, frames: this.#frames, redact, observation, authorize, stirred: () => this.#stirred() }
    this.#looking = looking
    void this.#readEarlier(looking)
    return looking
  }

  /** Reads earlier tasks from the store: those of anonymous callers, and of callers with a context in memory. */
  async #readEarlier({ observation, recorder, tasks }: Looking): Promise<void> {
    const scopes = [{ tenant: '', principal: 'anonymous' }, ...recorder.live.map(({ key }) => key)]
    const each = new Map(scopes.map(scope => [JSON.stringify([scope.tenant, scope.principal]), scope]))
    try {
      for await (const row of earlierTasks(observation.store, [...each.values()], message => tasks.title(message))) {
        if (this.#looking?.tasks !== tasks) return
        tasks.read(row)
      }
    } catch (error) {
      this.#runtime.settings.logger.error('the earlier tasks could not be read', { error })
    }
  }

  #linger(): void {
    const { clock } = this.#runtime.settings
    clock.clearTimeout(this.#lingering)
    if (this.#looking) this.#lingering = unrefTimer(clock.setTimeout(() => this.lookers === 0 && this.#unlook(), LINGER_MS))
  }

  #unlook(): void {
    this.#looking?.observation.stop()
    this.#looking?.recorder.stop()
    this.#looking = undefined
  }

  #stirred(): void {
    if (this.#timer !== undefined || this.#pages.size === 0) return
    const flush = () => {
      this.#timer = undefined
      this.#eachPage(page => page.flush())
    }
    this.#timer = unrefTimer(this.#runtime.settings.clock.setTimeout(flush, FLUSH_MS))
  }

  #eachPage(tell: (page: PageLink) => void): void {
    for (const page of this.#pages) tell(page)
  }

  #tellAll(frame: FromHub): void {
    this.#eachPage(page => page.send(frame))
  }
}

/** An agent's URL, with the host name by which a client reaches this server. */
export function atHost(url: string, host: string): string {
  const address = new URL(url)
  address.host = host
  return address.href
}

/** Draws a chart as an `<svg>` element. */
type DrawChart = (machine: AnyStateMachine) => Promise<string>

/** The charts of an agent for pages. A chart that cannot be drawn has no picture, and the error is logged. */
async function drawnCharts(agent: Agent, draw: DrawChart, logger: Logger): Promise<Chart[]> {
  return Promise.all(chartsOf(agent).map(async ({ id, title, machine }) => {
    const svg = await draw(machine).catch((error: unknown) => {
      logger.error('a chart could not be drawn', { chart: id, error })
      return ''
    })
    return { id, title, svg, mermaid: chartMermaid(machine) }
  }))
}
