import type { ComponentChildren } from 'preact'
import { chartPathOf, type ChartPath } from '../../story/chart-path.ts'
import type { TestedStep } from '../../test-result.ts'
import { Paste } from '../parts.tsx'

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
