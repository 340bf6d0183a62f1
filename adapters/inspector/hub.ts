import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { unrefTimer } from '../../runtime/ports/clock.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import type { Observation } from '../../runtime/telemetry-port.ts'
import type { Tap } from '../entry/connection.ts'
import type { Chart, CrashReport, FromHub, RecordedExample } from './feed.ts'
import {
  type DrawChart,
  drawnCharts,
  observe,
  type HubObservation,
  shownAgent,
  type InspectionSink
} from './observation.ts'
import { PageLink } from './page-link.ts'
import { FrameLog } from './recorder/frame-log.ts'
import type { Redact } from './recorder/seen-step.ts'
import { taskExample, taskStory } from './story/story.ts'
import type { ChartCoverage, Proving, TestProgress } from './test-result.ts'

/** The interval at which changes are sent to pages. */
export const FLUSH_MS = 100

/** How long the hub keeps observing without pages, since a page may only have lost its connection. */
export const GRACE_MS = 30_000

/** The number of errors of the author's code that are kept: the newest ones. */
export const MOST_CRASHES = 100

/** The options of a hub. */
export interface HubOptions {
  readonly redact: Redact
  readonly draw: DrawChart
  /**
   * Records from the start and across reloads, also without pages and sinks. Default: only while a page or a sink is
   * there.
   */
  readonly alwaysRecord?: boolean
  /** See `LISTED_A_MINUTE` in `observation`, the default. */
  readonly listedAMinute?: number
  /**
   * Whether a comparison runs functions and generators with the journals of tasks, so that their code outside of steps
   * runs. Default false.
   */
  readonly replays?: boolean
  /** The coverage of the agent's last test; `undefined` if unknown. */
  readonly coverage: () => Promise<ChartCoverage | undefined>
  /** The recorded run of the agent's first example. Default: there is none. */
  readonly example?: () => Promise<RecordedExample | undefined>
  /**
   * Runs the tests of the agent, unless they run already, and reports their progress. Default: pages cannot run them.
   */
  readonly test?: (report: (progress: TestProgress) => void) => void
  /**
   * Proves the properties of the agent, unless that runs already, and reports the result. Default: pages cannot prove
   * them.
   */
  readonly prove?: (report: (progress: Proving) => void) => void
}

/**
 * Observes an agent for pages and sinks, and sends them its events. It observes the runtime from the first page or sink
 * until the last has gone, and for 30 more seconds after a page. Without them the runtime has no observer, unless
 * `alwaysRecord`.
 */
export class Hub {
  readonly #frames: FrameLog
  readonly #options: HubOptions
  readonly #pages = new Set<PageLink>()
  readonly #sinks = new Set<InspectionSink>()
  #runtime: ServedRuntime
  #url: string
  #charts: Promise<Chart[]> | undefined
  #observation: HubObservation | undefined
  #timer: unknown
  #graceTimer: unknown
  #trouble: string | null = null
  /** The progress of running tests. */
  #testing: TestProgress | undefined
  /** The last proof, or that one runs. */
  #proving: Proving | undefined
  readonly #crashes = new Map<string, CrashReport>()

  constructor(runtime: ServedRuntime, url: string, options: HubOptions, tap: Tap) {
    this.#runtime = runtime
    this.#url = url
    this.#options = options
    this.#frames = new FrameLog(tap, runtime.settings.clock, () => this.#stirred())
    if (options.alwaysRecord) this.#observe()
  }

  /** The number of pages and sinks. */
  get viewers(): number {
    return this.#pages.size + this.#sinks.size
  }

