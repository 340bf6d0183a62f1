import { assign, cancel, emit, raise, sendParent, sendTo, spawnChild, stopChild } from 'xstate'
import type { ActionArgs, AnyMachineSnapshot, EventObject, MachineContext, UnknownAction } from 'xstate'
import { evaluateGuard } from 'xstate/guards'

type EnqueuedArgs = ActionArgs<MachineContext, EventObject, EventObject>
type Guard = Parameters<typeof evaluateGuard>[0]

/** XState's `enqueueActions` at run time, with the author's code. */
export interface EnqueueActions {
  readonly collect: (args: object, params: unknown) => void
}

/**
 * What an `enqueueActions` enqueues, gathered as XState does it. XState writes its functions where it assigns them to properties.
 * V8 puts such functions among the long-lived objects, where they keep what they see, an actor with all of its context, until a
 * full garbage collection. What is kept looks long-lived, so V8 makes ever more of it there: a task took half as much again.
 */
export function enqueuedBy(collect: EnqueueActions['collect'], snapshot: AnyMachineSnapshot, args: EnqueuedArgs, params: unknown): UnknownAction[] {
  const actions: UnknownAction[] = []
  const adding = (make: (...given: never[]) => unknown) => (...given: never[]) => void actions.push(make(...given) as UnknownAction)
  const enqueue = Object.assign((action: UnknownAction) => void actions.push(action), {
    assign: adding(assign),
    cancel: adding(cancel),
    raise: adding(raise),
    sendTo: adding(sendTo),
    sendParent: adding(sendParent),
    spawnChild: adding(spawnChild),
    stopChild: adding(stopChild),
    emit: adding(emit)
  })
  const check = (guard: Guard) => evaluateGuard(guard, snapshot.context, args.event, snapshot)
  collect(Object.assign({ enqueue, check }, args), params)
  return actions
}
