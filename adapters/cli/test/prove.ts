import { basename, dirname } from 'node:path'
import { mermaidIds, mermaidText } from '../../drawing/mermaid.ts'
import type { ShownProof, ShownVerdict } from '../../inspector/test-result.ts'
import { statePaths } from '../../testing/diff/verdict-words.ts'
import { guardsText } from '../../testing/proof/open-guards.ts'
import { MODEL_BEGINS } from '../../testing/proof/promela.ts'
import type { Proof, Verdict, Walk, WalkStep } from '../../testing/proof/prove.ts'
import { readOptions, readPositionals } from '../arguments.ts'
import { type Command, EXIT, type Io, usageError } from '../command.ts'
import { writeOwn } from '../files.ts'
import { loadUnlessStopped } from '../load-agent.ts'
import { tableLines, tapComments, tapHead, tapPoint } from '../text/format.ts'
import { jsonLine, oneLine, shellText, shellWord, type Style, styleText } from '../text/terminal.ts'
import { BOUND_FLAGS, boundsHelp, loadPlanning, planError, readBounds } from './testing.ts'

/** The meaning of each outcome. */
export const OUTCOMES: Readonly<Record<Verdict['outcome'], string>> = {
  proved: 'it holds on every walk',
  confirmed: 'it does not hold: the real chart, with the cases, walks this counterexample, which is the shortest',
  possible: 'it does not hold if the named guards decide so about data that no case gives',
  unknown: 'no counterexample was found, but not everything could be explored, for this reason'
}

/** The premise of each fairness about endless walks. */
const PREMISES = {
  progress: 'if whatever waits goes on',
  choice: 'if everything that is possible again and again happens in the end'
} as const

/** The size of the proof: `4,812 configurations, all, opened by "a coffee"`. */
export function headOf({ configurations, isWhole, openings }: Proof): string {
  return oneLine(`${countText(configurations)}, ${isWhole ? 'all' : 'not all'}, ${openings.join('; ')}`)
}

/** The limits of the proof, as lines. */
export function proofLimitLines({ met, guesses, lost, unmodelled, verdicts }: Proof): string[] {
  const shownReasons = new Set(verdicts.map(verdict => ('why' in verdict ? verdict.why : '')))
  const bound =
    met === undefined ? [] : [`Not all was explored: ${met}. Raise that bound, or give memory in the cases.`]
  const open =
    guesses.length === 0 ? [] : [`No case gives ${guesses.join(' or ')}, so guards hold both ways from there.`]
  return [
    ...bound,
    ...open,
    ...lost.map(walk => `Not followed: ${oneLine(walk)}`),
    ...unmodelled.filter(line => !shownReasons.has(line)).map(line => `Not modelled: ${oneLine(line)}`)
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
      told: effectsText(step)
    }))
    const alone = `npx taskchart prove ${shellWord(file)} --only ${shellText(property)}`
    return { ...shown, walk: { steps: moves, loops: again.length, ending: ENDINGS[kind], alone } }
  })
  return { atMs, head: headOf(proof), bounds: proofLimitLines(proof), verdicts }
}

/**
 * Why a verdict is as it is, as a clause: the size and the premise of a proof, the condition of a counterexample, or
 * what could not be seen.
 */
function reasonOf(verdict: Verdict, { configurations }: Proof): string {
  if ('walk' in verdict) return conditionOf(verdict)
  if (verdict.outcome === 'unknown') return verdict.why
  return [`in ${countText(configurations)}`, ...(verdict.fairness ? [PREMISES[verdict.fairness]] : [])].join(', ')
}

function countText(configurations: number): string {
  return configurations === 1 ? '1 configuration' : `${configurations.toLocaleString('en')} configurations`
}

/** `taskchart prove`: proves an agent's properties on the chart of its work. */
export const proveCommand: Command = {
  usage: [
    'taskchart prove AGENT.ts|js [--only TEXT] [--limit NUMBER] [--time SECONDS] [--memory MB] [--json | --tap | --mermaid | --test | --promela [FILE]]'
  ],
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

Exit codes: 0 all proved, or the model is written, 1 an error, 2 wrong usage, 10 a counterexample is confirmed, 11 a counterexample is possible, the
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
  await loadPlanning()
  const { promelaOf, proveAgent } = await import('../../testing/proof/prove.ts')
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
  return [tapHead(points.length), ...points, tapComments([headOf(proof), ...proofLimitLines(proof)])].join('')
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
    const head = `${styleText(hasColours, COLOURS[verdict.outcome], verdict.outcome.padEnd('confirmed'.length))}  ${oneLine(verdict.property)}`
    return 'walk' in verdict
      ? [`${head}${conditionText(verdict)}`, ...walkLines(verdict.walk)]
      : [verdict.outcome === 'unknown' ? `${head}: ${oneLine(verdict.why)}` : head]
  })
  return [`${name}: ${headOf(proof)}`, ...verdicts, ...proofLimitLines(proof), ''].join('\n')
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

