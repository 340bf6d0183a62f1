import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../../../runtime/ports/clock.ts'
import { backOffMs } from '../../../runtime/primitives/event-loop.ts'
import type { Session } from '../../postgres/session/session.ts'
import { wantedOwners } from './placement.ts'
import { CLUSTER, END, ENTER, FORGET, NODE_CLASS, SESSION_AT_ADDRESS } from './statements.ts'

/** The cluster does not accept this node as it is configured. */
export class JoinRefused extends Error {
  override readonly name = 'JoinRefused'
}

/** A node that joins. */
interface Joining {
  readonly address: string
  readonly takesShards: boolean
  /** The process and versions of the node, as JSON. */
  readonly holder: string
  readonly secret: string
  /** How long another session with the address may take to end, in milliseconds. */
  readonly leaseMs: number
  readonly clock: Clock
}

/** The pause between two checks of another session with the address. */
const LOOK_MS = 25

/** The first pause after a refusal, and the longest. Each is twice the one before. */
const PAUSE = { firstMs: 500, longestMs: 30_000 }

/** A node that kept its seat for so long had joined well. */
const LASTING_MS = 60_000

/** The lock of the node that joins: one at a time. */
const JOIN_LOCK = `hashtext('taskchart join ' || current_schema()), 0`

const SET_META = `INSERT INTO meta VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`

/** The secret of nodes that are given none: the first makes it, and stores it in the database. */
export async function storedSecret(session: Session): Promise<string> {
  await session.once(`INSERT INTO meta VALUES ('secret', $1) ON CONFLICT (name) DO NOTHING`, [
    randomBytes(24).toString('base64')
  ])
  const [[secret] = []] = await session.once(`SELECT value FROM meta WHERE name = 'secret'`)
  return String(secret)
}

/**
 * Makes a session that of a node, and returns its process on the server. The first node of a cluster writes the digest
 * of its secret. Another session with the address is replaced if it ends or gives no sign of life during the lease.
 * Rejects with JoinRefused if it lives, and if living nodes have another secret.
 */
export async function joinCluster(session: Session, joining: Joining): Promise<number> {
  for (;;) {
    await replaceOther(session, joining)
    await session.once(`SELECT pg_advisory_lock(${JOIN_LOCK})`)
    try {
      const [other] = await session.rows(SESSION_AT_ADDRESS, [joining.address])
      if (!other) return await enter(session, joining)
    } finally {
      await session.once(`SELECT pg_advisory_unlock(${JOIN_LOCK})`)
    }
  }
}

/** Resolves when no other session has the address. */
async function replaceOther(session: Session, { address, leaseMs, clock }: Joining): Promise<void> {
  const fromMs = clock.now()
  const [first] = await session.rows(SESSION_AT_ADDRESS, [address])
  let other = first
  while (other !== undefined && clock.now() - fromMs < leaseMs) {
    await new Promise<void>(resolve => clock.setTimeout(resolve, LOOK_MS))
    const [next] = await session.rows(SESSION_AT_ADDRESS, [address])
    other = next
  }
  if (first === undefined || other === undefined) return
  if (String(other) !== String(first))
    throw new JoinRefused(`another node has the address ${address}. Give each node an address of its own`)
  await session.rows(END, [[Number(other[0])]])
}

async function enter(session: Session, { address, takesShards, holder, secret }: Joining): Promise<number> {
  const digest = createHash('sha256').update(`taskchart cluster ${secret}`).digest('hex')
  const [[hasOthers, known] = []] = await session.rows(CLUSTER)
  if (hasOthers === 't' && known !== null && known !== digest)
    throw new JoinRefused('the nodes of this database have another secret. Give all of them the same')
  if (known !== digest) await session.once(SET_META, ['secret digest', digest])
  await session.once(`SELECT pg_advisory_lock(${NODE_CLASS}, pg_backend_pid())`)
  await session.rows(FORGET, [address])
  const [[pid] = []] = await session.rows(ENTER, [address, takesShards, holder])
  return Number(pid)
}

/**
 * The pauses before a node tries to join. Refusals count, and losses of a seat; both for as long as no seat lasted a
 * minute. Only the first loss has no pause.
 */
export class JoinPauses {
  #failures = 0
  #joinedAtMs = Infinity

  joined(nowMs: number): void {
    this.#joinedAtMs = nowMs
  }

  /** The pause after another refusal. */
  refused(): number {
    this.#failures += 1
    return backOffMs(this.#failures, PAUSE)
  }

  /** The pause after the node has lost its seat. */
  lost(nowMs: number): number {
    if (nowMs - this.#joinedAtMs >= LASTING_MS) this.#failures = 0
    this.#failures += 1
    return this.#failures === 1 ? 0 : backOffMs(this.#failures - 1, PAUSE)
  }
}

interface FormattedNode {
  readonly address: string
  /** Whether it takes shards. */
  readonly takes: boolean
  /** The newest format of stored actors that it knows. */
  readonly format: number
}

/**
 * The node that should own each shard: one that knows the format of the shard's last owner, else none. The version of
 * its agent does not matter: a node leaves tasks of a newer one in the store.
 */
export class OwnerSelection {
  #made: { readonly key: string; readonly owners: readonly (string | undefined)[] } = { key: '', owners: [] }

  /** `shards` has the format of each shard's last owner. */
  look(nodes: readonly FormattedNode[], shards: readonly number[]): readonly (string | undefined)[] {
    const formats = new Map(nodes.flatMap(({ address, takes, format }) => (takes ? [[address, format] as const] : [])))
    const key = JSON.stringify([Array.from(formats, node => node.join(' ')).toSorted(), shards])
    if (this.#made.key !== key) {
      const mayTake = (shard: number, node: string) => Number(formats.get(node)) >= Number(shards[shard])
      this.#made = { key, owners: wantedOwners(shards.length, [...formats.keys()], mayTake) }
    }
    return this.#made.owners
  }
}

/** A node that has not looked for so long, in milliseconds, knows nothing about the signs of life of others. */
const BLIND_MS = 500

/**
 * A session of a node, with its newest sign of life. Without an address, its node has joined again with another
 * session.
 */
interface Sign {
  readonly pid: number
  readonly address: string | undefined
  readonly beats: string
}

/** Finds the nodes that are hung: their sessions are there, but give no sign of life. */
export class SignsOfLife {
  readonly #leaseMs: number
  readonly #seen = new Map<number, { readonly sign: string; readonly atMs: number }>()
  #lookedAtMs = -Infinity

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  /**
   * The sessions without a new sign of life for the lease, while this process looked all the time: its own pauses are
   * nobody else's fault.
   */
  lateOf(signs: readonly Sign[], nowMs: number): number[] {
    if (nowMs - this.#lookedAtMs > BLIND_MS) this.#seen.clear()
    this.#lookedAtMs = nowMs
    for (const pid of this.#seen.keys()) if (!signs.some(sign => sign.pid === pid)) this.#seen.delete(pid)
    return signs.flatMap(({ pid, address, beats }) => {
      const sign = address === undefined ? '' : `${address} ${beats}`
      const seen = this.#seen.get(pid)
      if (seen?.sign === sign) return nowMs - seen.atMs >= this.#leaseMs ? [pid] : []
      this.#seen.set(pid, { sign, atMs: nowMs })
      return []
    })
  }
}
