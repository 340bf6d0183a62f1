import type { Agent } from '../../../runtime/agent/define-agent.ts'
import type { ClusterStatus } from '../../../runtime/ports/cluster-status.ts'
import type { Places } from '../serve/announcement.ts'
import { tableLines } from '../text/columns.ts'
import { sendLine } from '../text/paste-lines.ts'
import { oneLine, shellWord } from '../text/terminal-text.ts'

/** A node that serves. */
export interface ServedNode extends Places {
  /** Where the other nodes reach it. */
  readonly node: string
  readonly pid: number
}

/** What `taskchart cluster` shows. */
export interface ShownCluster {
  readonly nodes: readonly ServedNode[]
  readonly status: ClusterStatus
  /** Without credentials. */
  readonly database: string
  /** The folder of the data, if the command runs the database. */
  readonly data: string | undefined
  /** The agent's module. */
  readonly file: string
  readonly needsKey: boolean
}

/** The output of `cluster` on a terminal: the nodes, a line that sends a message, and a line that kills the node that works on it. */
export function clusterText({ card }: Agent, { nodes, status, database, data, file, needsKey }: ShownCluster): string {
  const text = card.skills.flatMap(({ examples = [] }) => examples)[0] ?? 'hello'
  const rows = nodes.map(({ url, page, node, pid }, i) => [`  node ${i + 1}`, url, page, String(pid), node])
  const [first, second] = nodes
  const shard = status.shards.find(({ owner }) => owner !== undefined && owner === second?.node)?.shard
  // The context is in a shard of the second node, so killing that interrupts no connection of the client.
  const line = sendLine({
    url: String(first?.url),
    text,
    context: shard === undefined ? undefined : `demo~${shard}`,
    out: 'artifacts',
    needsKey
  })
  const place = data === undefined ? shellWord(`--db=${database}`) : shellWord(file)
  return `${[card.name, ...(card.description === '' ? [] : [card.description])].map(oneLine).join(': ')}

${tableLines([['', 'AGENT', 'PAGE, JSON-RPC AND REST', 'PID', 'FOR THE OTHER NODES'], ...rows]).join('\n')}

  database ${database}${data === undefined ? '' : `, with its data in ${data}`}

Send a message to node 1 from another terminal:

  ${line}
${
  second === undefined || shard === undefined
    ? ''
    : `
Node 2 works on it. Kill node 2 meanwhile: another node takes the task over, and its stream on node 1 continues. Choose a message that
takes long enough.

  kill -9 ${second.pid}
`
}
See who owns what on the page of a node, under Nodes, or here: npx taskchart cluster status ${place}
Ctrl-C stops all nodes.
`
}
