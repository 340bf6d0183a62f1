import type { TaskState } from '../../machines/protocol/states.ts'

/*
 * The inspector's feed: messages between the hub and its pages, as JSON text frames on a WebSocket at `/inspector/feed?token=TOKEN`.
 * Types only, so that code for the browser may import them.
 */

/** A chart: one of taskchart's own, the work's, or that of an actor which the work invokes, by its source. */
export type ChartId = 'context' | 'task' | 'negotiation' | 'work' | `child:${string}`

export interface Chart {
  readonly id: ChartId
  /** The title for people. */
  readonly title: string
  /**
   * An `<svg>` element. Each state is a `<g data-state="ID">` with the id of its state node (`task.active.working`); each transition
   * a `<g data-transition="NAME">` with its name in the coverage of `taskchart/testing`. All colours are CSS.
   */
  readonly svg: string
  /** The chart as Mermaid text, to copy. */
  readonly mermaid: string
}

/** One task, as of its last commit. */
export interface TaskRow {
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
  /** The start of the first text in the opening message, at most 80 characters; empty without text. */
  readonly title: string
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
export interface Step {
  /** 1, 2, 3, … within a context and instance. */
  readonly n: number
  /** Milliseconds since 1970. */
  readonly atMs: number
  /** `event`: sent to an actor. `microstep`: a chart took transitions. `emitted`: the actor `to` emitted an event. */
  readonly kind: 'event' | 'emitted' | 'microstep'
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
export interface Frame {
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
  readonly agent: { readonly name: string; readonly description: string; readonly version: string }
  /** The agent's WebSocket URL. */
  readonly url: string
  readonly charts: readonly Chart[]
  /** The hub's clock, milliseconds since 1970. */
  readonly nowMs: number
  /** Changes with each process and each reload, which restart all numbering. */
  readonly instance: string
  /** Whether the hub accepts `authorize`. */
  readonly authorizes: boolean
}

/**
 * At first all known tasks, newest first: at most 10,000, 1,000 per message. Then changed tasks, at most every 100 ms. Tasks from before
 * the hub started are read from the store, and may arrive later. All are sent again after each `hello`.
 */
export interface Tasks {
  readonly type: 'tasks'
  readonly rows: readonly TaskRow[]
  /** The ids of removed tasks. */
  readonly removed: readonly string[]
}

/** Actors of the watched context: at first all, in one message even if there are none; then changed ones. */
export interface Actors {
  readonly type: 'actors'
  readonly contextId: string
  /** Includes ended actors, by `status`. */
  readonly rows: readonly ActorRow[]
  /** The `sessionId`s of dropped actors: the hub keeps the newest 200 ended ones. */
  readonly gone: readonly string[]
}

/** Steps of the watched context in order, each once, beginning with those that the hub keeps: the newest 2,000. */
export interface Steps {
  readonly type: 'steps'
  readonly contextId: string
  readonly steps: readonly Step[]
}

/** Frames on the agent's connections, while the page requests them. */
export interface Frames {
  readonly type: 'frames'
  readonly frames: readonly Frame[]
}

/** The coverage of the work's chart by the last `taskchart test AGENT`. */
export interface Coverage {
  readonly type: 'coverage'
  readonly chart: 'work'
  /** When the tests ended, milliseconds since 1970. */
  readonly atMs: number
  /** Ids of state nodes, and names of transitions. */
  readonly reached: { readonly states: readonly string[]; readonly transitions: readonly string[] }
  /** The states and transitions that were not reached, with reasons. */
  readonly missing: readonly { readonly name: string; readonly why: string }[]
}

/** The number of messages that the hub dropped because this page was too slow. */
export interface Lost {
  readonly type: 'lost'
  readonly what: 'steps' | 'frames'
  readonly count: number
}

/** The saved agent module could not be loaded: the previous version stays. Null once it loads again. */
export interface Reload {
  readonly type: 'reload'
  /** The error and its place, for people. */
  readonly error: string | null
}

/** The result of `authorize`. */
export interface Authorized {
  readonly type: 'authorized'
  readonly taskId: string
  /** The error; absent on success. */
  readonly error?: string
}

/** A message from the hub to a page. */
export type FromHub = Hello | Tasks | Actors | Steps | Frames | Coverage | Lost | Reload | Authorized

/** Requests the actors and steps of a context, instead of the previous one; null for none. */
export interface Watch {
  readonly type: 'watch'
  readonly contextId: string | null
  /** Requests only later steps, if `instance` is still the hub's. */
  readonly afterStep?: number
  readonly instance?: string
}

/** Starts or stops the frames. */
export interface AskFrames {
  readonly type: 'frames'
  readonly on: boolean
}

/** Reports an authorization to a task that waits for it, as `runtime.authorized` does. */
export interface Authorize {
  readonly type: 'authorize'
  readonly taskId: string
  /** Any JSON value. Default null. */
  readonly data?: unknown
}

/** A message from a page to the hub. */
export type FromPage = Watch | AskFrames | Authorize
