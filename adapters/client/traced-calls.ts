import { ATTRIBUTES, callAttributes, INVOKES_AGENT, methodName } from '../../runtime/telemetry/attributes.ts'
import { spanned, spannedStream, type SpannedCall } from '../../runtime/telemetry/spans.ts'
import type { Telemetry } from '../../runtime/telemetry/telemetry.ts'
import type { Calls } from './calls.ts'
import type { RequestFrame } from './requests.ts'

/** Whom a client calls. */
export interface CalledAgent {
  readonly binding: string
  /** As the card has it, if that was read. */
  readonly name?: string | undefined
}

/**
 * Calls with a span each, of the kind `client`, within the span in which they are made. What the agent does for one belongs
 * to it, also when it is sent again. A stream's begins with its first step, and ends with it or when its reader leaves.
 */
export function tracedCalls(calls: Calls, agent: CalledAgent, telemetry: Telemetry): Calls {
  const { url, link } = calls
  const { binding } = agent
  const place = placeOf(url)
  const spannedCall = (frame: RequestFrame, signal: AbortSignal | undefined): SpannedCall => ({
    begin: () => telemetry.begin({ kind: 'client', name: nameOf(frame, agent), attributes: { ...place, ...attributesOf(frame, agent) } }),
    binding,
    signal
  })
  return {
    url,
    link,
    call: (frame, signal) => spanned(spannedCall(frame, signal), ({ carrier }) => calls.call({ ...frame, trace: carrier }, signal)),
    stream: (frame, signal) => spannedStream(spannedCall(frame, signal), ({ carrier }) => calls.stream({ ...frame, trace: carrier }, signal))
  }
}

/** By the conventions for generative AI where the agent is to do something, by those for RPC elsewhere. */
function nameOf({ method }: RequestFrame, { name }: CalledAgent): string {
  if (!isSend(method)) return methodName(method)
  return name === undefined ? 'invoke_agent' : `invoke_agent ${name}`
}

function attributesOf({ method, params }: RequestFrame, { binding, name }: CalledAgent) {
  return {
    ...callAttributes(method, binding, params),
    ...(isSend(method) && INVOKES_AGENT),
    ...(name !== undefined && { [ATTRIBUTES.agentName]: name })
  }
}

function isSend(method: string): boolean {
  return method === 'SendMessage' || method === 'SendStreamingMessage'
}

/** The host and port of an address, which over gRPC has no scheme. */
function placeOf(url: string) {
  const { protocol, hostname, port } = new URL(url.includes('://') ? url : `grpc://${url}`)
  const usual = /^(?:https|wss|grpcs):$/.test(protocol) ? 443 : 80
  return { [ATTRIBUTES.serverAddress]: hostname, [ATTRIBUTES.serverPort]: port === '' ? usual : Number(port) }
}
