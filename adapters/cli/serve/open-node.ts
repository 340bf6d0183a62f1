import type { Logger } from '../../../runtime/ports/logger.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { postgresNode, SECRET_LENGTH } from '../../cluster/cluster.ts'
import type { ClusterNode } from '../../cluster/node.ts'
import { isLoopback } from '../../entry/admission.ts'
import { bindFault } from '../../entry/bind.ts'
import { isPostgresUrl } from '../../postgres/session/pool.ts'
import { CommandError, usageError } from '../command.ts'
import { openStore } from './open-store.ts'

/** The variable with the secret of a cluster. */
export const SECRET_VARIABLE = 'TASKCHART_CLUSTER_SECRET'

/** The options `--db` and `--node`. */
export interface NodePlace {
  readonly db: string | undefined
  readonly node: string | undefined
}

/** The store of a server, and its node if it is one of a cluster. `broken` aborts with the reason if the store fails for good. */
export interface OpenedStore {
  readonly store: Store
  readonly broken: AbortSignal
  readonly node?: ClusterNode
}

/** Opens the store of `--db`; with `--node` as one node of the cluster that shares it. */
export async function openNode(
  { db, node: address }: NodePlace,
  cwd: string,
  logger: Logger,
  secret?: string
): Promise<OpenedStore> {
  if (address === undefined || db === undefined) return openStore(db, cwd, logger)
  const node = await postgresNode(db, { address, secret, logger })
  return { node, store: node.store, broken: new AbortController().signal }
}

/** Lets the other nodes reach a node. */
export async function joinCluster({ node }: OpenedStore, address = ''): Promise<void> {
  await node?.open().catch((cause: unknown) => {
    const { hostname, port } = new URL(address)
    const fault = bindFault(cause, { host: hostname, port: Number(port) })
    throw new CommandError(
      `--node ${address} cannot be served: ${fault?.text ?? `${(cause as Error).message}.`} Choose another address of this machine.`,
      { cause }
    )
  })
}

/** Validates `--node`. Throws a usage error for an address that is none, without a database, or without a secret where others could reach it. */
export function checkNode({ db, node }: NodePlace, secret: string | undefined): void {
  if (node === undefined) return
  const url = URL.canParse(node) ? new URL(node) : undefined
  if (url?.protocol !== 'ws:' || url.port === '' || url.pathname !== '/' || url.username !== '')
    throw usageError(
      `--node takes the address by which other nodes reach this one, such as ws://10.0.0.7:4243, not ${JSON.stringify(node)}.`
    )
  if (db === undefined || !isPostgresUrl(db))
    throw usageError('--node needs the database that all nodes share: --db postgres://HOST/DATABASE.')
  if (secret !== undefined && secret.length < SECRET_LENGTH)
    throw usageError(
      `${SECRET_VARIABLE} needs at least ${SECRET_LENGTH} characters. Make one with: openssl rand -base64 24`
    )
  if (secret === undefined && !isLoopback(url.hostname))
    throw usageError(
      `Without a secret, anyone could act as a node at ${url.host}. Set ${SECRET_VARIABLE} to the same text for all nodes: openssl rand -base64 24`
    )
}
