import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import * as z from 'zod'
import { tryDecode, type Schema } from '../../machines/protocol/codec/decode.ts'
import { onReceived } from '../../runtime/primitives/event-loop.ts'
import type { Commit } from '../../runtime/store/store.ts'
import { CLOSE_CODES } from '../websocket/close-codes.ts'
import { HIGH_WATER_BYTES } from '../websocket/outbox.ts'
import type { ChartHeat, ChartId, FromHub, FromPage, ShownComparison, Watch } from './feed.ts'
import type { SeenNodes } from './nodes-seen.ts'
import type { ContextIndex, ContextListener, ListedContext, TalkRecord } from './recorder/context-index.ts'
import { shownFrame, type FrameLog } from './recorder/frame-log.ts'
import type { ContextRecord, Recorder } from './recorder/recorder.ts'
import { type Redact, rowOf, shownStep } from './recorder/seen-step.ts'
import type { IndexedTask, TaskIndex, TaskListener } from './recorder/task-index.ts'

/** The data that a page shows. */
export interface Shown {
  /** The id of this recording. Another id means that the numbers begin again at 1. */
  readonly instance: string
  readonly recorder: Recorder
  readonly tasks: TaskIndex
  readonly contexts: ContextIndex
  /** Begins to read the messages of a context for a page. */
  readonly talkOf: (contextId: string) => TalkRecord
  readonly frames: FrameLog
  readonly redact: Redact
  /** Requests a flush. */
  readonly stirred: () => void
  /** Reports an authorization to a task. */
  readonly authorize: (taskId: string, data: unknown) => Promise<void>
  /** Runs the tests of the agent, unless they run already. */
  readonly test: () => void
  /** Proves the properties of the agent, unless that runs already. */
  readonly prove: () => void
  /** Reads what tasks took in the author's charts, if that is counted. */
  readonly transitionCounts: (() => Promise<ChartHeat[]>) | undefined
  /** Draws a chart with collapsed states; empty if that fails. */
  readonly draw: (chart: ChartId, collapsed: readonly string[]) => Promise<string>
  /** Compares a task with the agent now; `undefined` if that has not changed since it was opened. */
  readonly compare: (taskId: string) => Promise<ShownComparison | undefined>
  /** Reads the nodes of the cluster and the way of a task, if the runtime is a node. */
  readonly nodes: ((taskId: string) => Promise<SeenNodes>) | undefined
}

/** The parts of a context that a page has received. */
interface Watched {
  readonly contextId: string
  readonly unwatch: () => void
  readonly talk: TalkRecord
  record: ContextRecord | undefined
  /** The last step sent; `undefined` to start with the first one kept. */
  step: number | undefined
  version: number
  forgotten: number
  isBegun: boolean
}

/** The maximum number of states that a page collapses in a chart. */
const MOST_COLLAPSED = 1000

const REQUEST = z.union([
  z.object({
    type: z.literal('watch'),
    contextId: z.nullable(z.string()),
    afterStep: z.optional(z.int()),
    instance: z.optional(z.string())
  }),
  z.object({ type: z.literal('frames'), on: z.boolean() }),
  z.object({ type: z.literal('authorize'), taskId: z.string(), data: z.optional(z.unknown()) }),
  z.object({ type: z.enum(['test', 'prove', 'heat']) }),
  z.object({
    type: z.literal('draw'),
    chart: z.string(),
    collapsed: z.array(z.string()).check(z.maxLength(MOST_COLLAPSED))
  }),
  z.object({ type: z.literal('compare'), taskId: z.string() }),
  z.object({ type: z.literal('nodes'), taskId: z.optional(z.string()) })
]) as Schema<unknown> as Schema<FromPage>

/** The number of tasks or contexts per message. */
const ROWS_A_FRAME = 1000

/** The number of steps and frames that are prepared for a page at a time, which bounds the cost for the agent. */
const SHOWN_AT_ONCE = 500

/**
 * One page: its requests, and the changes not sent yet. The hub never waits for it: what it is too slow for is dropped
 * and counted.
 */
export class PageLink implements TaskListener, ContextListener {
  /** The name by which it reaches the server. */
  readonly host: string
  readonly #socket: WebSocket
  readonly #stream: Socket
  /** `undefined` before the greeting. */
  #shown: Shown | undefined
  #tasks = new Set<IndexedTask>()
  #removed = new Set<string>()
  #contexts = new Set<ListedContext>()
  #removedContexts = new Set<string>()
  /** The lists of which the page has nothing since the greeting: it keeps what it had until then. */
  #unsent = new Set<'tasks' | 'contexts'>()
  /** The number of unlisted tasks since the last message about them. */
  #unlisted = 0
  #watched: Watched | undefined
  readonly #drawing = new OneAtATime<{ readonly chart: ChartId; readonly collapsed: readonly string[] }>()
  readonly #comparing = new OneAtATime<string>()
  #frames: { readonly close: () => void; last: number } | undefined

