import { computed, signal } from '@preact/signals'
import { hello } from '../feed/feed.ts'

/** What Paths can show, with its words. */
const CHOICES = { tests: 'what tests reach', proof: 'what is proved', tasks: 'what tasks took' } as const

const wanted = signal<keyof typeof CHOICES>('tests')

/** What Paths shows: tasks only if the hub counts what they take. */
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
