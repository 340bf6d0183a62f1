import type { Negotiation } from '../../../runtime/negotiation/negotiation.ts'
import { placesFrom, type Place, type Taken } from '../plan/graph.ts'
import { shortestWays, simpleWays, type PathKind } from '../plan/path-kinds.ts'
import { requestsOf, responsesOf, type BargainCases } from './cases.ts'
import { bargainModel, type BargainTurn, type Heard } from './model.ts'
import { describeBargainMove, type BargainMove } from './moves.ts'

/** One move of a negotiation, and what the client hears by it. */
export interface BargainStep {
  readonly move: BargainMove
  readonly heard: readonly Heard[]
  /** Whether the author is asked for an answer then. */
  readonly asks: boolean
}

/** A test of a negotiation, from its first message on. */
export interface BargainPath {
  /** A sentence, unique in its plan. */
  readonly name: string
  readonly steps: readonly BargainStep[]
}

/** How many offers both sides may make in a test, so that the last is soon there; and how many messages may wait. */
const MOST_ROUNDS = 2
export const WAITING_LIMIT = 1

/** How many rounds a negotiation has in its tests. */
export function roundsIn({ rounds }: Negotiation): number {
  return Math.min(rounds, MOST_ROUNDS)
}

/**
 * Plans the tests of a negotiation: everything that the client may do, and that `respond` may answer, in each configuration that it
 * can be in, with two rounds at the most, and one message that waits.
 */
export function bargainPlan(negotiation: Negotiation, cases: BargainCases, kind: PathKind, limit: number): BargainPath[] {
  const { begin, take } = bargainModel(negotiation, { rounds: roundsIn(negotiation), waitingLimit: WAITING_LIMIT })
  const places = placesFrom(begin(), { take, legalIn: legalIn(negotiation, cases), keyOf, describeMove: describeBargainMove, limit })
  return waysOf(kind, places).map(way => ({ name: sentenceOf(way), steps: way.map(({ move, turn }) => ({ move, heard: turn.heard, asks: isAsking(turn) })) }))
}

type Way = readonly Taken<BargainTurn, BargainMove>[]

function waysOf(kind: PathKind, places: readonly Place<BargainTurn, BargainMove>[]): readonly Way[] {
  if (kind === 'shortest') return shortestWays(places)
  return kind === 'simple' ? simpleWays(places) : places.flatMap(({ way, legal }) => legal.filter(({ isWay }) => !isWay).map(({ move, turn }) => [...way, { move, turn }]))
}

function legalIn(negotiation: Negotiation, cases: BargainCases): (turn: BargainTurn) => BargainMove[] {
  const requests = requestsOf(cases, negotiation)
  const words = requests.slice(0, 1)
  const responses = Object.entries(responsesOf(cases)).map(([name, response]): BargainMove => ({ type: 'response', name, response }))
  const answers: BargainMove[] = [{ type: 'accept', isStanding: true }, { type: 'decline', isStanding: true }]
  return turn => {
    if (isAsking(turn)) return [...responses, ...words]
    const { standing } = turn.chart.context
    const isOpen = standing !== null && standing.expiresAtMs > turn.nowMs
    return [...requests, ...(standing ? answers : []), ...(isOpen ? [{ type: 'time', delayMs: standing.expiresAtMs - turn.nowMs } as const] : [])]
  }
}

function isAsking({ chart }: BargainTurn): boolean {
  return chart.matches({ busy: 'responding' })
}

/** What tells two configurations apart: whose turn it is, what stands and for how long, and what waits. */
function keyOf({ chart, nowMs }: BargainTurn): string {
  const { round, standing, requests } = chart.context
  const offer = standing && [standing.round, standing.terms, standing.expiresAtMs - nowMs]
  return JSON.stringify([chart.value, round, offer, requests.map(({ arrived }) => arrived.proposes ?? null)])
}

function sentenceOf(way: Way): string {
  return `negotiating: ${way.map(({ move }) => describeBargainMove(move)).join(', then ')}`
}
