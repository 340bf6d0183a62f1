import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

/** Whether the help is open. */
export const isHelpOpen = signal(false)

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ['/', 'search the tasks'],
  ['j k, ↓ ↑', 'go through a list'],
  ['1 … 8', 'Story, Chart, Sequence, Timeline, Frames, Talk, Paths, and Nodes in a cluster'],
  ['m', 'write a message'],
  ['n', 'write the first message of a new context'],
  ['Enter', 'open the chosen row, on a small screen'],
  [', .', 'one event of the task back, and on'],
  ['+ −, 0', 'zoom a chart, fit it in; arrows move it'],
  ['Esc', 'back to the list'],
  ['?', 'this help']
]

/** The keyboard shortcuts of the page. */
export function Help() {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (isHelpOpen.value) dialog.current?.showModal()
    else dialog.current?.close()
  }, [isHelpOpen.value])
  return (
    <dialog ref={dialog} aria-label="Help" onClose={() => (isHelpOpen.value = false)}>
      <h2>Keys</h2>
      <dl>
        {KEYS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button type="button" class="main" onClick={() => (isHelpOpen.value = false)}>
        Close
      </button>
    </dialog>
  )
}
