/**
 * taskchart over gRPC, through the official service. Loads `@a2a-js/sdk`, `@grpc/grpc-js` and `@bufbuild/protobuf`,
 * which are optional peers.
 */
export { grpc } from './grpc-binding.ts'
export { grpcErrors } from './grpc-errors.ts'
