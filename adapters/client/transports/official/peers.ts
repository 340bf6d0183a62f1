import type * as sdk from '@a2a-js/sdk'
import type * as grpcClient from '@a2a-js/sdk/client/grpc'
import type * as legacyGrpc from '@a2a-js/sdk/compat/v0_3/client/grpc'
import type * as wire from '@bufbuild/protobuf/wire'
import type * as grpc from '@grpc/grpc-js'
import { checkPackages } from '../../../peers/installed-packages.ts'
import type { PackageName } from '../../../peers/tested-packages.ts'

export type Sdk = typeof sdk
export type SdkGrpcClient = typeof grpcClient
export type SdkLegacyGrpc = typeof legacyGrpc
export type Wire = typeof wire
export type Grpc = typeof grpc

/** Imports a module of an optional peer. A bundler does not look for it: the name is no literal, and the comments are for webpack and vite. */
export async function importPeer<Peer>(name: PackageName | `${PackageName}/${string}`): Promise<Peer> {
  checkPackages([name.split('/', 2).join('/') as PackageName])
  return (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as Peer
}
