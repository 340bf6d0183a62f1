import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import { SERVICE_PARAMETERS } from '../../machines/protocol/uris.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'
import { memoizePerTick } from '../../runtime/primitives/event-loop.ts'
import type { RequestId } from './envelope.ts'
import { jsonPieces } from './json-pieces.ts'

/** Stands for a result whose text is made later: no JSON has it as it is. */
const SPLIT = '\n'

/** JSON text of an event, made once however many subscribers it goes to. */
export const encodeOnce = memoizePerTick((event: object) => JSON.stringify(event))

/** The answer to a request. `extensions` are those that the request activated. */
export function resultFrame(id: RequestId, result: string, extensions: readonly string[] = []): string {
  return resultFrames(id, extensions)(result)
}

/** What makes the frames of a stream, each of the JSON text of one event. */
export function resultFrames(id: RequestId, extensions: readonly string[] = []): (result: string) => string {
  const activated = extensions.length > 0 ? `,"${SERVICE_PARAMETERS}":${JSON.stringify({ 'a2a-extensions': extensions.join(',') })}` : ''
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`
  const end = `${activated}}`
  return result => head + result + end
}

/** The answer to a request in pieces, of a result that is large. */
export function* resultPieces(id: RequestId, result: unknown, extensions: readonly string[] = []): Generator<string, void, undefined> {
  const [head = '', end = ''] = resultFrame(id, SPLIT, extensions).split(SPLIT)
  yield head
  yield* jsonPieces(result)
  yield end
}

/** An error, which ends a request or its stream. What is not an A2AError is not for the client to see. */
export function errorFrame(id: RequestId | null, error: unknown): string {
  const shown = isA2AError(error) ? error : new A2AError('InternalError')
  return JSON.stringify({ jsonrpc: '2.0', id, error: toWireError(shown) })
}

/** The end of a stream that went well. */
export function streamEndFrame(id: RequestId): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"streamEnd":true}`
}
