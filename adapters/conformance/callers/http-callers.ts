import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import { isJsonType, mediaType } from '../../client/transports/body.ts'
import { objectMembersOf } from '../requirements/needs.ts'
import { accessOf, type WireCaller, parameterHeaders, type Note, type WireParameters, ignoreFinding } from './caller.ts'
import { asItIs, exchange, type HttpAnswer, restRefusal, resultOf, type Translation } from './exchange.ts'

/** A client over JSON-RPC and HTTP (§9), in a version of A2A. */
export function jsonRpcCaller(
  url: string,
  usual: WireParameters,
  note: Note = ignoreFinding,
  { extensionsHeader, ...translation }: Translation = asItIs
): WireCaller {
  let lastId = 0
  const post = (body: string, parameters: WireParameters) => {
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...parameterHeaders({ ...usual, ...parameters }, extensionsHeader)
    }
    return exchange(
      url,
      { method: 'POST', body, headers, signal: parameters.cut ?? null },
      accessOf({ ...usual, ...parameters })
    )
  }
  const ask = async (method: string, params: unknown, parameters: WireParameters) => {
    lastId += 1
    // Alternates between both types of request ids.
    const id = lastId % 2 === 0 ? `c-${lastId}` : lastId
    return { id, ...(await post(JSON.stringify({ jsonrpc: '2.0', id, method, params }), parameters)) }
  }
  const noteType = ({ response }: HttpAnswer) =>
    note(15, mediaType(response) === 'application/json', 'Content-Type: application/json', mediaType(response))
  return {
    call: async (operation, params, parameters = {}) => {
      const answer = await ask(translation.method(operation), translation.params(operation, params), parameters)
      noteType(answer)
      const result = resultOf(answer.json, answer.id, note)
      return {
        result: translation.result(operation, result),
        extensions: answer.response.headers.get(extensionsHeader) ?? ''
      }
    },
    stream: (operation, params, parameters = {}) => {
      const abort = new AbortController()
      const cut = parameters.cut ? AbortSignal.any([parameters.cut, abort.signal]) : abort.signal
      const answer = ask(translation.method(operation), translation.params(operation, params), { ...parameters, cut })
      answer.catch(() => {})
      const next = async () => {
        const { id, json, next } = await answer
        const event = next ? await next() : json
        if (event === undefined) return undefined
        const result = resultOf(event, id, next ? noteEvents(note) : note)
        note(18, next !== undefined, 'a stream: Content-Type: text/event-stream', json)
        return translation.result(operation, result) as StreamResponse
      }
      return { next, leave: () => abort.abort() }
    },
    raw: async text => {
      const answer = await post(text, {})
      if (isJsonType(mediaType(answer.response))) noteType(answer)
      return { ...(answer.json as object) }
    },
    close: () => {}
  }
}

/** Findings about the envelope of an event belong to a requirement of their own (§9.4.2). */
function noteEvents(note: Note): Note {
  return (id, ...finding) => note(id === 14 ? 18 : id, ...finding)
}

/** The form of REST in a version of A2A. */
export interface Shape {
  /** The prefix of all routes. */
  readonly prefix: string
  readonly extendedCard: string
  readonly mediaType: string
  readonly extensionsHeader: string
  body(params: Record<string, unknown>): object
  /** Converts the result of an operation, or an event of its stream. */
  result(operation: OperationMethod, result: unknown): unknown
}

/** REST of A2A 1.0 (§11). */
export const AS_IT_IS: Shape = {
  prefix: '',
  extendedCard: '/extendedAgentCard',
  mediaType: 'application/a2a+json',
  extensionsHeader: 'a2a-extensions',
  body: params => params,
  result: (_, result) => result
}

/** The method and path of an operation, with parameters in braces. */
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

/** A REST client, in a version of A2A. `address`: the base URL without a trailing slash. */
export function restCaller(
  address: string,
  usual: WireParameters,
  note: Note = ignoreFinding,
  shape: Shape = AS_IT_IS
): WireCaller {
  const { prefix, extendedCard, extensionsHeader } = shape
  const ask = async (operation: OperationMethod, params: object, parameters: WireParameters) => {
    const { verb, path, others } = placed(
      operation === 'GetExtendedAgentCard' ? ['GET', extendedCard] : ROUTES[operation],
      params
    )
    const isPost = verb === 'POST'
    const query = isPost
      ? ''
      : `?${new URLSearchParams(Object.entries(others).map(([name, value]): [string, string] => [name, String(value)])).toString()}`
    const headers = {
      ...(isPost && { 'content-type': shape.mediaType }),
      accept: `${shape.mediaType}, text/event-stream`,
      ...parameterHeaders({ ...usual, ...parameters }, extensionsHeader)
    }
    const answer = await exchange(
      `${address}${prefix}${path}${query}`,
      {
        method: verb,
        headers,
        ...(isPost && { body: JSON.stringify(shape.body(others)) }),
        signal: parameters.cut ?? null
      },
      accessOf({ ...usual, ...parameters })
    )
    if (!answer.next)
      note(
        20,
        mediaType(answer.response) === shape.mediaType,
        `Content-Type: ${shape.mediaType}`,
        mediaType(answer.response)
      )
    return answer
  }
  return {
    call: async (operation, params, parameters = {}) => {
      const answer = await ask(operation, params, parameters)
      return {
        result: shape.result(operation, restResult(answer, answer.json, note)),
        extensions: answer.response.headers.get(extensionsHeader) ?? ''
      }
    },
    stream: (operation, params, parameters = {}) => {
      const abort = new AbortController()
      const answer = ask(operation, params, {
        ...parameters,
        cut: parameters.cut ? AbortSignal.any([parameters.cut, abort.signal]) : abort.signal
      })
      answer.catch(() => {})
      const next = async () => {
        const given = await answer
        const event = given.next ? await given.next() : given.json
        if (event === undefined) return undefined
        const result = restResult(given, event, note)
        note(22, given.next !== undefined, 'a stream: Content-Type: text/event-stream', event)
        return shape.result(operation, result) as StreamResponse
      }
      return { next, leave: () => abort.abort() }
    },
    close: () => {}
  }
}

/** Puts ids and the tenant into the path; other parameters are left for query or body. */
function placed(
  [verb, template]: Route,
  params: object
): { verb: string; path: string; others: Record<string, unknown> } {
  const { tenant, ...others } = params as Record<string, unknown>
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = others[name]
    delete others[name]
    return encodeURIComponent(String(value))
  })
  return { verb, path: typeof tenant === 'string' ? `/${encodeURIComponent(tenant)}${path}` : path, others }
}

/**
 * The body of an answer, or an event. Throws its error (§11.6), which in a stream has a code of its own, since the
 * status came before.
 */
function restResult({ response: { status, ok }, next }: HttpAnswer, json: unknown, note: Note): unknown {
  const { error } = objectMembersOf(json)
  if (ok && error === undefined) return json
  throw restRefusal(next ? Number(objectMembersOf(error).code) : status, error, note)
}
