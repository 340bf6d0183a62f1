import type { AnyActorRef, AnyMachineSnapshot, InspectionEvent, Subscription } from 'xstate'
import { isErrorType, OWN_EVENT } from '../../../machines/xstate-names.ts'
import { TokenBucket } from '../../../runtime/access/shares.ts'
import type { Clock } from '../../../runtime/ports/clock.ts'
import { ReleasingMap } from '../../../runtime/primitives/collections.ts'
import { type Commit, type ContextKey, type Erasure, isErased } from '../../../runtime/store/store.ts'
import type { LiveActors } from '../../../runtime/telemetry-port.ts'
import { hostOf } from '../../../runtime/work-port.ts'
import { activeStates } from '../../../runtime/xstate/persisted-snapshot.ts'
import { Ring } from './frame-log.ts'
import { type ActorEntry, entryOf, type SeenStep, stepSizeOf } from './seen-step.ts'

/** The number of contexts kept, the newest. */
export const REMEMBERED_CONTEXTS = 100

/**
 * The number of contexts that may start being recorded per minute: so many at once, then evenly. It bounds the cost of
 * many new contexts, of which nobody can look at each. Watched ones always are.
 */
export const RECORDED_A_MINUTE = 600

/**
 * The bound of all recorded steps, in bytes. Above it the oldest contexts are dropped, then the oldest steps of watched
 * ones.
 */
export const RECORDED_BYTES = 64 * 1024 * 1024

/** Receives the events of all recorded contexts. */
export interface RecorderListener extends RecordListener {
  /** A context is recorded from now on, with its present actors. */
  began(actors: LiveActors): void
}

/** Records the actors of contexts, while someone uses the inspector. */
export class Recorder {
  readonly #clock: Clock
  readonly #listener: RecorderListener
  readonly #live = new ReleasingMap<LiveActors>()
  /** By context name, oldest first. */
  readonly #records = new ReleasingMap<ContextRecord>()
  /** The ids of watched contexts, once per watcher. */
  readonly #watched: string[] = []
  readonly #budget = new TokenBucket(RECORDED_A_MINUTE)
  #bytes = 0
  readonly #mostBytes: number

  constructor(clock: Clock, listener: RecorderListener, mostBytes = RECORDED_BYTES) {
    this.#clock = clock
    this.#listener = { ...listener, grew: bytes => this.#grew(bytes) }
    this.#mostBytes = mostBytes
  }

  /** The recorded actors. */
  get recorded(): LiveActors[] {
    return this.#records.values().flatMap(({ actors }) => actors ?? [])
  }

  /** The contexts in memory. */
  get live(): LiveActors[] {
    return this.#live.values()
  }

  liveOf(name: string): LiveActors | undefined {
    return this.#live.get(name)
  }

  /** The record of a context; if several callers have a context of that id, the newest. */
  find(contextId: string): ContextRecord | undefined {
    return this.#records.values().findLast(({ key }) => key.contextId === contextId)
  }

