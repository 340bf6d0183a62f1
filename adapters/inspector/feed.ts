import type { Message } from '../../machines/protocol/objects.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import type { TaskEvent } from '../../runtime/store/store.ts'
import type { SeenNodes } from './nodes-seen.ts'
import type { ChartCoverage, Proving, TestProgress } from './test-result.ts'

/*
 * The inspector's feed: messages from the hub to its pages, as JSON text frames on a WebSocket at
 * `/inspector/feed?token=TOKEN`. Those from pages to the hub are decoded at the end. Nothing of Node, so that code for
 * the browser may import it.
 */

/**
 * A chart: one of taskchart's own, the author's `respond` of a negotiation, the work's, or that of an actor which the
 * work invokes, by its source.
 */
export type ChartId = 'context' | 'task' | 'negotiation' | 'respond' | 'work' | `child:${string}`

export interface Chart {
  readonly id: ChartId
  /** The title for people. */
  readonly title: string
  /**
   * An `<svg>` element. Each state is a `<g data-state="ID">` with the id of its state node (`task.active.working`).
   * Each transition is a `<g data-transition="NAME">` with its name in the coverage of `taskchart/testing`. All colours
   * are CSS.
   */
  readonly svg: string
  /** The chart as Mermaid text, to copy. */
  readonly mermaid: string
  /** The chart as a module with `createMachine`, as Stately's editor imports it. */
  readonly source: string
}

/** One task, as of its last commit. */
export interface InspectedTask {
  readonly taskId: string
  readonly contextId: string
  /** The owner; the principal is `anonymous` without `authenticate`. */
  readonly owner: { readonly tenant: string; readonly principal: string }
  readonly state: TaskState
  /** The generation of its last event. */
  readonly generation: number
  /** Milliseconds since 1970. */
  readonly openedMs: number
  readonly changedMs: number
  /**
   * The start of the first text in the opening message, at most 80 characters, and the agreed terms; empty without
   * both.
   */
  readonly title: string
}

/**
 * One context, as of its last commit while the hub observes, or in memory when it began to. Others from before have
 * tasks only.
 */
export interface InspectedContext {
  readonly contextId: string
  readonly owner: { readonly tenant: string; readonly principal: string }
  /** The start of the text of its first message, at most 80 characters; empty if unknown. */
  readonly title: string
  /** Milliseconds since 1970. */
  readonly openedMs: number
  readonly changedMs: number
  /**
   * The standing offer of its negotiation, which the client may accept before `expiresMs`. `states`: the ids of the
   * active states of the author's chart that made it, outermost first; empty if that is a function or has ended.
   */
  readonly offer?: { readonly offerId: string; readonly expiresMs: number; readonly states: readonly string[] }
}

/**
 * A message of the watched context, in the order of arrival. Without a task it is here whole, without secrets. A
 * client's message to a task is in the history of the task; here is its place: the task, and its generation on arrival.
 */
export interface WatchedMessage {
  readonly messageId: string
  /** When it was committed, milliseconds since 1970; absent for messages from before the hub observed. */
  readonly atMs?: number
  readonly taskId?: string
  readonly generation?: number
  readonly message?: Message
}

/** The role of an actor in its context. */
export type ActorKind = 'context' | 'task' | 'negotiation' | 'work' | 'child'

/** One actor of the watched context. */
export interface ActorRow {
  /** Unique in this process. */
  readonly sessionId: string
  /** Its id, within its parent. */
  readonly name: string
  readonly kind: ActorKind
  /** The name of its logic in the chart that invokes it; only of a `child`. */
  readonly source?: string
  /** Absent for actors without a chart: functions and promises. */
  readonly chart?: ChartId
  /** The task of the actor. */
  readonly taskId?: string
  /** The `sessionId` of its parent; absent for the context. */
  readonly parent?: string
  readonly status: 'active' | 'done' | 'error' | 'stopped'
  /** The ids of its active state nodes, outermost first; empty without a chart. */
  readonly states: readonly string[]
}

/** An event without secrets. Beyond 4 kB of JSON, `cut` replaces everything but the `type`. */
export type ShownEvent = { readonly type: string; readonly cut?: true } & Readonly<Record<string, unknown>>

/** One step of the actors of the watched context. */
export interface ActorStep {
  /** 1, 2, 3, … within a context and instance. */
  readonly n: number
  /** Milliseconds since 1970. */
  readonly atMs: number
  /**
   * `event`: sent to an actor. `microstep`: a chart took transitions. `emitted`: the actor `to` emitted an event.
   * `stored`: the result of a `step` of the work `to` was stored.
   */
  readonly kind: 'event' | 'emitted' | 'microstep' | 'stored'
  /** The `sessionId` of the sender; absent if the event came from outside of the actors. */
  readonly from?: string
  /** The `sessionId` of the actor that received or emitted the event, or took the step. */
  readonly to: string
  readonly event: ShownEvent
  /** The ids of the active state nodes of `to` after a microstep. */
  readonly states?: readonly string[]
  /** The transitions of a microstep, by their names in the coverage and in `data-transition`. */
  readonly transitions?: readonly string[]
  /** The task of `to`. */
  readonly taskId?: string
  /** The generation of that task after the commit of this step, if known. */
  readonly generation?: number
}

