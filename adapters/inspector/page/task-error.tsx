import { crashes } from './feed/feed.ts'

/** The error with which the author's code of a task ended, and its place in the source; nothing without one. */
export function TaskError({ taskId }: { readonly taskId: string | undefined }) {
  const error = crashes.value.get(taskId ?? '')
  if (error === undefined) return null
  return (
    <section class="task-error" role="alert" aria-label="The error of this task">
      <p class="wrong">The work of this task ended with an error. Clients see only that it did.</p>
      <pre class="paste" tabIndex={0}>
        {error}
      </pre>
    </section>
  )
}
