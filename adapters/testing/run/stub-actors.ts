import type { ActorLogic, AnyActorLogic, AnyActorRef, AnyStateMachine, EventObject, Snapshot } from 'xstate'
import { doneType, errorType, isErrorType } from '../../../machines/xstate-names.ts'
import type { Agent } from '../../../runtime/index.ts'
import { actorPathOf, promiseLogic } from '../../../runtime/work-port.ts'
import { isMachine } from '../../../runtime/xstate/persisted-snapshot.ts'
import { actorAt, shownIn } from '../plan/actors-in.ts'

/** Replaces the work of a task in a test. */
export interface WorkDouble {
  readonly work: Exclude<Agent['work'], undefined>
  /** Ends an actor with its output, or with an Error. */
  end(actor: string, result: unknown): void
  /** Lets an actor send an event to the chart, or have a snapshot. */
  sendFromActor(event: EventObject): void
  /** Drops the actors after the process has ended. */
  clear(): void
}

/** The actors of a chart under test: they do nothing, and end on demand. Charts among them do what they do. */
export class StubActors implements WorkDouble {
  readonly work: AnyStateMachine
  readonly #players = new Set<AnyActorRef>()

  constructor(machine: AnyStateMachine) {
    const played: AnyActorLogic = { ...ending, start: (_, { self }) => void this.#players.add(self) }
    this.work = withLeaves(machine, played)
  }

  end(actor: string, result: unknown): void {
    const ended = this.#chart && actorAt(this.#chart.getSnapshot(), actor)
    if (ended)
      endActor(
        ended,
        result instanceof Error ? { type: errorType(actor), error: result } : { type: doneType(actor), output: result }
      )
  }

  sendFromActor(event: EventObject): void {
    const chart = this.#chart
    const shown = shownIn(event)
    if (shown === undefined) chart?.send(event)
    else showSnapshot(actorAt(chart?.getSnapshot(), shown), event)
  }

  clear(): void {
    this.#players.clear()
  }

  /** The actor of the chart itself: context, task, work. */
  get #chart(): AnyActorRef | undefined {
    const [player] = this.#players
    let actor = player
    while (actor && actorPathOf(actor).length > WORK_DEPTH) actor = actor._parent
    return actor
  }
}

/** The depth of a work's actor below its context and its task. */
const WORK_DEPTH = 2

/** An actor that never ends. */
export const endless = promiseLogic(() => new Promise(() => {}))

/** Ends an actor of the logic `ending`, with the event of its end. */
export function endActor(
  actor: AnyActorRef,
  { output, error, type }: EventObject & { readonly output?: unknown; readonly error?: unknown }
): void {
  actor.send({ type: END, output, error, isError: isErrorType(type) })
}

/** Lets an actor of the logic `ending` have a snapshot, as an event of a case gives it. */
export function showSnapshot(
  actor: AnyActorRef | undefined,
  { snapshot }: EventObject & { readonly snapshot?: unknown }
): void {
  actor?.send({ type: SHOW, snapshot })
}

const END = 'its test ends it'
const SHOW = 'its test shows it'

interface Played extends EventObject {
  readonly output?: unknown
  readonly error?: unknown
  readonly isError?: boolean
  readonly snapshot?: object
}

const ACTIVE = { status: 'active', output: undefined, error: undefined } as const

/** An actor that ends on demand. */
export const ending: ActorLogic<Snapshot<unknown>, Played> = {
  transition: (before, { type, output, error, isError, snapshot }) => {
    if (type === SHOW) return { ...ACTIVE, context: undefined, ...snapshot }
    if (type !== END) return before
    if (isError) throw error
    return { ...before, status: 'done', output } as Snapshot<unknown>
  },
  getInitialSnapshot: (_, input) => ({ ...ACTIVE, input }) as Snapshot<unknown>,
  getPersistedSnapshot: snapshot => snapshot,
  restoreSnapshot: snapshot => snapshot
}

/** A chart with other logic for all of its named actors. */
export function withActors(machine: AnyStateMachine, play: (logic: AnyActorLogic) => AnyActorLogic): AnyStateMachine {
  const actors = Object.entries(machine.implementations.actors as Readonly<Record<string, AnyActorLogic>>)
  return machine.provide({ actors: Object.fromEntries(actors.map(([src, logic]) => [src, play(logic)])) })
}

/** A chart with this logic for all of its named actors, and for those of the charts among them. */
export function withLeaves(machine: AnyStateMachine, leaf: AnyActorLogic): AnyStateMachine {
  return withActors(machine, logic => (isMachine(logic) ? withLeaves(logic, leaf) : leaf))
}

/** A chart whose actors with given results are no charts. */
export function withResults(machine: AnyStateMachine, results: object): AnyStateMachine {
  const actors = Object.entries(machine.implementations.actors as Readonly<Record<string, AnyActorLogic>>).flatMap(
    ([src, logic]) => {
      if (!isMachine(logic)) return []
      return [[src, Object.hasOwn(results, src) ? endless : withResults(logic, results)]]
    }
  )
  return actors.length === 0 ? machine : machine.provide({ actors: Object.fromEntries(actors) })
}