/** One JSON-RPC frame on a connection of the agent, or a body of its HTTP bindings. */
export interface TrafficFrame {
  /** 1, 2, 3, … within an instance. */
  readonly n: number
  /** Milliseconds since 1970. */
  readonly atMs: number
  /** The name of the connection, unique in this process. */
  readonly connection: string
  readonly direction: 'in' | 'out'
  /** The size of the whole frame. */
  readonly bytes: number
  /** Its first 4,096 characters, without secrets. */
  readonly text: string
}

/** The first message on each connection, sent again after each reload of the agent. */
export interface Hello {
  readonly type: 'hello'
  readonly agent: {
    readonly name: string
    readonly description: string
    readonly version: string
    /** Messages that its card gives as examples. */
    readonly examples?: readonly string[]
    /** The JSON Schema of its terms, if it negotiates. */
    readonly terms?: unknown
  }
  /** The agent's WebSocket URL. */
  readonly url: string
  readonly charts: readonly Chart[]
  /** The hub's clock, milliseconds since 1970. */
  readonly nowMs: number
  /** Changes with each process and each reload, which restart all numbering. */
  readonly instance: string
  /** Whether the hub accepts `authorize`. */
  readonly authorizes: boolean
  /** Whether the hub accepts `test`. */
  readonly tests: boolean
  /** Whether the hub accepts `prove`. */
  readonly proves: boolean
  /** Whether the hub accepts `heat`; and `nodes`, by default not. */
  readonly counts: boolean
  readonly isNode?: boolean
}

/**
 * At first all known tasks, newest first: at most 10,000, 1,000 per message, in one message even if there are none.
 * They replace those of the greeting before. Then changed tasks, at most every 100 ms. Tasks from before the hub
 * started are read from the store, and may arrive later. All are sent again after each `hello`.
 */
interface Tasks {
  readonly type: 'tasks'
  readonly rows: readonly InspectedTask[]
  /** The ids of removed tasks. */
  readonly removed: readonly string[]
}

/**
 * At first all known contexts, newest first, at most 10,000, in one message even if there are none; then changed ones.
 * All again after `hello`.
 */
interface Contexts {
  readonly type: 'contexts'
  readonly rows: readonly InspectedContext[]
  /** The ids of removed contexts. */
  readonly removed: readonly string[]
}

/** Messages of the watched context: at first the newest 500, in one message even if there are none, then new ones. */
interface Talk {
  readonly type: 'talk'
  readonly contextId: string
  readonly rows: readonly WatchedMessage[]
}

/** Actors of the watched context: at first all, in one message even if there are none; then changed ones. */
interface Actors {
  readonly type: 'actors'
  readonly contextId: string
  /** Includes ended actors, by `status`. */
  readonly rows: readonly ActorRow[]
  /** The `sessionId`s of dropped actors: the hub keeps the newest 200 ended ones. */
  readonly gone: readonly string[]
}

/** Steps of the watched context in order, each once, beginning with those that the hub keeps: the newest 2,000. */
interface Steps {
  readonly type: 'steps'
  readonly contextId: string
  readonly steps: readonly ActorStep[]
}

/** Frames on the agent's connections, while the page requests them. */
interface Frames {
  readonly type: 'frames'
  readonly frames: readonly TrafficFrame[]
}

/**
 * The number of steps or frames that were dropped for a slow page, or of new tasks that are too many to be listed: such
 * a task is listed when it changes later.
 */
interface Lost {
  readonly type: 'lost'
  readonly what: 'steps' | 'frames' | 'tasks'
  readonly count: number
}

/** The saved agent module could not be loaded: the previous version stays. Null once it loads again. */
interface Reload {
  readonly type: 'reload'
  /** The error and its place, for people. */
  readonly error: string | null
}

/** The author's code of a task ended with an error, while the agent is developed. Clients learn only that it did. */
export interface CrashReport {
  readonly type: 'crash'
  readonly taskId: string
  /** The message, and the stack frames in the author's files, for people. */
  readonly error: string
}

/** The id of the task of a recorded example, and of its context. */
export const EXAMPLE_ID = 'recorded-example'

/**
 * A recorded run of the agent's first example, which pages show before the first task. Nothing of it is stored. All ids
 * of tasks and contexts in it are `EXAMPLE_ID`.
 */
export interface RecordedExample {
  readonly type: 'example'
  /** The messages of both sides, oldest first. */
  readonly said: readonly Message[]
  readonly events: readonly TaskEvent[]
  /** The steps in the chart of the work, and the results of steps that were stored. */
  readonly steps: readonly ActorStep[]
}

/** The result of `authorize`. */
export interface Authorized {
  readonly type: 'authorized'
  readonly taskId: string
  /** The error; absent on success. */
  readonly error?: string
}

/**
 * The transitions that tasks took in one of the author's charts. Counts are stored once a second, for each structure of
 * a chart.
 */
