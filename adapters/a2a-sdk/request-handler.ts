import * as sdk from '@a2a-js/sdk'
import { V03PushNotificationSerializer } from '@a2a-js/sdk/compat/v0_3/server'
import type { A2ARequestHandler, ServerCallContext } from '@a2a-js/sdk/server'
import type { AgentInterface } from '../../machines/protocol/card.ts'
import { checkJson } from '../../machines/protocol/codec/json.ts'
import { invalidParams } from '../../machines/protocol/errors.ts'
import type { StreamResponse, Task } from '../../machines/protocol/objects.ts'
import type { OperationName } from '../../machines/protocol/operations.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import { jsonLimitsOf, type Limits } from '../../runtime/access/limits.ts'
import { counted } from '../../runtime/access/quotas.ts'
import type { WebhookBody } from '../../runtime/ports/webhook-sender.ts'
import { checkOptions, type OptionKinds } from '../../runtime/primitives/options.ts'
import { checkRuntime } from '../../runtime/runtime-options.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { activateExtensions, callOf, LEGACY_VERSION, sdkFailure } from './call-context.ts'
import { sdkAnswer, sdkEvent, sdkTask, sdkTasks, type Codec } from './sdk-objects.ts'
import { untilIdle } from './until-idle.ts'

/** How the official servers serve a runtime. */
export interface RequestHandlerOptions {
  /**
   * Where the agent is reached, for its card. The official servers answer only those versions that an interface of their
   * binding (`JSONRPC`, `HTTP+JSON`, `GRPC`) has in the card. Default none.
   */
  readonly interfaces?: readonly AgentInterface[]
  /**
   * After how long without an event a stream ends whose client may be gone, in milliseconds: the official servers never
   * say so, unless their `userBuilder` is `whileConnected(…)`. Default 15 minutes.
   */
  readonly streamIdleMs?: number
}

const OPTIONS: OptionKinds<RequestHandlerOptions> = { interfaces: [Array.isArray, "a list such as [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]"], streamIdleMs: true }

type Operation = (params: unknown, call: CallContext) => unknown
type Stream = AsyncGenerator<sdk.StreamResponse, void, undefined>

/**
 * A runtime as the request handler of the official SDK, for its servers: Express, gRPC and its 0.3 layer. Who calls is the
 * user that their `userBuilder` tells, if authenticated; the runtime's own `authenticate` is not asked. The runtime checks
 * all that comes: what the SDK's codec could not read is refused as if it were not there. Errors are the SDK's classes.
 * Throws TypeError for what is no runtime and for an unknown option, RangeError for a `streamIdleMs` that is no time.
 */
export function toRequestHandler(runtime: Runtime, options: RequestHandlerOptions = {}): A2ARequestHandler {
  checkRuntime(runtime, 'toRequestHandler')
  checkOptions(options, OPTIONS, 'toRequestHandler', 'toRequestHandler(runtime, { interfaces: [] })')
  const { interfaces = [], streamIdleMs = 900_000 } = options
  if (!(streamIdleMs > 0 && streamIdleMs < Infinity)) throw new RangeError(`streamIdleMs has to be milliseconds above 0, not ${String(streamIdleMs)}.`)
  runtime.writesWebhooks(LEGACY_VERSION, writeLegacy)
  const operations = runtime as unknown as Record<OperationName, Operation>
  const { clock, countStray, extensions, limits, telemetry } = runtime.settings
  const offered = interfaces.length > 0 ? { interfaces } : {}

  const checked = (params: unknown, call: CallContext) => counted(countStray, call, params, () => withinLimits(params, limits))

  const answered = <Params, Answer>(name: OperationName, request: Codec<Params>, read: (json: object) => Answer) =>
    async (params: Params, context: ServerCallContext): Promise<Answer> => {
      activateExtensions(context, extensions)
      try {
        const call = { ...offered, ...callOf(context, telemetry) }
        return read((await operations[name](checked(request.toJSON(params), call), call)) as object)
      } catch (error) {
        throw sdkFailure(error, params, context)
      }
    }

  async function* told(name: OperationName, given: object, json: unknown, context: ServerCallContext): Stream {
    try {
      const call = callOf(context, telemetry)
      const params = checked(json, call)
      const open = (signal?: AbortSignal) => operations[name](params, signal ? { ...call, signal } : call) as AsyncIterable<unknown>
      for await (const event of call.signal ? open() : untilIdle(open, clock, streamIdleMs)) yield sdkEvent(event)
    } catch (error) {
      throw sdkFailure(error, given, context)
    }
  }

  // Activates at once, since the servers write their headers before they read the stream.
  const streamed = <Params extends object>(name: OperationName, request: Codec<Params>) => (params: Params, context: ServerCallContext): Stream => {
    activateExtensions(context, extensions)
    return told(name, params, request.toJSON(params), context)
  }

  const { TaskPushNotificationConfig: PushConfig } = sdk
  return {
    getAgentCard: async () => sdk.AgentCard.fromJSON(await runtime.signedCard(interfaces)),
    getAuthenticatedExtendedAgentCard: answered('getExtendedAgentCard', sdk.GetExtendedAgentCardRequest, json => sdk.AgentCard.fromJSON(json)),
    sendMessage: answered('sendMessage', sdk.SendMessageRequest, sdkAnswer),
    sendMessageStream: streamed('sendStreamingMessage', sdk.SendMessageRequest),
    getTask: answered('getTask', sdk.GetTaskRequest, sdkTask),
    listTasks: answered('listTasks', sdk.ListTasksRequest, sdkTasks),
    cancelTask: answered('cancelTask', sdk.CancelTaskRequest, sdkTask),
    resubscribe: streamed('subscribeToTask', sdk.SubscribeToTaskRequest),
    createTaskPushNotificationConfig: answered('createTaskPushNotificationConfig', PushConfig, json => PushConfig.fromJSON(json)),
    getTaskPushNotificationConfig: answered('getTaskPushNotificationConfig', sdk.GetTaskPushNotificationConfigRequest, json => PushConfig.fromJSON(json)),
    listTaskPushNotificationConfigs: answered('listTaskPushNotificationConfigs', sdk.ListTaskPushNotificationConfigsRequest, json => sdk.ListTaskPushNotificationConfigsResponse.fromJSON(json)),
    deleteTaskPushNotificationConfig: answered('deleteTaskPushNotificationConfig', sdk.DeleteTaskPushNotificationConfigRequest, () => undefined)
  }
}

/** A webhook of 0.3 is told the task as it is after each update: what its receivers expect. */
export function writeLegacy(update: StreamResponse, task: Task): WebhookBody {
  const { body, contentType } = new V03PushNotificationSerializer().serialize(sdkEvent(update), sdkTask(task))
  return { type: contentType, text: body }
}

/** The parameters, if they are within the limits of JSON, which no server of the SDK keeps. */
function withinLimits(params: unknown, limits: Limits): unknown {
  const violation = checkJson(params, jsonLimitsOf(limits))
  if (!violation) return params
  throw invalidParams(violation)
}
