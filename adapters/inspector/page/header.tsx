import { effect, signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { agentRefusal, agentState, openWithKey } from './agent/agent.ts'
import { feedState, hello, reloadError } from './feed/feed.ts'

const THEMES = ['system', 'light', 'dark'] as const

type Theme = (typeof THEMES)[number]

const KEY = 'taskchart-theme'

/** The theme of the page. */
const theme = signal<Theme>(THEMES.find(theme => theme === localStorage.getItem(KEY)) ?? 'system')

/** Applies the theme, and stores it for the next visit. */
export function keepTheme(): void {
  effect(() => {
    localStorage.setItem(KEY, theme.value)
    document.documentElement.dataset.theme = theme.value
  })
}

/** The next of system, light and dark. */
function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.peek()) + 1) % THEMES.length] ?? 'system'
}

/** The agent's name, and the state of the connections. */
export function Header() {
  const { name, version, description } = hello.value?.agent ?? {}
  const isThere = feedState.value === 'open' && agentState.value === 'open'
  return (
    <header class="page-header">
      <h1>{name ?? 'taskchart'}</h1>
      {version && <span class="quiet">{version}</span>}
      <code class="agent-url">{hello.value?.url ?? ''}</code>
      <span class="quiet agent-about">{description}</span>
      <span role="status" class={isThere ? 'link link-there' : 'link link-lost'} title={linkTitle()}>
        {linkText(isThere)}
      </span>
      <button
        type="button"
        class="plain"
        onClick={nextTheme}
        title="Light, dark, or the system’s theme"
      >{`Theme: ${theme.value}`}</button>
      <button type="button" class="plain" onClick={() => (isHelpOpen.value = true)} title="Keys (?)" aria-label="Help">
        ?
      </button>
      {reloadError.value !== undefined && (
        <p
          class="banner wrong"
          role="alert"
        >{`The agent’s file was saved, but could not be loaded; the previous version stays loaded. ${reloadError.value}`}</p>
      )}
      {agentRefusal.value !== undefined && feedState.value === 'open' && <KeyForm />}
    </header>
  )
}

function linkText(isThere: boolean): string {
  if (isThere) return 'connected'
  return feedState.value === 'lost' || agentState.value === 'lost' ? 'connection lost, reconnecting' : 'connecting'
}

function linkTitle(): string {
  return `The recording: ${feedState.value}. The agent: ${agentState.value}.`
}

const key = signal('')

const wasTried = signal(false)

/** Asks for the key of an agent with `authenticate`. */
function KeyForm() {
  const submit = (event: Event) => {
    event.preventDefault()
    wasTried.value = true
    void openWithKey(key.value)
  }
  return (
    <form class="banner key-form" aria-label="Credentials" onSubmit={submit}>
      <label for="key">The agent requires credentials. Its key, or a token:</label>
      <input
        id="key"
        type="password"
        autocomplete="off"
        required
        value={key.value}
        onInput={event => (key.value = event.currentTarget.value)}
      />
      <button type="submit">Use it</button>
      {wasTried.value && (
        <span class="wrong" role="alert">
          {agentRefusal.value}
        </span>
      )}
    </form>
  )
}

/** Whether the help is open. */
export const isHelpOpen = signal(false)

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ['/', 'search the tasks'],
  ['j k, ↓ ↑', 'go through a list'],
  ['1 … 8', 'Story, Chart, Sequence, Timeline, Frames, Talk, Paths, and Nodes in a cluster'],
  ['m', 'write a message'],
  ['n', 'write the first message of a new context'],
  ['Enter', 'open the chosen row, on a small screen'],
  [', .', 'one moment of the task back, and on'],
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
