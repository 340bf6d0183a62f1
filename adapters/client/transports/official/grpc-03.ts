import { parameters03 } from '../../calls.ts'
import { loadGrpc, type GrpcDialect } from './grpc.ts'
import { importPeer, type SdkLegacyGrpc } from './peers.ts'

/** A marker in the metadata of an appended chunk, which restores `append`: the official client drops it. */
const APPENDED = 'taskchart-append'

const GRPC_03: Omit<GrpcDialect, 'open'> = {
  metadata: parameters03,
  received: event => {
    const { payload } = event as {
      readonly payload: { readonly $case: string; readonly value: { readonly append?: boolean; metadata?: object } }
    }
    if (payload.$case === 'artifactUpdate' && payload.value.append)
      payload.value.metadata = { ...payload.value.metadata, [APPENDED]: true }
    return event
  },
  result: value => {
    const { artifactUpdate: { metadata = {}, ...others } = {} } = value as {
      readonly artifactUpdate?: { readonly metadata?: Record<string, unknown> }
    }
    const { [APPENDED]: isAppended, ...own } = metadata
    if (!isAppended) return value
    return { artifactUpdate: { ...others, append: true, ...(Object.keys(own).length > 0 && { metadata: own }) } }
  }
}

/** Loads the official client. The returned function connects to an agent over the gRPC of 0.3. Calls and answers are in wire JSON of 1.0. */
export function loadGrpc03() {
  return loadGrpc(async () => {
    const { LegacyGrpcTransport } = await importPeer<SdkLegacyGrpc>('@a2a-js/sdk/compat/v0_3/client/grpc')
    return {
      ...GRPC_03,
      open: (endpoint, { grpcChannelCredentials, grpcCallOptions }) =>
        new LegacyGrpcTransport({ endpoint, grpcChannelCredentials, grpcCallOptions })
    }
  })
}
