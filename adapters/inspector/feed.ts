import type { TaskState } from '../../machines/protocol/states.ts'

/*
 * The inspector's feed: what its hub tells a page, and what a page may ask. JSON text frames on a WebSocket at
 * `/inspector/feed?token=TOKEN`. Types only, so that code for the browser may import them.
 */

/** Which chart an actor runs: one of ours, or that of an actor which the work invokes, by its source. */
export type ChartId = 'context' | 'task' | 'negotiation' | 'work' | `child:${string}`

/** The picture of a chart. */
export interface Chart {
  readonly id: ChartId
  /** For people. */
  readonly title: string
  /**
   * An `<svg>` element. Each state is a `<g data-state="ID">`, by the id of its state node (`task.active.working`); each
   * transition a `<g data-transition="NAME">`, by its name in the coverage of `taskchart/testing`. Coloured by CSS alone.
   */
  readonly svg: string
  /** The same for Mermaid, to copy. */
  readonly mermaid: string
}

/** One task, as it is committed. */
export interface TaskRow {
  readonly taskId: string
  readonly contextId: string
  /** Whose it is; the principal is `anonymous` where everyone may call. */
  readonly owner: { readonly tenant: string; readonly principal: string }
  readonly state: TaskState
  /** The number of its last event. */
  readonly generation: number
  /** Milliseconds since 1970. */
  readonly openedMs: number
  readonly changedMs: number
  /** The first text of the message that opened it, of 80 characters at the most; empty if it has none. */
  readonly title: string
}

/** What an actor is to its context. */
export type ActorKind = 'context' | 'task' | 'negotiation' | 'work' | 'child'

/** One actor of the context that is watched. */
export interface ActorRow {
  /** Names it in this process. */
  readonly sessionId: string
  /** Its id, as its parent knows it. */
  readonly name: string
  readonly kind: ActorKind
  /** Left out where the actor has no chart: a function, a promise. */
  readonly chart?: ChartId
  /** The task that it belongs to. */
  readonly taskId?: string
  /** The `sessionId` of its parent; the context has none. */
  readonly parent?: string
  readonly status: 'active' | 'done' | 'error' | 'stopped'
  /** The ids of its active state nodes, outermost first; none without a chart. */
  readonly states: readonly string[]
}

/** What an actor received, or told: `type` and the rest of it without secrets. `cut` in place of the rest if that is beyond 4 kB of JSON. */
export type ShownEvent = { readonly type: string; readonly cut?: true } & Readonly<Record<string, unknown>>

/** One thing that happened among the actors of the context that is watched. */
export interface Step {
  /** 1, 2, 3, … within a context and instance. */
  readonly n: number
  /** Milliseconds since 1970. */
  readonly atMs: number
  /**
   * `event`: one actor sent another something. `microstep`: a chart took transitions. `emitted`: an actor told its listeners
   * something, and `to` is that actor.
   */
  readonly kind: 'event' | 'emitted' | 'microstep'
  /** The `sessionId` of who sent an event; left out if it came from outside the actors. */
  readonly from?: string
  /** The `sessionId` of who received the event, took the step or told. */
  readonly to: string
  readonly event: ShownEvent
  /** The ids of the active state nodes of `to` after a microstep. */
  readonly states?: readonly string[]
  /** What a microstep took, by name, as in the coverage and in `data-transition`. */
  readonly transitions?: readonly string[]
  /** The task that `to` belongs to. */
  readonly taskId?: string
  /** The generation of that task after the commit that this belongs to, where it is known. */
  readonly generation?: number
}

/** One JSON-RPC frame on a connection of the agent's, or a body of its HTTP bindings. */
export interface Frame {
  /** 1, 2, 3, … within an instance. */
  readonly n: number
  /** Milliseconds since 1970. */
  readonly atMs: number
  /** Names the connection in this process. */
  readonly connection: string
  readonly direction: 'in' | 'out'
  /** Of the whole frame. */
  readonly bytes: number
  /** Its beginning, of 4,096 characters at the most, without secrets. */
  readonly text: string
}

