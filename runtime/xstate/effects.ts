import type { AnyActorRef, EventObject } from 'xstate'
import { OWN_ACTION } from '../../machines/xstate-names.ts'

/** An effect of a step of a chart, as data. */
export type ChartEffect =
  | { readonly kind: 'emit'; readonly event: unknown }
  /** An event to the chart itself. Without a delay the step has handled it already. */
  | ({ readonly kind: 'raise' } & Sending)
  | ({ readonly kind: 'send'; readonly to: AnyActorRef } & Sending)
  | { readonly kind: 'cancel'; readonly id: string }
  /** The actor is `undefined` if there is none of that id. */
  | { readonly kind: 'spawn' | 'stop'; readonly actor: AnyActorRef | undefined }
  /** `custom`: an action of the author. */
  | { readonly kind: 'log' | 'custom' }

interface Sending {
  readonly event: EventObject
  readonly delayMs: number | undefined
  readonly id: string | undefined
}

/** An action as XState gives it to an executor. */
export interface ExecutedAction {
  readonly type: string
  readonly params?: unknown
}

/** The effect that an action of XState stands for. */
export function effectOf({ type, params }: ExecutedAction): ChartEffect {
  const given = Object(params) as {
    readonly event: EventObject
    readonly to: AnyActorRef
    readonly delay?: unknown
    readonly id?: string
    readonly sendId?: unknown
    readonly actorRef?: AnyActorRef
  }
  const sending = (): Sending => ({
    event: given.event,
    delayMs: typeof given.delay === 'number' ? given.delay : undefined,
    id: given.id
  })
  switch (type) {
    case OWN_ACTION.emit:
      return { kind: 'emit', event: given.event }
    case OWN_ACTION.raise:
      return { kind: 'raise', ...sending() }
    case OWN_ACTION.sendTo:
      return { kind: 'send', to: given.to, ...sending() }
    case OWN_ACTION.cancel:
      return { kind: 'cancel', id: String(given.sendId) }
    case OWN_ACTION.spawnChild:
      return { kind: 'spawn', actor: given.actorRef }
    case OWN_ACTION.stopChild:
      return { kind: 'stop', actor: params as AnyActorRef | undefined }
    case OWN_ACTION.log:
      return { kind: 'log' }
    default:
      return { kind: 'custom' }
  }
}

/** The emitted event of an action, in an object; `undefined` if it emits none. Allocates nothing. */
export function emitOf({ type, params }: ExecutedAction): { readonly event: unknown } | undefined {
  return type === OWN_ACTION.emit ? (params as { readonly event: unknown }) : undefined
}
