import { basename, dirname } from 'node:path'
import { MODEL_BEGINS } from '../../testing/proof/promela.ts'
import type { Proof, Verdict } from '../../testing/proof/prove.ts'
import { readOptions, readPositionals } from '../arguments.ts'
import { EXIT, usageError, type Command, type Io } from '../command.ts'
import { loadUnlessStopped } from '../load-agent.ts'
import { styled, type Style } from '../text/colour.ts'
import { tapComments, tapHead, tapPoint } from '../text/tap-text.ts'
import { jsonLine, oneLine } from '../text/terminal-text.ts'
import { writeOwn } from '../write-own.ts'
import { BOUND_FLAGS, boundsHelp, loadTesting, planError, readBounds } from './testing.ts'
import { boundsOf, conditionOf, headOf, OUTCOMES } from './proof-words.ts'
import { walkLines, walkMermaid, walkTests, type Refuted } from './walk-text.ts'

/** `taskchart prove`: proves an agent's properties on the chart of its work. */
export const proveCommand: Command = {
  usage:
    'taskchart prove AGENT.ts|js [--only TEXT] [--limit NUMBER] [--time SECONDS] [--memory MB] [--json | --tap | --mermaid | --test | --promela [FILE]]',
  details: `Explores every configuration of the chart of the agent's work and checks the agent's properties (defineAgent) on every walk.
Two more properties are checked on each chart: it never throws, and every task can end. A client may cancel everywhere.
Actors end and timers fire in any order that time allows. The module's export cases supplies the data. Guards are evaluated
with it; where no case gives the data, they hold both ways. Each property is one of these:

${Object.entries(OUTCOMES)
  .map(([outcome, meaning]) => `  ${outcome.padEnd('confirmed'.length)}  ${meaning}\n`)
  .join('')}
  --only TEXT       only properties whose name contains this text
${boundsHelp(20_000, 17)}  --json            the proof as one line of JSON: { verdicts, configurations, isWhole, met, openings, guesses, lost }
  --tap             write TAP to stdout instead
  --mermaid         the counterexamples as sequence diagrams for mermaid
  --test            the counterexamples as tests for Node's test runner, to paste beside the agent
  --promela [FILE]  prove nothing, but write the configurations and the properties as a model for SPIN, another prover, to
                    FILE or stdout; a file that this command wrote before is overwritten

Exit codes: 0 all proved, or the model is written, 1 an error, 2 wrong usage, 3 a counterexample is confirmed, 4 a counterexample is possible, the
verdict is unknown, or a bound is met, 130 stopped with Ctrl-C.
`,
  run
}

const FORMS = ['json', 'tap', 'mermaid', 'test', 'promela'] as const
const FLAG = { type: 'boolean' } as const
const OPTIONS = {
  only: { type: 'string' },
  ...BOUND_FLAGS,
  json: FLAG,
  tap: FLAG,
  mermaid: FLAG,
  test: FLAG,
  promela: FLAG
} as const

async function run(args: readonly string[], { stdout, stderr, cwd, colours, signal }: Io): Promise<number> {
  const {
    values: { only, limit, time, memory, ...forms },
    positionals
  } = readOptions(args, OPTIONS)
  // Only a model may go to a file, which follows the agent's.
  const [file, out] =
    forms.promela && positionals.length === 2
      ? (positionals as [string, string])
      : readPositionals(positionals, ['AGENT.ts|js'])
  const [form, other] = FORMS.filter(form => forms[form])
  if (form && other) throw usageError(`Choose one of --${form} and --${other}.`)
  const bounds = readBounds({ limit, time, memory })
  const { agent, cases } = await loadUnlessStopped(file, { cwd, signal })
  const { promelaOf, proveAgent } = await loadTesting()
  const options = { ...(cases && { cases }), ...(only !== undefined && { only }), ...bounds }
  if (form === 'promela') {
    const model = await promelaOf(agent, options).catch(planError(file, agent.card, 'written as a model'))
    if (out === undefined) stdout.write(model)
    else
      for (const path of await writeOwn(
        [{ name: basename(out), text: model, begins: MODEL_BEGINS }],
        dirname(out),
        cwd,
        'FILE'
      ))
        stderr.write(`${path}\n`)
    return EXIT.ok
  }
  const proof = await proveAgent(agent, options).catch(planError(file, agent.card, 'proved'))
  const refuted = proof.verdicts.filter(verdict => 'walk' in verdict)
  const texts = {
    json: () => jsonLine(proof),
    tap: () => tapOf(proof),
    mermaid: () => refuted.map(walkMermaid).join('\n'),
    test: () => (refuted.length === 0 ? '' : walkTests(refuted, `./${basename(file)}`, cases !== undefined))
  }
  stdout.write(form ? texts[form]() : proofText(oneLine(agent.card.name), proof, colours.stdout))
  return exitCode(proof)
}

function tapOf(proof: Proof): string {
  const points = proof.verdicts.map((verdict, i) =>
    tapPoint({ name: verdict.property, failure: failureOf(verdict) }, i + 1)
  )
  return [tapHead(points.length), ...points, tapComments([headOf(proof), ...boundsOf(proof)])].join('')
}

function exitCode({ verdicts }: Proof): number {
  if (verdicts.some(({ outcome }) => outcome === 'confirmed')) return EXIT.unsuccessful
  return verdicts.every(({ outcome }) => outcome === 'proved') ? EXIT.ok : EXIT.waiting
}

const COLOURS: Readonly<Record<Verdict['outcome'], Style>> = {
  proved: 'green',
  confirmed: 'red',
  possible: 'yellow',
  unknown: 'yellow'
}

function proofText(name: string, proof: Proof, hasColours: boolean): string {
  const verdicts = proof.verdicts.flatMap(verdict => {
    const head = `${styled(hasColours, COLOURS[verdict.outcome], verdict.outcome.padEnd('confirmed'.length))}  ${oneLine(verdict.property)}`
    return 'walk' in verdict
      ? [`${head}${conditionText(verdict)}`, ...walkLines(verdict.walk)]
      : [verdict.outcome === 'unknown' ? `${head}: ${oneLine(verdict.why)}` : head]
  })
  return [`${name}: ${headOf(proof)}`, ...verdicts, ...boundsOf(proof), ''].join('\n')
}

function conditionText(verdict: Refuted): string {
  const condition = conditionOf(verdict)
  return condition === '' ? '' : `, ${condition}`
}

function failureOf(verdict: Verdict): string | undefined {
  if (verdict.outcome === 'proved') return undefined
  if (verdict.outcome === 'unknown') return `unknown: ${verdict.why}`
  return [`${verdict.outcome}${conditionText(verdict)}`, ...walkLines(verdict.walk)].join('\n')
}