  /** Records a context regardless of the limit. Returns the function that ends this. */
  watch(contextId: string): () => void {
    this.#watched.push(contextId)
    if (!this.find(contextId)?.actors) {
      for (const actors of this.#live.values()) if (actors.key.contextId === contextId) this.#record(actors)
    }
    return () => void this.#watched.splice(this.#watched.indexOf(contextId), 1)
  }

  isWatched(contextId: string): boolean {
    return this.#watched.includes(contextId)
  }

  entered(actors: LiveActors): void {
    const { name } = actors
    this.#live.set(name, actors)
    if (this.#records.has(name) || this.isWatched(actors.key.contextId) || this.#useBudget()) this.#record(actors)
  }

  left({ name }: LiveActors): void {
    this.#live.delete(name)
    const record = this.#records.get(name)
    if (!record) return
    record.detach()
    this.#listener.stirred()
  }

  committed(commit: Commit, { name }: LiveActors): void {
    this.#records.get(name)?.committed(commit)
  }

  erased(whose: Erasure): void {
    for (const [name, { key }] of this.#records.entries()) {
      if (isErased(whose, key)) this.#drop(name)
    }
  }

  /** Stops recording, and keeps what was recorded. */
  pause(): void {
    for (const record of this.#records.values()) record.detach()
    this.#live.clear()
  }

  /** Stops recording, and drops everything. */
  stop(): void {
    this.pause()
    this.#records.clear()
    this.#bytes = 0
  }

  /**
   * Drops the oldest contexts, except watched ones, while there are too many bytes; then the oldest steps of the
   * largest.
   */
  #grew(bytes: number): void {
    this.#bytes += bytes
    for (const [name, { key, bytes }] of this.#bytes > this.#mostBytes ? this.#records.entries() : []) {
      if (this.#bytes <= this.#mostBytes) return
      if (bytes > 0 && !this.isWatched(key.contextId)) this.#drop(name)
    }
    if (this.#bytes <= this.#mostBytes) return
    for (const record of this.#records.values()) record.shrinkTo(this.#mostBytes / 2 / this.#records.values().length)
  }

  #drop(name: string): void {
    const record = this.#records.get(name)
    record?.detach()
    this.#records.delete(name)
    this.#bytes -= record?.bytes ?? 0
  }

  #record(actors: LiveActors): void {
    const { name } = actors
    const record = this.#records.get(name) ?? new ContextRecord(actors.key, this.#clock, this.#listener)
    this.#records.delete(name)
    this.#records.set(name, record)
    record.attach(actors)
    this.#listener.began(actors)
    if (this.#records.size <= REMEMBERED_CONTEXTS) return
    for (const [other, oldest] of this.#records.entries()) {
      if (this.#records.size <= REMEMBERED_CONTEXTS) break
      if (!this.isWatched(oldest.key.contextId)) this.#drop(other)
    }
  }

  #useBudget(): boolean {
    const nowMs = this.#clock.now()
    if (this.#budget.waitMs(1, nowMs) > 0) return false
    this.#budget.use(1, nowMs)
    return true
  }
}

/** The number of steps kept per context. */
export const REMEMBERED_STEPS = 2000

/** The number of ended actors kept per context. */
export const REMEMBERED_ACTORS = 200

/** The journal's key of a step's result, with the step's name, behind the name of an actor of the work. */
const STORED_STEP = /(?:^|\/)step\/(.+)\/\d+$/s

/** Receives the events of a recorded context. */
interface RecordListener {
  /** There is more to show. Called often. */
  stirred(): void
  /** An inspection event, called synchronously. */
  inspected(event: InspectionEvent): void
  /** An error of the recorder, which must not reach the actors. */
  troubled(error: unknown): void
  /** The recorded steps take this many bytes more, or fewer. */
  grew?(bytes: number): void
}

/**
 * Records the actors of one context from XState's inspection events. Events are stored as they are, without copying or
 * formatting, to save the actors' time; they are formatted when a page requests them.
 */
export class ContextRecord {
  readonly key: ContextKey
  readonly steps = new Ring<SeenStep>(REMEMBERED_STEPS)
  readonly #clock: Clock
  readonly #listener: RecordListener
  /** By `sessionId`. */
  readonly #entries = new Map<string, ActorEntry>()
  /** The actors that had not ended when their context left memory. */
  readonly #left = new Set<ActorEntry>()
  /** The ended actors, oldest first. */
  readonly #ended: ActorEntry[] = []
  readonly #forgotten = new Ring<string>(REMEMBERED_STEPS)
  readonly #listening = new Map<string, Subscription>()
  #inspection: Subscription | undefined
  #actors: LiveActors | undefined
  #version = 0
  #bytes = 0

  constructor(key: ContextKey, clock: Clock, listener: RecordListener) {
    this.key = key
    this.#clock = clock
    this.#listener = listener
  }

  /** The recorded actors, if the context is in memory. */
  get actors(): LiveActors | undefined {
    return this.#actors
  }

  /** Incremented with each change of an actor. */
  get version(): number {
    return this.#version
  }

  /** The actors that changed after a version. */
  changedAfter(version: number): ActorEntry[] {
    return [...this.#entries.values()].filter(entry => entry.version > version)
  }

  /** The ids of dropped actors, in order. */
  get forgotten(): Ring<string> {
    return this.#forgotten
  }

  /** Starts recording these actors. Restored ones continue the entries that they had. */
  attach(actors: LiveActors): void {
    this.#actors = actors
    for (const entry of this.#entries.values()) if (entry.status === 'active') this.#left.add(entry)
    this.#enterAll(actors.root)
    for (const entry of this.#left) this.#change(entry, 'stopped')
    this.#left.clear()
    this.#inspection = actors.root.system.inspect({ next: event => this.#attempt(event) })
  }

  /** Stops recording, and drops all references to the actors: one subscription would keep all of them in memory. */
  detach(): void {
    this.#actors = undefined
    this.#inspection?.unsubscribe()
    this.#inspection = undefined
    for (const listening of this.#listening.values()) listening.unsubscribe()
    this.#listening.clear()
  }

  /** The approximate size of its steps in memory. */
  get bytes(): number {
    return this.#bytes
  }

  /** Drops the oldest steps until they take at most so many bytes. */
  shrinkTo(bytes: number): void {
    while (this.#bytes > bytes) {
      const step = this.steps.shift()
      if (!step) return
      this.#count(-step.bytes)
    }
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    this.#listener.grew?.(bytes)
  }

  /** Adds the generations of a commit to the steps that led to it, and the results of the work's steps that it stores. */
  committed(commit: Commit): void {
    this.#date(commit)
    const { expected: turn, tasks, journal } = commit
    for (const { taskId, key, value } of journal) {
      const [, name] = STORED_STEP.exec(key) ?? []
      const to = name === undefined ? undefined : this.#workOf(taskId)
      if (!to) continue
      const event = { ...(value as object), type: `step ${name}`, name }
      const generation = tasks.find(row => row.taskId === taskId)?.generation
      this.#add({
        kind: 'stored',
        to,
        event,
        turn,
        from: undefined,
        nodes: undefined,
        transitions: undefined,
        generation
      })
    }
  }

  #workOf(taskId: string): ActorEntry | undefined {
    return [...this.#entries.values()].findLast(entry => entry.kind === 'work' && entry.taskId === taskId)
  }

  #date({ expected, tasks }: Commit): void {
    for (let at = this.steps.last; at >= this.steps.first; at -= 1) {
      const step = this.steps.at(at)
      if (!step || step.turn < expected) return
      const row = step.turn === expected ? tasks.find(({ taskId }) => taskId === step.to.taskId) : undefined
      if (row) step.generation = row.generation
    }
  }

  /** Catches errors, which would otherwise reach the actor. */
  #attempt(event: InspectionEvent): void {
    try {
      this.#inspected(event)
    } catch (error) {
      this.#listener.troubled(error)
    }
  }

  #inspected(event: InspectionEvent): void {
    switch (event.type) {
      case '@xstate.actor':
        this.#enter(event.actorRef as AnyActorRef)
        break
      case '@xstate.event': {
        const { sourceRef, event: sent } = event
        if (sourceRef && isErrorType(sent.type)) this.#look(sourceRef as AnyActorRef)
        this.#note(
          'event',
          event.actorRef as AnyActorRef,
          sent,
          sourceRef && this.#entries.get(sourceRef.sessionId)?.id
        )
        break
      }
      case '@xstate.microstep': {
        const { _transitions: transitions, event: by, snapshot } = event
        if (transitions.length === 0) break
        this.#note('microstep', event.actorRef as AnyActorRef, by, undefined, activeStates(snapshot), transitions)
        break
      }
      case '@xstate.snapshot': {
        const { actorRef, event: by, snapshot } = event
        this.#look(actorRef as AnyActorRef)
        const nodes = activeStates(snapshot)
        // A chart enters its first states without a transition, unless these have eventless ones.
        const isFirst =
          by.type === OWN_EVENT.start && nodes.length > 0 && !this.#entries.get(actorRef.sessionId)?.hasStepped
        if (isFirst) this.#note('microstep', actorRef as AnyActorRef, by, undefined, nodes, [])
        break
      }
      case '@xstate.action':
      case '@xstate.transition':
        return
    }
    this.#listener.inspected(event)
    this.#listener.stirred()
  }

  #enterAll(ref: AnyActorRef): void {
    this.#enter(ref)
    this.#look(ref)
    const { children = {} } = ref.getSnapshot() as { readonly children?: Readonly<Record<string, AnyActorRef>> }
    for (const child of Object.values(children)) this.#enterAll(child)
  }

  #enter(ref: AnyActorRef): void {
    const parent = ref._parent && this.#entries.get(ref._parent.sessionId)
    const before = [...this.#left].find(left => left.parent === parent?.id && left.name === ref.id)
    if (before) this.#left.delete(before)
    if (before) this.#entries.delete(before.sessionId)
    const entry = entryOf(ref, parent, before)
    entry.version = this.#version += 1
    this.#entries.set(ref.sessionId, entry)
    this.#listening.set(
      ref.sessionId,
      ref.on('*', event => {
        this.#note('emitted', ref, event)
        this.#listener.stirred()
      })
    )
  }

  /**
   * Reads the current state of an actor. All of them stop when their context leaves memory, which ends none of them.
   */
  #look(ref: AnyActorRef): void {
    const entry = this.#entries.get(ref.sessionId)
    const snapshot = ref.getSnapshot() as Pick<AnyMachineSnapshot, 'status'>
    const { status } = snapshot
    const nodes = activeStates(snapshot)
    if (!entry || (entry.status === status && entry.nodes === nodes) || this.#isLeaving) return
    entry.nodes = nodes
    this.#change(entry, status)
  }

  get #isLeaving(): boolean {
    return this.#actors?.root.getSnapshot().status === 'stopped'
  }

