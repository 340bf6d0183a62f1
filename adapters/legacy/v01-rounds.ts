import type { Task } from '../../machines/protocol/objects.ts'

/**
 * The task of an id of 0.1 with all that its earlier tasks have left: their messages, each with the one that it ended with, and
 * their artifacts come first. `historyLength` counts the messages of all.
 */
export function withRounds(task: Task, earlier: readonly Task[], historyLength?: number): Task {
  if (earlier.length === 0) return task
  const said = earlier.flatMap(({ history = [], status: { message } }) => (message ? [...history, message] : history))
  const history = [...said, ...(task.history ?? [])].slice(historyLength === undefined ? 0 : -historyLength)
  const artifacts = [...earlier, task].flatMap(({ artifacts = [] }) => artifacts)
  const { history: _, ...others } = task
  return { ...others, ...(historyLength !== 0 && { history }), ...(artifacts.length > 0 && { artifacts }) }
}

/** How many artifacts they have. */
export function artifactsIn(earlier: readonly Task[]): number {
  return earlier.reduce((sum, { artifacts = [] }) => sum + artifacts.length, 0)
}
