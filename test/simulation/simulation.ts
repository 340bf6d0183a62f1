import * as fc from 'fast-check'
import { memoryStore } from '../../runtime/store/memory/memory-store.ts'
import { clusterCommands, commands } from './commands.ts'
import type { ClusterConfig, WorldConfig } from './config.ts'
import type { Requests } from './requests.ts'
import { judge } from './verdict.ts'
import { World, type WorldOptions } from './world.ts'

/** What came of one seed. */
export interface Outcome {
  readonly seed: number
  /** The digest of the journal of each world that was tried. */
  readonly digests: readonly string[]
  /** What is wrong, with the shortest way there that was found; nothing if all is well. */
  readonly failure?: string
  /** How many commands the first world went through, and how many tasks it had. */
  readonly commands: number
  readonly tasks: number
}

/** How a seed is run. */
export interface RunOptions {
  /** Hears of each line of the journal of each world. */
  readonly print?: ((line: string) => void) | undefined
  /** Whether a failing seed is made shorter. Default true. */
  readonly shrinks?: boolean
  /** How many nodes there are at first. Default none: one process. */
  readonly nodes?: number | undefined
  /** Makes the store of a world. Default one in memory. */
  readonly open?: () => Promise<Pick<WorldOptions, 'store' | 'isBusy'>>
}

type Commands = Iterable<fc.AsyncCommand<Requests, World>>

const rarely = (much: number) => fc.constantFrom(0, 0, much / 4, much)

const config: fc.Arbitrary<WorldConfig> = fc.record({
  seed: fc.noShrink(fc.nat()),
  work: fc.constantFrom('generator', 'function', 'chart'),
  negotiates: fc.boolean(),
  messages: fc.constantFrom('reject', 'queue'),
  idleContexts: fc.constantFrom(32, 1, 2),
  liveContexts: fc.constantFrom(10_000, 10_000, 10_000, 3),
  bufferedEvents: fc.constantFrom(64, 1, 2),
  slowStoreMs: fc.constantFrom(0, 5, 40),
  commitFaults: rarely(0.1),
  readFaults: fc.constantFrom(0, 0, 0, 0.02, 0.2),
  crashes: rarely(0.04),
  latencyMs: fc.constantFrom(0, 5, 60),
  cuts: rarely(0.04),
  stalls: rarely(0.02)
})

/** The clocks of nodes are two minutes off, or go too fast, more often than anywhere. */
const clusterConfig = (nodes: number): fc.Arbitrary<ClusterConfig> =>
  fc.record({
    nodes: fc.constant(nodes),
    shards: fc.constantFrom(6, 1, 3),
    aheadMs: fc.array(fc.constantFrom(0, 0, 120_000, -120_000, 1500), { minLength: 4, maxLength: 4 }),
    rates: fc.array(fc.constantFrom(1, 1, 1, 0.95, 1.05), { minLength: 4, maxLength: 4 }),
    databaseAheadMs: fc.constantFrom(0, 60_000),
    slowLinks: rarely(0.2)
  })

/** By then nodes that start together have shared the shards. */
const JOINING_MS = 2000

/** How long the world may take to come to rest when nothing goes wrong any more. */
const QUIET_MS = 10 * 60_000
const UNNOTICED_MS = 45_000
const STEP_MS = 15_000

/** How long a failing seed is made shorter, in real milliseconds. */
const SHRINKING_MS = 15_000

/** Runs the world of a seed, and judges it. A failing one is made as short as it can be, and then shown. */
export async function runSeed(
  seed: number,
  { print, shrinks = true, nodes = 0, open = async () => ({ store: memoryStore() }) }: RunOptions = {}
): Promise<Outcome> {
  const digests: string[] = []
  let first: World | undefined
  let count = 0
  const run = async (config: WorldConfig, commands: Commands, print?: (line: string) => void) => {
    const world = new World(config, { ...(await open()), print })
    first ??= world
    print?.(JSON.stringify(config))
    try {
      if (world.cluster) await world.pass(JOINING_MS)
      await fc.asyncModelRun(
        () => ({ model: world.requests, real: world }),
        counted(commands, () => (count += digests.length === 0 ? 1 : 0))
      )
      await concluded(world)
    } finally {
      world.abandon()
      digests.push(world.journal.digest)
    }
  }
  let last: readonly [WorldConfig, Commands] | undefined
  const sinceMs = Date.now()
  const configs =
    nodes > 0 ? fc.tuple(config, clusterConfig(nodes)).map(([config, cluster]) => ({ ...config, cluster })) : config
  const property = fc.asyncProperty(
    configs,
    fc.commands([...(nodes > 0 ? clusterCommands : commands)], { maxCommands: 50, size: 'max' }),
    async (config, commands) => {
      // Worlds run one after the other: one that is left in the middle would never let another come to rest.
      if (Date.now() - sinceMs > SHRINKING_MS) return
      last ??= [config, commands]
      await run(config, commands)
    }
  )
  const details = await fc.check(property, { seed, numRuns: 1, unbiased: true, endOnFailure: !shrinks })
  const { failed, counterexample, errorInstance, numShrinks } = details
  const [shown, conversation] = counterexample ?? last ?? []
  if (print && shown && conversation) await run(shown, fc.cloneIfNeeded(conversation), print).catch(() => {})
  const failure = failed
    ? `${String(errorInstance)}\nin the world ${JSON.stringify(shown)}\nby ${fc.stringify(conversation)}\n(${numShrinks} times shorter)`
    : undefined
  return {
    seed,
    digests,
    commands: count,
    tasks: first?.ledger.tasks.size ?? 0,
    ...(failure !== undefined && { failure })
  }
}

function* counted<T>(commands: Iterable<T>, count: () => void): Iterable<T> {
  for (const command of commands) {
    count()
    yield command
  }
}

/** Lets all that is under way come to its end, judges it, and ends what waits for its client. */
async function concluded(world: World): Promise<void> {
  world.calmDown()
  await quiet(world)
  judge(world, { isOver: false })
  for (let times = 0; times < 3 && world.open.length + world.pending.length > 0; times += 1) {
    for (const taskId of world.open) world.end(taskId)
    await quiet(world)
  }
  judge(world, { isOver: true })
  world.cluster?.judge()
  await world.close()
}

/** Lets time pass until nothing has happened for as long as a client takes to notice that its connection is gone. */
async function quiet(world: World): Promise<void> {
  let before = ''
  for (let still = 0, ms = 0; still < UNNOTICED_MS && ms < QUIET_MS; ms += STEP_MS) {
    await world.pass(STEP_MS)
    const now = world.progress
    still = now === before ? still + STEP_MS : 0
    before = now
  }
}
