import { computed, signal } from '@preact/signals'
import type { ChartPath } from '../../story/chart-path.ts'
import type { FailedWalk } from '../../test-result.ts'
import { coverage } from '../feed/feed.ts'
import { walkedPath, WalkView } from './walk-view.tsx'

const failed = computed(() => coverage.value?.failed ?? [])

/** The failed walk that was opened, by driver and name. */
const opened = signal<string | undefined>(undefined)

/** The failed walk that is shown. */
export const chosenWalk = computed(() => failed.value.find(walk => keyOf(walk) === opened.value))

/** The path of a walk through the chart, up to the step that failed. */
export function failedPath({ steps, at }: FailedWalk): ChartPath {
  return walkedPath(steps.slice(0, at + 1))
}

/** The failed walks: a list, or one with its steps. */
export function FailedWalks() {
  if (failed.value.length === 0) return null
  if (chosenWalk.value) return <Walk walk={chosenWalk.value} />
  return (
    <section class="missing" aria-label="Failed walks" tabIndex={0}>
      <p>Choose a failed walk to see it in the chart:</p>
      <ul>
        {failed.value.map(walk => (
          <li key={keyOf(walk)}>
            <button type="button" class="plain" title={walk.name} onClick={() => (opened.value = keyOf(walk))}>
              <b>{walk.driver}</b>: {walk.name}
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Walk({ walk: { name, driver, steps, at, message, alone } }: { readonly walk: FailedWalk }) {
  return (
    <WalkView
      label="A failed walk"
      title={
        <>
          <b>{driver}</b>: {name}
        </>
      }
      back={() => (opened.value = undefined)}
      alone={alone}
      after={<pre class="part-data">{message}</pre>}
    >
      {steps.map(({ move }, i) => (
        <li key={i} class={i === at ? 'wrong' : i > at ? 'quiet' : ''} aria-current={i === at ? 'step' : undefined}>
          {move}
          {i === at && <b> failed</b>}
        </li>
      ))}
    </WalkView>
  )
}

function keyOf({ driver, name }: FailedWalk): string {
  return `${driver}: ${name}`
}
