import type { RequestDetails, SendMessageRequest } from '../../machines/protocol/requests.ts'
import type { Received } from '../../machines/task-events.ts'
import { jsonBytes } from '../primitives/json.ts'

/** Details of a request without metadata and configuration. */
export const NO_DETAILS: RequestDetails = Object.freeze({})

/** Metadata and configuration of a request; `undefined` if it has neither. */
export function detailsOf({ metadata, configuration }: SendMessageRequest): RequestDetails | undefined {
  if (!metadata && !configuration) return undefined
  const { acceptedOutputModes, returnImmediately, historyLength } = configuration ?? {}
  if (!metadata && !acceptedOutputModes && !returnImmediately && historyLength === undefined) return undefined
  return {
    ...(metadata && { metadata }),
    ...(acceptedOutputModes && { acceptedOutputModes }),
    ...(returnImmediately && { returnImmediately }),
    ...(historyLength !== undefined && { historyLength })
  }
}

/** Size of a client's message with metadata and configuration of its request, as `jsonBytes` counts it. */
export function receivedBytes({ message, request = NO_DETAILS }: Received): number {
  return jsonBytes(message) + (request === NO_DETAILS ? 0 : jsonBytes(request))
}
