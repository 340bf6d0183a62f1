/* oxlint-disable typescript/no-generated-empty-object-type -- as in XState's setup, for no actors, actions or guards */
import type { ActionFunction, AnyStateMachine, MachineContext, SetupReturn, UnknownActorLogic } from 'xstate'
import type { GuardPredicate } from 'xstate/guards'
import { keptValue } from '../authoring/checked-words.ts'
import { checkActors, type Parameterized, type Params, type Provided } from '../authoring/setup-work.ts'
import type { Accepted, Declined, Offered, Rejected, Reply } from '../authoring/words.ts'
import { onAbort } from '../primitives/event-loop.ts'
import { contextLoss } from '../primitives/json.ts'
import { checkOptions } from '../primitives/options.ts'
import { createActor, setup } from '../xstate/library.ts'
import { refuseOtherActors } from '../xstate/other-majors.ts'
import { misfit, type PersistedSnapshot } from '../xstate/persisted-snapshot.ts'
import { writtenChart } from '../xstate/written-chart.ts'
import type { NegotiationArguments } from './per-message.ts'

/** A message that a chart of a negotiation answers, as its event. */
export interface MessageToAnswer<Terms = Record<string, unknown>> extends Omit<
  RespondArguments<Terms>,
  'history' | 'signal'
> {
  readonly type: 'message.received'
}

/** A statechart as `respond` of a negotiation. Its terms must be those of the negotiation. */
export type RespondChart<Terms = Record<string, unknown>> = AnyStateMachine & {
  transition(snapshot: never, event: MessageToAnswer<Terms>, scope: never): unknown
}

/** The parts of a chart that `setupNegotiation` knows. */
const OPTIONS = { types: true, actors: true, actions: true, guards: true } as const

/**
 * XState's `setup` for charts that negotiate, as `respond` of a `negotiation`. Each message is an event
 * `message.received`, with the client's `proposal` and the open offer, `standing`. The chart emits one answer to each:
 * `offer(…)`, `accepted()`, `declined(…)`, `reply(…)` or `rejected(…)`.
 */
export function setupNegotiation<
  Terms extends object = Record<string, unknown>,
  Context extends MachineContext = Record<never, never>,
  Actors extends Record<string, UnknownActorLogic> = Record<never, never>,
  Actions extends Params = Record<never, never>,
  Guards extends Params = Record<never, never>
>(options: {
  /**
   * Types only: the `terms` of the negotiation, and the chart's `context`. For example `{ terms: typed(terms) }`, with
   * the schema.
   */
  types?: { terms?: Terms; context?: Context }
  actors?: { [K in keyof Actors]: Actors[K] }
  actions?: {
    [K in keyof Actions]: ActionFunction<
      Context,
      MessageToAnswer<Terms>,
      MessageToAnswer<Terms>,
      Actions[K],
      Provided<Actors>,
      Parameterized<Actions>,
      Parameterized<Guards>,
      never,
      NegotiationAnswer<Terms>
    >
  }
  guards?: { [K in keyof Guards]: GuardPredicate<Context, MessageToAnswer<Terms>, Guards[K], Parameterized<Guards>> }
}): SetupReturn<
  Context,
  MessageToAnswer<Terms>,
  Actors,
  Record<never, never>,
  Actions,
  Guards,
  never,
  string,
  undefined,
  undefined,
  NegotiationAnswer<Terms>,
  Record<string, unknown>
> {
  checkOptions(options, OPTIONS, 'setupNegotiation', 'setupNegotiation({ types: { terms: typed(terms) } })')
  checkActors(options.actors)
  return setup(options as never) as never
}