/** A verdict that has a counterexample. */
export type Refuted = Extract<Verdict, { walk: Walk }>

/** The line before the steps that repeat, and the line after a walk that stands still. */
export const ENDINGS = { moment: '', loop: 'and for ever again:', end: 'and then nothing goes on' } as const

/** A counterexample in words: each step with the state after it, its updates and what it sends. */
export function walkLines({ opening, begins, steps, again, kind }: Walk): string[] {
  const row = (step: Omit<WalkStep, 'from'>, number: number) => [
    `  ${number}`,
    oneLine(step.says),
    statePaths(step.state),
    effectsText(step)
  ]
  const lines = tableLines([{ ...begins, says: opening }, ...steps, ...again].map((step, i) => row(step, i + 1)))
  const before = lines.slice(0, steps.length + 1)
  if (kind === 'loop') return [...before, `  ${ENDINGS.loop}`, ...lines.slice(steps.length + 1)]
  return kind === 'end' ? [...before, `  ${ENDINGS.end}`] : before
}

/** The updates of a step and what it sends: `tells WORKING, sends pull`. */
export function effectsText({ told: updates, sent }: Pick<WalkStep, 'told' | 'sent'>): string {
  return [...listed('tells', updates), ...listed('sends', sent)].join(', ')
}

function listed(verb: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`${verb} ${names.join(', ')}`]
}

/** A counterexample as a sequence for mermaid: the client, the task, and the actors of its chart. */
export function walkMermaid({ property, walk: { opening, begins, steps, again, kind } }: Refuted): string {
  const senders = [...new Set([...steps, ...again].map(({ from }) => from))].filter(from => from !== 'client')
  const lanes = ['client', 'task', ...senders]
  const [client, task, ...others] = mermaidIds(lanes)
  const idOf = (from: string) => others[senders.indexOf(from)] ?? client
  const arrows = ({ says, from, state, told: updates, sent }: WalkStep) => [
    `  ${idOf(from)}->>${task}: ${mermaidText(says)}`,
    ...updates.map(name => `  ${task}-->>${client}: ${mermaidText(name)}`),
    ...sent.map(type => `  Note over ${task}: sends ${mermaidText(type)}`),
    `  Note right of ${task}: ${mermaidText(statePaths(state))}`
  ]
  const loop = kind === 'loop' ? ['  loop for ever', ...again.flatMap(arrows), '  end'] : []
  const participants = [client, task, ...others].map(
    (id, i) => `  participant ${id} as ${mermaidText(String(lanes[i]))}`
  )
  const end = kind === 'end' ? [`  Note over ${client},${task}: ${ENDINGS.end}`] : []
  return [
    'sequenceDiagram',
    `  %% ${mermaidText(property)}`,
    ...participants,
    ...[{ ...begins, says: opening, from: 'client' }, ...steps].flatMap(arrows),
    ...loop,
    ...end,
    ''
  ].join('\n')
}

/** Counterexamples as a file of tests for Node's runner, which pass once the chart is mended. */
export function walkTests(refuted: readonly Refuted[], module: string, hasCases: boolean): string {
  const tests = refuted.map(({ property, walk: { opening, steps, again } }) =>
    [
      `// Refuted by: ${oneLine([opening, ...steps.map(({ says }) => says)].join('; '))}`,
      ...(again.length === 0 ? [] : [`// and then for ever: ${oneLine(again.map(({ says }) => says).join('; '))}`]),
      `void test(${quoted(property)}, async () => {`,
      `  const { verdicts } = await proveAgent(agent, { ${hasCases ? 'cases, ' : ''}only: ${quoted(property)} })`,
      "  assert.deepEqual(verdicts.filter(({ outcome }) => outcome !== 'proved'), [])",
      '})',
      ''
    ].join('\n')
  )
  const imports = [
    "import assert from 'node:assert/strict'",
    "import { test } from 'node:test'",
    "import { proveAgent } from 'taskchart/testing'",
    `import agent${hasCases ? ', { cases }' : ''} from ${quoted(module)}`
  ]
  return `${imports.join('\n')}\n\n${tests.join('\n')}`
}

/** A text as source code. */
function quoted(text: string): string {
  return /['\\]/.test(text) ? JSON.stringify(text) : `'${text}'`
}
