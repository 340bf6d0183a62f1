import type { Runtime } from '../../../runtime/runtime.ts'
import type { Address } from '../../entry/listen.ts'
import type { Dialect } from '../../json-rpc/dialect.ts'
import type { PortBinding } from '../../serve/side-app.ts'
import type { Card03Options } from '../../v03/card.ts'
import { CommandError } from '../command.ts'
import { listenError } from './serve-options.ts'

type GrpcAddress = Address & { readonly port: number }
type Make = (runtime: Runtime, options: Card03Options) => Dialect

interface Loaded {
  readonly dialect03: Make
  readonly dialect01: (runtime: Runtime) => Dialect
}

/** Throws CommandError without the official SDK, an optional peer that translates 0.3 for `--legacy`. */
export async function checkLegacy(): Promise<void> {
  await import('../../legacy/v03.ts').catch(refuseLegacy)
}

/** The older versions of A2A for `--legacy`. Throws CommandError as `checkLegacy` does. */
export async function legacyDialects(
  runtime: Runtime,
  options: Card03Options = {},
  load: () => Promise<Loaded> = () => import('../../legacy/index.ts')
): Promise<Dialect[]> {
  try {
    const { dialect03, dialect01 } = await load()
    return [dialect03(runtime, options), dialect01(runtime)]
  } catch (cause) {
    return refuseLegacy(cause)
  }
}

function refuseLegacy(cause: unknown): never {
  throw new CommandError(
    '--legacy needs the official SDK, which translates A2A 0.3. Install it: npm install @a2a-js/sdk',
    { cause }
  )
}

type Load = () => Promise<{ readonly grpc: (address: GrpcAddress) => PortBinding }>

/**
 * The gRPC binding for `--grpc PORT`. Throws CommandError if the optional peer packages are missing. `open` throws CommandError
 * if the port cannot be bound.
 */
export async function grpcFor(
  address: GrpcAddress,
  load: Load = () => import('../../grpc/index.ts')
): Promise<PortBinding> {
  const { grpc } = await load().catch((cause: unknown) => {
    throw new CommandError(
      '--grpc needs the official SDK and gRPC. Install them: npm install @a2a-js/sdk @grpc/grpc-js @bufbuild/protobuf',
      { cause }
    )
  })
  const { port, host = '' } = address
  return {
    open: runtime =>
      grpc(address)
        .open(runtime)
        .catch(listenError({ host, port }, { host: '--host', port: '--grpc' }))
  }
}
