import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { movePart } from '../../../machines/protocol/negotiation.ts'
import type { Message } from '../../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { NativeVersion } from '../../../machines/protocol/versions.ts'
import type { Limits } from '../../../runtime/access/limits.ts'
import { messageOf } from '../../../runtime/authoring/checked-words.ts'
import {
  type Agent,
  defineAgent,
  createRuntime,
  type WorkInput,
  accepted,
  type ArtifactWords
} from '../../../runtime/index.ts'
import { isNegotiation } from '../../../runtime/negotiation/negotiation.ts'
import type { Logger } from '../../../runtime/ports/logger.ts'
import { servedRuntime, type ServedRuntime } from '../../../runtime/runtime-options.ts'
import type { StoreStatus } from '../../../runtime/store/rows.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { memoryStore } from '../../../runtime/work-port.ts'
import { sqliteStore } from '../../storage/sqlite.ts'
import type { OpeningCase } from '../plan/cases.ts'
import { VirtualClock } from './virtual-clock.ts'

/** Whether and how the process is restarted between two steps of a path. */
export type Interlude = 'none' | 'restarted' | 'killed'

/** The context of every path. */
export const CONTEXT = 'context-1'

/** Changes of the runtimes of a world. */
export interface WorldChanges {
  readonly limits?: Partial<Limits>
  readonly versions?: readonly NativeVersion[]
  /** Gives what is called in place of a runtime. */
  readonly watch?: (runtime: ServedRuntime) => ServedRuntime
}

/**
 * An agent's runtime with a virtual clock, which can be restarted on the same disk. Ids are counted, so that they are
 * equal in worlds with the same history.
 */
export class World {
  readonly clock: VirtualClock
  readonly #agent: Agent
  readonly #disk: Disk
  readonly #changes: WorldChanges
  readonly #ids: () => string
  /** Errors appear in the test, not in a log. */
  readonly #logger: Logger
  readonly #errors: unknown[] = []
  #isDead = false
  #runtime: ServedRuntime

  private constructor(agent: Agent, { disk, clock, ids }: Past, changes: WorldChanges) {
    // Time does not pass, so there is no cleanup time, and no restart of crashed work. Paths use streams.
    const note: Logger['error'] = (_, { error }) => void this.#errors.push(error)
    this.#logger = { warn: note, error: note }
    this.#agent = { ...agent, capabilities: {}, cancelGraceMs: 0, restart: { ...agent.restart, type: 'temporary' } }
    this.#disk = disk
    this.#changes = changes
    this.clock = clock
    this.#ids = ids
    this.#runtime = this.#begin()
  }

  /** Opens a world whose context contains the earlier artifacts. */
  static async open(
    agent: Agent,
    { earlier }: Pick<OpeningCase, 'earlier'>,
    disk: Disk,
    changes: WorldChanges = {}
  ): Promise<World> {
    return new World(agent, await past(agent, earlier, disk), changes)
  }

  /** The last error of the author's code. */
  get error(): unknown {
    return this.#errors.findLast(error => error !== undefined)
  }

  get runtime(): ServedRuntime {
    return this.#runtime
  }

