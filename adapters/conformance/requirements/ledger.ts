import { NEEDS, NOT_REACHED, type Need } from './needs.ts'
import { REQUIREMENTS, type Requirement } from './requirements.ts'

/** Where a server does not meet a requirement: what was sent, wanted and found. */
export interface Finding {
  readonly sent: string
  readonly wanted: string
  readonly found: string
}

/** What came of one requirement on one binding. */
export interface Verdict {
  readonly requirement: Requirement
  /** `warning`: what it SHOULD do, or what A2A leaves open, is not so. */
  readonly outcome: 'passed' | 'failed' | 'warning' | 'skipped'
  readonly findings: readonly Finding[]
  /** Why it was skipped. */
  readonly reason?: string
}

/** How often a requirement is told of, on one binding: the rest is alike. */
const MOST_FINDINGS = 3

/** Keeps what was found of each requirement on one binding. */
export class Ledger {
  readonly #met = new Set<number>()
  readonly #findings = new Map<number, { finding: Finding; isMust: boolean }[]>()
  readonly #facts: Set<Need>

  /** `facts`: what there is from the beginning. */
  constructor(facts: Iterable<Need>) {
    this.#facts = new Set(facts)
  }

  /** Something is there by now that requirements need. */
  learn(fact: Need): void {
    this.#facts.add(fact)
  }

  meets(id: number): void {
    this.#met.add(id)
  }

  /** `isMust`: whether it is what a server MUST do, where a requirement has both. */
  misses(id: number, finding: Finding, isMust: boolean): void {
    const findings = this.#findings.get(id) ?? []
    this.#findings.set(id, findings)
    const isKnown = findings.some(known => known.finding.wanted === finding.wanted)
    if (!isKnown && findings.length < MOST_FINDINGS) findings.push({ finding, isMust })
  }

  /** One for each requirement, in their order. */
  verdicts(): Verdict[] {
    return REQUIREMENTS.map(requirement => this.#verdict(requirement))
  }

  #verdict(requirement: Requirement): Verdict {
    const { id, level, needs } = requirement
    const found = this.#findings.get(id) ?? []
    const findings = found.map(({ finding }) => finding)
    if (findings.length > 0) return { requirement, findings, outcome: level.includes('M') && found.some(({ isMust }) => isMust) ? 'failed' : 'warning' }
    if (this.#met.has(id)) return { requirement, findings, outcome: 'passed' }
    const missing = needs.find(need => !this.#facts.has(need))
    return { requirement, findings, outcome: 'skipped', reason: missing ? NEEDS[missing] : NOT_REACHED }
  }
}
