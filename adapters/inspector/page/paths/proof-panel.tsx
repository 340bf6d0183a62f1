import { computed, signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { ShownVerdict, ShownWalk, TestedStep } from '../../test-result.ts'
import { ChartLegend, pathMarks } from '../chart/chart-panel.tsx'
import { type ChartMarks, ChartPicture } from '../chart/chart-picture.tsx'
import { type ChartPath, chartPathOf } from '../chart/walked-path.ts'
import { askHub, hello, proving } from '../feed/feed.ts'
import { nowMs } from '../page.ts'
import { Paste } from '../parts.tsx'
import { agoText } from '../wording.ts'

const proof = computed(() => proving.value?.proof)

/** The property whose counterexample was opened. */
const opened = signal<string | undefined>(undefined)

const chosen = computed(() => proof.value?.verdicts.find(({ property }) => property === opened.value))

const marks = computed<ChartMarks>(() =>
  chosen.value?.walk ? pathMarks(walkedPath(chosen.value.walk.steps)) : { states: () => [], transitions: () => [] }
)

/** Which properties of the work's chart are proved, and the counterexamples of the others. */
export function ProofPanel() {
  const chart = hello.value?.charts.find(({ id }) => id === 'work')
  if (!proof.value || !chart) {
    return (
      <div class="panel">
        <div class="tools">
          <ShownChoice />
        </div>
        <div class="empty">
          <p>The chart’s properties have not been proved yet.{hello.value?.proves ? '' : ' In a terminal:'}</p>
          {hello.value?.proves ? <Prove label="Prove" /> : <Paste line="npx taskchart prove AGENT.ts" />}
        </div>
      </div>
    )
  }
  const { verdicts, head, atMs } = proof.value
  const open = verdicts.filter(({ outcome }) => outcome !== 'proved').length
  const property = chosen.value?.walk && chosen.value.property
  return (
    <div class="panel">
      <div class="tools">
        <ShownChoice />
        <b>{open === 0 ? 'Everything is proved' : `${open} not proved`}</b>
        <span class="proof-head" title={head}>
          {head}
        </span>
        <span class="quiet">{`proved ${agoText(atMs, nowMs.value)}`}</span>
        {hello.value?.proves && <Prove label="Prove again" />}
        <span class="tools-gap" />
        {property !== undefined && <ChartLegend />}
      </div>
      <ChartPicture
        label={`${chart.title}${property === undefined ? '' : `, a counterexample: ${property}`}`}
        svg={chart.svg}
        marks={marks.value}
      />
      {chosen.value?.walk ? <Counterexample verdict={chosen.value} walk={chosen.value.walk} /> : <Verdicts />}
    </div>
  )
}

function Verdicts() {
  const { verdicts = [], bounds = [] } = proof.value ?? {}
  return (
    <section class="missing verdicts" aria-label="Properties" tabIndex={0}>
      {verdicts.some(({ walk }) => walk) && <p>Choose a property to see its counterexample in the chart:</p>}
      <ul>
        {verdicts.map(verdict => (
          <li key={verdict.property}>
            {verdict.walk ? (
              <button
                type="button"
                class="plain"
                title={verdict.property}
                onClick={() => (opened.value = verdict.property)}
              >
                <Outcome verdict={verdict} />
              </button>
            ) : (
              <Outcome verdict={verdict} />
            )}
          </li>
        ))}
      </ul>
      {bounds.map((line, i) => (
        <p key={i} class="quiet">
          {line}
        </p>
      ))}
    </section>
  )
}

function Outcome({ verdict: { property, outcome, means, says } }: { readonly verdict: ShownVerdict }) {
  return (
    <>
      <b class={`verdict-${outcome}`} title={means}>
        {outcome}
      </b>{' '}
      {property} <span class="quiet">{says}</span>
    </>
  )
}

function Counterexample({
  verdict,
  walk: { steps, loops, ending, alone }
}: {
  readonly verdict: ShownVerdict
  readonly walk: ShownWalk
}) {
  const loop = steps.length - loops
  const last = steps.length - 1
  return (
    <WalkView
      label="A counterexample"
      title={<Outcome verdict={verdict} />}
      back={() => (opened.value = undefined)}
      alone={alone}
      after={
        <>
          {ending !== '' && loops === 0 && <p class="wrong">{ending}</p>}
          <p class="quiet">{`${verdict.outcome}: ${verdict.means}`}</p>
        </>
      }
    >
      {steps.map(({ move, told }, i) => (
        <li key={i} class={i >= loop || i === last ? 'wrong' : ''} aria-current={i === last ? 'step' : undefined}>
          {i === loop && <b>{ending} </b>}
          {move} <span class="quiet">{told}</span>
        </li>
      ))}
    </WalkView>
  )
}

/** A button that proves the properties. */
function Prove({ label }: { readonly label: string }) {
  const { isRunning = false, error } = proving.value ?? {}
  return (
    <span class="run-tests">
      <button type="button" disabled={isRunning} onClick={() => askHub({ type: 'prove' })}>
        {label}
      </button>
      <span role="status">{isRunning && 'exploring the chart…'}</span>
      {error !== undefined && (
        <pre class="paste wrong" role="alert">
          {error}
        </pre>
      )}
    </span>
  )
}

/** The path of steps through the chart. */
export function walkedPath(steps: readonly TestedStep[]): ChartPath {
  return chartPathOf(
    steps.map(({ move, states, transitions }, n) => ({
      n,
      atMs: 0,
      kind: 'microstep',
      to: '',
      event: { type: move },
      states,
      transitions
    }))
  )
}

interface WalkShown {
  /** The name of the part, for assistive technology. */
  readonly label: string
  readonly title: ComponentChildren
  readonly back: () => void
  /** The command that runs it alone. */
  readonly alone: string
  /** Its steps, as items of a list, and what follows them. */
  readonly children: ComponentChildren
  readonly after?: ComponentChildren
}

/** A walk with its steps, its way back to all of them, and its command. */
export function WalkView({ label, title, back, alone, children, after }: WalkShown) {
  return (
    <section class="missing walk" aria-label={label} tabIndex={0}>
      <header>
        <button type="button" onClick={back}>
          ← All
        </button>{' '}
        {title}
      </header>
      <ol>{children}</ol>
      {after}
      <Paste line={alone} />
    </section>
  )
}

/** The views of Paths, with their words. */
const CHOICES = { tests: 'what tests reach', proof: 'what is proved', tasks: 'what tasks took' } as const

const wanted = signal<keyof typeof CHOICES>('tests')

/** The chosen view of Paths: that of tasks only if the hub counts their transitions. */
export const shownInPaths = computed(() =>
  wanted.value === 'tasks' && hello.value?.counts !== true ? 'tests' : wanted.value
)

/** The choice of what Paths shows. */
export function ShownChoice() {
  const names = (Object.keys(CHOICES) as (keyof typeof CHOICES)[]).filter(
    name => name !== 'tasks' || hello.value?.counts
  )
  return (
    <label>
      <span class="quiet">Show</span>
      <select
        value={shownInPaths.value}
        onChange={event => (wanted.value = event.currentTarget.value as keyof typeof CHOICES)}
      >
        {names.map(name => (
          <option key={name} value={name}>
            {CHOICES[name]}
          </option>
        ))}
      </select>
    </label>
  )
}
