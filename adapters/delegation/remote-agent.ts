import type { ActorLogic, AnyActorRef, Snapshot } from 'xstate'
import { OWN_EVENT } from '../../machines/xstate-names.ts'
import { messageOf } from '../../runtime/authoring/checked-words.ts'
import { PrivateProperty } from '../../runtime/primitives/collections.ts'
import { textSuchAs } from '../../runtime/primitives/options.ts'
import { taskIdOf, hostOf, actorPathOf, noteWrittenLogic } from '../../runtime/work-port.ts'
import { readBindings } from '../client/card/bindings.ts'
import { checkAccess } from '../client/credentials.ts'
import { checkConnect, CONNECT_OPTIONS } from '../client/options.ts'
import { Delegation, type RemoteOutcome } from './delegation.ts'
import { PooledClient, type RemoteOptions } from './pooled-client.ts'
import type { RemoteTaskListener, RemoteAnswer, RemoteInput, RemoteResult } from './remote-task.ts'

/** Another agent: actor logic for charts, and an argument of `delegate`. */
export type RemoteAgent = RemoteLogic<RemoteResult>

/** Shared by all copies of this package in the process. */
const agents = new PrivateProperty<RemoteAgent, PooledClient>(Symbol.for('taskchart.remote.1'))

/**
 * Another agent as an actor of a chart. Provide it by `setupWork({ actors: { hotel: remoteAgent('http://…') } })`, and
 * invoke it by `invoke: { src: 'hotel', input: { message: 'a room in Helsinki' }, onDone, onError }`. It sends
 * `RemoteEvent`s to the chart and accepts `RemoteAnswer`s. Its output is a `RemoteResult`; its error is an A2AError
 * with the reason. The task is canceled when the actor stops, and resumed after a restart of the process. The options
 * are those of `connect`; all tasks of one `remoteAgent` share a connection. Throws TypeError for an invalid URL and
 * for unknown bindings.
 */
export function remoteAgent(url: string, options: RemoteOptions = {}): RemoteAgent {
  checkConnect(url, options, 'remoteAgent', { ...CONNECT_OPTIONS, name: textSuchAs("'the hotel desk'") })
  if (!URL.canParse(url) || !/^(?:ws|http)s?:$/.test(new URL(url).protocol))
    throw new TypeError(
      `${JSON.stringify(url)} is not the address of an agent. Give a ws: address, or the http: address of its card.`
    )
  readBindings(options.bindings)
  checkAccess(options)
  const shared = new PooledClient(url, options)
  const logic: RemoteAgent = remoteLogic(shared, {
    runOf: self => `${actorPathOf(self).join('/')}@${hostOf(self.system).turnNumber}`,
    listenerOf: self => ({
      handleEvent: event => self._parent?.send(event),
      over: () => {},
      goesOn: () => false
    }),
    endOf: outcome =>
      'result' in outcome
        ? { status: 'done', output: outcome.result, error: undefined }
        : { status: 'error', output: undefined, error: outcome.error }
  })
  agents.set(logic, shared)
  return noteWrittenLogic(logic, url, options)
}

/** The agent of some actor logic. Throws a TypeError with the code to write instead. */
export function agentBehind(logic: RemoteAgent): PooledClient {
  const agent = agents.get(logic)
  if (!agent)
    throw new TypeError("delegate takes an agent that was made by remoteAgent: const hotel = remoteAgent('http://…').")
  return agent
}

/** `run` identifies one run of the actor within its task, so that a later run does not resume its delegation. */
type RemoteSnapshot<Output> = Snapshot<Output> & {
  readonly input: RemoteInput | undefined
  readonly run: string
}

/** Actor logic that delegates a task to another agent. */
type RemoteLogic<Output> = ActorLogic<RemoteSnapshot<Output>, RemoteAnswer, RemoteInput>

/** The differences between both kinds of delegating actors: their listeners, and their final snapshots. */
interface RemoteRole<Output> {
  readonly runOf: (self: AnyActorRef) => string
  readonly listenerOf: (self: AnyActorRef) => RemoteTaskListener
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
      const place = { host: hostOf(system), taskId: taskIdOf(self), key: `remote/${run}` }
      const ended = (outcome: RemoteOutcome) => (self as AnyActorRef).send(new RemoteEnded(outcome))
      const delegation = new Delegation({ agent, place, input, listener: listenerOf(self), from: self.id, ended })
      delegations.set(self, delegation)
      delegation.begin()
    },
    transition: (snapshot, event: RemoteAnswer | RemoteEnded | { readonly type: typeof OWN_EVENT.stop }, { self }) => {
      const delegation = delegations.get(self)
      if (event instanceof RemoteEnded)
        return { ...snapshot, ...endOf(event.outcome), input: undefined } as RemoteSnapshot<Output>
      if (event.type === 'answer') give(event, delegation)
      if (event.type === OWN_EVENT.stop) delegation?.stop()
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
