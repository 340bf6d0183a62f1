import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { authenticateRequest, type RefusedRequest } from '../entry/admission.ts'
import { refusalAnswer, refusalOf } from '../entry/answers.ts'
import type { HttpRequest, NodeResponse } from '../entry/connection.ts'
import { plainParameters, traceParameters } from '../json-rpc/service-parameters.ts'
import { delayRefusal, HttpCall, type RequestHead } from './call.ts'
import { codingRefusal, isJson, wrongType } from './parameters.ts'

type Settings = ServedRuntime['settings']

/** A POST to an endpoint beside the bindings of A2A, such as `/mcp`. */
export interface EndpointPost {
  readonly address: URL
  /** Headers of every answer: CORS. */
  readonly headers: RequestHead['headers']
  /** The tenant that the path names. */
  readonly tenant: string | undefined
  /** How traces name the endpoint. Default: its calls are traced from their own parameters. */
  readonly binding?: string
  /** The cost of reading a request beyond that of its bytes, as a number of bytes. Default 0. */
  readonly extraCost?: number
}

/**
 * Admits a POST of JSON: its caller, the caller's share of requests, and the form of its body. Gives the call, or the
 * answer that refuses it. `explain` adds to the refusal of an unknown caller.
 */
export async function admitPost(
  settings: Settings,
  request: HttpRequest,
  served: NodeResponse,
  { address, headers, tenant, binding, extraCost = 0 }: EndpointPost,
  explain: (refusal: RefusedRequest) => RefusedRequest = refusal => refusal
): Promise<HttpCall | Response> {
  const authenticated = await authenticateRequest(() => Object.fromEntries(request.headers), settings)
  if (authenticated.refusal) return refusePost(settings, explain(authenticated.refusal), headers)
  const { principal } = authenticated
  const head: RequestHead = {
    path: address.pathname,
    query: address.searchParams,
    parameters: plainParameters(PROTOCOL_VERSION),
    headers,
    interfaces: [],
    extraCost
  }
  const { telemetry } = settings
  const traced = binding !== undefined && telemetry ? traceParameters(telemetry, request.headers, binding) : undefined
  const caller = { principal, pathTenant: tenant, traced }
  const full = principal && served.direct?.claim?.(settings.ownerOf(principal, tenant))
  const wrong =
    full ??
    codingRefusal(request) ??
    (isJson(request) ? undefined : { status: 415, message: wrongType(request).message })
  if (!wrong) return new HttpCall(settings, request, served, head, caller, tenant)
  const over = settings.rejected.count({ tenant, principal: principal?.id, claims: principal?.claims })
  await delayRefusal(over, settings)
  return refusePost(settings, over ? refusalOf(over) : (full ?? bareRefusal(wrong)), headers)
}

/** Refuses a request, and counts it. */
export function refusePost(settings: Settings, refusal: RefusedRequest, headers: RequestHead['headers']): Response {
  settings.counters.refused(refusal.status)
  return refusalAnswer(refusal, headers)
}

/** A refusal without the code of A2A, which is none of the endpoint's protocol. */
function bareRefusal({ status, message, headers }: RefusedRequest): RefusedRequest {
  return { status, message, ...(headers && { headers }) }
}
