import type { Address } from '../../entry/listen.ts'
import type { PortBinding } from '../../serve/side-app.ts'
import { CommandError } from '../command.ts'

type Load = () => Promise<{ readonly grpc: (address: Address) => PortBinding }>

/**
 * gRPC for `--grpc PORT`. Throws CommandError without the packages that serve it, which are optional peers; what is opened does
 * for a port that cannot be bound.
 */
export async function grpcFor(address: Address, load: Load = () => import('../../grpc/index.ts')): Promise<PortBinding> {
  const { grpc } = await load().catch((cause: unknown) => {
    throw new CommandError('--grpc needs the official SDK and gRPC. Install them: npm install @a2a-js/sdk @grpc/grpc-js @bufbuild/protobuf', { cause })
  })
  const { port, host = '' } = address
  const refuse = (cause: unknown) => {
    throw new CommandError(`${host} port ${port} cannot be served by gRPC: ${(cause as Error).message}. Choose another with --grpc, or --grpc 0 for any.`, { cause })
  }
  return { open: runtime => grpc(address).open(runtime).catch(refuse) }
}
