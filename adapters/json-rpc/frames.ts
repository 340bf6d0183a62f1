import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import { SERVICE_PARAMETERS } from '../../machines/protocol/uris.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'
import { memoizePerTick } from '../../runtime/primitives/event-loop.ts'
import type { RequestId } from './envelope.ts'
import { jsonPieces } from './json-pieces.ts'

/** A placeholder for a result that is serialised later: it cannot occur in JSON text. */
const SPLIT = '\n'

/** Serialises an event once, however many subscribers it has. */
export const encodeOnce = memoizePerTick((event: object) => JSON.stringify(event))

/** The frame that answers a request. `extensions` are those that the request activated. */
export function resultFrame(id: RequestId, result: string, extensions: readonly string[] = []): string {
  return resultFrames(id, extensions)(result)
}

/** Returns the function that makes the frames of a stream from the JSON text of each event. */
export function resultFrames(id: RequestId, extensions: readonly string[] = []): (result: string) => string {
  const activated = extensions.length > 0 ? `,"${SERVICE_PARAMETERS}":${JSON.stringify({ 'a2a-extensions': extensions.join(',') })}` : ''
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`
  const end = `${activated}}`
  return result => head + result + end
}

/** The frame that answers a request, in pieces, for a large result. */
export function* resultPieces(id: RequestId, result: unknown, extensions: readonly string[] = []): Generator<string, void, undefined> {
  const [head = '', end = ''] = resultFrame(id, SPLIT, extensions).split(SPLIT)
  yield head
  yield* jsonPieces(result)
  yield end
}

/** The frame of an error, which ends a request or its stream. Anything but an A2AError is shown as InternalError. */
export function errorFrame(id: RequestId | null, error: unknown): string {
  const shown = isA2AError(error) ? error : new A2AError('InternalError')
  return JSON.stringify({ jsonrpc: '2.0', id, error: toWireError(shown) })
}

/** The frame that ends a stream without an error. */
export function streamEndFrame(id: RequestId): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"streamEnd":true}`
}
