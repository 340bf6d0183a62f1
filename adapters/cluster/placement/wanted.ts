import { isAsNew, isFormatAsNew, type NodeVersion } from './node-version.ts'
import { wantedOwners } from './placement.ts'

/** How long shards of a newer version wait for a node of that version. Later, a node with an older agent is meant to have them: it was rolled back. */
export const ROLLED_BACK_MS = 10_000

/** A higher number than any of an agent's version. */
const ANY = 10 ** 16

export interface VersionedNode {
  readonly address: string
  /** Whether it takes shards. */
  readonly takes: boolean
  readonly version: NodeVersion
}

/** The owner that a shard should have, and the newest version of its last owner with which that may take it. */
export interface WantedOwner {
  readonly owner: string | undefined
  readonly newest: NodeVersion
}

/**
 * The node that should own each shard: one as new as the shard's last owner. If no such node has been there for a while, also one with an
 * older agent, but never one that knows only older formats.
 */
export class Wanted {
  /** The versions of nodes that were seen not long ago, with the last time. */
  readonly #seen = new Map<string, { readonly version: NodeVersion; readonly atMs: number }>()
  #firstMs: number | undefined
  #made: { readonly key: string; readonly owners: readonly WantedOwner[] } = { key: '', owners: [] }

  /** `shards` has the version of each shard's last owner. */
  look(nodes: readonly VersionedNode[], shards: readonly NodeVersion[], nowMs: number): readonly WantedOwner[] {
    this.#firstMs ??= nowMs
    for (const { version } of nodes) this.#seen.set(version.join(), { version, atMs: nowMs })
    for (const [name, { atMs }] of this.#seen) if (nowMs - atMs >= ROLLED_BACK_MS) this.#seen.delete(name)
    const takers = nodes.filter(({ takes }) => takes)
    const versions = [...this.#seen.values()].map(({ version }) => version)
    const isKnown = nowMs - this.#firstMs >= ROLLED_BACK_MS
    const key = JSON.stringify([
      takers.map(({ address, version }) => [address, ...version].join(' ')).toSorted(),
      shards,
      versions,
      isKnown
    ])
    if (this.#made.key === key) return this.#made.owners
    const isRolledBack = shards.map(shard => isKnown && !versions.some(version => isAsNew(version, shard)))
    const byAddress = new Map(takers.map(({ address, version }) => [address, version]))
    const versionOf = (node: string | undefined) => byAddress.get(node ?? '') ?? []
    const owners = wantedOwners(shards.length, [...byAddress.keys()], (shard, node) => {
      const last = shards[shard] as NodeVersion
      return isAsNew(versionOf(node), last) || (isRolledBack[shard] === true && isFormatAsNew(versionOf(node), last))
    })
    const made = owners.map((owner, shard): WantedOwner => ({
      owner,
      newest: isRolledBack[shard] ? [versionOf(owner)[0] ?? 0, ANY] : versionOf(owner)
    }))
    this.#made = { key, owners: made }
    return made
  }
}
