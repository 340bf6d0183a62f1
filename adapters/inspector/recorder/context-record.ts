import type { AnyActorRef, AnyMachineSnapshot, InspectionEvent, Subscription } from 'xstate'
import { isErrorType, OWN_EVENT } from '../../../machines/xstate-names.ts'
import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Commit, ContextKey } from '../../../runtime/store/store.ts'
import type { LiveActors } from '../../../runtime/telemetry-port.ts'
import { hostOf } from '../../../runtime/work-port.ts'
import { activeStates } from '../../../runtime/xstate/persisted-snapshot.ts'
import { Ring } from './frame-log.ts'
import { type ActorEntry, entryOf, type SeenStep, stepSizeOf } from './seen-step.ts'

/** The number of steps kept per context. */
export const REMEMBERED_STEPS = 2000

/** The number of ended actors kept per context. */
export const REMEMBERED_ACTORS = 200

/** The journal's key of a step's result, with the step's name, behind the name of an actor of the work. */
const STORED_STEP = /(?:^|\/)step\/(.+)\/\d+$/s

/** Receives the events of a recorded context. */
export interface RecordListener {
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
