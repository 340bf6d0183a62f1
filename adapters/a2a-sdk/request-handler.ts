import * as sdk from '@a2a-js/sdk'
import { V03PushNotificationSerializer } from '@a2a-js/sdk/compat/v0_3/server'
import type { A2ARequestHandler, ServerCallContext } from '@a2a-js/sdk/server'
import type { AgentInterface } from '../../machines/protocol/card.ts'
import { checkJson, type JsonLimits } from '../../machines/protocol/codec/json.ts'
import { invalidParams } from '../../machines/protocol/errors.ts'
import type { StreamResponse, Task } from '../../machines/protocol/objects.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import type { Runtime } from '../../runtime/index.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import type { WebhookBody } from '../../runtime/ports/webhook-sender.ts'
import { checkOptions, type OptionKinds } from '../../runtime/primitives/options.ts'
import { type ServedRuntime, servedRuntime } from '../../runtime/runtime-options.ts'
import { type AnsweringMethod, operationsOf, type StreamingMethod } from '../json-rpc/dispatch.ts'
import { activateExtensions, callOf, LEGACY_VERSION, sdkFailure } from './call-context.ts'
import { type Additions, type Codec, sdkAnswer, sdkEvent, sdkTask, sdkTasks } from './sdk-objects.ts'

/** The options of the request handler. */
export interface RequestHandlerOptions {
  /**
   * The agent's interfaces for its card. The official servers accept only versions that an interface of their binding
   * (`JSONRPC`, `HTTP+JSON`, `GRPC`) has in the card. Default none.
   */
  readonly interfaces?: readonly AgentInterface[]
  /**
   * The idle time after which a stream ends whose client may have disconnected, in milliseconds: the official servers
   * do not report it, unless their `userBuilder` is `whileConnected(…)`. Default 15 minutes.
   */
  readonly streamIdleMs?: number
}

const OPTIONS: OptionKinds<RequestHandlerOptions> = {
  interfaces: [Array.isArray, "a list such as [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]"],
  streamIdleMs: true
}

type Stream = AsyncGenerator<sdk.StreamResponse, void, undefined>

/**
 * A runtime as the request handler of the official SDK, for its servers: Express, gRPC and its 0.3 layer. The caller is
 * the authenticated user of their `userBuilder`; the runtime's own `authenticate` is not called. The runtime validates
 * all params: a value that the SDK's codec could not decode counts as missing. Errors are the SDK's classes. Throws
 * TypeError for anything but a runtime and for an unknown option, RangeError for an invalid `streamIdleMs`.
 */
export function toRequestHandler(given: Runtime, options: RequestHandlerOptions = {}): A2ARequestHandler {
  const runtime = servedRuntime(given, 'toRequestHandler')
  checkOptions(options, OPTIONS, 'toRequestHandler', 'toRequestHandler(runtime, { interfaces: [] })')
  return requestHandlerOf(runtime, options)
}

