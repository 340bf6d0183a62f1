import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import { SERVICE_PARAMETERS } from '../../machines/protocol/uris.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'
import { memoizePerTick } from '../../runtime/primitives/event-loop.ts'
import type { RequestId } from './envelope.ts'
import { jsonPieces } from './json-pieces.ts'

/** Serialises an event once, however many subscribers it has. */
export const encodeOnce = memoizePerTick((event: object) => JSON.stringify(event))

/** The frame that answers a request. `extensions` are those that the request activated. */
export function resultFrame(id: RequestId, result: string, extensions: readonly string[] = []): string {
  const { head, end } = around(id, extensions)
  return head + result + end
}

/** The texts before and after the JSON text of a result. */
export interface Around {
  readonly head: string
  readonly end: string
}

/** The texts around each result of a request. */
export function around(id: RequestId, extensions: readonly string[] = []): Around {
  const activated =
    extensions.length > 0
      ? `,"${SERVICE_PARAMETERS}":${JSON.stringify({ 'a2a-extensions': extensions.join(',') })}`
      : ''
  return {
    head: `{"jsonrpc":"2.0","id":${typeof id === 'number' ? id : JSON.stringify(id)},"result":`,
    end: `${activated}}`
  }
}

/** The frame that answers a request, in pieces, for a large result. */
export function* resultPieces(
  id: RequestId,
  result: unknown,
  extensions: readonly string[] = []
): Generator<string, void, undefined> {
  const { head, end } = around(id, extensions)
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
