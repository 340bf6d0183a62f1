import { signal } from '@preact/signals'
import { agentRefusal, agentState, openWithKey } from './agent/agent.ts'
import { feedState, hello, reloadError } from './feed/feed.ts'
import { isHelpOpen } from './help.tsx'
import { nextTheme, theme } from './theme.ts'

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
