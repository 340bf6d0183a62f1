import { stateText, type TaskState } from '../../../machines/protocol/states.ts'

/** A task's state, coloured. */
export function StateBadge({ state }: { readonly state: TaskState }) {
  const text = stateText(state)
  return <span class={`state state-${text}`}>{text}</span>
}