/** A request handler with the members that a binding adds to the SDK's objects. */
export function requestHandlerOf(
  runtime: ServedRuntime,
  options: RequestHandlerOptions,
  additions?: Additions
): A2ARequestHandler {
  const { interfaces = [], streamIdleMs = 900_000 } = options
  if (!(streamIdleMs > 0 && streamIdleMs < Infinity))
    throw new RangeError(`streamIdleMs has to be milliseconds above 0, not ${String(streamIdleMs)}.`)
  runtime.writesWebhooks(LEGACY_VERSION, writeLegacy)
  const operations = operationsOf(runtime)
  const { clock, rejected, extensions, jsonLimits, telemetry } = runtime.settings
  const offered = interfaces.length > 0 ? { interfaces } : {}

  const checked = (params: unknown, call: CallContext) =>
    rejected.read(call, params, () => withinLimits(params, jsonLimits))

  const jsonOf = <Params extends object>(request: Codec<Params>, params: Params): unknown => {
    const json = request.toJSON(params)
    return additions ? additions.request(params, json) : json
  }

  const answered =
    <Params extends object, Answer extends object | undefined>(
      { answer }: AnsweringMethod,
      request: Codec<Params>,
      read: (json: object) => Answer
    ) =>
    async (params: Params, context: ServerCallContext): Promise<Answer> => {
      activateExtensions(context, extensions)
      try {
        const call = { ...offered, ...callOf(context, telemetry) }
        const json = (await answer(checked(jsonOf(request, params), call), call)) as object
        const result = read(json)
        if (additions && result) additions.answer(result, json)
        return result
      } catch (error) {
        throw sdkFailure(error, params, context)
      }
    }

  async function* eventsOf(
    { events }: StreamingMethod,
    given: object,
    json: unknown,
    context: ServerCallContext
  ): Stream {
    try {
      const call = callOf(context, telemetry)
      const params = checked(json, call)
      const open = (signal?: AbortSignal) => events(params, signal ? { ...call, signal } : call)
      for await (const json of call.signal ? open() : untilIdle(open, clock, streamIdleMs)) {
        const event = sdkEvent(json)
        additions?.answer(event, json)
        yield event
      }
    } catch (error) {
      throw sdkFailure(error, given, context)
    }
  }

  // Activates at once, since the servers write their headers before they read the stream.
  const streamed =
    <Params extends object>(method: StreamingMethod, request: Codec<Params>) =>
    (params: Params, context: ServerCallContext): Stream => {
      activateExtensions(context, extensions)
      return eventsOf(method, params, jsonOf(request, params), context)
    }

  const { TaskPushNotificationConfig: PushConfig } = sdk
  return {
    getAgentCard: async () => sdk.AgentCard.fromJSON(await runtime.signedCard(interfaces)),
    getAuthenticatedExtendedAgentCard: answered(
      operations.GetExtendedAgentCard,
      sdk.GetExtendedAgentCardRequest,
      json => sdk.AgentCard.fromJSON(json)
    ),
    sendMessage: answered(operations.SendMessage, sdk.SendMessageRequest, sdkAnswer),
    sendMessageStream: streamed(operations.SendStreamingMessage, sdk.SendMessageRequest),
    getTask: answered(operations.GetTask, sdk.GetTaskRequest, sdkTask),
    listTasks: answered(operations.ListTasks, sdk.ListTasksRequest, sdkTasks),
    cancelTask: answered(operations.CancelTask, sdk.CancelTaskRequest, sdkTask),
    resubscribe: streamed(operations.SubscribeToTask, sdk.SubscribeToTaskRequest),
    createTaskPushNotificationConfig: answered(operations.CreateTaskPushNotificationConfig, PushConfig, json =>
      PushConfig.fromJSON(json)
    ),
    getTaskPushNotificationConfig: answered(
      operations.GetTaskPushNotificationConfig,
      sdk.GetTaskPushNotificationConfigRequest,
      json => PushConfig.fromJSON(json)
    ),
    listTaskPushNotificationConfigs: answered(
      operations.ListTaskPushNotificationConfigs,
      sdk.ListTaskPushNotificationConfigsRequest,
      json => sdk.ListTaskPushNotificationConfigsResponse.fromJSON(json)
    ),
    deleteTaskPushNotificationConfig: answered(
      operations.DeleteTaskPushNotificationConfig,
      sdk.DeleteTaskPushNotificationConfigRequest,
      () => undefined
    )
  }
}

/** Writes the webhook body of 0.3: the complete task after each update. */
export function writeLegacy(update: StreamResponse, task: Task): WebhookBody {
  const { body, contentType } = new V03PushNotificationSerializer().serialize(sdkEvent(update), sdkTask(task))
  return { type: contentType, text: body }
}

/** Checks the limits of JSON, which the SDK's servers do not have. */
function withinLimits(params: unknown, limits: JsonLimits): unknown {
  const violation = checkJson(params, limits)
  if (!violation) return params
  throw invalidParams(violation)
}

/**
 * A stream that ends after `idleMs` without an event, for readers whose disconnection is not reported. The signal ends
 * `open`.
 */
async function* untilIdle<T>(
  open: (signal: AbortSignal) => AsyncIterable<T>,
  clock: Clock,
  idleMs: number
): AsyncGenerator<T, void, undefined> {
  const idle = new AbortController()
  const startTimer = () => clock.setTimeout(() => idle.abort(), idleMs)
  let timer = startTimer()
  try {
    for await (const event of open(idle.signal)) {
      clock.clearTimeout(timer)
      yield event
      timer = startTimer()
    }
  } finally {
    clock.clearTimeout(timer)
  }
}
