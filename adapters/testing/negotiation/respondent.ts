import type { Agent } from '../../../runtime/agent/define-agent.ts'
import type { Response } from './moves.ts'
import { roundsIn } from './plan.ts'

/** The negotiation of an agent. */
export type Bargaining = Extract<Agent['negotiate'], { readonly type: 'negotiation' }>

interface Asked {
  readonly resolve: (response: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Who answers for an agent in the test of its negotiation: as the test says. */
export class Respondent {
  readonly negotiation: Bargaining
  #asked: Asked | undefined

  constructor(negotiation: Bargaining) {
    const respond = () => new Promise((resolve, reject) => (this.#asked = { resolve, reject }))
    this.negotiation = { ...negotiation, rounds: roundsIn(negotiation), respond }
  }

  /** Whether it has been asked, and has not answered. */
  get isAsked(): boolean {
    return this.#asked !== undefined
  }

  respond(response: Response): void {
    const asked = this.#asked
    this.#asked = undefined
    if (response instanceof Error) asked?.reject(response)
    else asked?.resolve(response)
  }

  /** The process has ended. */
  clear(): void {
    this.#asked = undefined
  }
}
