import { LegacyGrpcTransport } from '@a2a-js/sdk/compat/v0_3/client/grpc'
import { parameters03, type Calls } from '../../calls.ts'
import type { ConnectOptions } from '../../options.ts'
import { openGrpc, type GrpcDialect } from './grpc.ts'

/** A marker in the metadata of an appended chunk, which restores `append`: the official client drops it. */
const APPENDED = 'taskchart-append'

const GRPC_03: GrpcDialect = {
  open: (endpoint, { grpcChannelCredentials, grpcCallOptions }) => new LegacyGrpcTransport({ endpoint, grpcChannelCredentials, grpcCallOptions }),
  metadata: parameters03,
  received: event => {
    const { payload } = event as { readonly payload: { readonly $case: string; readonly value: { readonly append?: boolean; metadata?: object } } }
    if (payload.$case === 'artifactUpdate' && payload.value.append) payload.value.metadata = { ...payload.value.metadata, [APPENDED]: true }
    return event
  },
  result: value => {
    const { artifactUpdate: { metadata = {}, ...others } = {} } = value as { readonly artifactUpdate?: { readonly metadata?: Record<string, unknown> } }
    const { [APPENDED]: isAppended, ...own } = metadata
    if (!isAppended) return value
    return { artifactUpdate: { ...others, append: true, ...(Object.keys(own).length > 0 && { metadata: own }) } }
  }
}

/** Connects to an agent over the gRPC of 0.3, through the official client. Calls and answers are in wire JSON of 1.0. */
export async function openGrpc03(url: string, options: ConnectOptions, isReliable: boolean): Promise<Calls> {
  return openGrpc(url, options, isReliable, GRPC_03)
}
