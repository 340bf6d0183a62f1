import type { RequestDetails, SendMessageRequest } from '../../machines/protocol/requests.ts'
import type { Received } from '../../machines/task-events.ts'
import { jsonBytes } from '../primitives/json.ts'

/** The details of a request that has neither metadata nor configuration. */
export const NO_DETAILS: RequestDetails = Object.freeze({})

/** The metadata and configuration of a request; `undefined` if it has neither. */
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

/** The bytes of a client's message as `jsonBytes` counts them, with the metadata and configuration of its request. */
export function receivedBytes({ message, request = NO_DETAILS }: Received): number {
  return jsonBytes(message) + (request === NO_DETAILS ? 0 : jsonBytes(request))
}
