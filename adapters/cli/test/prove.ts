import { basename } from 'node:path'
import type { Proof, Verdict } from '../../testing/proof/prove.ts'
import { readArguments } from '../arguments.ts'
import { EXIT, usageError, type Command, type Io } from '../command.ts'
import { loadAgent } from '../load-agent.ts'
import { styled, type Style } from '../text/colour.ts'
import { tapComments, tapHead, tapPoint } from '../text/tap-text.ts'
import { jsonLine, oneLine } from '../text/terminal-text.ts'
import { loadTesting, planError } from './testing.ts'
import { guardsText, walkLines, walkMermaid, walkTests, type Refuted } from './walk-text.ts'

/** `taskchart prove`: proves an agent's properties on the chart of its work. */
export const proveCommand: Command = {
  name: 'prove',
  summary: 'prove the properties of an agent, or show the shortest counterexample',
  usage: 'taskchart prove AGENT.ts|js [--only TEXT] [--limit NUMBER] [--json | --tap | --mermaid | --test]',
  details: `Explores every configuration of the chart of the agent's work and checks the agent's properties (defineAgent) on every walk.
Two more properties are checked on each chart: it never throws, and every task can end. A client may cancel everywhere.
Actors end and timers fire in any order that time allows. The module's export cases supplies the data. Guards are evaluated
with it; where no case gives the data, they hold both ways. Each property is one of these:

  proved     it holds on every walk
  confirmed  it does not: the real chart, with the cases, walks this counterexample, which is the shortest
  possible   it does not hold if the named guards decide so about data that no case gives
  unknown    no counterexample was found, but not everything could be explored, for this reason

  --only TEXT     only properties whose name contains this text
  --limit NUMBER  the maximum number of configurations per opening message; default 20000
  --json          the proof as one line of JSON: { verdicts, configurations, isWhole, openings, guesses, lost }
  --tap           write TAP to stdout instead
  --mermaid       the counterexamples as sequence diagrams for mermaid
  --test          the counterexamples as tests for Node's test runner, to paste beside the agent

Exit codes: 0 all proved, 1 an error, 2 wrong usage, 3 a counterexample is confirmed, 4 a counterexample is possible or the
verdict is unknown, 130 stopped with Ctrl-C.
`,
  run
}

const FORMS = ['json', 'tap', 'mermaid', 'test'] as const
const FLAG = { type: 'boolean' } as const
const OPTIONS = { only: { type: 'string' }, limit: { type: 'string' }, json: FLAG, tap: FLAG, mermaid: FLAG, test: FLAG } as const

async function run(args: readonly string[], { stdout, cwd, colours }: Io): Promise<number> {
  const { values: { only, limit: text, ...forms }, positionals: [file] } = readArguments(args, OPTIONS, ['AGENT.ts|js'])
  const [form, other] = FORMS.filter(form => forms[form])
  if (form && other) throw usageError(`Choose one of --${form} and --${other}.`)
  const limit = text === undefined ? undefined : Number(text)
  if (limit !== undefined && !(Number.isInteger(limit) && limit > 0)) throw usageError(`--limit has to be a number above 0, not ${String(text)}.`)
  const { agent, cases } = await loadAgent(file, cwd)
  const { proveAgent } = await loadTesting()
  const proof = await proveAgent(agent, { ...(cases && { cases }), ...(only !== undefined && { only }), ...(limit !== undefined && { limit }) }).catch(planError(file, agent.card, 'proved'))
  const refuted = proof.verdicts.filter(verdict => 'walk' in verdict)
  const texts: Record<(typeof FORMS)[number], () => string> = {
    json: () => jsonLine(proof),
    tap: () => tapOf(proof),
    mermaid: () => refuted.map(walkMermaid).join('\n'),
    test: () => (refuted.length === 0 ? '' : walkTests(refuted, `./${basename(file)}`, cases !== undefined))
  }
  stdout.write(form ? texts[form]() : proofText(oneLine(agent.card.name), proof, colours.stdout))
  return exitCode(proof)
}

function tapOf(proof: Proof): string {
  const points = proof.verdicts.map((verdict, i) => tapPoint({ name: verdict.property, failure: failureOf(verdict) }, i + 1))
  return [tapHead(points.length), ...points, tapComments([headOf(proof), ...boundsOf(proof)])].join('')
}

function exitCode({ verdicts }: Proof): number {
  if (verdicts.some(({ outcome }) => outcome === 'confirmed')) return EXIT.unsuccessful
  return verdicts.every(({ outcome }) => outcome === 'proved') ? EXIT.ok : EXIT.waiting
}

const COLOURS: Readonly<Record<Verdict['outcome'], Style>> = { proved: 'green', confirmed: 'red', possible: 'yellow', unknown: 'yellow' }

function proofText(name: string, proof: Proof, hasColours: boolean): string {
  const verdicts = proof.verdicts.flatMap(verdict => {
    const head = `${styled(hasColours, COLOURS[verdict.outcome], verdict.outcome.padEnd('confirmed'.length))}  ${oneLine(verdict.property)}`
    return 'walk' in verdict ? [`${head}${conditionOf(verdict)}`, ...walkLines(verdict.walk)] : [verdict.outcome === 'unknown' ? `${head}: ${oneLine(verdict.why)}` : head]
  })
  return [`${name}: ${headOf(proof)}`, ...verdicts, ...boundsOf(proof), ''].join('\n')
}

/** The size of the proof: `4,812 configurations, all, opened by "a coffee"`. */
function headOf({ configurations, isWhole, openings }: Proof): string {
  const count = configurations === 1 ? '1 configuration' : `${configurations.toLocaleString('en')} configurations`
  return oneLine(`${count}, ${isWhole ? 'all' : 'not all'}, ${openings.join('; ')}`)
}

/** The limits of the proof, as lines. */
function boundsOf({ guesses, lost }: Proof): string[] {
  const open = guesses.length === 0 ? [] : [`No case gives ${guesses.join(' or ')}, so guards hold both ways from there.`]
  return [...open, ...lost.map(walk => `Not followed: ${oneLine(walk)}`)]
}

function conditionOf({ outcome, ...verdict }: Refuted): string {
  if (outcome === 'confirmed' || !('guards' in verdict)) return ''
  return verdict.guards.length === 0 ? ', but the real chart walks differently' : `, if ${oneLine(guardsText(verdict.guards))}`
}

function failureOf(verdict: Verdict): string | undefined {
  if (verdict.outcome === 'proved') return undefined
  if (verdict.outcome === 'unknown') return `unknown: ${verdict.why}`
  return [`${verdict.outcome}${conditionOf(verdict)}`, ...walkLines(verdict.walk)].join('\n')
}
