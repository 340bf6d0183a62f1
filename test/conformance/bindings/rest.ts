import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import { Refusal, type Binding, type Caller, type Terms } from '../binding.ts'
import { headersOf } from './headers.ts'
import { exchange, serveHttp } from './http.ts'

/** REST (§11). */
export const rest: Binding = {
  name: 'REST',
  version: '1.0',
  serve: serveHttp,
  open: async (_, address, terms) => restCaller(address, AS_IT_IS, { version: '1.0', ...terms })
}

/** How REST is written in a version. */
export interface Shape {
  /** What stands in front of the routes. */
  readonly prefix: string
  readonly extendedCard: string
  readonly mediaType: string
  readonly extensionsHeader: string
  body(params: Record<string, unknown>): object
  /** What an operation gives, or one event of its stream. */
  result(operation: OperationMethod, result: unknown): unknown
}

const AS_IT_IS: Shape = {
  prefix: '',
  extendedCard: '/extendedAgentCard',
  mediaType: 'application/a2a+json',
  extensionsHeader: 'a2a-extensions',
  body: params => params,
  result: (_, result) => result
}

/** Where an operation is asked for; members of its parameters stand in the path. */
type Route = readonly [verb: 'GET' | 'POST' | 'DELETE', path: string]

const ROUTES: Readonly<Record<OperationMethod, Route>> = {
  SendMessage: ['POST', '/message:send'],
  SendStreamingMessage: ['POST', '/message:stream'],
  GetTask: ['GET', '/tasks/{id}'],
  ListTasks: ['GET', '/tasks'],
  CancelTask: ['POST', '/tasks/{id}:cancel'],
  SubscribeToTask: ['POST', '/tasks/{id}:subscribe'],
  CreateTaskPushNotificationConfig: ['POST', '/tasks/{taskId}/pushNotificationConfigs'],
  GetTaskPushNotificationConfig: ['GET', '/tasks/{taskId}/pushNotificationConfigs/{id}'],
  ListTaskPushNotificationConfigs: ['GET', '/tasks/{taskId}/pushNotificationConfigs'],
  DeleteTaskPushNotificationConfig: ['DELETE', '/tasks/{taskId}/pushNotificationConfigs/{id}'],
  GetExtendedAgentCard: ['GET', '/extendedAgentCard']
}

/** A client by REST, in the form of a version. */
export function restCaller(address: string, { prefix, extendedCard, mediaType, extensionsHeader, ...shape }: Shape, usual: Terms): Caller {
  const ask = (operation: OperationMethod, params: object, terms: Terms, signal?: AbortSignal) => {
    const { verb, path, others } = placed(operation === 'GetExtendedAgentCard' ? ['GET', extendedCard] : ROUTES[operation], params)
    const isPost = verb === 'POST'
    const query = isPost ? '' : `?${new URLSearchParams(Object.entries(others).map(([name, value]): [string, string] => [name, String(value)])).toString()}`
    const headers = { ...(isPost && { 'content-type': mediaType }), ...headersOf({ ...usual, ...terms }, extensionsHeader) }
    return exchange(`${address}${prefix}${path}${query}`, { method: verb, headers, ...(isPost && { body: JSON.stringify(shape.body(others)) }), ...(signal && { signal }) })
  }
  return {
    call: async (operation, params, terms = {}) => {
      const { response, json } = await ask(operation, params, terms, terms.cut)
      return { result: shape.result(operation, restResult(json)), extensions: response.headers.get(extensionsHeader) ?? '' }
    },
    stream: (operation, params, terms = {}) => {
      const abort = new AbortController()
      const answer = ask(operation, params, terms, abort.signal)
      answer.catch(() => {})
      const next = async () => {
        const { json, next } = await answer
        const event = next ? await next() : json
        return event === undefined ? undefined : (shape.result(operation, restResult(event)) as StreamResponse)
      }
      return { next, leave: () => abort.abort() }
    }
  }
}

/** Puts ids, and the tenant, into the path; what is not there is left for query or body. */
function placed([verb, template]: Route, params: object): { verb: string; path: string; others: Record<string, unknown> } {
  const { tenant, ...others } = params as Record<string, unknown>
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = others[name]
    delete others[name]
    return encodeURIComponent(String(value))
  })
  return { verb, path: typeof tenant === 'string' ? `/${encodeURIComponent(tenant)}${path}` : path, others }
}

/** The body of an answer. Throws what it refuses with (§11.6). */
function restResult(json: unknown): unknown {
  const { error } = { ...(json as object) } as { error?: { code: number; status?: string; message: string; details?: [] } }
  if (!error) return json
  throw new Refusal(`${error.code} ${error.status ?? ''}`, error.message, error.details ?? [])
}
