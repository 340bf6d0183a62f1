import type { ShownProof, ShownVerdict } from '../../inspector/test-result.ts'
import { guardsText } from '../../testing/proof/open-guards.ts'
import type { Proof, Verdict } from '../../testing/proof/prove.ts'
import { oneLine, shellText, shellWord } from '../text/terminal-text.ts'
import { ENDINGS, toldText, type Refuted } from './walk-text.ts'

/** What each outcome means. */
export const OUTCOMES: Readonly<Record<Verdict['outcome'], string>> = {
  proved: 'it holds on every walk',
  confirmed: 'it does not hold: the real chart, with the cases, walks this counterexample, which is the shortest',
  possible: 'it does not hold if the named guards decide so about data that no case gives',
  unknown: 'no counterexample was found, but not everything could be explored, for this reason'
}

/** What a fairness supposes of endless walks. */
const PREMISES = {
  progress: 'if whatever waits goes on',
  choice: 'if everything that is possible again and again happens in the end'
} as const

/** The size of the proof: `4,812 configurations, all, opened by "a coffee"`. */
export function headOf({ configurations, isWhole, openings }: Proof): string {
  return oneLine(`${countText(configurations)}, ${isWhole ? 'all' : 'not all'}, ${openings.join('; ')}`)
}

/** The limits of the proof, as lines. */
export function boundsOf({ met, guesses, lost, unmodelled, verdicts }: Proof): string[] {
  const told = new Set(verdicts.map(verdict => ('why' in verdict ? verdict.why : '')))
  const bound =
    met === undefined ? [] : [`Not all was explored: ${met}. Raise that bound, or give memory in the cases.`]
  const open =
    guesses.length === 0 ? [] : [`No case gives ${guesses.join(' or ')}, so guards hold both ways from there.`]
  return [
    ...bound,
    ...open,
    ...lost.map(walk => `Not followed: ${oneLine(walk)}`),
    ...unmodelled.filter(line => !told.has(line)).map(line => `Not modelled: ${oneLine(line)}`)
  ]
}

/** The guards on which a counterexample depends, as a clause; empty for a confirmed one. */
export function conditionOf({ outcome, ...verdict }: Refuted): string {
  if (outcome === 'confirmed' || !('guards' in verdict)) return ''
  return verdict.guards.length === 0
    ? 'but the real chart walks differently'
    : `if ${oneLine(guardsText(verdict.guards))}`
}

/** A proof for the page. `file`: the agent's module, for the commands that prove one property alone. */
export function shownProof(proof: Proof, file: string, atMs: number): ShownProof {
  const verdicts = proof.verdicts.map((verdict): ShownVerdict => {
    const { property, outcome } = verdict
    const shown = { property, outcome, means: OUTCOMES[outcome], says: reasonOf(verdict, proof) }
    if (!('walk' in verdict)) return shown
    const { opening, begins, steps, again, kind } = verdict.walk
    const moves = [{ ...begins, says: opening }, ...steps, ...again].map(step => ({
      move: step.says,
      states: step.states,
      transitions: step.transitions,
      told: toldText(step)
    }))
    const alone = `npx taskchart prove ${shellWord(file)} --only ${shellText(property)}`
    return { ...shown, walk: { steps: moves, loops: again.length, ending: ENDINGS[kind], alone } }
  })
  return { atMs, head: headOf(proof), bounds: boundsOf(proof), verdicts }
}

/** Why a verdict is as it is, as a clause: the size and the premise of a proof, the condition of a counterexample, or what could not be seen. */
function reasonOf(verdict: Verdict, { configurations }: Proof): string {
  if ('walk' in verdict) return conditionOf(verdict)
  if (verdict.outcome === 'unknown') return verdict.why
  return [`in ${countText(configurations)}`, ...(verdict.fairness ? [PREMISES[verdict.fairness]] : [])].join(', ')
}

function countText(configurations: number): string {
  return configurations === 1 ? '1 configuration' : `${configurations.toLocaleString('en')} configurations`
}