  constructor(socket: WebSocket, stream: Socket, host: string) {
    this.host = host
    this.#socket = socket
    this.#stream = stream
    onReceived(socket, 'message', (data: Buffer) => this.#receive(data.toString('utf8')))
    stream.on('drain', () => this.#shown?.stirred())
  }

  /**
   * Shows this from now on, or nothing until the next greeting. The page then requests its context again; frames
   * continue.
   */
  show(shown: Shown | undefined): void {
    this.#watched?.unwatch()
    this.#watched = undefined
    this.#shown = shown
    this.#tasks = new Set(shown?.tasks.newest)
    this.#removed = new Set()
    this.#contexts = new Set(shown?.contexts.newest)
    this.#removedContexts = new Set()
    this.#unsent = new Set(['tasks', 'contexts'])
    shown?.stirred()
  }

  changed(task: IndexedTask): void {
    this.#removed.delete(task.taskId)
    this.#tasks.add(task)
  }

  removed(task: IndexedTask): void {
    this.#tasks.delete(task)
    this.#removed.add(task.taskId)
  }

  changedContext(context: ListedContext): void {
    this.#removedContexts.delete(context.key.contextId)
    this.#contexts.add(context)
  }

  removedContext(context: ListedContext): void {
    this.#contexts.delete(context)
    this.#removedContexts.add(context.key.contextId)
  }

  onMessages(commit: Commit): void {
    if (commit.key.contextId === this.#watched?.contextId) this.#watched.talk.committed(commit)
  }

  /** Counts new tasks that are not listed. */
  unlisted(count: number): void {
    this.#unlisted += count
  }

  send(frame: FromHub): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(frame))
  }

  /** Sends pending changes, as far as the page reads them. */
  flush(): void {
    const shown = this.#shown
    if (!shown) return
    while (!this.#isFull && (this.#unsent.delete('tasks') || this.#tasks.size + this.#removed.size > 0))
      this.#sendTasks(shown)
    if (this.#unlisted > 0 && !this.#isFull) this.#sendUnlisted()
    while (!this.#isFull && (this.#unsent.delete('contexts') || this.#contexts.size + this.#removedContexts.size > 0))
      this.#sendContexts(shown)
    if (this.#watched && !this.#isFull) this.#sendTalk(this.#watched)
    if (this.#watched && !this.#isFull) this.#sendWatched(shown, this.#watched)
    if (this.#frames && !this.#isFull) this.#sendFrames(shown, this.#frames)
  }

  /** Stops its requests. May be called twice. */
  leave(): void {
    this.#watched?.unwatch()
    this.#watched = undefined
    this.#frames?.close()
    this.#frames = undefined
  }

  get #isFull(): boolean {
    return this.#stream.writableLength > HIGH_WATER_BYTES
  }

  #sendTasks({ tasks }: Shown): void {
    const [rows, removed] = [takeFirst(this.#tasks, ROWS_A_FRAME).map(task => tasks.rowOf(task)), [...this.#removed]]
    this.#removed.clear()
    this.send({ type: 'tasks', rows, removed })
  }

  #sendUnlisted(): void {
    this.send({ type: 'lost', what: 'tasks', count: this.#unlisted })
    this.#unlisted = 0
  }

  #sendContexts({ contexts }: Shown): void {
    const [rows, removed] = [
      takeFirst(this.#contexts, ROWS_A_FRAME).map(context => contexts.rowOf(context)),
      [...this.#removedContexts]
    ]
    this.#removedContexts.clear()
    this.send({ type: 'contexts', rows, removed })
  }

  #sendTalk({ contextId, talk }: Watched): void {
    const rows = talk.take()
    if (rows) this.send({ type: 'talk', contextId, rows })
  }

  #sendWatched(shown: Shown, watched: Watched): void {
    const record = shown.recorder.find(watched.contextId)
    if (record !== watched.record) {
      // A context that was dropped meanwhile starts over.
      if (watched.record) watched.step = undefined
      Object.assign(watched, { record, version: 0, forgotten: record?.forgotten.last ?? 0 })
    }
    this.#sendActors(watched)
    if (record) this.#sendSteps(shown, watched, record)
  }

  #sendActors(watched: Watched): void {
    const { contextId, record, isBegun, version, forgotten } = watched
    const rows = record && record.version > version ? record.changedAfter(version).map(rowOf) : []
    const gone = record?.forgotten.from(forgotten + 1) ?? []
    Object.assign(watched, { isBegun: true, version: record?.version ?? 0, forgotten: record?.forgotten.last ?? 0 })
    if (!isBegun || rows.length + gone.length > 0) this.send({ type: 'actors', contextId, rows, gone })
  }

  #sendSteps({ redact, stirred }: Shown, watched: Watched, { steps }: ContextRecord): void {
    const lastSent = watched.step === undefined || watched.step > steps.last ? steps.first - 1 : watched.step
    const lost = steps.first - 1 - lastSent
    const seen = steps.from(lastSent + 1, SHOWN_AT_ONCE)
    watched.step = seen.at(-1)?.n ?? lastSent
    if (lost > 0) this.send({ type: 'lost', what: 'steps', count: lost })
    if (seen.length > 0)
      this.send({ type: 'steps', contextId: watched.contextId, steps: seen.map(step => shownStep(step, redact)) })
    if (watched.step < steps.last) stirred()
  }

  #sendFrames({ frames: { frames }, redact, stirred }: Shown, position: { last: number }): void {
    const lost = frames.first - 1 - position.last
    const seen = frames.from(position.last + 1, SHOWN_AT_ONCE)
    position.last = seen.at(-1)?.n ?? position.last
    if (lost > 0) this.send({ type: 'lost', what: 'frames', count: lost })
    if (seen.length > 0) this.send({ type: 'frames', frames: seen.map(frame => shownFrame(frame, redact)) })
    if (position.last < frames.last) stirred()
  }

  #receive(text: string): void {
    const shown = this.#shown
    // Ignored before the greeting and during a reload: the page repeats its requests after `hello`.
    if (!shown) return
    const request = readRequest(text)
    switch (request?.type) {
      case 'watch':
        return this.#watch(shown, request)
      case 'frames':
        return this.#watchFrames(shown, request.on)
      case 'authorize':
        return this.#authorize(shown, request.taskId, request.data ?? null)
      case 'test':
        return shown.test()
      case 'prove':
        return shown.prove()
      case 'heat':
        return this.#sendTransitionCounts(shown)
      case 'draw':
        return this.#draw(shown, request.chart, request.collapsed)
      case 'compare':
        return this.#compare(shown, request.taskId)
      case 'nodes':
        return this.#nodes(shown, request.taskId ?? '')
      case undefined:
        return this.#socket.close(
          CLOSE_CODES.policy,
          'A page asks to watch, for frames, for heat, for a drawing, for a comparison, for nodes, to test, to prove, or to authorize.'
        )
    }
  }

  #watch({ recorder, stirred, ...shown }: Shown, { contextId, afterStep, instance }: Watch): void {
    this.#watched?.unwatch()
    this.#watched = undefined
    if (contextId === null) return
    const step = instance === shown.instance ? afterStep : undefined
    const talk = shown.talkOf(contextId)
    this.#watched = {
      contextId,
      talk,
      unwatch: recorder.watch(contextId),
      record: undefined,
      step,
      version: 0,
      forgotten: 0,
      isBegun: false
    }
    stirred()
  }

