import type { OperationMethod } from '../../machines/protocol/operations.ts'

/** A REST route (§11.3): its method, its path, whose groups are parameters, and its operation. */
interface Route {
  readonly verb: 'GET' | 'POST' | 'DELETE'
  readonly path: RegExp
  readonly method: OperationMethod
}

/** The operation of a path, and the parameters in the path, still percent-encoded. */
export interface Routed {
  readonly method: OperationMethod
  readonly parameters: Readonly<Record<string, string>>
  readonly tenant?: string
}

const TASK = '/tasks/(?<id>(?![^/]*:(?:cancel|subscribe)$)[^/]+)'
const TASK_AND = '/tasks/(?<id>[^/]+)'
const CONFIGS = '/tasks/(?<taskId>[^/]+)/pushNotificationConfigs'

/** A2A's routes. SubscribeToTask accepts GET, as in the proto, and POST, as in the text. */
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

/** Every route may have a tenant as a prefix. */
const TENANT = /^\/(?<tenant>[^/]+)(?<path>\/.*)$/

/** Finds the route of a path. A list of methods: the path exists for these only. `undefined`: the path does not exist. */
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
