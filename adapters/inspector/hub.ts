import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { InspectionEvent } from 'xstate'
import type { LiveActors, Observation } from '../../runtime/contexts/observers.ts'
import { randomIds } from '../../runtime/ports/ids.ts'
import { unrefTimer } from '../../runtime/primitives/event-loop.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Tap } from '../entry/frame-tap.ts'
import { atHost } from './at-host.ts'
import { drawnCharts, type DrawChart } from './drawn-charts.ts'
import type { Chart, Coverage, FromHub } from './feed.ts'
import { PageLink, type Shown } from './page-link.ts'
import { earlierTasks } from './recorder/earlier-tasks.ts'
import { FrameLog } from './recorder/frame-log.ts'
import { Recorder } from './recorder/recorder.ts'
import type { Redact } from './recorder/seen-step.ts'
import { TaskIndex } from './recorder/task-index.ts'

/** How long what happens is collected before pages hear of it. */
export const FLUSH_MS = 100

/** How long it goes on to look after the last page has left, which may only have lost its connection. */
export const LINGER_MS = 30_000

/** Who hears of all that is recorded, as XState tells it, beside the pages. */
export interface Sink {
  /** A context is recorded from now on: its actors are there already. */
  began(actors: LiveActors): void
  inspected(event: InspectionEvent): void
}

/** What a hub is made with. */
export interface HubOptions {
  readonly redact: Redact
  readonly draw: DrawChart
  /** What the last test of the agent reached; undefined if nobody knows. */
  readonly coverage: () => Promise<Coverage | undefined>
}

/** What is seen while somebody looks. */
interface Looking extends Shown {
  readonly observation: Observation
}

/**
 * Knows who looks at an agent, and tells them what goes on. It observes the runtime from when the first page or sink comes
 * until the last one has gone, a page for half a minute; before and after that nothing in the runtime knows of it.
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

  /** How many look. */
  get lookers(): number {
    return this.#pages.size + this.#sinks.size
  }

  /** Shows another runtime from now on: the agent has been loaded again. */
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

  /** Tells the pages why the agent could not be loaded again; null once it can. */
  tell(trouble: string | null): void {
    this.#trouble = trouble
    this.#tellAll({ type: 'reload', error: trouble })
  }

  /** Tells the pages what a test has reached. */
  async cover(): Promise<void> {
    const coverage = await this.#options.coverage()
    if (coverage) this.#tellAll(coverage)
  }

  /** Takes a page, until its socket closes. `host` is the name by which it reaches the server. */
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

  /** Takes a sink. The answer lets it go, and may be called twice. */
  sink(sink: Sink): () => void {
    const { recorder } = this.#look()
    this.#sinks.add(sink)
    for (const actors of recorder.recorded) sink.began(actors)
    return () => {
      this.#sinks.delete(sink)
      if (this.lookers === 0) this.#unlook()
    }
  }

  /** Looks at nothing any more. */
  close(): void {
    this.#unlook()
    const { clock } = this.#runtime.settings
    clock.clearTimeout(this.#timer)
    clock.clearTimeout(this.#lingering)
  }

  /** Greets a page, after which it is told what there is. */
  async #greet(page: PageLink): Promise<void> {
    const shown = this.#look()
    const { name, description, version } = this.#runtime.agentCard([])
    const hello = { type: 'hello', agent: { name, description, version }, url: atHost(this.#url, page.host), instance: shown.instance, authorizes: true } as const
    const charts = await this.#drawn(shown.observation)
    // It may have left meanwhile, or be greeted by the agent as it is now.
    if (this.#looking !== shown || !this.#pages.has(page)) return
    page.send({ ...hello, charts, nowMs: this.#runtime.settings.clock.now() })
    page.show(shown)
    if (this.#trouble !== null) page.send({ type: 'reload', error: this.#trouble })
    const coverage = await this.#options.coverage()
    if (coverage) page.send(coverage)
  }

  /** The charts, drawn once for each agent. */
  #drawn({ agent }: Observation): Promise<Chart[]> {
    return (this.#charts ??= drawnCharts(agent, this.#options.draw, this.#runtime.settings.logger))
  }

  /** Begins to observe, unless it does. */
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

  /** Reads the tasks that were there before: those of everyone anonymous, and of callers who have a context in memory. */
  async #readEarlier({ observation, recorder, tasks }: Looking): Promise<void> {
    const scopes = [{ tenant: '', principal: 'anonymous' }, ...recorder.live.map(({ key }) => key)]
    const each = new Map(scopes.map(scope => [JSON.stringify([scope.tenant, scope.principal]), scope]))
    try {
      for await (const row of earlierTasks(observation.store, [...each.values()], message => tasks.title(message))) {
        if (this.#looking?.tasks !== tasks) return
        tasks.read(row)
      }
    } catch (error) {
      this.#runtime.settings.logger.error('the tasks of before could not be read', { error })
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