  /** Ends the process: closed, or killed. */
  async end(interlude: Exclude<Interlude, 'none'>): Promise<void> {
    this.#isDead = interlude === 'killed'
    await ended(this.#runtime, this.clock)
    this.#isDead = false
  }

  /** Starts the next process. */
  async begin(): Promise<void> {
    this.#runtime = this.#begin()
    for (let times = 0; times < REST; times += 1) await this.rest()
  }

  /** Lets pending work run once, without time passing. */
  rest(): Promise<void> {
    return this.#disk.rest()
  }

  /** Waits until something is so, or could be by now, and then briefly for what is not expected. */
  async settle(isSo: () => boolean, hasSocket: boolean): Promise<void> {
    const patience = PATIENCE + (hasSocket ? SOCKET_PATIENCE_MS : 0)
    for (let times = 0; !isSo() && times < patience; times += 1) {
      // The threads that serve a socket may have to wait on a busy machine.
      if (times >= PATIENCE) await setTimeout(1)
      await this.rest()
    }
    for (let times = 0; times < QUIET; times += 1) await this.rest()
  }

  async close(): Promise<void> {
    await ended(this.#runtime, this.clock)
    await this.#disk.discard()
  }

  #begin(): ServedRuntime {
    const lasting = this.#disk.open()
    const store: Store = { ...lasting, commit: given => (this.#isDead ? new Promise(() => {}) : lasting.commit(given)) }
    const { watch = runtime => runtime, ...options } = this.#changes
    const { clock } = this
    return watch(
      servedRuntime(
        createRuntime({ ...options, agent: this.#agent, clock, ids: this.#ids, logger: this.#logger, store }),
        'world'
      )
    )
  }
}

/** The number of rests for a process to start. */
const REST = 8

/** The number of rests to wait for an expected event. */
const PATIENCE = 20_000

/** The milliseconds to wait for it after that, if it comes over a socket. */
const SOCKET_PATIENCE_MS = 3_000

/** The number of rests to wait for an unexpected event. */
const QUIET = 8

/** The input of the work for this opening; `undefined` if it opens no task. */
export async function inputFor(agent: Agent, opening: OpeningCase): Promise<WorkInput | undefined> {
  let given: WorkInput | undefined
  const { migrate: _, recovery: __, properties: ___, ...others } = agreeing(agent)
  const spy = defineAgent({
    ...others,
    messages: 'reject',
    work: ({
      taskId,
      contextId,
      message,
      request,
      input,
      terms,
      extensions,
      referenceTasks,
      unloadedTasks,
      earlierArtifacts
    }) => {
      given = {
        taskId,
        contextId,
        message,
        request,
        input,
        ...(terms && { terms }),
        extensions,
        referenceTasks,
        unloadedTasks,
        earlierArtifacts
      }
    }
  })
  const world = await World.open(spy, opening, await newDisk('memory'))
  await world.runtime.sendMessage({ message: openingMessage(opening) })
  await world.close()
  return given
}

/** The message that opens the task of a path. */
export function openingMessage({ words, terms }: Pick<OpeningCase, 'words' | 'terms'>): Message {
  const { parts, ...content } = messageOf(words)
  const proposed = terms ? [movePart({ propose: { terms: { ...terms } } })] : []
  return { messageId: 'opening', contextId: CONTEXT, role: 'ROLE_USER', ...content, parts: [...parts, ...proposed] }
}

/** An agent that accepts every proposal at once, so that the paths of its work begin with a deal. */
export function agreeing(agent: Agent): Agent {
  const { negotiate } = agent
  return isNegotiation(negotiate) ? { ...agent, negotiate: { ...negotiate, respond: () => accepted() } } : agent
}

interface Past {
  readonly disk: Disk
  readonly clock: VirtualClock
  readonly ids: () => string
}

/** A disk with one completed task per artifact. */
async function past({ card }: Agent, earlier: readonly ArtifactWords[], disk: Disk): Promise<Past> {
  const clock = new VirtualClock()
  let count = 0
  const ids = () => `id-${(count += 1)}`
  for (const artifact of earlier) {
    const runtime = servedRuntime(
      createRuntime({
        agent: defineAgent({ card, cancelGraceMs: 0, work: async () => ({ artifact }) }),
        clock,
        ids,
        store: disk.open()
      }),
      'world'
    )
    await runtime.sendMessage(
      { message: { ...openingMessage({ words: 'earlier' }), messageId: ids() } },
      { extensions: [RELIABILITY_EXTENSION] }
    )
    await ended(runtime, clock)
    clock.increment(1)
  }
  return { disk, clock, ids }
}

async function ended(runtime: ServedRuntime, clock: VirtualClock): Promise<void> {
  const closing = runtime.close()
  clock.increment(0)
  await closing
}

/** The storage of a test's tasks. */
export type DiskName = 'memory' | 'SQLite'

/** The storage that survives the processes of a test. */
export interface Disk {
  /** Opens a store for the next process, which closes it. */
  open(): Store
  /** Lets pending work run once: the store answers all earlier requests. */
  rest(): Promise<void>
  /** Deletes everything. */
  discard(): Promise<void>
}

/** Creates an empty disk. A SQLite file is in a new folder for temporary files. */
export async function newDisk(name: DiskName): Promise<Disk> {
  return name === 'memory' ? memoryDisk() : sqliteDisk(await mkdtemp(join(tmpdir(), 'taskchart-test-')))
}

/** A store in memory that stays open between processes. */
function memoryDisk(): Disk {
  const store = memoryStore()
  return {
    open: () => ({ ...store, close: async () => {} }),
    rest: () => setImmediate(),
    discard: () => store.close()
  }
}

function sqliteDisk(folder: string): Disk {
  let store: Store | undefined
  return {
    open: () => (store = sqliteStore(join(folder, 'tasks.db'))),
    // The store's thread serves the caller first whose reads took the least time: on a busy machine a read of another
    // one may wait for many.
    rest: async () => {
      for (let times = 0; times < 3; times += 1) {
        do await store?.loadContext(NOWHERE)
        while (isBusy(store?.status?.()))
      }
      await setImmediate()
    },
    discard: () => rm(folder, { recursive: true, force: true })
  }
}

function isBusy(status: StoreStatus | undefined): boolean {
  return status !== undefined && status.waitingReads + status.waitingWrites > 0
}

const NOWHERE = { tenant: '', principal: '', contextId: '' }