  /** Switches to another runtime after a reload of the agent. */
  use(runtime: ServedRuntime, url: string): void {
    const before = this.#observation
    before?.stop()
    before?.recorder.pause()
    this.#observation = undefined
    this.#runtime = runtime
    this.#url = url
    this.#charts = undefined
    this.#trouble = null
    if (!this.#proving?.isRunning) this.#proving = undefined
    if (before) this.#observe(before)
    for (const page of this.#pages) {
      page.show(undefined)
      void this.#sendHello(page)
    }
  }

  /** Shows the pages why the agent could not be reloaded; null once it can. */
  showReloadError(trouble: string | null): void {
    this.#trouble = trouble
    this.#broadcast({ type: 'reload', error: trouble })
  }

  /**
   * Shows the pages the error with which the author's code of a task ended. The newest one of each task is kept for
   * later pages.
   */
  crashed(taskId: string, error: string): void {
    const crash: CrashReport = { type: 'crash', taskId, error }
    this.#crashes.delete(taskId)
    this.#crashes.set(taskId, crash)
    for (const oldest of this.#crashes.keys()) {
      if (this.#crashes.size <= MOST_CRASHES) break
      this.#crashes.delete(oldest)
    }
    this.#broadcast(crash)
  }

  /** Sends the coverage of a test to the pages. */
  async cover(): Promise<void> {
    const coverage = await this.#options.coverage()
    if (coverage) this.#broadcast(coverage)
  }

  /** The story of a task as an HTML file; `undefined` for an unknown task. */
  async story(taskId: string): Promise<string | undefined> {
    const { observation, scope, ...source } = await this.#find(taskId)
    const agent = this.#runtime.agentCard([]).name
    return scope && taskStory({ ...source, agent, charts: await this.#drawn(observation) }, scope, taskId)
  }

  /** A task as a recorded example, as JSON text; `undefined` for an unknown task. */
  async example(taskId: string): Promise<string | undefined> {
    const { scope, ...source } = await this.#find(taskId)
    return scope && taskExample(source, scope, taskId)
  }

  async #find(taskId: string) {
    const { observation, earlier, recorder, tasks, redact } = this.#observe()
    this.#startGrace()
    if (!tasks.get(taskId)) await earlier
    return { observation, store: observation.store, recorder, redact, scope: tasks.get(taskId)?.key }
  }

  /** Adds a page until its socket closes. `host` is the name by which it reaches the server. */
  page(socket: WebSocket, stream: Socket, host: string): void {
    const page = new PageLink(socket, stream, host)
    this.#pages.add(page)
    this.#observe()
    socket.on('close', () => {
      page.leave()
      this.#pages.delete(page)
      this.#startGrace()
    })
    void this.#sendHello(page)
  }

  /** Adds a sink. Returns the function that removes it, which may be called twice. */
  sink(sink: InspectionSink): () => void {
    const { recorder } = this.#observe()
    this.#sinks.add(sink)
    for (const actors of recorder.recorded) sink.began(actors)
    return () => {
      this.#sinks.delete(sink)
      this.#stopIfUnused()
    }
  }

  /** Stops observing. */
  close(): void {
    this.#stopObserving()
    const { clock } = this.#runtime.settings
    clock.clearTimeout(this.#timer)
    clock.clearTimeout(this.#graceTimer)
  }

  /** Sends `hello` to a page, and then everything that is known. */
  async #sendHello(page: PageLink): Promise<void> {
    const shown = this.#observe()
    const hello = {
      type: 'hello',
      agent: shownAgent(this.#runtime),
      url: atHost(this.#url, page.host),
      instance: shown.instance,
      authorizes: true,
      tests: this.#options.test !== undefined,
      proves: this.#options.prove !== undefined,
      counts: shown.transitionCounts !== undefined,
      ...(shown.nodes && { isNode: true })
    } as const
    const charts = await this.#drawn(shown.observation)
    // The page may have gone meanwhile, or a reload may greet it again.
    if (this.#observation !== shown || !this.#pages.has(page)) return
    page.send({ ...hello, charts, nowMs: this.#runtime.settings.clock.now() })
    page.show(shown)
    if (this.#trouble !== null) page.send({ type: 'reload', error: this.#trouble })
    for (const crash of this.#crashes.values()) page.send(crash)
    const coverage = await this.#options.coverage()
    if (coverage) page.send(coverage)
    const example = await this.#options.example?.()
    if (example) page.send(example)
    if (this.#testing) page.send(this.#testing)
    if (this.#proving) page.send(this.#proving)
  }

  #test(): void {
    this.#options.test?.(progress => {
      this.#testing = progress.isRunning ? progress : undefined
      this.#broadcast(progress)
      if (!progress.isRunning) void this.cover()
    })
  }

  #prove(): void {
    const runtime = this.#runtime
    this.#options.prove?.(progress => {
      // A proof that began before a reload may be about another chart.
      this.#proving =
        runtime === this.#runtime
          ? progress
          : {
              type: 'proving',
              isRunning: progress.isRunning,
              error: 'The agent was loaded again meanwhile. Prove it again.'
            }
      this.#broadcast(this.#proving)
    })
  }

  /** The charts, drawn once per agent. */
  #drawn({ agent }: Observation): Promise<Chart[]> {
    return (this.#charts ??= drawnCharts(agent, this.#options.draw, this.#runtime.settings.logger))
  }

  /** Starts observing, if necessary. `before`: what was recorded of the agent before its reload. */
  #observe(before?: HubObservation): HubObservation {
    this.#observation ??= observe(this.#runtime, {
      redact: this.#options.redact,
      listedAMinute: this.#options.listedAMinute,
      frames: this.#frames,
      before,
      draw: this.#options.draw,
      replays: this.#options.replays ?? false,
      pages: this.#pages,
      sinks: this.#sinks,
      removed: taskId => this.#crashes.delete(taskId),
      stirred: () => this.#stirred(),
      test: () => this.#test(),
      prove: () => this.#prove()
    })
    return this.#observation
  }

  #startGrace(): void {
    const { clock } = this.#runtime.settings
    clock.clearTimeout(this.#graceTimer)
    if (this.#observation) this.#graceTimer = unrefTimer(clock.setTimeout(() => this.#stopIfUnused(), GRACE_MS))
  }

  #stopIfUnused(): void {
    if (this.viewers === 0 && !this.#options.alwaysRecord) this.#stopObserving()
  }

  #stopObserving(): void {
    this.#observation?.stop()
    this.#observation?.recorder.stop()
    this.#observation = undefined
  }

  #stirred(): void {
    if (this.#timer !== undefined || this.#pages.size === 0) return
    const flush = () => {
      this.#timer = undefined
      this.#eachPage(page => page.flush())
    }
    this.#timer = unrefTimer(this.#runtime.settings.clock.setTimeout(flush, FLUSH_MS))
  }

  #eachPage(update: (page: PageLink) => void): void {
    for (const page of this.#pages) update(page)
  }

  #broadcast(frame: FromHub): void {
    this.#eachPage(page => page.send(frame))
  }
}

/** An agent's URL, with the host name by which a client reaches this server. */
export function atHost(url: string, host: string): string {
  const address = new URL(url)
  address.host = host
  return address.href
}
