import { isObject } from '../../machines/protocol/codec/json.ts'
import { ERRORS, isA2AError } from '../../machines/protocol/errors.ts'
import { operationOf } from '../../machines/protocol/operations.ts'

/**
 * Span attributes: those of OpenTelemetry's semantic conventions for errors, RPC, messaging and generative AI, and taskchart's own. None
 * has contents of messages.
 */
export const ATTRIBUTES = {
  errorType: 'error.type',
  rpcSystem: 'rpc.system.name',
  rpcMethod: 'rpc.method',
  rpcStatus: 'rpc.status_code',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  messageId: 'messaging.message.id',
  aiOperation: 'gen_ai.operation.name',
  aiProvider: 'gen_ai.provider.name',
  agentName: 'gen_ai.agent.name',
  agentVersion: 'gen_ai.agent.version',
  conversationId: 'gen_ai.conversation.id',
  binding: 'a2a.binding',
  taskId: 'a2a.task.id',
  taskState: 'a2a.task.state',
  artifactId: 'a2a.artifact.id',
  generation: 'taskchart.task.generation',
  attempt: 'taskchart.work.attempt',
  isRecovered: 'taskchart.work.recovered'
} as const

/** Operation and provider of an agent's invocation, by the semantic conventions. */
export const INVOKES_AGENT = { [ATTRIBUTES.aiOperation]: 'invoke_agent', [ATTRIBUTES.aiProvider]: 'a2a' } as const

/** Longer ids, which clients may choose, are omitted; in characters. */
const LONGEST_ID = 256

/** Attributes of a call, with its binding if known, such as `JSONRPC`. */
export function callAttributes(method: string, binding: string | undefined, params: unknown): SpanAttributes {
  const system = systemOf(binding)
  return {
    [ATTRIBUTES.rpcMethod]: methodName(method),
    ...(system && { [ATTRIBUTES.rpcSystem]: system }),
    ...(binding !== undefined && { [ATTRIBUTES.binding]: binding }),
    ...requestAttributes(params)
  }
}

/** Attributes of the task in an answer, or in an event of a stream. Any value is accepted. */
export function answerAttributes(answer: unknown): SpanAttributes {
  if (!isObject(answer)) return {}
  const content = [answer.task, answer.message, answer.statusUpdate, answer.artifactUpdate].find(isObject) ?? answer
  const { id, taskId, contextId, status } = content
  const state = isObject(status) ? status.state : undefined
  return told({ taskId: state === undefined ? taskId : (taskId ?? id), conversationId: contextId, taskState: state })
}

/** Attributes of an error that ended a call over this binding. */
export function errorAttributes(error: unknown, binding: string | undefined): SpanAttributes {
  const system = systemOf(binding)
  if (!isA2AError(error) || !system) return {}
  const { code, grpc } = ERRORS[error.code]
  return { [ATTRIBUTES.rpcStatus]: system === 'grpc' ? grpc : String(code) }
}

/** The class of an error: the code of an A2AError, else the name of its class. Never its message, which may be private. */
export function errorTypeOf(error: unknown): string {
  if (isA2AError(error)) return error.code
  return (error instanceof Error && error.constructor.name) || '_OTHER'
}

function requestAttributes(params: unknown): SpanAttributes {
  if (!isObject(params)) return {}
  const { id, taskId, message } = params
  if (!isObject(message)) return told({ taskId: id ?? taskId })
  return told({ messageId: message.messageId, taskId: message.taskId, conversationId: message.contextId })
}

function told(values: Readonly<Partial<Record<keyof typeof ATTRIBUTES, unknown>>>): SpanAttributes {
  const attributes: Record<string, string> = {}
  for (const [name, value] of Object.entries(values)) {
    if (typeof value === 'string' && value !== '' && value.length <= LONGEST_ID)
      attributes[ATTRIBUTES[name as keyof typeof ATTRIBUTES]] = value
  }
  return attributes
}

/** The name of a known method; `_OTHER` for any other. */
export function methodName(method: string): string {
  return operationOf(method) ? method : '_OTHER'
}

function systemOf(binding: string | undefined): 'jsonrpc' | 'grpc' | undefined {
  if (binding === 'WEBSOCKET' || binding === 'JSONRPC') return 'jsonrpc'
  return binding === 'GRPC' ? 'grpc' : undefined
}

/** Attributes of a span or of its event, named by the semantic conventions. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>