export interface ChartHeat {
  readonly chart: ChartId
  /** Each transition of the chart, by its name in `data-transition`; `count` is 0 if no task took it. */
  readonly transitions: readonly { readonly name: string; readonly count: number }[]
}

/** The answer to `heat`. */
export interface HeatAnswer {
  readonly type: 'heat'
  readonly charts: readonly ChartHeat[]
  /** Why the counts could not be read, for people. */
  readonly error?: string
}

/** The answer to `draw`. */
export interface DrawnChart {
  readonly type: 'drawn'
  readonly chart: ChartId
  /** The collapsed states of the request. */
  readonly collapsed: readonly string[]
  /** As in `Chart`; empty if it cannot be drawn. */
  readonly svg: string
}

/** A chart as it was when a task was opened, and now. */
export interface ComparedChart {
  readonly id: ChartId
  /**
   * Drawings as in `Chart`; empty if they cannot be drawn. The one of now marks what is new, gone and changed; what is
   * gone has ids that end with ` (before)`.
   */
  readonly before: string
  readonly now: string
  /** The ids of the states in which the task stands, as it is stored and as it goes on; none if it does not. */
  readonly stands: { readonly before: readonly string[]; readonly now: readonly string[] }
}

/** A task that was opened with another definition of the agent, and how it goes on. */
export interface ShownComparison {
  /** The version that stored it, empty for a task from before versions; and that of the agent now. */
  readonly versions: { readonly before: string; readonly now: string }
  /** A verdict of `taskchart diff`, `gone on` with the agent of now, or `ended`. */
  readonly verdict: string
  /** The verdict as a sentence, and the reasons as clauses. */
  readonly says: string
  readonly details: readonly string[]
  /** For a function: the word or the step of its journal that differs, with both sides. */
  readonly word?: { readonly number?: number; readonly before: string; readonly now: string }
  /** The changes of the agent, as clauses. */
  readonly changes: readonly {
    readonly change: 'added' | 'removed' | 'renamed' | 'changed'
    readonly says: string
  }[]
  /** Whether it goes on with the work that the agent keeps for its version. */
  readonly isKept: boolean
  /** How many changes are left out. */
  readonly moreChanges: number
  /** The charts of the work and of its actors, if the work was a chart and is one. */
  readonly charts: readonly ComparedChart[]
}

/** The answer to `compare`. */
export interface ComparedTask {
  readonly type: 'compared'
  readonly taskId: string
  /** `undefined` if the agent has not changed since the task was opened, as far as that is known. */
  readonly comparison?: ShownComparison
  /** Why it could not be compared, for people. */
  readonly error?: string
}

/** The answer to `nodes`. */
export interface Nodes {
  readonly type: 'nodes'
  /** `undefined` if they could not be read. */
  readonly seen?: SeenNodes
  /** Why they could not be read, for people. */
  readonly error?: string
}

/** A message from the hub to a page. */
export type FromHub =
  | Hello
  | Tasks
  | Contexts
  | Talk
  | Actors
  | Steps
  | Frames
  | ChartCoverage
  | TestProgress
  | Proving
  | Lost
  | Reload
  | CrashReport
  | RecordedExample
  | Authorized
  | HeatAnswer
  | DrawnChart
  | ComparedTask
  | Nodes

/* The messages from pages to the hub. Types only, so that code for the browser may import them. */

/** Requests the actors and steps of a context, instead of the previous one; null for none. */
export interface Watch {
  readonly type: 'watch'
  readonly contextId: string | null
  /** Requests only later steps, if `instance` is still the hub's. */
  readonly afterStep?: number
  readonly instance?: string
}

/** Starts or stops the frames. */
interface AskFrames {
  readonly type: 'frames'
  readonly on: boolean
}

/** Reports an authorization to a task that waits for it, as `runtime.authorized` does. */
interface Authorize {
  readonly type: 'authorize'
  readonly taskId: string
  /** Any JSON value. Default null. */
  readonly data?: unknown
}

/** Runs the tests of the agent, unless they run already. Coverage follows `testing`. */
interface AskTest {
  readonly type: 'test'
}

/** Proves the properties of the agent, unless that runs already. */
interface AskProve {
  readonly type: 'prove'
}

/** Requests what tasks took in the author's charts until now. */
interface AskHeat {
  readonly type: 'heat'
}

/** Requests a drawing of a chart in which some states are drawn without the states in them. */
interface AskDraw {
  readonly type: 'draw'
  readonly chart: ChartId
  /** Ids of states; others are ignored. */
  readonly collapsed: readonly string[]
}

/** Requests how a task goes on, if the agent has changed since it was opened. */
interface AskCompare {
  readonly type: 'compare'
  readonly taskId: string
}

/** Requests the nodes of the cluster, and the way of a task over them. */
interface AskNodes {
  readonly type: 'nodes'
  readonly taskId?: string
}

/** A message from a page to the hub. */
export type FromPage = Watch | AskFrames | AskTest | AskProve | AskHeat | AskDraw | AskCompare | AskNodes | Authorize
