import type { Negotiation } from '../../../runtime/index.ts'
import type { ExplorationBounds } from '../bounds.ts'
import type { BargainCases, PathKind } from '../plan/cases.ts'
import { type ReachedConfiguration, placesFrom, shortestWays, simpleWays, type MoveResult } from '../plan/graph.ts'
import {
  bargainModel,
  type BargainMove,
  type BargainTurn,
  describeBargainMove,
  type NumberedAnswer,
  requestsOf,
  responsesOf,
  WAITING_LIMIT,
  roundsIn
} from './model.ts'

/** One move of a negotiation, and the expected answers. */
export interface BargainStep {
  readonly move: BargainMove
  readonly heard: readonly NumberedAnswer[]
  /** Whether `respond` is called then. */
  readonly asks: boolean
}

/** A test of a negotiation, from its first message. */
export interface BargainPath {
  /** A sentence, unique in its plan. */
  readonly name: string
  readonly steps: readonly BargainStep[]
}

/**
 * Plans the tests of a negotiation: every move of the client, and every result of `respond`, in each reachable
 * configuration. There are at most two rounds and one waiting message.
 */
export function bargainPlan(
  negotiation: Negotiation,
  cases: BargainCases,
  kind: PathKind,
  bounds: ExplorationBounds
): BargainPath[] {
  const { begin, take } = bargainModel(negotiation, { rounds: roundsIn(negotiation), waitingLimit: WAITING_LIMIT })
  const places = placesFrom(begin(), {
    take,
    legalIn: legalIn(negotiation, cases),
    keyOf,
    describeMove: describeBargainMove,
    bounds
  })
  return waysOf(kind, places).map(way => ({
    name: sentenceOf(way),
    steps: way.map(({ move, turn }) => ({ move, heard: turn.answers, asks: isAsking(turn) }))
  }))
}

type Way = readonly MoveResult<BargainTurn, BargainMove>[]

function waysOf(kind: PathKind, places: readonly ReachedConfiguration<BargainTurn, BargainMove>[]): readonly Way[] {
  if (kind === 'shortest') return shortestWays(places)
  return kind === 'simple'
    ? simpleWays(places)
    : places.flatMap(({ way, legal }) =>
        legal.filter(({ isWay }) => !isWay).map(({ move, turn }) => [...way, { move, turn }])
      )
}

function legalIn(negotiation: Negotiation, cases: BargainCases): (turn: BargainTurn) => BargainMove[] {
  const requests = requestsOf(cases, negotiation)
  const words = requests.slice(0, 1)
  const responses = Object.entries(responsesOf(cases)).map(([name, response]): BargainMove => ({
    type: 'response',
    name,
    response
  }))
  const answers: BargainMove[] = [
    { type: 'accept', isStanding: true },
    { type: 'decline', isStanding: true }
  ]
  return turn => {
    if (isAsking(turn)) return [...responses, ...words]
    const { standing } = turn.chart.context
    const isOpen = standing !== null && standing.expiresAtMs > turn.nowMs
    return [
      ...requests,
      ...(standing ? answers : []),
      ...(isOpen ? [{ type: 'time', delayMs: standing.expiresAtMs - turn.nowMs } as const] : [])
    ]
  }
}

function isAsking({ chart }: BargainTurn): boolean {
  return chart.matches({ busy: 'responding' })
}

/** The key of a configuration: the state, the current offer and its remaining time, and the waiting messages. */
function keyOf({ chart, nowMs }: BargainTurn): string {
  const { round, standing, requests } = chart.context
  const offer = standing && [standing.round, standing.terms, standing.expiresAtMs - nowMs]
  return JSON.stringify([chart.value, round, offer, requests.map(({ arrived }) => arrived.proposes ?? null)])
}

function sentenceOf(way: Way): string {
  return `negotiating: ${way.map(({ move }) => describeBargainMove(move)).join(', then ')}`
}
