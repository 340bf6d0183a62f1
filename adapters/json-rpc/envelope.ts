import { checkJson, checkJsonText, isObject, jsonLimitsOf } from '../../machines/protocol/codec/json.ts'
import { A2AError, invalidParams, isA2AError } from '../../machines/protocol/errors.ts'
import { SERVICE_PARAMETERS } from '../../machines/protocol/uris.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'
import type { Limits } from '../../runtime/access/limits.ts'
import { memoizePerTick } from '../../runtime/primitives/event-loop.ts'
import { jsonPieces } from './json-pieces.ts'

/** The id of a request: text of at most 128 bytes, or a safe integer. */
export type RequestId = string | number

/** A JSON-RPC message from a client, with its envelope decoded. */
export type Envelope =
  | {
      readonly kind: 'request'
      readonly id: RequestId
      readonly method: string
      readonly params: Record<string, unknown>
      readonly serviceParameters: ServiceParameters
    }
  /** A request without an id: it is neither executed nor answered (JSON-RPC §4.1). */
  | { readonly kind: 'notification'; readonly method: string; readonly params: unknown }
  /** A response, which a server ignores. */
  | { readonly kind: 'response' }
  | { readonly kind: 'invalid'; readonly id: RequestId | null; readonly error: A2AError }

/** The service parameters of one request (§3.2.6), names in lower case. */
export type ServiceParameters = ReadonlyMap<string, string>

/** The limits for decoding an envelope. */
type EnvelopeLimits = Pick<Limits, 'jsonDepth' | 'jsonNodes'>

const LONGEST_ID_BYTES = 128
/** Members that occur only in frames of a server. */
const SERVER_MEMBERS = ['result', 'error', 'streamEnd']
/** The id of a request, if it is the first member, or follows only strings without escapes. */
const EARLY_ID = /^\s*\{(?:\s*"[^"\\]*"\s*:\s*"[^"\\]*"\s*,)*?\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,/
/** The length of the text that is searched for an early id. */
const EARLY_LENGTH = 1024
const NO_PARAMETERS: ServiceParameters = new Map()

/** Decodes one JSON-RPC 2.0 message. It does not throw or recurse, for any text. */
export function readEnvelope(text: string, limits: EnvelopeLimits): Envelope {
  const excess = checkJsonText(text, { ...jsonLimitsOf(limits), root: 'request' }, 'params')
  if (excess) return { kind: 'invalid', id: earlyId(text), error: invalidParams(excess) }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return invalid(null, 'ParseError', 'The message is not JSON.')
  }
  if (Array.isArray(value))
    return invalid(null, 'InvalidRequest', 'Batches are not supported. Send each request as a message of its own.')
  if (!isObject(value)) return invalid(null, 'InvalidRequest', 'A request is a JSON object.')
  const hasId = Object.hasOwn(value, 'id')
  const id = hasId ? idOf(value.id) : undefined
  if (value.jsonrpc !== '2.0') return invalid(id ?? null, 'InvalidRequest', 'jsonrpc has to be "2.0".')
  if (!Object.hasOwn(value, 'method') && SERVER_MEMBERS.some(name => Object.hasOwn(value, name)))
    return { kind: 'response' }
  if (hasId && id === undefined) {
    return invalid(
      null,
      'InvalidRequest',
      `id has to be a string of at most ${LONGEST_ID_BYTES} bytes or a whole number.`
    )
  }
  const { method, params } = value
  if (typeof method !== 'string') return invalid(id ?? null, 'InvalidRequest', 'method has to be a string.')
  if (id === undefined) return { kind: 'notification', method, params }
  return requestOf(id, method, params, value[SERVICE_PARAMETERS], limits)
}

function requestOf(id: RequestId, method: string, params: unknown, given: unknown, limits: EnvelopeLimits): Envelope {
  const serviceParameters = parametersOf(given)
  if (!serviceParameters)
    return invalid(id, 'InvalidRequest', `${SERVICE_PARAMETERS} has to be an object whose members are strings.`)
  if (params !== undefined && !isObject(params))
    return invalid(id, 'InvalidParams', 'Invalid parameters: params must be an object.')
  const violation = checkJson(params, jsonLimitsOf(limits))
  if (violation) return { kind: 'invalid', id, error: invalidParams(violation) }
  return { kind: 'request', id, method, params: params ?? {}, serviceParameters }
}

/** The id of an unparsed request; null if it is not near the start. */
function earlyId(text: string): RequestId | null {
  const id = EARLY_ID.exec(text.slice(0, EARLY_LENGTH))?.[1]
  try {
    return idOf(JSON.parse(id ?? 'null')) ?? null
  } catch {
    return null
  }
}

function idOf(id: unknown): RequestId | undefined {
  if (typeof id === 'number') return Number.isSafeInteger(id) ? id : undefined
  return typeof id === 'string' && Buffer.byteLength(id) <= LONGEST_ID_BYTES ? id : undefined
}

function parametersOf(given: unknown): ServiceParameters | undefined {
  if (given === undefined || given === null) return NO_PARAMETERS
  if (!isObject(given)) return undefined
  const parameters = new Map<string, string>()
  for (const [name, value] of Object.entries(given)) {
    if (typeof value !== 'string') return undefined
    parameters.set(name.toLowerCase(), value)
  }
  return parameters
}

function invalid(
  id: RequestId | null,
  code: 'ParseError' | 'InvalidRequest' | 'InvalidParams',
  message: string
): Envelope {
  return { kind: 'invalid', id, error: new A2AError(code, message) }
}

/** Serialises an event once for all its subscribers. */
export const encodeOnce = memoizePerTick((event: object) => JSON.stringify(event))

/** The frame with the result of a request. `extensions`: those that the request activated. */
export function resultFrame(id: RequestId, result: string, extensions: readonly string[] = []): string {
  const { head, end } = resultTexts(id, extensions)
  return head + result + end
}

/** The texts before and after the JSON text of a result. */
export interface ResultTexts {
  readonly head: string
  readonly end: string
}

/** The texts around each result of a request. */
export function resultTexts(id: RequestId, extensions: readonly string[] = []): ResultTexts {
  const activated =
    extensions.length > 0
      ? `,"${SERVICE_PARAMETERS}":${JSON.stringify({ 'a2a-extensions': extensions.join(',') })}`
      : ''
  return {
    head: `{"jsonrpc":"2.0","id":${typeof id === 'number' ? id : JSON.stringify(id)},"result":`,
    end: `${activated}}`
  }
}

/** The same frame in pieces, for a large result. */
export function* resultPieces(
  id: RequestId,
  result: unknown,
  extensions: readonly string[] = []
): Generator<string, void, undefined> {
  const { head, end } = resultTexts(id, extensions)
  yield head
  yield* jsonPieces(result)
  yield end
}

/** The frame of an error, which ends a request or its stream. Anything but an A2AError becomes InternalError. */
export function errorFrame(id: RequestId | null, error: unknown): string {
  const shown = isA2AError(error) ? error : new A2AError('InternalError')
  return JSON.stringify({ jsonrpc: '2.0', id, error: toWireError(shown) })
}

/** The frame that ends a stream without an error. */
export function streamEndFrame(id: RequestId): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"streamEnd":true}`
}
