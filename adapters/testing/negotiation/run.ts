import { isDeepStrictEqual } from 'node:util'
import type { Agent } from '../../../runtime/agent/define-agent.ts'
import type { Runtime } from '../../../runtime/runtime.ts'
import { PathError } from '../path-error.ts'
import { callerOf, type Caller } from '../run/callers.ts'
import { newDisk } from '../run/disk.ts'
import type { Manner } from '../run/path-run.ts'
import { World } from '../run/world.ts'
import { Bargainer } from './bargainer.ts'
import { describeBargainMove } from './moves.ts'
import { WAITING_LIMIT, type BargainPath, type BargainStep } from './plan.ts'
import { Respondent, type Bargaining } from './respondent.ts'

/** How many rests what has to come may take, over a socket too. */
const PATIENCE = 20_000

/** Rests in which what should not come would come. */
const QUIET = 8

/** Walks one path of a negotiation through a runtime. Rejects with PathError at the first step that is not as it should be. */
export async function walkBargain(agent: Agent, negotiation: Bargaining, { steps }: BargainPath, { interlude, disk = 'memory', ...access }: Manner): Promise<void> {
  const respondent = new Respondent(negotiation)
  const world = await World.open({ ...agent, negotiate: respondent.negotiation, work: endlessWork }, { earlier: [] }, await newDisk(disk), { queuedMessages: WAITING_LIMIT })
  let arrived = 0
  const open = () => callerOf(seen(world.runtime, () => (arrived += 1)), access)
  let caller = await open()
  const run = new BargainRun(world, respondent, caller, () => arrived)
  try {
    for (const [i, step] of steps.entries()) {
      if (interlude !== 'none' && i > 0) {
        run.leave()
        await caller.close()
        await world.end(interlude)
        respondent.clear()
        await world.begin()
        caller = await open()
        await run.goOn(caller)
      }
      await run.take(step)
    }
  } finally {
    await caller.close()
    await world.close()
  }
}

const endlessWork = () => new Promise<never>(() => {})

/** A runtime that tells of each message that arrives. */
function seen(runtime: Runtime, arrived: () => void): Runtime {
  return {
    ...runtime,
    sendMessage: (params, call) => {
      arrived()
      return runtime.sendMessage(params, call)
    }
  }
}

class BargainRun {
  readonly #world: World
  readonly #respondent: Respondent
  readonly #client: Bargainer
  readonly #arrived: () => number
  /** How many messages have been sent in all. */
  #sent = 0

  /** `arrived`: how many messages have come to the agent. */
  constructor(world: World, respondent: Respondent, caller: Caller, arrived: () => number) {
    this.#world = world
    this.#arrived = arrived
    this.#respondent = respondent
    this.#client = new Bargainer(caller, world.clock.now())
  }

  leave(): void {
    this.#client.leave()
  }

  async goOn(caller: Caller): Promise<void> {
    await this.#client.goOn(caller, () => {
      this.#sent += 1
      return this.#until(() => this.#respondent.isAsked)
    })
  }

  async take({ move, heard, asks }: BargainStep): Promise<void> {
    const client = this.#client
    const before = client.heard.length
    if (move.type === 'time') this.#world.clock.increment(move.delayMs)
    else if (move.type === 'response') this.#respondent.respond(move.response)
    else {
      client.send(move)
      this.#sent += 1
    }
    await this.#until(() => client.heard.length >= before + heard.length && (!asks || this.#respondent.isAsked))
    const found = { answers: client.heard.slice(before).toSorted((one, other) => one.request - other.request), isAsked: this.#respondent.isAsked }
    const wanted = { answers: heard, isAsked: asks }
    if (!isDeepStrictEqual(found, wanted)) throw new PathError(describeBargainMove(move), 'the client has to hear, and the agent to be asked', wanted, found)
  }

  async #until(isSo: () => boolean): Promise<void> {
    for (let times = 0; !(isSo() && this.#arrived() >= this.#sent) && times < PATIENCE; times += 1) await this.#world.rest()
    for (let times = 0; times < QUIET; times += 1) await this.#world.rest()
  }
}
