import * as sdk from '@a2a-js/sdk'
import { ClientFactory, ClientFactoryOptions, type RequestOptions } from '@a2a-js/sdk/client'
import { A2AError, ERROR_INFO, ERRORS } from '../../../machines/protocol/errors.ts'
import type { Message, SendMessageResponse, StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import { fromWireError } from '../../../machines/protocol/wire-errors.ts'
import { checkPackages } from '../../peers/installed-packages.ts'
import type { Difference } from './mcp-answers.ts'

checkPackages(['@a2a-js/sdk'])

/**
 * A caller with the official SDK's client, over a binding of the agent's card. It converts the agent's errors to
 * A2AErrors.
 */
export async function officialCaller(url: string, binding: string): Promise<Omit<TestClient, 'close'>> {
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { preferredTransports: [binding] })
  )
  const client = await factory.createFromUrl(url)
  return {
    send: async message => {
      const request = sdk.SendMessageRequest.fromJSON({ message, configuration: { returnImmediately: true } })
      const answer = await client.sendMessage(request, ACTIVATED).catch(rethrown)
      return 'status' in answer
        ? { task: sdk.Task.toJSON(answer) as never }
        : { message: sdk.Message.toJSON(answer) as never }
    },
    events: async function* (id, afterGeneration, signal) {
      const events = client.resubscribeTask(sdk.SubscribeToTaskRequest.fromJSON({ id }), {
        ...activatedWith({ 'last-event-id': `${afterGeneration}` }),
        signal
      })
      for await (const event of events) yield sdk.StreamResponse.toJSON(event) as never
    },
    task: async id =>
      sdk.Task.toJSON(await client.getTask(sdk.GetTaskRequest.fromJSON({ id }), ACTIVATED).catch(rethrown)) as never,
    cancel: async id =>
      sdk.Task.toJSON(
        await client.cancelTask(sdk.CancelTaskRequest.fromJSON({ id }), ACTIVATED).catch(rethrown)
      ) as never
  }
}

const ACTIVATED = activatedWith({})

function activatedWith(parameters: Record<string, string>): RequestOptions {
  return { serviceParameters: { 'a2a-extensions': RELIABILITY_EXTENSION, ...parameters } }
}

/**
 * The agent's error, by the `reason` of its class. For a code outside of A2A, the official client keeps only the number
 * on the wire.
 */
function rethrown(error: unknown): never {
  const { envelopeCode, statusCode, message, reason, metadata } = error as Readonly<
    Record<'envelopeCode' | 'statusCode' | 'reason' | 'metadata', unknown>
  > & { readonly message: string }
  if (envelopeCode === ERRORS.RateLimited.code || statusCode === ERRORS.RateLimited.http)
    throw new A2AError('RateLimited', message, { cause: error })
  throw fromWireError({ message, data: [{ '@type': ERROR_INFO, reason, metadata }] })
}

/** A client of the agent in a test. */
export interface TestClient {
  /** Sends a message without waiting for the task. */
  send(message: Message): Promise<SendMessageResponse>
  /** The events of a task after a generation, including future ones. */
  events(taskId: string, after: number, signal: AbortSignal): AsyncGenerator<StreamResponse, void, undefined>
  task(taskId: string): Promise<Task>
  cancel(taskId: string): Promise<Task>
  /** The first difference between this task and the same one over another protocol. */
  difference?(task: Task): Promise<Difference | undefined>
  close(): Promise<void>
}