/** The first frame of each connection, and one more whenever the agent has been reloaded. */
export interface Hello {
  readonly type: 'hello'
  readonly agent: { readonly name: string; readonly description: string; readonly version: string }
  /** The agent's WebSocket address. */
  readonly url: string
  readonly charts: readonly Chart[]
  /** The hub's clock, milliseconds since 1970. */
  readonly nowMs: number
  /** Changes with each process and each reload: what was numbered before begins again. */
  readonly instance: string
  /** Whether `authorize` may be asked for. */
  readonly authorizes: boolean
}

/**
 * First all tasks that are known, newest first, of which there are at most 10,000, a thousand in a frame; then those that
 * changed, at most every 100 ms. Those from before anybody looked are read from the store, and may come later. After each
 * `hello` all come again.
 */
export interface Tasks {
  readonly type: 'tasks'
  readonly rows: readonly TaskRow[]
  /** The ids of those that are no more. */
  readonly removed: readonly string[]
}

/** Actors of the context that is watched: first all, in one frame even if there are none, then those that changed. */
export interface Actors {
  readonly type: 'actors'
  readonly contextId: string
  /** Those that have ended too, by their `status`. */
  readonly rows: readonly ActorRow[]
  /** The `sessionId`s of those that are forgotten: the newest 200 that have ended are remembered. */
  readonly gone: readonly string[]
}

/** Steps of the context that is watched, in order, each once: first those that are remembered, the newest 2,000. */
export interface Steps {
  readonly type: 'steps'
  readonly contextId: string
  readonly steps: readonly Step[]
}

/** What went over the agent's connections, while it is asked for. */
export interface Frames {
  readonly type: 'frames'
  readonly frames: readonly Frame[]
}

/** What the last `taskchart test AGENT` reached of the chart of its work. */
export interface Coverage {
  readonly type: 'coverage'
  readonly chart: 'work'
  /** When the tests ended, milliseconds since 1970. */
  readonly atMs: number
  /** Ids of state nodes, names of transitions. */
  readonly reached: { readonly states: readonly string[]; readonly transitions: readonly string[] }
  /** The states and transitions that were not reached, and why. */
  readonly missing: readonly { readonly name: string; readonly why: string }[]
}

/** This page was too slow for so many; the hub waits for no page. */
export interface Lost {
  readonly type: 'lost'
  readonly what: 'steps' | 'frames'
  readonly count: number
}

/** The agent's file was saved but could not be loaded: the one before goes on. Null once it loads again. */
export interface Reload {
  readonly type: 'reload'
  /** For people: what is wrong, and where. */
  readonly error: string | null
}

/** What came of `authorize`. */
export interface Authorized {
  readonly type: 'authorized'
  readonly taskId: string
  /** Why it was refused; left out if the task goes on. */
  readonly error?: string
}

/** What the hub tells a page. */
export type FromHub = Hello | Tasks | Actors | Steps | Frames | Coverage | Lost | Reload | Authorized

/** Asks for the actors and steps of a context, in place of the one before; null for none. */
export interface Watch {
  readonly type: 'watch'
  readonly contextId: string | null
  /** Only steps after this one, if `instance` is still the hub's. */
  readonly afterStep?: number
  readonly instance?: string
}

/** Asks for the frames, or for no more of them. */
export interface AskFrames {
  readonly type: 'frames'
  readonly on: boolean
}

/** Tells a task that waits for an authorization that it has arrived, as `runtime.authorized` does. */
export interface Authorize {
  readonly type: 'authorize'
  readonly taskId: string
  /** Any JSON value; null unless told. */
  readonly data?: unknown
}

/** What a page may ask. */
export type FromPage = Watch | AskFrames | Authorize
