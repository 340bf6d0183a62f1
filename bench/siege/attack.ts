import { setTimeout as elapsed } from 'node:timers/promises'
import { ATTACKS, namesOf } from './attacks.ts'
import { sayAtOnce, THREE_MEGABYTES } from './documents.ts'
import { KEYS } from './keys.ts'
import { Lane, type Prey } from './lane.ts'
import { Random } from './random.ts'
import { Tally, type Told } from './tally.ts'

/** How a server is attacked. */
export interface AttackOptions {
  readonly port: number
  readonly seed: number
  readonly connections: number
  /** How long an attack on one connection goes on that does not end by itself. */
  readonly holdMs: number
  /** The id of a task of the other caller. */
  readonly foreign: string
  /** Only attacks whose name contains one of these texts; empty for all. */
  readonly only: readonly string[]
  /** Attacks of each connection. Default: until the end. */
  readonly rounds?: number
}

const MOST_OPENED = 2000

/** Attacks a server over several connections until `end` aborts. Resolves with the counts of each attack. */
export async function attack(
  options: AttackOptions,
  end: AbortSignal,
  began: (connection: number, name: string) => void = () => {}
): Promise<Told[]> {
  const { seed, connections, only, rounds = Infinity, port, holdMs } = options
  const names = namesOf(only)
  const prey = await findPrey(options)
  const found = (id: string) => {
    prey.opened.push(id)
    if (prey.opened.length > MOST_OPENED) prey.opened.splice(0, MOST_OPENED / 2)
  }
  const tallies = new Map(names.map(name => [name, new Tally(name, found)]))
  const lane = async (connection: number) => {
    const random = new Random(seed * 1000 + connection)
    for (let round = 0; round < rounds && !end.aborted; round += 1) {
      // The first rounds go through all attacks, later ones choose at random.
      const name = (
        round * connections < names.length ? names[(round * connections + connection) % names.length] : random.of(names)
      ) as string
      const tally = tallies.get(name) as Tally
      const lane = new Lane({ port, random, prey, holdMs, tally, end })
      began(connection, name)
      tally.began()
      // An attack on a connection that breaks, or is refused, is over.
      await ATTACKS[name]?.(lane).catch(() => elapsed(20))
      lane.close(random.below(2) === 0)
    }
  }
  await Promise.all(Array.from({ length: connections }, (_, connection) => lane(connection)))
  return [...tallies.values()].map(tally => tally.told())
}

/** Opens the tasks that attacks refer to. Throws Error if the server refuses one. */
async function findPrey({ port, foreign }: AttackOptions): Promise<Prey> {
  const open = async (params: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/message:send`, {
      method: 'POST',
      headers: { 'x-api-key': KEYS.attacker, 'a2a-version': '1.0', 'content-type': 'application/json' },
      body: params
    })
    const { task } = (await response.json()) as { task?: { id: string } }
    if (!task) throw new Error(`The server opens no task for the attacker: ${response.status}`)
    return task.id
  }
  return {
    large: await open(sayAtOnce('ask', THREE_MEGABYTES)),
    grown: await open(sayAtOnce('grow 230')),
    asking: await open(sayAtOnce('ask')),
    running: await open(sayAtOnce('wait')),
    foreign,
    opened: []
  }
}