/** Refuses a chart that cannot negotiate as it is written. Throws TypeError that says what to write instead. */
export function checkRespondChart(machine: AnyStateMachine): void {
  refuseOtherActors(machine)
  const { id, context, states } = writtenChart(machine)
  const loss = contextLoss(context, undefined)
  if (loss !== undefined) throw new TypeError(`The chart ${id} has a context that cannot be stored: ${loss}`)
  for (const state of states) {
    if (state.transitions.some(({ delay }) => delay !== undefined))
      throw new TypeError(
        `The state ${state.id} has a delay, but a chart that negotiates moves when a message arrives. Leave after out. An offer expires by offerMs of the negotiation.`
      )
    if (state.invoke.some(({ src }) => src === undefined || !Object.hasOwn(machine.implementations.actors, src)))
      throw new TypeError(
        `The state ${state.id} invokes logic without a name. Name it: setupNegotiation({ actors: { price: … } }), and invoke: { src: 'price' }.`
      )
  }
}

/**
 * Gives a message to a chart, and waits for its answer, which an actor of the chart may cause. `memory` is the chart as
 * its last answer in this negotiation left it; without one, or with one that the present chart does not have, it
 * begins. Gives the answer with the new `memory`; `undefined` if the chart has ended. Rejects with the error of the
 * chart, or with TypeError if it gives no answer, or several.
 */
export async function chartAnswer(
  chart: AnyStateMachine,
  given: RespondArguments,
  memory: unknown
): Promise<{ readonly answer: unknown; readonly memory: unknown }> {
  const { signal, contextId, message, request, extensions, proposal, standing, round } = given
  const event: MessageToAnswer = {
    type: 'message.received',
    contextId,
    message,
    request,
    extensions,
    proposal,
    standing,
    round
  }
  const isKnown = memory !== undefined && misfit(chart, memory as PersistedSnapshot) === undefined
  const actor = createActor(chart, isKnown ? { snapshot: memory as never } : {})
  const answers: unknown[] = []
  actor.on('*', answer => void answers.push(answer))
  try {
    await new Promise<void>((resolve, reject) => {
      let isSent = false
      const look = () => {
        if (isSent && (answers.length > 0 || !hasActiveChildren(actor.getSnapshot()))) resolve()
      }
      onAbort(signal, () => reject(signal.reason))
      actor.subscribe({ next: look, complete: resolve, error: reject })
      actor.start()
      actor.send(event)
      isSent = true
      look()
    })
    const { status, value } = actor.getSnapshot()
    if (answers.length !== 1)
      throw new TypeError(
        `The chart ${chart.id} gave ${answers.length} answers to a message, and is in ${JSON.stringify(value)}. Emit one there: offer(…), accepted(), declined(…), reply(…) or rejected(…).`
      )
    return {
      answer: answers[0],
      memory: status === 'active' ? keptValue(actor.getPersistedSnapshot(), 'the snapshot') : undefined
    }
  } finally {
    actor.stop()
  }
}

function hasActiveChildren({
  children
}: {
  readonly children: Readonly<Record<string, { getSnapshot(): { readonly status: string } }>>
}): boolean {
  return Object.values(children).some(child => child.getSnapshot().status === 'active')
}

/** Arguments of `respond`. */
export interface RespondArguments<Terms = Record<string, unknown>> extends NegotiationArguments {
  /** Terms that the client proposes with this message, if any: a counter-offer while an offer is open. */
  readonly proposal: Terms | undefined
  /** The agent's open offer, if it had not expired when the message arrived. */
  readonly standing: OpenOffer<Terms> | undefined
  /**
   * Number of offers of both sides so far, including a proposal in this message. At `rounds`, the agent can make no
   * further offer.
   */
  readonly round: number
}

/** Answers of `respond`. */
export type NegotiationAnswer<Terms = Record<string, unknown>> =
  | Offered<Terms>
  | Accepted<Terms>
  | Accepted<undefined>
  | Declined
  | Reply
  | Rejected

/**
 * The agent's open offer. The client may accept it before `expiresAtMs`, in milliseconds since 1970; `round` is its
 * number among the offers of both sides.
 */
export interface OpenOffer<Terms = Record<string, unknown>> {
  readonly offerId: string
  readonly round: number
  readonly terms: Terms
  readonly expiresAtMs: number
}
