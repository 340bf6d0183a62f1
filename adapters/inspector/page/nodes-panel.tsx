import { useEffect } from 'preact/hooks'
import type { SeenNodes, SeenShard } from '../nodes-seen.ts'
import { askHub, nodes } from './feed/feed.ts'
import { nowMs } from './page.ts'
import { taskId } from './selection.ts'
import { agoText, countText, shortId, spanText, timeText } from './wording.ts'

/** The interval at which the nodes are requested while they are shown. */
const ASK_MS = 1000

type SeenNode = SeenNodes['nodes'][number]

/** The nodes of the cluster, their shards, the way of the chosen task over them, and the newest moves. */
export function NodesPanel() {
  const task = taskId.value
  useEffect(() => {
    const ask = () =>
      document.visibilityState === 'visible' && askHub({ type: 'nodes', ...(task !== undefined && { taskId: task }) })
    ask()
    const timer = setInterval(ask, ASK_MS)
    return () => clearInterval(timer)
  }, [task])
  const { seen, error } = nodes.value ?? {}
  if (error !== undefined)
    return (
      <div class="panel">
        <p class="empty">
          <span class="wrong" role="alert">
            {error}
          </span>
        </p>
      </div>
    )
  if (!seen)
    return (
      <div class="panel">
        <p class="empty">Reading the nodes…</p>
      </div>
    )
  return (
    <div class="panel nodes-panel" tabIndex={0} role="region" aria-label="Nodes">
      {seen.way && seen.way.taskId === task && <Way way={seen.way} self={seen.self} />}
      <h2>{`${countText(seen.nodes.length, 'node')}, ${countText(
        seen.nodes.reduce((sum, { shards }) => sum + shards.length, seen.free.length),
        'shard'
      )}`}</h2>
      <ul class="node-cards">
        {seen.nodes.map(node => (
          <Node key={node.address} node={node} isSelf={node.address === seen.self} />
        ))}
        {seen.free.length > 0 && (
          <li>
            <b class="wrong">no owner</b>
            <Shards shards={seen.free} />
          </li>
        )}
      </ul>
      <p class="quiet">
        A shard has the tasks of some contexts. Its small number is its epoch: how often it got an owner.
      </p>
      <h2>Newest moves</h2>
      {seen.moves.length === 0 ? (
        <p class="quiet">No shard has moved.</p>
      ) : (
        <ol class="moves">
          {seen.moves.map(({ shard, epoch, from, to, atMs }) => (
            <li key={`${shard} ${epoch}`}>
              <span class="quiet">{agoText(atMs, nowMs.value)}</span> <ShardName shard={shard} epoch={epoch} />{' '}
              <span class="mono">{`${nameOf(from)} → ${nameOf(to)}`}</span>
            </li>
          ))}
        </ol>
      )}
    </div>
  )
}

function Node({ node, isSelf }: { readonly node: SeenNode; readonly isSelf: boolean }) {
  const { address, state, takesShards, agent, process, sinceMs, shards } = node
  const isWell = state === 'alive'
  return (
    <li>
      <b class="mono">{nameOf(address)}</b>
      <span class={isWell ? 'good' : 'wrong'}>{isWell && !takesShards ? 'takes no shards' : state}</span>
      {isSelf && <span>this node</span>}
      <span class="quiet">
        {[agent && `version ${agent}`, `process ${process}`, `joined ${agoText(sinceMs, nowMs.value)}`]
          .filter(Boolean)
          .join(', ')}
      </span>
      <Shards shards={shards} />
    </li>
  )
}

function Shards({ shards }: { readonly shards: readonly SeenShard[] }) {
  if (shards.length === 0) return <p class="quiet shards">no shards</p>
  return (
    <p class="shards">
      {shards.map(({ shard, epoch }) => (
        <ShardName key={shard} shard={shard} epoch={epoch} />
      ))}
    </p>
  )
}

function ShardName({ shard, epoch }: SeenShard) {
  return (
    <span class="shard mono" title={`Shard ${shard}, epoch ${epoch}`}>
      {shard}
      <sup>{epoch}</sup>
    </span>
  )
}

/** The nodes that owned the shard of the chosen task while it lived. */
function Way({
  way: { taskId: id, shard, stays },
  self
}: {
  readonly way: NonNullable<SeenNodes['way']>
  readonly self: string
}) {
  return (
    <section aria-label="The way of this task">
      <h2>{`Task ${shortId(id)}, in shard ${shard}`}</h2>
      {stays.length === 0 && <p class="quiet">Its owners are not known.</p>}
      <ol class="moves">
        {stays.map(({ owner, epoch, fromMs, untilMs }) => (
          <li key={epoch}>
            <b class="mono">{nameOf(owner)}</b>
            {owner === self && ' this node'}{' '}
            <span class="quiet">{`epoch ${epoch}, from ${timeText(fromMs)} ${untilMs === undefined ? 'until now' : `for ${spanText(Math.round(untilMs - fromMs))}`}`}</span>
          </li>
        ))}
      </ol>
    </section>
  )
}

/** The host and port of a node. */
function nameOf(address: string | undefined): string {
  return address?.replace(/^ws:\/\/|\/$/g, '') ?? 'a server without --node'
}
