import { pathOf, hostOf } from '../../runtime/commits/actor-host.ts'
import { textSuchAs } from '../../runtime/primitives/options.ts'
import { PrivateProperty } from '../../runtime/primitives/private-property.ts'
import { readBindings } from '../client/card/bindings.ts'
import { checkAccess } from '../client/credentials.ts'
import { checkConnect, CONNECT_OPTIONS } from '../client/options.ts'
import { remoteLogic, type RemoteLogic } from './remote-logic.ts'
import { PooledClient, type RemoteOptions } from './remote/pooled-client.ts'
import type { RemoteResult } from './remote/remote-events.ts'

/** Another agent: actor logic for charts, and an argument of `delegate`. */
export type RemoteAgent = RemoteLogic<RemoteResult>

/** Shared by all copies of this package in the process. */
const agents = new PrivateProperty<RemoteAgent, PooledClient>(Symbol.for('taskchart.remote.1'))

/**
 * Another agent as an actor of a chart. Provide it by `setupWork({ actors: { hotel: remoteAgent('http://…') } })`, and invoke it by
 * `invoke: { src: 'hotel', input: { message: 'a room in Helsinki' }, onDone, onError }`. It sends `RemoteEvent`s to the chart and accepts
 * `RemoteAnswer`s. Its output is a `RemoteResult`; its error is an A2AError with the reason. The task is canceled when the actor stops, and
 * resumed after a restart of the process. The options are those of `connect`; all tasks of one `remoteAgent` share a connection. Throws
 * TypeError for an invalid URL and for unknown bindings.
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
    runOf: self => `${pathOf(self).join('/')}@${hostOf(self.system).turnNumber}`,
    listenerOf: self => ({
      hear: event => self._parent?.send(event),
      over: () => {},
      goesOn: () => false
    }),
    endOf: outcome =>
      'result' in outcome
        ? { status: 'done', output: outcome.result, error: undefined }
        : { status: 'error', output: undefined, error: outcome.error }
  })
  agents.set(logic, shared)
  return logic
}

/** The agent of some actor logic. Throws TypeError that says what to write instead. */
export function agentBehind(logic: RemoteAgent): PooledClient {
  const agent = agents.get(logic)
  if (!agent)
    throw new TypeError("delegate takes an agent that was made by remoteAgent: const hotel = remoteAgent('http://…').")
  return agent
}
