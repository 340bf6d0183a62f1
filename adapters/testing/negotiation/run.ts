import { isDeepStrictEqual } from 'node:util'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import { movePart, type Offer, offerIn } from '../../../machines/protocol/negotiation.ts'
import type { Message, SendMessageResponse } from '../../../machines/protocol/objects.ts'
import { NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import { messageOf } from '../../../runtime/authoring/checked-words.ts'
import type { Agent } from '../../../runtime/index.ts'
import type { ServedRuntime } from '../../../runtime/runtime-options.ts'
import { PathError } from '../path-error.ts'
import type { Response } from '../plan/cases.ts'
import type { AtStep } from '../run/chart-run.ts'
import { createTestClient, type Manner } from '../run/drivers.ts'
import type { TestClient } from '../run/official-caller.ts'
import { CONTEXT, newDisk, World } from '../run/world.ts'
import {
  type BargainAnswer,
  type BargainMove,
  comparable,
  describeBargainMove,
  type NumberedAnswer,
  roundsIn,
  WAITING_LIMIT
} from './model.ts'
import type { BargainPath, BargainStep } from './plan.ts'

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
    { limits: { queuedMessages: WAITING_LIMIT } }
  )
  let arrived = 0
  const open = () =>
    createTestClient(
      seen(world.runtime, () => (arrived += 1)),
      access
    )
  let caller = await open()
  const run = new BargainRun(world, respondent, caller, () => arrived, access.reach !== 'in process')
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
function seen(runtime: ServedRuntime, arrived: () => void): ServedRuntime {
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
  readonly #hasSocket: boolean
  /** The number of messages sent. */
  #sent = 0

  /** `arrived`: the number of messages that reached the agent. `hasSocket`: whether they come over a socket. */
  constructor(world: World, respondent: Respondent, caller: TestClient, arrived: () => number, hasSocket: boolean) {
    this.#world = world
    this.#arrived = arrived
    this.#hasSocket = hasSocket
    this.#respondent = respondent
    this.#client = new Bargainer(caller, world.clock.now())
  }

  leave(): void {
    this.#client.leave()
  }

  async goOn(caller: TestClient): Promise<void> {
    await this.#client.goOn(caller, () => {
      this.#sent += 1
      return this.#until(() => this.#respondent.isPending)
    })
  }

  async take({ move, heard: answers, asks }: BargainStep): Promise<void> {
    const client = this.#client
    const before = client.answers.length
    if (move.type === 'time') this.#world.clock.increment(move.delayMs)
    else if (move.type === 'response') this.#respondent.respond(move.response)
    else {
      client.send(move)
      this.#sent += 1
    }
    await this.#until(() => client.answers.length >= before + answers.length && (!asks || this.#respondent.isPending))
    const found = {
      answers: client.answers.slice(before).toSorted((one, other) => one.request - other.request),
      isAsked: this.#respondent.isPending
    }
    const wanted = { answers, isAsked: asks }
    if (!isDeepStrictEqual(found, wanted))
      throw new PathError(describeBargainMove(move), 'the client has to hear, and the agent to be asked', wanted, found)
  }

  async #until(isSo: () => boolean): Promise<void> {
    await this.#world.settle(() => isSo() && this.#arrived() >= this.#sent, this.#hasSocket)
  }
}

/** An agent's negotiation. */
type Bargaining = Extract<Agent['negotiate'], { readonly type: 'negotiation' }>

interface PendingResponse {
  readonly resolve: (response: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Answers for an agent in the test of its negotiation, under the control of the test. */
class Respondent {
  readonly negotiation: Bargaining
  #pending: PendingResponse | undefined

  constructor(negotiation: Bargaining) {
    const respond = () => new Promise((resolve, reject) => (this.#pending = { resolve, reject }))
    this.negotiation = { ...negotiation, rounds: roundsIn(negotiation), respond }
  }

  /** Whether `respond` was called and has not answered. */
  get isPending(): boolean {
    return this.#pending !== undefined
  }

  respond(response: Response): void {
    const pending = this.#pending
    this.#pending = undefined
    if (response instanceof Error) pending?.reject(response)
    else pending?.resolve(response)
  }

  /** Drops a pending call after the process has ended. */
  clear(): void {
    this.#pending = undefined
  }
}

/** A move of the client. */
type ClientMove = Exclude<BargainMove, { type: 'response' | 'time' }>

/** The client of a negotiation under test. After a restart of the agent it resends unanswered messages. */
class Bargainer {
  /** The answers in order of arrival, each once. */
  readonly answers: NumberedAnswer[] = []
  readonly #startMs: number
  readonly #waiting = new Map<number, Message>()
  #caller: TestClient | undefined
  #offer: Offer | undefined
  #sent = 0

  /** `startMs`: the start of the path, in milliseconds since 1970. */
  constructor(caller: TestClient, startMs: number) {
    this.#caller = caller
    this.#startMs = startMs
  }

  send(move: ClientMove): void {
    const request = this.#sent
    this.#sent += 1
    const message: Message = {
      messageId: `request-${request}`,
      contextId: CONTEXT,
      role: 'ROLE_USER',
      ...this.#contentOf(move)
    }
    this.#waiting.set(request, message)
    this.#put(request, message)
  }

  /** Ignores answers from now on: those that an ending process sends do not count. */
  leave(): void {
    this.#caller = undefined
  }

  /** Continues with another caller. `settled` resolves when the last resent message is processed, to keep the order. */
  async goOn(caller: TestClient, settled: () => Promise<void>): Promise<void> {
    this.#caller = caller
    for (const [request, message] of this.#waiting) {
      this.#put(request, message)
      await settled()
    }
  }

  #put(request: number, message: Message): void {
    const caller = this.#caller
    const receive = (answer: BargainAnswer) => {
      if (this.#caller === caller && this.#waiting.delete(request)) this.answers.push({ request, answer })
    }
    caller?.send(message).then(
      answer => receive(this.#read(answer)),
      (error: unknown) => receive(isA2AError(error) ? { error: error.code } : { failure: String(error) })
    )
  }

  #read(answer: SendMessageResponse): BargainAnswer {
    if ('message' in answer) {
      this.#offer = offerIn(answer.message) ?? this.#offer
      return { message: comparable(answer.message.parts, this.#startMs) }
    }
    const { status, metadata } = answer.task
    if (status.state === 'TASK_STATE_REJECTED') return { rejected: status.message?.parts }
    return { task: (metadata?.[NEGOTIATION_EXTENSION] as { terms?: unknown } | undefined)?.terms }
  }

  #contentOf(move: ClientMove): Pick<Message, 'parts'> {
    const offerId = (isStanding: boolean) => (isStanding ? this.#offer?.offerId : undefined) ?? 'nobody’s'
    switch (move.type) {
      case 'proposal':
        return { parts: [movePart({ propose: { terms: move.terms as never } })] }
      case 'accept':
        return { parts: [movePart({ accept: { offerId: offerId(move.isStanding) } })] }
      case 'decline':
        return { parts: [movePart({ decline: { offerId: offerId(move.isStanding) } })] }
      case 'words':
      default:
        return messageOf(move.words)
    }
  }
}