  #change(entry: ActorEntry, status: ActorEntry['status']): void {
    const hasEnded = entry.status === 'active' && status !== 'active'
    entry.status = status
    entry.version = this.#version += 1
    if (!hasEnded) return
    this.#listening.get(entry.sessionId)?.unsubscribe()
    this.#listening.delete(entry.sessionId)
    this.#ended.push(entry)
    const [oldest] = this.#ended
    if (this.#ended.length <= REMEMBERED_ACTORS || oldest === undefined) return
    this.#ended.shift()
    this.#entries.delete(oldest.sessionId)
    this.#forgotten.push(oldest.id)
  }

  #note(
    kind: SeenStep['kind'],
    { sessionId, system }: AnyActorRef,
    event: SeenStep['event'],
    from?: string,
    nodes?: SeenStep['nodes'],
    transitions?: SeenStep['transitions']
  ): void {
    const to = this.#entries.get(sessionId)
    /* c8 ignore next -- a dropped actor receives no events */
    if (!to) return
    if (kind === 'microstep') to.hasStepped = true
    const { turnNumber: turn } = hostOf(system)
    this.#add({ kind, to, event, turn, from, nodes, transitions, generation: undefined })
  }

  #add({ kind, to, event, turn, from, nodes, transitions, generation }: Omit<SeenStep, 'n' | 'atMs' | 'bytes'>): void {
    const bytes = stepSizeOf(event)
    const replaced = this.steps.push({
      n: this.steps.last + 1,
      atMs: this.#clock.now(),
      kind,
      to,
      event,
      turn,
      from,
      nodes,
      transitions,
      generation,
      bytes
    })
    this.#count(bytes - (replaced?.bytes ?? 0))
  }
}
