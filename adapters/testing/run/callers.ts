import type { SendMessageResponse, StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { CallContext, Conditions } from '../../../runtime/access/call-context.ts'
import { systemClock, withLongTimers } from '../../../runtime/ports/clock.ts'
import type { Runtime } from '../../../runtime/runtime.ts'
import { connect } from '../../client/connect.ts'
import { serve, type Served } from '../../serve/serve.ts'

/** A client of the agent in a test. */
export interface Caller {
  /** Sends a message without waiting for the task. */
  send(message: Message): Promise<SendMessageResponse>
  /** The events of a task after a generation, including future ones. */
  events(taskId: string, after: number, signal: AbortSignal): AsyncGenerator<StreamResponse, void, undefined>
  task(taskId: string): Promise<Task>
  cancel(taskId: string): Promise<Task>
  close(): Promise<void>
}

/** How an agent is called: in process, or over a binding. */
export interface Access {
  readonly reach: 'in process' | 'WEBSOCKET' | 'JSONRPC' | 'HTTP+JSON'
  /** Whether to use the official SDK's client. */
  readonly isOfficial?: true
}

/** Makes a caller of a runtime. Over a binding, the runtime is served on a loopback port. The official client is loaded on demand. */
export async function callerOf(runtime: Runtime, { reach, isOfficial }: Access): Promise<Caller> {
  if (reach === 'in process') return inProcess(runtime)
  // Connections use real time, since the agent's clock is virtual.
  const served = await serve(
    { ...runtime, settings: { ...runtime.settings, clock: withLongTimers(systemClock) } },
    { port: 0 }
  )
  return isOfficial ? withOfficial(served, reach) : withOurs(served, reach)
}

function inProcess(runtime: Runtime): Caller {
  const call = (conditions: Conditions = {}): CallContext => ({ extensions: [RELIABILITY_EXTENSION], conditions })
  return {
    send: message => runtime.sendMessage({ message, configuration: { returnImmediately: true } }, call()),
    events: (id, afterGeneration, signal) => runtime.subscribeToTask({ id }, { ...call({ afterGeneration }), signal }),
    task: id => runtime.getTask({ id }, call()),
    cancel: id => runtime.cancelTask({ id }, call()),
    close: async () => {}
  }
}

async function withOurs(served: Served, binding: string): Promise<Caller> {
  const client = await connect(served.url, { bindings: [binding], giveUpAfterMs: 0 })
  return {
    send: message => client.sendMessage({ message, configuration: { returnImmediately: true } }),
    events: (id, afterGeneration, signal) => client.subscribeToTask({ id }, { afterGeneration, signal }),
    task: id => client.getTask({ id }),
    cancel: id => client.cancelTask({ id }),
    close: async () => {
      await client.close()
      await served.close()
    }
  }
}

async function withOfficial(served: Served, binding: string): Promise<Caller> {
  const { officialCaller } = await import('./official-caller.ts')
  return { ...(await officialCaller(served.url, binding)), close: () => served.close() }
}
