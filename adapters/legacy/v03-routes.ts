import { isObject } from '../../machines/protocol/codec/json.ts'
import type { RestRequest } from '../json-rpc/dialect.ts'
import { asAsked, fromProtoSend, toProtoPush, toProtoPushes, toProtoTask } from '../v03/proto.ts'
import { method03, type Method03 } from './v03-requests.ts'

/** A REST call: a method, its params, and the function that writes its result. */
export interface Route03 {
  readonly method: Method03
  readonly params: unknown
  readonly write: (result: unknown) => unknown
}

/** A route; the groups of `path` are ids. */
interface Row {
  readonly verb: string
  readonly path: RegExp
  readonly method: string
  readonly params: (request: RestRequest, ids: readonly string[]) => unknown
  readonly write: (body: unknown) => (result: never) => unknown
}

const TASK = String.raw`^/v1/tasks/([^/:]+)`
const PUSH = `${TASK}/pushNotificationConfigs`

const byId: Row['params'] = (_, [id]) => ({ id })
const byIds: Row['params'] = (_, [id, pushNotificationConfigId]) => ({ id, pushNotificationConfigId })
const asItIs = () => (result: unknown) => result

const ROWS: readonly Row[] = [
  row('POST', /^\/v1\/message:send$/, 'message/send', ({ body }) => fromProtoSend(body), asAsked),
  row('POST', /^\/v1\/message:stream$/, 'message/stream', ({ body }) => fromProtoSend(body), asAsked),
  row(
    'GET',
    new RegExp(`${TASK}$`),
    'tasks/get',
    ({ query }, [id]) => ({ ...Object.fromEntries(query), id }),
    () => toProtoTask
  ),
  row('POST', new RegExp(`${TASK}:cancel$`), 'tasks/cancel', byId, () => toProtoTask),
  row('GET', new RegExp(`${TASK}:subscribe$`), 'tasks/resubscribe', byId, asAsked),
  row('POST', new RegExp(`${TASK}:subscribe$`), 'tasks/resubscribe', byId, asAsked),
  row(
    'POST',
    new RegExp(`${PUSH}$`),
    'tasks/pushNotificationConfig/set',
    ({ body }, [taskId]) => ({ ...webhookIn(body), taskId }),
    () => toProtoPush
  ),
  row('GET', new RegExp(`${PUSH}$`), 'tasks/pushNotificationConfig/list', byId, () => toProtoPushes),
  row('GET', new RegExp(`${PUSH}/([^/]+)$`), 'tasks/pushNotificationConfig/get', byIds, () => toProtoPush),
  row('DELETE', new RegExp(`${PUSH}/([^/]+)$`), 'tasks/pushNotificationConfig/delete', byIds, asItIs),
  row('GET', /^\/v1\/card$/, 'agent/getAuthenticatedExtendedCard', () => ({}), asItIs)
]

/** The route of a request; `undefined` if there is none. */
export function route03(request: RestRequest): Route03 | undefined {
  for (const { verb, path, method: name, params, write } of ROWS) {
    const match = request.verb === verb ? path.exec(request.path) : null
    const method = method03(name)
    if (!match || !method) continue
    const [, ...ids] = match
    return { method, params: params(request, ids.map(decoded)), write: write(request.body) as Route03['write'] }
  }
  return undefined
}

function row(verb: string, path: RegExp, method: string, params: Row['params'], write: Row['write']): Row {
  return { verb, path, method, params, write }
}

/** The webhook in a body: in `config`, as the proto's request has it, or in the body itself, as the official client sends it. */
function webhookIn(body: unknown): object {
  const { config = body } = isObject(body) ? body : {}
  return isObject(config) ? config : {}
}

/** Decodes an id. Invalid percent-encoding is left as it is, and matches no id. */
function decoded(id: string): string {
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}
