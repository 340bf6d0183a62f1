/** taskchart over gRPC, by the official service. Loads `@grpc/grpc-js` and `@bufbuild/protobuf`. */
export { grpcErrors } from './grpc-errors.ts'
