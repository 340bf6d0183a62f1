import type { OperationMethod } from '../../machines/protocol/operations.ts'

/** One route by REST (§11.3): its verb, its path, whose groups are parameters, and the operation that it calls. */
interface Route {
  readonly verb: 'GET' | 'POST' | 'DELETE'
  readonly path: RegExp
  readonly method: OperationMethod
}

/** What a path leads to: the operation, and the parameters that stand in the path, still percent-encoded. */
export interface Routed {
  readonly method: OperationMethod
  readonly parameters: Readonly<Record<string, string>>
  readonly tenant?: string
}

const TASK = '/tasks/(?<id>(?![^/]*:(?:cancel|subscribe)$)[^/]+)'
const TASK_AND = '/tasks/(?<id>[^/]+)'
const CONFIGS = '/tasks/(?<taskId>[^/]+)/pushNotificationConfigs'

/** A2A's routes. Subscribing goes by GET, as in the proto, and by POST, as in the text. */
const ROUTES: readonly Route[] = [
  route('POST', '/message:send', 'SendMessage'),
  route('POST', '/message:stream', 'SendStreamingMessage'),
  route('GET', '/tasks', 'ListTasks'),
  route('POST', `${TASK_AND}:cancel`, 'CancelTask'),
  route('GET', `${TASK_AND}:subscribe`, 'SubscribeToTask'),
  route('POST', `${TASK_AND}:subscribe`, 'SubscribeToTask'),
  route('GET', TASK, 'GetTask'),
  route('POST', CONFIGS, 'CreateTaskPushNotificationConfig'),
  route('GET', CONFIGS, 'ListTaskPushNotificationConfigs'),
  route('GET', `${CONFIGS}/(?<id>[^/]+)`, 'GetTaskPushNotificationConfig'),
  route('DELETE', `${CONFIGS}/(?<id>[^/]+)`, 'DeleteTaskPushNotificationConfig'),
  route('GET', '/extendedAgentCard', 'GetExtendedAgentCard')
]

/** Every route may have a tenant in front. */
const TENANT = /^\/(?<tenant>[^/]+)(?<path>\/.*)$/

/** Finds the route of a path. A list of verbs: the path is one of A2A's, for these. `undefined`: it is none. */
export function routeOf(verb: string, path: string): Routed | readonly string[] | undefined {
  const found = routeFrom(verb, path)
  if (found) return found
  const { tenant = '', path: rest = '' } = TENANT.exec(path)?.groups ?? {}
  const routed = routeFrom(verb, rest)
  return routed && 'method' in routed ? { ...routed, tenant } : routed
}

function routeFrom(verb: string, path: string): Routed | readonly string[] | undefined {
  const allowed: string[] = []
  for (const { verb: wanted, path: pattern, method } of ROUTES) {
    const match = pattern.exec(path)
    if (!match) continue
    if (wanted === verb) return { method, parameters: { ...match.groups } }
    allowed.push(wanted)
  }
  return allowed.length === 0 ? undefined : allowed
}

function route(verb: Route['verb'], path: string, method: OperationMethod): Route {
  return { verb, path: new RegExp(`^${path}$`), method }
}
