import { checkJson, checkJsonText, isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import { SERVICE_PARAMETERS } from '../../machines/protocol/uris.ts'
import { jsonLimitsOf, type Limits } from '../../runtime/access/limits.ts'

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
export type EnvelopeLimits = Pick<Limits, 'jsonDepth' | 'jsonNodes'>

const LONGEST_ID_BYTES = 128
/** Members that occur only in frames of a server. */
const ANSWERS = ['result', 'error', 'streamEnd']
/** The id of a request, if it is the first member, or follows only strings without escapes. */
const EARLY_ID = /^\s*\{(?:\s*"[^"\\]*"\s*:\s*"[^"\\]*"\s*,)*?\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,/
/** The length of the text that is searched for it. */
const EARLY_LENGTH = 1024
const NO_PARAMETERS: ServiceParameters = new Map()

/** Decodes one JSON-RPC 2.0 message. It never throws and never recurses, whatever the text is. */
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
  if (!Object.hasOwn(value, 'method') && ANSWERS.some(name => Object.hasOwn(value, name))) return { kind: 'response' }
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

/** The id of an unparsed request; null if it is not near the start of the text. */
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
