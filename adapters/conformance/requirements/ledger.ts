import { NEEDS, NOT_REACHED, type Need } from './needs.ts'
import { REQUIREMENTS, type Requirement } from './requirements.ts'

/** A violation of a requirement: the request, and the expected and actual values. */
export interface Finding {
  readonly sent: string
  readonly wanted: string
  readonly found: string
}

/** The result of one requirement on one binding. */
export interface RequirementResult {
  readonly requirement: Requirement
  /** `warning`: a SHOULD, or something that A2A leaves open, is violated. */
  readonly outcome: 'passed' | 'failed' | 'warning' | 'skipped'
  readonly findings: readonly Finding[]
  /** Why it was skipped. */
  readonly reason?: string
}

/** The maximum number of findings per requirement and binding. */
const MOST_FINDINGS = 3

/** Collects the findings about each requirement on one binding. */
export class Ledger {
  readonly #met = new Set<number>()
  readonly #findings = new Map<number, { finding: Finding; isMust: boolean }[]>()
  readonly #facts: Set<Need>

  readonly #missed: (verdict: RequirementResult) => void

  /** `facts`: what is known at the beginning. `missed` is called with each new finding. */
  constructor(facts: Iterable<Need>, missed: (verdict: RequirementResult) => void) {
    this.#facts = new Set(facts)
    this.#missed = missed
  }

  /** Records a fact that requirements need. */
  learn(fact: Need): void {
    this.#facts.add(fact)
  }

  meets(id: number): void {
    this.#met.add(id)
  }

  /** `isMust`: whether the violated part is a MUST, for a requirement with both levels. */
  misses(id: number, finding: Finding, isMust: boolean): void {
    const findings = this.#findings.get(id) ?? []
    this.#findings.set(id, findings)
    const isKnown = findings.some(known => known.finding.wanted === finding.wanted)
    if (isKnown || findings.length >= MOST_FINDINGS) return
    findings.push({ finding, isMust })
    const requirement = REQUIREMENTS.find(known => known.id === id)
    if (requirement) this.#missed({ requirement, outcome: outcomeOf(requirement, isMust), findings: [finding] })
  }

  /** A verdict for each requirement, in order. */
  verdicts(): RequirementResult[] {
    return REQUIREMENTS.map(requirement => this.#verdict(requirement))
  }

  #verdict(requirement: Requirement): RequirementResult {
    const { id, needs } = requirement
    const found = this.#findings.get(id) ?? []
    const findings = found.map(({ finding }) => finding)
    if (findings.length > 0)
      return {
        requirement,
        findings,
        outcome: outcomeOf(
          requirement,
          found.some(({ isMust }) => isMust)
        )
      }
    if (this.#met.has(id)) return { requirement, findings, outcome: 'passed' }
    const missing = needs.find(need => !this.#facts.has(need))
    return { requirement, findings, outcome: 'skipped', reason: missing ? NEEDS[missing] : NOT_REACHED }
  }
}

/** The outcome of a violation. */
function outcomeOf({ level }: Requirement, isMust: boolean): 'failed' | 'warning' {
  return level.includes('M') && isMust ? 'failed' : 'warning'
}
