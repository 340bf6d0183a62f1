import { UnauthenticatedUser } from '@a2a-js/sdk/server'
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc'
import * as grpc from '@grpc/grpc-js'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { toRequestHandler, whileConnected } from '../../../adapters/a2a-sdk/index.ts'
import { grpcCaller } from '../../../adapters/conformance/callers/grpc-caller.ts'
import { grpcErrors } from '../../../adapters/grpc/index.ts'
import type { Runtime } from '../../../runtime/runtime-options.ts'
import type { Binding } from '../binding.ts'

/** The official gRPC server (§10) on our actors, called by @grpc/grpc-js. */
export const grpcBinding: Binding = {
  name: 'gRPC',
  version: '1.0',
  serve,
  open: async (t, address, terms) => {
    const caller = grpcCaller(address, { version: '1.0', ...terms })
    t.teardown(() => caller.close())
    return caller
  }
}

async function serve(t: Test, runtime: Runtime): Promise<string> {
  const server = new grpc.Server()
  const port = await promisify(server.bindAsync.bind(server))('127.0.0.1:0', grpc.ServerCredentials.createInsecure())
  t.teardown(() => server.forceShutdown())
  const url = `127.0.0.1:${port}`
  const requestHandler = toRequestHandler(runtime, {
    interfaces: [{ url, protocolBinding: 'GRPC', protocolVersion: '1.0' }]
  })
  const userBuilder = whileConnected(async ({ metadata }: { metadata: grpc.Metadata }) => {
    const [, name] = /^Bearer (\w+)$/.exec(String(metadata.get('authorization')[0])) ?? []
    return name === undefined ? new UnauthenticatedUser() : { isAuthenticated: true, userName: name }
  })
  server.addService(A2AService, grpcErrors(grpcService({ requestHandler, userBuilder })))
  return url
}
