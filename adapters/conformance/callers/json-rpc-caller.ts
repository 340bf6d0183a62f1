import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { isJsonType, mediaType } from '../../client/transports/body.ts'
import { accessOf, type Caller, headersOf, type Note, type Terms, unheard } from './caller.ts'
import { exchange, type HttpAnswer } from './exchange.ts'
import { asItIs, resultOf, type Translation } from './rpc-response.ts'

/** A client over JSON-RPC and HTTP (§9), in a version of A2A. */
export function jsonRpcCaller(
  url: string,
  usual: Terms,
  note: Note = unheard,
  { extensionsHeader, ...translation }: Translation = asItIs
): Caller {
  let lastId = 0
  const post = (body: string, terms: Terms) => {
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headersOf({ ...usual, ...terms }, extensionsHeader)
    }
    return exchange(url, { method: 'POST', body, headers, signal: terms.cut ?? null }, accessOf({ ...usual, ...terms }))
  }
  const ask = async (method: string, params: unknown, terms: Terms) => {
    lastId += 1
    // Alternates between both types of request ids.
    const id = lastId % 2 === 0 ? `c-${lastId}` : lastId
    return { id, ...(await post(JSON.stringify({ jsonrpc: '2.0', id, method, params }), terms)) }
  }
  const noteType = ({ response }: HttpAnswer) =>
    note(15, mediaType(response) === 'application/json', 'Content-Type: application/json', mediaType(response))
  return {
    call: async (operation, params, terms = {}) => {
      const answer = await ask(translation.method(operation), translation.params(operation, params), terms)
      noteType(answer)
      const result = resultOf(answer.json, answer.id, note)
      return {
        result: translation.result(operation, result),
        extensions: answer.response.headers.get(extensionsHeader) ?? ''
      }
    },
    stream: (operation, params, terms = {}) => {
      const abort = new AbortController()
      const cut = terms.cut ? AbortSignal.any([terms.cut, abort.signal]) : abort.signal
      const answer = ask(translation.method(operation), translation.params(operation, params), { ...terms, cut })
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
  return (id, ...told) => note(id === 14 ? 18 : id, ...told)
}
