import { isDeepStrictEqual } from 'node:util'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import type { StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { Agent } from '../../../runtime/index.ts'
import { taskReferenceOf } from '../../client/requests.ts'
import { PathError } from '../path-error.ts'
import { describeMove, type Move } from '../plan/moves.ts'
import type { Path, PathStep } from '../plan/plan.ts'
import { type ComparedEvent, comparedUpdate, type ResumedUpdate, withFirstChunks } from '../plan/updates.ts'
import { type AtStep, OPENING } from './chart-run.ts'
import { type DriverAccess, createTestClient, type Manner } from './drivers.ts'
import { TaskAnswers } from './mcp-answers.ts'
import type { TestClient } from './official-caller.ts'
import type { WorkDouble } from './stub-actors.ts'
import { agreeing, type Interlude, newDisk, openingMessage, World, type WorldChanges } from './world.ts'

/** Walks one path through a runtime. Rejects with PathError at the first unexpected step. */
export async function walk(
  agent: Agent,
  cast: WorkDouble,
  path: Path,
  { interlude, disk = 'memory', ...way }: Manner,
  at: AtStep = () => {},
  changes: WorldChanges = {}
): Promise<void> {
  const access: DriverAccess = { ...way, answers: new TaskAnswers() }
  const world = await World.open({ ...agreeing(agent), work: cast.work }, path.opening, await newDisk(disk), changes)
  const caller = await createTestClient(world.runtime, access)
  const run = new PathRun(world, cast, access, caller)
  try {
    await run.begin(path)
    for (const [i, step] of path.steps.entries()) {
      at(i + 1)
      await run.pass(interlude)
      await run.take(step)
    }
  } finally {
    await run.end()
  }
}

class PathRun {
  readonly #world: World
  readonly #cast: WorkDouble
  readonly #access: DriverAccess
  readonly #wanted: ComparedEvent[] = []
  readonly #follower: Follower
  #caller: TestClient
  #taskId = ''
  #messages = 0
  /** The messages that the task has taken, its opening one included. */
  #taken = 1

  constructor(world: World, cast: WorkDouble, access: DriverAccess, caller: TestClient) {
    this.#world = world
    this.#cast = cast
    this.#access = access
    this.#caller = caller
    this.#follower = new Follower(
      id => this.#isOwn(id),
      isSo => world.settle(isSo, access.reach !== 'in process')
    )
  }

  async begin({ opening, begins }: Path): Promise<void> {
    const answer = await this.#caller.send(openingMessage(opening))
    if (!('task' in answer)) throw new PathError(OPENING, 'a task has to open', 'a task', answer.message)
    this.#taskId = answer.task.id
    this.#follow()
    this.#wanted.push(...begins)
    await this.#check(OPENING, 0)
  }

  /** Ends the process and starts the next. */
  async pass(interlude: Interlude): Promise<void> {
    if (interlude === 'none') return
    await this.#follower.pause()
    await this.#caller.close()
    await this.#world.end(interlude)
    this.#cast.clear()
    await this.#world.begin()
    this.#caller = await createTestClient(this.#world.runtime, this.#access)
    this.#follow()
  }

  async take({ move, told: updates, refusal }: PathStep): Promise<void> {
    const step = describeMove(move)
    const before = this.#wanted.length
    this.#wanted.push(...updates)
    const error = await this.#perform(move).then(
      () => undefined,
      (error: unknown) => error
    )
    const code = isA2AError(error) ? error.code : error
    if (code !== refusal)
      throw new PathError(
        step,
        refusal === undefined ? 'it has to be taken' : `it has to be refused with ${refusal}`,
        refusal,
        code ?? 'it was taken'
      )
    if (move.type === 'message' && refusal === undefined) this.#taken += 1
    await this.#check(step, before)
  }

  async end(): Promise<void> {
    await this.#follower.pause()
    await this.#caller.close()
    await this.#world.close()
  }

  #follow(): void {
    const caller = this.#caller
    this.#follower.follow((after, signal) => caller.events(this.#taskId, after, signal))
  }

  /** Makes a move. Moves of the client have an answer; all others go to the actors of the chart. */
  async #perform(move: Move): Promise<unknown> {
    const taskId = this.#taskId
    switch (move.type) {
      case 'message':
        return this.#caller.send({ ...move.message, messageId: `answer-${(this.#messages += 1)}`, taskId })
      case 'cancel':
        return this.#caller.cancel(taskId)
      case 'authorization':
        return this.#world.runtime.authorized(taskId, move.data)
      case 'time':
        return this.#world.clock.increment(move.delayMs)
      case 'event':
        return this.#cast.sendFromActor(move.event)
      case 'end':
      default:
        return this.#cast.end(move.actor, move.result)
    }
  }

  async #check(step: string, from: number): Promise<void> {
    const wanted = this.#wanted
    await this.#follower.settle(wanted.length)
    const updates = withFirstChunks(this.#follower.updates)
    if (!isDeepStrictEqual(updates, withFirstChunks(wanted)))
      throw new PathError(step, 'the task has to tell', wanted.slice(from), updates.slice(from), this.#world.error)
    const task = await this.#caller.task(this.#taskId)
    const [is, has] = [summaryOf(task), summaryOfUpdates(wanted, this.#taken)]
    /* c8 ignore next -- the runtime's GetTask agrees with its streams */
    if (!isDeepStrictEqual(is, has)) throw new PathError(step, 'the task has to be', has, is)
    const wrong = await this.#caller.difference?.(task)
    if (wrong) throw new PathError(step, wrong.what, wrong.wanted, wrong.found)
  }

  #isOwn(artifactId: string): boolean {
    return this.#wanted.some(update => 'artifact' in update && update.artifact.artifactId === artifactId)
  }
}

/** The compared parts of a task from GetTask. */
function summaryOf({ status, artifacts = [], metadata }: Task) {
  const generation = (metadata?.[RELIABILITY_EXTENSION] as { generation?: number } | undefined)?.generation
  return { state: status.state, generation, artifacts: artifacts.map(({ name, parts }) => ({ name, parts })) }
}

/** The summary of a task, derived from events. Each event and each message has a generation. */
function summaryOfUpdates(updates: readonly ComparedEvent[], messages: number) {
  const artifacts: { artifactId: string | undefined; name: string | undefined; parts: unknown[] }[] = []
  let state
  for (const update of updates) {
    if ('state' in update) state = update.state
    else {
      const { artifactId, name, parts } = update.artifact as { artifactId?: string; name?: string; parts: unknown[] }
      const at = artifactId === undefined ? -1 : artifacts.findIndex(artifact => artifact.artifactId === artifactId)
      const known = artifacts[at]
      if (known && update.append) artifacts[at] = { ...known, parts: [...known.parts, ...parts] }
      else if (known) artifacts[at] = { artifactId, name, parts }
      else artifacts.push({ artifactId, name, parts })
    }
  }
  return {
    state,
    generation: updates.length + messages,
    artifacts: artifacts.map(({ name, parts }) => ({ name, parts }))
  }
}

/** Follows the events of a task across restarts of its process: each arrives once, in order. */
class Follower {
  /** The events so far. */
  readonly updates: ComparedEvent[] = []
  readonly #isOwn: (artifactId: string) => boolean
  readonly #settle: (isSo: () => boolean) => Promise<void>
  #stop = new AbortController()
  #reading: Promise<void> = Promise.resolve()
  /** The generation of the last event. */
  #generation = 0

  /** `isOwn`: whether the author chose an artifact's id. `settle`: that of the world. */
  constructor(isOwn: (artifactId: string) => boolean, settle: (isSo: () => boolean) => Promise<void>) {
    this.#isOwn = isOwn
    this.#settle = settle
  }

  /** Continues with a stream of events after a generation. */
  follow(open: (after: number, signal: AbortSignal) => AsyncIterable<StreamResponse>): void {
    this.#stop = new AbortController()
    this.#reading = this.#read(open(this.#generation, this.#stop.signal))
  }

  /** Stops the stream. */
  async pause(): Promise<void> {
    this.#stop.abort()
    await this.#reading
  }

  /** Waits for so many events, and then briefly for unexpected ones. */
  async settle(count: number): Promise<void> {
    await this.#settle(() => this.updates.length >= count)
  }

  async #read(events: AsyncIterable<StreamResponse>): Promise<void> {
    try {
      for await (const event of events) {
        this.#generation = taskReferenceOf(event).generation as number
        this.updates.push(comparedUpdate(event as ResumedUpdate, this.#isOwn))
      }
    } catch {
      // Ignored: missing events fail the comparison.
    }
  }
}
