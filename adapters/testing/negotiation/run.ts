import { isDeepStrictEqual } from 'node:util'
import type { Agent } from '../../../runtime/agent/define-agent.ts'
import type { Runtime } from '../../../runtime/runtime.ts'
import { PathError } from '../path-error.ts'
import { callerOf, type Caller } from '../run/callers.ts'
import { newDisk } from '../run/disk.ts'
import type { AtStep } from '../run/chart-run.ts'
import type { Manner } from '../run/path-run.ts'
import { World } from '../run/world.ts'
import { Bargainer } from './bargainer.ts'
import { describeBargainMove, type Response } from './moves.ts'
import { type BargainPath, type BargainStep, roundsIn, WAITING_LIMIT } from './plan.ts'

/** The number of rests to wait for an expected event, also over a socket. */
const PATIENCE = 20_000

/** The number of rests to wait for an unexpected event. */
const QUIET = 8

/** Walks one path of a negotiation through a runtime. Rejects with PathError at the first unexpected step. */
export async function walkBargain(
  agent: Agent,
  negotiation: Bargaining,
  { steps }: BargainPath,
  { interlude, disk = 'memory', ...access }: Manner,
  at: AtStep = () => {}
): Promise<void> {
  const respondent = new Respondent(negotiation)
  const world = await World.open(
    { ...agent, negotiate: respondent.negotiation, work: endlessWork },
    { earlier: [] },
    await newDisk(disk),
    { queuedMessages: WAITING_LIMIT }
  )
  let arrived = 0
  const open = () =>
    callerOf(
      seen(world.runtime, () => (arrived += 1)),
      access
    )
  let caller = await open()
  const run = new BargainRun(world, respondent, caller, () => arrived)
  try {
    for (const [i, step] of steps.entries()) {
      at(i)
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

/** A runtime that reports each arriving message. */
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
  /** The number of messages sent. */
  #sent = 0

  /** `arrived`: the number of messages that reached the agent. */
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
    const found = {
      answers: client.heard.slice(before).toSorted((one, other) => one.request - other.request),
      isAsked: this.#respondent.isAsked
    }
    const wanted = { answers: heard, isAsked: asks }
    if (!isDeepStrictEqual(found, wanted))
      throw new PathError(describeBargainMove(move), 'the client has to hear, and the agent to be asked', wanted, found)
  }

  async #until(isSo: () => boolean): Promise<void> {
    for (let times = 0; !(isSo() && this.#arrived() >= this.#sent) && times < PATIENCE; times += 1)
      await this.#world.rest()
    for (let times = 0; times < QUIET; times += 1) await this.#world.rest()
  }
}

/** An agent's negotiation. */
type Bargaining = Extract<Agent['negotiate'], { readonly type: 'negotiation' }>

interface Asked {
  readonly resolve: (response: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Answers for an agent in the test of its negotiation, under the control of the test. */
class Respondent {
  readonly negotiation: Bargaining
  #asked: Asked | undefined

  constructor(negotiation: Bargaining) {
    const respond = () => new Promise((resolve, reject) => (this.#asked = { resolve, reject }))
    this.negotiation = { ...negotiation, rounds: roundsIn(negotiation), respond }
  }

  /** Whether `respond` was called and has not answered. */
  get isAsked(): boolean {
    return this.#asked !== undefined
  }

  respond(response: Response): void {
    const asked = this.#asked
    this.#asked = undefined
    if (response instanceof Error) asked?.reject(response)
    else asked?.resolve(response)
  }

  /** Drops a pending call after the process has ended. */
  clear(): void {
    this.#asked = undefined
  }
}
