import type { ActorLogic, AnyActorRef, Snapshot } from 'xstate'
import { messageOf } from '../../runtime/authoring/checked-words.ts'
import { familyOf, hostOf } from '../../runtime/commits/actor-host.ts'
import { PrivateProperty } from '../../runtime/primitives/private-property.ts'
import { Delegation, type RemoteOutcome } from './delegation.ts'
import type { PooledClient } from './remote/pooled-client.ts'
import type { RemoteAnswer, RemoteInput } from './remote/remote-events.ts'
import type { Listener } from './remote/remote-task.ts'

/** `run` identifies one run of the actor within its task, so that a later run does not resume its delegation. */
export type RemoteSnapshot<Output> = Snapshot<Output> & {
  readonly input: RemoteInput | undefined
  readonly run: string
}

/** Actor logic that delegates a task to another agent. */
export type RemoteLogic<Output> = ActorLogic<RemoteSnapshot<Output>, RemoteAnswer, RemoteInput>

/** The differences between both kinds of delegating actors: their listeners, and their final snapshots. */
export interface RemoteRole<Output> {
  readonly runOf: (self: AnyActorRef) => string
  readonly listenerOf: (self: AnyActorRef) => Listener
  readonly endOf: (outcome: RemoteOutcome) => Pick<Snapshot<Output>, 'status' | 'output' | 'error'>
}

/** The end of a delegation. A class, so that an author's actor cannot send one. */
class RemoteEnded {
  readonly type = 'remote.ended'
  readonly outcome: RemoteOutcome

  constructor(outcome: RemoteOutcome) {
    this.outcome = outcome
  }
}

const delegations = new PrivateProperty<AnyActorRef, Delegation>()

/** Delegations to one agent as actor logic. They are resumed after a restart of the process. */
export function remoteLogic<Output>(
  agent: PooledClient,
  { runOf, listenerOf, endOf }: RemoteRole<Output>
): RemoteLogic<Output> {
  return {
    getInitialSnapshot: ({ self }, input) => ({
      status: 'active',
      output: undefined,
      error: undefined,
      input,
      run: runOf(self)
    }),
    restoreSnapshot: snapshot => snapshot as RemoteSnapshot<Output>,
    start: ({ input, run }, { self, system }) => {
      /* c8 ignore next -- a starting actor is active and has its input */
      if (!input) return
      const place = { host: hostOf(system), taskId: familyOf(self), key: `remote/${run}` }
      const ended = (outcome: RemoteOutcome) => (self as AnyActorRef).send(new RemoteEnded(outcome))
      const delegation = new Delegation({ agent, place, input, listener: listenerOf(self), from: self.id, ended })
      delegations.set(self, delegation)
      delegation.begin()
    },
    transition: (snapshot, event: RemoteAnswer | RemoteEnded | { readonly type: 'xstate.stop' }, { self }) => {
      const delegation = delegations.get(self)
      if (event instanceof RemoteEnded)
        return { ...snapshot, ...endOf(event.outcome), input: undefined } as RemoteSnapshot<Output>
      if (event.type === 'answer') give(event, delegation)
      if (event.type === 'xstate.stop') delegation?.stop()
      return snapshot
    },
    getPersistedSnapshot: snapshot => snapshot
  }
}

function give({ message }: RemoteAnswer, delegation: Delegation | undefined): void {
  try {
    delegation?.answer(messageOf(message))
  } catch (error) {
    delegation?.fail(error)
  }
}