  #watchFrames({ frames }: Shown, isOn: boolean): void {
    if (isOn) this.#frames ??= { close: frames.open(), last: frames.frames.last }
    else {
      this.#frames?.close()
      this.#frames = undefined
    }
  }

  #sendTransitionCounts({ transitionCounts: heat }: Shown): void {
    heat?.().then(
      charts => this.send({ type: 'heat', charts }),
      (error: Error) => this.send({ type: 'heat', charts: [], error: error.message })
    )
  }

  #draw({ draw }: Shown, chart: ChartId, collapsed: readonly string[]): void {
    this.#drawing.request({ chart, collapsed }, async drawn =>
      this.send({ type: 'drawn', ...drawn, svg: await draw(drawn.chart, drawn.collapsed) })
    )
  }

  #compare({ compare }: Shown, taskId: string): void {
    this.#comparing.request(taskId, id =>
      compare(id).then(
        comparison => this.send({ type: 'compared', taskId: id, ...(comparison && { comparison }) }),
        (error: Error) => this.send({ type: 'compared', taskId: id, error: error.message })
      )
    )
  }

  #nodes({ nodes }: Shown, taskId: string): void {
    nodes?.(taskId).then(
      seen => this.send({ type: 'nodes', seen }),
      (error: Error) => this.send({ type: 'nodes', error: error.message })
    )
  }

  #authorize(shown: Shown, taskId: string, data: unknown): void {
    shown.authorize(taskId, data).then(
      () => this.send({ type: 'authorized', taskId }),
      (error: Error) => this.send({ type: 'authorized', taskId, error: error.message })
    )
  }
}

/** Answers one request at a time; of those that come meanwhile only the last one is answered. */
class OneAtATime<Request> {
  /** Empty while nothing is answered; then the last request. */
  #last: readonly Request[] = []

  /** `answer` does not reject. */
  request(request: Request, answer: (request: Request) => Promise<void>): void {
    const isBusy = this.#last.length > 0
    this.#last = [request]
    if (!isBusy) void this.#answer(answer)
  }

  async #answer(answer: (request: Request) => Promise<void>): Promise<void> {
    for (let answered: readonly Request[] = []; answered !== this.#last;) {
      answered = this.#last
      for (const request of answered) await answer(request)
    }
    this.#last = []
  }
}

/** Removes items from a set, at most `limit`, and gives them. */
function takeFirst<Item>(items: Set<Item>, limit: number): Item[] {
  const first = [...items].slice(0, limit)
  for (const item of first) items.delete(item)
  return first
}

/** A page's request; `undefined` for any other text. */
function readRequest(text: string): FromPage | undefined {
  try {
    return tryDecode(REQUEST, JSON.parse(text)).value
  } catch {
    return undefined
  }
}
