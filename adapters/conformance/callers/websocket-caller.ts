import { WebSocket } from 'ws'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { SERVICE_PARAMETERS, WEBSOCKET_SUBPROTOCOL } from '../../../machines/protocol/uris.ts'
import { onReceived } from '../../../runtime/primitives/event-loop.ts'
import { currentAddress } from '../../client/options.ts'
import { accessOf, type WireCaller, parameterHeaders, type Note, type WireParameters, ignoreFinding } from './caller.ts'
import { asItIs, resultOf, type RpcResponse, type Translation } from './exchange.ts'

/**
 * A WebSocket client according to docs/websocket-binding.md, in a version of A2A. The next call restores a lost
 * connection.
 */
export function webSocketCaller(
  url: string,
  usual: WireParameters,
  note: Note = ignoreFinding,
  translation: Translation = asItIs
): WireCaller {
  let lastId = 0
  let socket: FrameSocket | undefined
  const connection = () => {
    if (!socket || socket.isClosed)
      socket = new FrameSocket(
        currentAddress(url, accessOf(usual)),
        parameterHeaders(usual, translation.extensionsHeader)
      )
    return socket
  }
  const begin = (method: string, params: unknown, parameters: WireParameters) => {
    lastId += 1
    const id = lastId % 2 === 0 ? `c-${lastId}` : lastId
    const given = {
      ...(parameters.version === '' && { 'a2a-version': '' }),
      ...parameterHeaders(parameters, translation.extensionsHeader)
    }
    const own = Object.keys(given).length > 0 && { [SERVICE_PARAMETERS]: given }
    const used = connection()
    const frames = used.ask(id, JSON.stringify({ jsonrpc: '2.0', id, method, params, ...own }))
    parameters.cut?.addEventListener('abort', () => used.terminate(), { once: true })
    return { id, frames }
  }
  return {
    call: async (operation, params, parameters = {}) => {
      const { id, frames } = begin(translation.method(operation), translation.params(operation, params), parameters)
      const response = (await frames.next()) as RpcResponse
      frames.done()
      const result = resultOf(response, id, note)
      return {
        result: translation.result(operation, result),
        extensions: response[SERVICE_PARAMETERS]?.['a2a-extensions'] ?? ''
      }
    },
    stream: (operation, params, parameters = {}) => {
      const { id, frames } = begin(translation.method(operation), translation.params(operation, params), parameters)
      const next = async () => {
        const response = (await frames.next()) as RpcResponse
        if (response.streamEnd !== true)
          return translation.result(operation, resultOf(response, id, note)) as StreamResponse
        note(147, true, '', undefined)
        frames.done()
        return undefined
      }
      return { next, leave: () => frames.leave() }
    },
    raw: async text => {
      const id = idIn(text)
      const frames = connection().ask(id, text)
      const response = await frames.next()
      frames.done()
      return response as Record<string, unknown>
    },
    close: () => socket?.terminate()
  }
}

/** The request id of this text. */
function idIn(text: string): string | number | null {
  try {
    const { id } = { ...(JSON.parse(text) as { id?: unknown }) }
    return typeof id === 'string' || Number.isInteger(id) ? (id as string) : null
  } catch {
    return null
  }
}

/** The maximum length of a frame. */
const LONGEST_FRAME_BYTES = 16 * 1024 * 1024

/** The time limit of a handshake, which `ws` enforces. */
const HANDSHAKE_MS = 10_000

/** The frames that answer one request. */
export interface Frames {
  /** The next frame. Rejects with InvalidAgentResponse when the connection has ended. */
  next(): Promise<unknown>
  /** No more are expected. */
  done(): void
  /** Cancels the stream; its task goes on. */
  leave(): void
}

/** A WebSocket whose frames are sorted by request id. */
export class FrameSocket {
  readonly #socket: WebSocket
  readonly #opened: Promise<void>
  readonly #waiting = new Map<unknown, { frames: unknown[]; wake: () => void }>()
  #end: string | undefined

  constructor(url: string, headers: Record<string, string>) {
    this.#socket = new WebSocket(url, WEBSOCKET_SUBPROTOCOL, {
      headers,
      maxPayload: LONGEST_FRAME_BYTES,
      handshakeTimeout: HANDSHAKE_MS,
      followRedirects: false
    })
    this.#opened = new Promise(resolve => {
      this.#socket.once('open', resolve)
      this.#socket.once('close', () => resolve())
    })
    this.#socket.on('error', ({ message }) => this.#ended(message))
    this.#socket.on('close', (code, reason) => this.#ended(`closed with ${code} ${String(reason)}`.trim()))
    onReceived(this.#socket, 'message', (data: Buffer) => this.#onFrame(data.toString('utf8')))
  }

  get isClosed(): boolean {
    return this.#end !== undefined
  }

  /** Sends a request as text. */
  ask(id: unknown, text: string): Frames {
    const entry = { frames: [] as unknown[], wake: () => {} }
    this.#waiting.set(id, entry)
    const send = (given: string) => void this.#opened.then(() => this.#end ?? this.#socket.send(given))
    send(text)
    const next = async () => {
      while (entry.frames.length === 0 && this.#end === undefined)
        await new Promise<void>(resolve => (entry.wake = resolve))
      if (entry.frames.length > 0) return entry.frames.shift()
      throw new A2AError('InvalidAgentResponse', `The connection has ended: ${this.#end}`)
    }
    const leave = () => send(JSON.stringify({ jsonrpc: '2.0', method: 'cancelStream', params: { id } }))
    return { next, leave, done: () => void this.#waiting.delete(id) }
  }

  terminate(): void {
    this.#ended('cut by this client')
    this.#socket.terminate()
  }

  #onFrame(text: string): void {
    const frame = parsed(text)
    const entry = isObject(frame) ? this.#waiting.get(frame.id) : undefined
    // A frame with an unknown id counts as the answer to the last request, with a wrong id.
    const meant = entry ?? [...this.#waiting.values()].at(-1)
    meant?.frames.push(frame)
    meant?.wake()
  }

  #ended(why: string): void {
    this.#end ??= why
    for (const { wake } of this.#waiting.values()) wake()
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
